//! Compiles the kernel programs.

use paceline_bpf_build::{Source, build};

fn main() {
    build(
        "pace",
        "pace",
        &[
            Source { file: "net/src/pacing/clean_delay.rs", module: "", prefix: "" },
            Source { file: "tcp/src/cc/delay_based/illinois.rs", module: "", prefix: "ILLINOIS_" },
        ],
    );
}
