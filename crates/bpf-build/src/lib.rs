//! Compiles a crate's kernel programs with clang, for its build script. The layouts that they share with Rust
//! come from their header, the constants of the algorithms from Rust.

mod constants;
mod layout;

pub use constants::Source;

use layout::Layout;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate's folder of kernel programs.
const FOLDER: &str = "bpf";

/// Compiles `bpf/{name}.bpf.c` to `{name}.bpf.o`, with the constants of the sources, and translates the
/// shared layouts of `bpf/{shared}.h` to `layout.rs`, both in the folder of the build. Panics, with the
/// reason, where something is missing or does not compile.
pub fn build(name: &str, shared: &str, constants: &[Source]) {
    println!("cargo:rerun-if-changed={FOLDER}");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> in a folder of the architecture, and in another one for cross-compilers.
    let includes = [
        variable("DEP_BPF_INCLUDE"),
        format!("/usr/include/{arch}-linux-gnu"),
        format!("/usr/{arch}-linux-gnu/include"),
        FOLDER.to_owned(),
    ];
    let path = format!("{FOLDER}/{shared}.h");
    let header = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let parsed = Layout::parse(&header);
    let (rust, included) = (out.join("layout.rs"), out.join("layout.h"));
    let header = constants::header(constants) + &parsed.asserts(shared);
    for (path, text) in [(&rust, parsed.rust()), (&included, header)] {
        std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let source = format!("{FOLDER}/{name}.bpf.c");
    compile(&source, &includes, &included, &out.join(format!("{name}.bpf.o")));
}

fn compile(source: &str, includes: &[String], included: &Path, object: &Path) {
    let mut clang = Command::new(std::env::var("CLANG").unwrap_or_else(|_| "clang".into()));
    clang.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-c", source, "-o"]).arg(object);
    // Objects have no place of the build in them, so that two builds in different folders are equal.
    let here = std::env::current_dir().unwrap_or_else(|error| panic!("the present folder: {error}"));
    let folders = [(here.as_path(), "bpf-sources"), (object.parent().unwrap_or(object), "bpf-generated")];
    let folders = folders.into_iter().chain(includes.first().map(|folder| (Path::new(folder), "libbpf")));
    clang.args(folders.map(|(folder, name)| format!("-ffile-prefix-map={}={name}", folder.display())));
    clang.args(includes.iter().map(|folder| format!("-I{folder}"))).arg("-include").arg(included);
    match clang.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang could not compile {source}: {status}"),
        Err(error) => panic!("cannot run clang: {error} (Debian: apt-get install clang)"),
    }
}
