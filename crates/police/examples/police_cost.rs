//! Time of the ACK policer's programs for a packet, by the kernel's own run-time statistics (`make
//! police-cost`). They include a part of the two readings of the clock that they take.

use paceline_linux::bpf::tcx::Hook;
use paceline_police::{Bench, Limit, Mode, PoliceConfig, Policy, Via, run_times};

const SYN: u16 = 0x002;
const ACK: u16 = 0x010;
/// Numbers of connections. Chosen: those of the target in docs/police.md.
const FLOWS: [u32; 3] = [1, 1_000, 100_000];
/// Rounds of two segments and an ACK in all. Chosen: two for each of the most connections.
const ROUNDS: u32 = 200_000;

/// An Ethernet frame of a connection; `protocol` 17 makes it a datagram of UDP.
#[allow(clippy::too_many_arguments)] // the fields of a header
fn frame(flow: u32, up: bool, protocol: u8, flags: u16, seq: u32, ack: u32, payload: u16) -> Vec<u8> {
    let (client, server) = (0x0a00_0000 + flow, 0xc000_0201u32);
    let (src, dst) = if up { (client, server) } else { (server, client) };
    let ports: [u16; 2] = if up { [40_000, 443] } else { [443, 40_000] };
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00, 0x45, 0]);
    bytes.extend((20 + 32 + payload).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    bytes.extend(src.to_be_bytes());
    bytes.extend(dst.to_be_bytes());
    ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend((0x8000 | flags).to_be_bytes());
    bytes.extend([0xff; 2]);
    bytes.extend([0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    bytes.resize(bytes.len() + usize::from(payload.min(100)), 0); // the payload is not read
    bytes
}

/// Mean time of `runs` of a program in ns.
fn mean(bench: &Bench, program: &str, mut runs: impl FnMut(&Bench)) -> f64 {
    let before = bench.run_time(program).expect("statistics");
    runs(bench);
    let after = bench.run_time(program).expect("statistics");
    (after.0 - before.0) as f64 / (after.1 - before.1) as f64
}

fn main() {
    if let Some(problem) = paceline_police::problem() {
        eprintln!("police_cost: {problem}");
        std::process::exit(1);
    }
    let _measured = run_times().expect("the kernel measures run times");
    println!("connections: ns for a pure ACK, a data segment, a datagram of UDP; dropped ACKs");
    for flows in FLOWS {
        let policy = Policy { mode: Mode::Safe, limit: Limit::Share(52_429), max_segments: 16 };
        let (per_flow, direction, gtp, exempt, dry_run) = (true, Hook::Ingress, false, Vec::new(), false);
        let config = PoliceConfig { policy, per_flow, direction, gtp, exempt, dry_run, via: Via::Auto };
        let bench = Bench::with_kernel_clock(&config).expect("the programs load");
        for flow in 0..flows {
            bench.run_frame("police", &frame(flow, true, 6, SYN, 0, 0, 0)).unwrap();
            bench.run_frame("observe", &frame(flow, false, 6, SYN | ACK, 0, 1, 0)).unwrap();
            bench.run_frame("police", &frame(flow, true, 6, ACK, 1, 1, 0)).unwrap();
        }
        let (mut data, mut dropped) = (0.0, 0);
        let acks = mean(&bench, "police", |bench| {
            data = mean(bench, "observe", |bench| {
                for round in 0..ROUNDS {
                    let (flow, at) = (round % flows, 1 + round / flows * 2896);
                    for seq in [at, at + 1448] {
                        bench.run_frame("observe", &frame(flow, false, 6, ACK, seq, 1, 1448)).unwrap();
                    }
                    let ack = frame(flow, true, 6, ACK, 1, at + 2896, 0);
                    dropped += u32::from(bench.run_frame("police", &ack).unwrap() == 2); // TCX_DROP
                }
            });
        });
        let other = mean(&bench, "police", |bench| {
            for round in 0..ROUNDS {
                bench.run_frame("police", &frame(round % flows, true, 17, 0, 0, 0, 0)).unwrap();
            }
        });
        println!("{flows}: {acks:.0}, {data:.0}, {other:.0}; {dropped} of {ROUNDS}");
    }
}
