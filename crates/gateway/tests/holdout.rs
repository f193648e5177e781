//! The two forms of the holdout's hash give equal groups: `pep::ack_filter::Holdout` in Rust, which the ACK
//! filter uses, and `bpf/holdout.h` in C, which the kernel program uses. The C form is compiled for the host.
//! Without a C compiler the test says so and does nothing, but fails where `PACELINE_REQUIRE_PRIVILEGED` is
//! set.

use paceline_net::{FlowKey, Stream};
use paceline_pep::ack_filter::{Group, Holdout};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Random connections and holdouts.
const INPUTS: usize = 200_000;

/// Compiles the C form. None if there is no compiler.
fn compile() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("holdout-{}", std::process::id()));
    let named = std::env::var("CC").ok();
    for compiler in named.as_deref().into_iter().chain(["cc", "clang"]) {
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]).arg("-I").arg(folder.join("bpf"));
        command.arg("-o").arg(&program).arg(folder.join("tests/holdout_host.c"));
        if let Ok(status) = command.status() {
            assert!(status.success(), "{compiler} cannot compile holdout_host.c: {status}");
            return Some(program);
        }
    }
    None
}

/// `struct holdout` and `struct connection` of bpf/shared.h.
fn record(holdout: &Holdout, key: &FlowKey) -> Vec<u8> {
    let address = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    // The key has the direction of the ACKs: from the device to the server.
    [
        &holdout.salt.to_ne_bytes()[..],
        &holdout.share.to_ne_bytes(),
        &address(key.dst),
        &address(key.src),
        &key.dst_port.to_be_bytes(),
        &key.src_port.to_be_bytes(),
    ]
    .concat()
}

fn address(stream: &mut Stream, v4: bool) -> IpAddr {
    let mut word = || stream.below(1 << 32) as u32;
    if v4 {
        Ipv4Addr::from_bits(word()).into()
    } else {
        Ipv6Addr::from_bits((0..4).fold(0, |bits, _| bits << 32 | u128::from(word()))).into()
    }
}

fn input(stream: &mut Stream) -> (Holdout, FlowKey) {
    // Half of the shares are up to one half, as a configuration allows them.
    let largest_share = if stream.below(2) == 0 { 1 << 15 } else { 1 << 16 };
    let holdout =
        Holdout { salt: stream.below(1 << 32) as u32, share: stream.below(largest_share + 1) as u32 };
    let v4 = stream.below(2) == 0;
    let key = FlowKey {
        src: address(stream, v4),
        dst: address(stream, v4),
        src_port: stream.below(1 << 16) as u16,
        dst_port: stream.below(1 << 16) as u16,
    };
    (holdout, key)
}

#[test]
fn the_ack_filter_and_the_kernel_program_choose_the_same_groups() {
    let Some(program) = compile() else {
        assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "there is no C compiler");
        println!("skipped: there is no C compiler");
        return;
    };
    let seed = std::env::var("PACELINE_HOLDOUT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()) << 32 | 17);
    println!("PACELINE_HOLDOUT_SEED={seed}");
    let mut stream = Stream::new(seed, "holdout");
    let inputs: Vec<_> = (0..INPUTS).map(|_| input(&mut stream)).collect();
    let records: Vec<u8> = inputs.iter().flat_map(|(holdout, key)| record(holdout, key)).collect();
    let file = program.with_extension("records");
    std::fs::write(&file, records).unwrap();
    let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
    let output = Command::new(&program).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    [&program, &file].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(output.stdout.len(), INPUTS);
    let mut counts = [0; 3];
    for (n, ((holdout, key), kernel)) in inputs.iter().zip(&output.stdout).enumerate() {
        let filter = match holdout.group(key) {
            Some(Group::HeldOut) => 0,
            Some(Group::Matched) => 1,
            None => 2,
        };
        assert_eq!(filter, *kernel, "input {n} of seed {seed}: {holdout:?} {key:?}");
        counts[usize::from(*kernel)] += 1;
    }
    assert!(counts.iter().all(|count| *count > INPUTS / 20), "each group occurs: {counts:?}");
}
