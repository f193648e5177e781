//! Compiles the kernel programs.

use paceline_bpf_build::{Source, build};

fn main() {
    build(
        "gateway",
        "shared",
        &[
            Source { file: "net/src/datagram/headers.rs", module: "", prefix: "NET_" },
            Source { file: "net/src/datagram/tunnel.rs", module: "", prefix: "NET_GTPU_" },
        ],
    );
}
