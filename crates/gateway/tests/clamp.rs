//! The two forms of the lowered segment size give equal bytes: `net::mss` in Rust, which a worker uses, and
//! `bpf/clamp.h` in C, for the SYNs that the kernel forwards. The C form is compiled for the host. Without a
//! C compiler the test says so and does nothing, but fails where `PACELINE_REQUIRE_PRIVILEGED` is set.

use paceline_net::rewrite::{checksum_is_right, complete_checksum, leave_checksum};
use paceline_net::test_support::{extended, segment};
use paceline_net::{Checksum, Packet, Stream, TcpFlags, mss, wire};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Random segments.
const INPUTS: usize = 50_000;

/// Compiles the C form. None if there is no compiler.
fn compile() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clamp-{}", std::process::id()));
    let named = std::env::var("CC").ok();
    for compiler in named.as_deref().into_iter().chain(["cc", "clang"]) {
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]).arg("-I").arg(folder.join("bpf"));
        command.arg("-o").arg(&program).arg(folder.join("tests/clamp_host.c"));
        if let Ok(status) = command.status() {
            assert!(status.success(), "{compiler} cannot compile clamp_host.c: {status}");
            return Some(program);
        }
    }
    None
}

/// The datagrams as the kernel program leaves them.
fn clamped(inputs: &[(Packet, u16)]) -> Option<Vec<u8>> {
    let Some(program) = compile() else {
        assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "there is no C compiler");
        println!("skipped: there is no C compiler");
        return None;
    };
    let record = |(packet, most): &(Packet, u16)| {
        let bytes = wire::emit(packet);
        [&(bytes.len() as u32).to_ne_bytes()[..], &u32::from(*most).to_ne_bytes(), &bytes].concat()
    };
    let file = program.with_extension("records");
    std::fs::write(&file, inputs.iter().flat_map(record).collect::<Vec<u8>>()).unwrap();
    let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
    let output = Command::new(&program).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    [&program, &file].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    Some(output.stdout)
}

/// A SYN, SYN-ACK or other segment with random options, a complete, corrupt or partial checksum, and maybe
/// IPv4 options or an IPv6 extension header.
fn random_segment(stream: &mut Stream) -> Packet {
    let v6 = stream.chance(0.5);
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    let flags = match stream.below(4) {
        0 => TcpFlags::ACK,
        1 => TcpFlags::SYN.with(TcpFlags::ACK),
        _ => TcpFlags::SYN,
    };
    let own = segment().flags(flags).seq(stream.below(1 << 32) as u32).ack(stream.below(1 << 32) as u32);
    let own = if v6 { own.between(address("2001:db8::1"), address("2001:db8::2")) } else { own };
    // The options of a device's timestamps are overwritten by a random list.
    let own = own.timestamps(1, 2).with(|tcp| tcp.options.mss = Some(1460));
    let payload = if stream.chance(0.2) { vec![7; stream.below(40) as usize] } else { Vec::new() };
    let mut raw = wire::emit(&own.datagram(&payload));
    let at = if v6 { 40 } else { 20 };
    let end = at + usize::from(raw[at + 12] >> 4) * 4;
    let mut list = Vec::new();
    while list.len() < end - at - 20 {
        match stream.below(6) {
            0 => list.push(1),
            1 => list.extend([3, 3, 7]),
            2 if stream.chance(0.2) => list.push(0),
            3 => list.push(stream.below(256) as u8),
            _ => list.extend([2, 4, stream.below(16) as u8, stream.below(256) as u8]),
        }
    }
    raw[at + 20..end].copy_from_slice(&list[..end - at - 20]);
    let mut packet = wire::parse(&raw).expect("a datagram");
    if packet.tcp_header().is_some() {
        leave_checksum(&mut packet);
        if !stream.chance(0.3) {
            complete_checksum(&mut packet);
        }
        if stream.chance(0.3) {
            let header: &[u8] = if v6 { &[6, 0, 1, 4, 0, 0, 0, 0] } else { &[148, 4, 0, 0] };
            packet = extended(&packet, 60, header);
        }
    }
    packet
}

#[test]
fn the_kernel_program_lowers_the_segment_size_as_a_worker_does() {
    let mut stream = Stream::new(23, "clamp");
    let inputs: Vec<(Packet, u16)> =
        (0..INPUTS).map(|_| (random_segment(&mut stream), 536 + stream.below(2000) as u16)).collect();
    let Some(output) = clamped(&inputs) else { return };
    let (mut at, mut changed) = (0, 0);
    for (before, most) in &inputs {
        let mut after = before.clone();
        let most = if before.ip.src.is_ipv4() { *most } else { most - 20 };
        changed += u32::from(mss::clamp(&mut after, most));
        let expected = wire::emit(&after);
        let found = &output[at..at + expected.len()];
        assert_eq!(found, expected, "{most} {before:02x?}");
        at += expected.len();
        if after.offload.checksum != Checksum::Partial {
            assert_eq!(checksum_is_right(&after), checksum_is_right(before));
        }
    }
    assert!(changed > INPUTS as u32 / 4, "{changed} changed");
}
