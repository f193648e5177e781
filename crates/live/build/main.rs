//! Compiles the kernel programs with clang. The layouts that they share with Rust come from their headers
//! ([`layout`]), the constants of the algorithms from Rust ([`constants`]).

mod constants;
mod layout;

use constants::Source;
use layout::Layout;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each kernel program with its header of shared layouts: `bpf/gateway.bpf.c` with `bpf/shared.h` gives
/// `gateway.bpf.o` and `layout.rs`.
const PROGRAMS: [Program; 3] = [
    Program {
        name: "gateway",
        shared: "shared",
        layout: "layout",
        constants: &[
            Source { file: "net/src/datagram/headers.rs", module: "", prefix: "NET_" },
            Source { file: "net/src/datagram/tunnel.rs", module: "", prefix: "NET_GTPU_" },
        ],
    },
    Program {
        name: "police",
        shared: "police",
        layout: "police_layout",
        constants: &[
            Source { file: "pep/src/ack_policer/limiter.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/judge.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/flow.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/flow.rs", module: "seen", prefix: "SEEN_" },
            Source { file: "pep/src/ack_policer/segment.rs", module: "marks", prefix: "MARK_" },
            Source { file: "pep/src/ack_policer/frame.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/frame_policer.rs", module: "", prefix: "" },
        ],
    },
    Program {
        name: "pace",
        shared: "pace",
        layout: "pace_layout",
        constants: &[
            Source { file: "net/src/pacing/clean_delay.rs", module: "", prefix: "" },
            Source { file: "tcp/src/cc/delay_based/illinois.rs", module: "", prefix: "ILLINOIS_" },
        ],
    },
];
const FOLDER: &str = "bpf";

struct Program {
    name: &'static str,
    shared: &'static str,
    layout: &'static str,
    constants: &'static [Source],
}

fn main() {
    println!("cargo:rerun-if-changed={FOLDER}");
    println!("cargo:rerun-if-changed=build");
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
    for Program { name, shared, layout, constants } in PROGRAMS {
        let path = format!("{FOLDER}/{shared}.h");
        let header = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let parsed = Layout::parse(&header);
        let (rust, included) = (out.join(format!("{layout}.rs")), out.join(format!("{layout}.h")));
        let header = constants::header(constants) + &parsed.asserts(shared);
        for (path, text) in [(&rust, parsed.rust()), (&included, header)] {
            std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let source = format!("{FOLDER}/{name}.bpf.c");
        compile(&source, &includes, &included, &out.join(format!("{name}.bpf.o")));
    }
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
