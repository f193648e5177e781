//! Compiles the kernel programs.

use paceline_bpf_build::{Source, build};

fn main() {
    build(
        "police",
        "police",
        &[
            Source { file: "pep/src/ack_policer/limiter.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/judge.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/flow.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/flow.rs", module: "seen", prefix: "SEEN_" },
            Source { file: "pep/src/ack_policer/segment.rs", module: "marks", prefix: "MARK_" },
            Source { file: "pep/src/ack_policer/frame.rs", module: "", prefix: "" },
            Source { file: "pep/src/ack_policer/frame_policer.rs", module: "", prefix: "" },
        ],
    );
}
