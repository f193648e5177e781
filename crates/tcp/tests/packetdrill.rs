//! The converter `scripts/check/packetdrill.py`: of two small .pkt files of our own, one becomes a script
//! that holds, the other a reason.

use std::path::Path;
use std::process::Command;

#[test]
fn a_pkt_file_becomes_a_script_that_holds_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packetdrill");
    let converter = root.join("../../scripts/check/packetdrill.py");
    let mut python = Command::new("python3");
    python.arg(converter).arg(root.join("tests/packetdrill")).arg("--no-run").arg("--out").arg(&out);
    let Ok(run) = python.output() else {
        println!("skipped: python3 does not run");
        return;
    };
    let (text, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{text}{errors}");
    assert!(text.contains("cannot be expressed  epoll: system call epoll_create"), "{text}");
    assert!(text.contains("    1 cannot be expressed"), "{text}");
    crate::script::run_file(&out.join("packetdrill/transfer.script"))
        .unwrap_or_else(|report| panic!("{report}"));
}
