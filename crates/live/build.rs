//! Compiles the kernel programs with clang.

use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "bpf/gateway.bpf.c";
const FOLDER: &str = "bpf";

fn main() {
    println!("cargo:rerun-if-changed={FOLDER}");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR")).join("gateway.bpf.o");
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> in a folder of the architecture.
    let includes = [variable("DEP_BPF_INCLUDE"), format!("/usr/include/{arch}-linux-gnu")];
    let mut clang = Command::new(std::env::var("CLANG").unwrap_or_else(|_| "clang".into()));
    clang.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-c", SOURCE, "-o"]).arg(&out);
    clang.args(includes.iter().map(|folder| format!("-I{folder}")));
    match clang.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang could not compile {SOURCE}: {status}"),
        Err(error) => panic!("cannot run clang: {error} (Debian: apt-get install clang)"),
    }
}
