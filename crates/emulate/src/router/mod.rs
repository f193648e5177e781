//! ACK rate control in front of a router, measured: a server with a shaper, a router, a bridge with the
//! policer, and a client, each a network namespace with this host's TCP and forwarding, without offloads.
//!
//! A kernel thread receives the packets of each device (threaded NAPI), so that the CPU time of the threads
//! of the router's two devices is that of forwarding, with the wake-ups of the next devices' threads.
//! [`measure`] runs one setting of [`paceline_reproduce::papers::router::measured`].
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // measurements in real time

mod napi;
mod network;
mod sessions;

pub use network::problem;

use network::{ACCESS, CLIENTS, Network, SERVER, SOUTH, WIRED};
use paceline_linux::bpf::tcx::Hook;
use paceline_police::{Limit, Mode, Police, PoliceConfig, Policy, Via};
use paceline_reproduce::host::{Figures, Setting};
use sessions::{Receiver, Senders};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Length of an ACK: IPv4 and TCP headers of 20 bytes each with timestamps of 12 (RFC 7323).
const ACK_BYTES: f64 = 52.0;
/// Published burst of the bucket, bytes.
const BURST_BYTES: f64 = 5000.0;
/// Longest burst, s of the bucket's rate. The published transfers took minutes to hours, so that the burst
/// ended early in them; these take seconds.
const BURST_S: f64 = 1.0;
/// Time from which load and rate are read. Chosen: past the slow start.
const WARMUP: Duration = Duration::from_secs(1);
/// Part of a transfer of which row 5a reads the bytes, s. Published.
const START_S: f64 = 3.0;

/// Measures a setting for `seconds` after the warm-up. `acks_per_s` is the ACK rate without a policer, from
/// which the bucket of a published policer follows.
pub fn measure(setting: &Setting, seconds: f64, acks_per_s: f64) -> anyhow::Result<Figures> {
    let network = Network::build(setting)?;
    let policer = match setting.drop_percent {
        0 => None,
        _ => Some(network.bridge.inside(|| Police::attach(SOUTH, &policer(setting, acks_per_s)))?),
    };
    let listener = network.server.inside(|| sessions::listen(SERVER, &setting.control))?;
    let addresses = (0..setting.sessions as usize).map(|session| CLIENTS[session % CLIENTS.len()]);
    let (clients, servers) = sessions::connect(&network.client, &listener, SERVER, addresses)?;
    let senders = Senders::start(servers)?;
    let total = WARMUP + Duration::from_secs_f64(seconds.max(START_S - WARMUP.as_secs_f64() + 0.5));
    let receiver = Receiver::start(clients, total);
    std::thread::sleep(WARMUP);
    let (began, cpu, packets) = (Instant::now(), network.cpu_time()?, network.received()?);
    let samples = receiver.finish()?;
    let span = began.elapsed().as_secs_f64();
    let cpu = network.cpu_time()?.saturating_sub(cpu).as_secs_f64();
    let after = network.received()?;
    let per_s = |device: usize| (after[device] - packets[device]) as f64 / span;
    let report = policer.as_ref().map(Police::report).transpose()?;
    let retransmissions = senders.retransmissions()?;
    Ok(Figures {
        rates_mbps: rates(&samples, setting.sessions as usize),
        retransmissions,
        first_3_s_mb: 1e-6 * bytes_until(&samples, START_S) as f64,
        load: cpu / span,
        packets_per_s: per_s(WIRED.index) + per_s(ACCESS.index),
        acks_per_s: per_s(ACCESS.index),
        acks_seen: report.as_ref().map_or(0, |report| report.acks),
        acks_dropped: report.as_ref().map_or(0, paceline_police::Report::dropped),
        samples,
    })
}

/// The policer of a setting, where the client's packets enter the bridge. The published one is a token bucket
/// that leaves the wanted share of the ACKs.
fn policer(setting: &Setting, acks_per_s: f64) -> PoliceConfig {
    let kept = 1.0 - f64::from(setting.drop_percent) / 100.0;
    let policed = if setting.exempt { 0.5 } else { 1.0 };
    let share = if setting.per_flow { 1.0 / f64::from(setting.sessions) } else { policed };
    let bytes_per_s = (acks_per_s * share * kept * ACK_BYTES).round().max(1.0);
    let burst = (bytes_per_s * BURST_S).clamp(ACK_BYTES, BURST_BYTES).round();
    let limit = match setting.mode {
        Mode::Published => Limit::Rate { bytes_per_s: bytes_per_s as u64, burst: burst as u64 },
        Mode::Safe => Limit::share(1.0 - kept),
    };
    PoliceConfig {
        policy: Policy { mode: setting.mode, limit, max_segments: Policy::MAX_SEGMENTS },
        per_flow: setting.per_flow || setting.mode == Mode::Safe,
        direction: Hook::Ingress,
        gtp: false,
        exempt: if setting.exempt { vec![IpAddr::from(CLIENTS[1]).into()] } else { Vec::new() },
        dry_run: false,
        via: Via::Auto,
    }
}

/// Mb/s of each session after the warm-up.
fn rates(samples: &[(f64, Vec<u64>)], sessions: usize) -> Vec<f64> {
    let first = samples.iter().find(|(at, _)| *at >= WARMUP.as_secs_f64());
    let (Some((from, before)), Some((to, after))) = (first, samples.last()) else {
        return vec![0.0; sessions];
    };
    let rate = |session: usize| 8e-6 * (after[session] - before[session]) as f64 / (to - from).max(1e-9);
    (0..sessions).map(rate).collect()
}

/// Bytes of all sessions until a time.
fn bytes_until(samples: &[(f64, Vec<u64>)], until: f64) -> u64 {
    let within = samples.iter().filter(|(at, _)| *at <= until);
    within.map(|(_, bytes)| bytes.iter().sum()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_reproduce::papers::router::measured::settings;

    #[test]
    fn buckets_leave_the_wanted_share_of_the_acks() {
        let all = settings(false);
        let bucket = |wanted: &dyn Fn(&Setting) -> bool| {
            let setting = all.iter().find(|setting| wanted(setting)).unwrap();
            let config = policer(setting, 1000.0);
            config.check().unwrap();
            let Limit::Rate { bytes_per_s, burst } = config.policy.limit else { panic!("no bucket") };
            (bytes_per_s, burst, config.exempt.len())
        };
        assert_eq!(bucket(&|setting| setting.drop_percent == 80 && setting.sessions == 1), (10_400, 5000, 0));
        // A bucket for each of two sessions has half of the ACKs, and so has that of the only policed one.
        let two = |per_flow: bool, exempt: bool| {
            bucket(&|setting| {
                (setting.sessions, setting.drop_percent) == (2, 80)
                    && (setting.per_flow, setting.exempt) == (per_flow, exempt)
            })
        };
        assert_eq!(two(true, false), (5200, 5000, 0));
        assert_eq!(two(false, true), (5200, 5000, 1));
        assert_eq!(two(false, false), (10_400, 5000, 0));
        assert_eq!(bucket(&|setting| setting.drop_percent == 98), (1040, 1040, 0));
        let blind = Setting { drop_percent: 100, ..all[0].clone() };
        policer(&blind, 0.0).check().unwrap();
    }

    #[test]
    fn rates_are_read_after_the_warm_up() {
        let samples = vec![
            (0.0, vec![0, 0]),
            (1.0, vec![500, 500]),
            (2.0, vec![1_000_500, 500]),
            (3.0, vec![2_000_500, 500]),
        ];
        assert_eq!(rates(&samples, 2), [8.0, 0.0]);
        assert_eq!(bytes_until(&samples, 2.5), 1_001_000);
        assert_eq!(rates(&[], 1), [0.0]);
    }
}
