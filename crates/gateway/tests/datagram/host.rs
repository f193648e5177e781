//! The C form of the parser, `host.c`, and its findings.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel program's finding, by the names of `enum packet_kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Other,
    Segment { ports: [u16; 2], seq: u32, payload: u32 },
    TooBig,
    First { ports: [u16; 2] },
    Later,
}

/// Compiles the C form. None if there is no compiler.
fn compile(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let named = std::env::var("CC").ok();
    for compiler in named.as_deref().into_iter().chain(["cc", "clang"]) {
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]).arg("-I").arg(folder.join("bpf"));
        command.arg("-o").arg(&program).arg(folder.join("tests/datagram/host.c"));
        if let Ok(status) = command.status() {
            assert!(status.success(), "{compiler} cannot compile host.c: {status}");
            return Some(program);
        }
    }
    None
}

/// The findings of the kernel program in datagrams from servers. None if there is no compiler.
pub fn findings(name: &str, datagrams: &[Vec<u8>]) -> Option<Vec<Kind>> {
    let packets: Vec<(u16, Vec<u8>)> = datagrams.iter().map(|bytes| (0, bytes.clone())).collect();
    Some(findings_in(name, &packets)?.into_iter().map(|(kind, _)| kind).collect())
}

/// The same for packets behind link headers of these EtherTypes, 0 for that of the datagram's version; and
/// whether the datagram is inside a tunnel.
pub fn findings_in(name: &str, packets: &[(u16, Vec<u8>)]) -> Option<Vec<(Kind, bool)>> {
    let Some(program) = compile(name) else {
        assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "there is no C compiler");
        println!("skipped: there is no C compiler");
        return None;
    };
    let record = |(ethertype, bytes): &(u16, Vec<u8>)| {
        let head = [bytes.len() as u32, u32::from(*ethertype) << 16].map(u32::to_ne_bytes);
        [head.as_flattened(), bytes].concat()
    };
    let file = program.with_extension("records");
    std::fs::write(&file, packets.iter().flat_map(record).collect::<Vec<u8>>()).unwrap();
    let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
    let output = Command::new(&program).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    [&program, &file].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let text = String::from_utf8(output.stdout).unwrap();
    let kind = |line: &str| {
        let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let ports = [numbers[1] as u16, numbers[2] as u16];
        let kind = match numbers[0] {
            0 => Kind::Other,
            1 => Kind::Segment { ports, seq: numbers[3], payload: numbers[4] },
            2 => Kind::TooBig,
            3 => Kind::First { ports },
            _ => Kind::Later,
        };
        (kind, numbers[6] == 1)
    };
    Some(text.lines().map(kind).collect())
}
