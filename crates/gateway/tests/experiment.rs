//! The two forms of an experiment's assignment agree: `paceline_experiment::Assignment` in Rust, by which
//! transfers are counted, and `bpf/experiment.h` in C, by which the kernel program leaves connections. The C
//! form is compiled for the host. Without a C compiler the test says so and does nothing, but fails where
//! `PACELINE_REQUIRE_PRIVILEGED` is set.

use paceline_experiment::{Arm, Assignment};
use paceline_net::Stream;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Command, Stdio};

/// Random devices and experiments.
const INPUTS: usize = 100_000;

fn input(stream: &mut Stream) -> (Assignment, IpAddr) {
    let mut word = || stream.below(1 << 32) as u32;
    let assignment = Assignment { seed: word(), share: word() % 65_537 };
    let v6 = (0..4).fold(0, |bits, _| bits << 32 | u128::from(word()));
    let address = if word().is_multiple_of(2) {
        Ipv4Addr::from_bits(word()).into()
    } else {
        Ipv6Addr::from_bits(v6).into()
    };
    (assignment, address)
}

fn record((assignment, address): &(Assignment, IpAddr)) -> Vec<u8> {
    let octets = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    [&assignment.seed.to_ne_bytes()[..], &assignment.share.to_ne_bytes(), &octets].concat()
}

#[test]
fn the_gateway_and_the_kernel_program_choose_the_same_devices() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("experiment-{}", std::process::id()));
    let named = std::env::var("CC").ok();
    let compiled = named.as_deref().into_iter().chain(["cc", "clang"]).find_map(|compiler| {
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]).arg("-I").arg(folder.join("bpf"));
        command.arg("-o").arg(&program).arg(folder.join("tests/experiment_host.c"));
        command.status().ok()
    });
    let Some(status) = compiled else {
        assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "there is no C compiler");
        println!("skipped: there is no C compiler");
        return;
    };
    assert!(status.success(), "experiment_host.c cannot be compiled: {status}");
    let mut stream = Stream::new(17, "experiment");
    let inputs: Vec<_> = (0..INPUTS).map(|_| input(&mut stream)).collect();
    let file = program.with_extension("records");
    std::fs::write(&file, inputs.iter().flat_map(record).collect::<Vec<u8>>()).unwrap();
    let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
    let output = Command::new(&program).stdin(stdin).output().unwrap();
    [&program, &file].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(output.status.success() && output.stdout.len() == INPUTS, "{output:?}");
    let mut untouched = 0;
    for ((assignment, address), kernel) in inputs.iter().zip(&output.stdout) {
        let own = assignment.arm(*address) == Arm::Untouched;
        assert_eq!(own, *kernel == 1, "{assignment:?} {address}");
        untouched += usize::from(own);
    }
    assert!((INPUTS / 3..INPUTS / 3 * 2).contains(&untouched), "both arms occur: {untouched}");
}
