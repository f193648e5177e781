use super::*;
use crate::cc::RateSample;

const MSS: u64 = 1000;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A path of 1 MB/s and 100 ms: one ACK of a segment per ms, a hundred per round trip.
struct ControlledPath {
    bbr: Bbr,
    now: Instant,
    delivered: u64,
    rtt: Duration,
    /// Bytes per ms.
    rate: u64,
    in_flight: u64,
}

impl ControlledPath {
    fn new() -> Self {
        let mut bbr = Bbr::new(MSS as u32, 10, 1);
        bbr.on_established(Instant::ZERO, Some(MS(100)));
        Self { bbr, now: Instant::ZERO, delivered: 0, rtt: MS(100), rate: 1000, in_flight: 100_000 }
    }
    fn ack(&self) -> AckSample {
        AckSample {
            acked: Bytes(self.rate),
            advanced: true,
            rtt: Some(self.rtt),
            srtt: Some(self.rtt),
            prior_in_flight: Bytes(self.in_flight + self.rate),
            in_flight: Bytes(self.in_flight),
            delivered: Bytes(self.delivered),
            rate: RateSample {
                delivered: Bytes(self.rate * self.rtt.as_millis()),
                interval: self.rtt,
                prior_delivered: Bytes(self.delivered.saturating_sub(self.rate * self.rtt.as_millis())),
                ..Default::default()
            },
            ..Default::default()
        }
    }
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += MS(1);
            self.delivered += self.rate;
            let ack = self.ack();
            self.bbr.on_ack(self.now, &ack);
        }
    }
}

#[test]
fn startup_paces_at_2_885_times_the_bandwidth() {
    let path = ControlledPath::new();
    // Ten segments per 100 ms: 800 kb/s.
    assert_eq!(path.bbr.pacing_rate, 800_000 * 739 / 256 * 99 / 100);
    assert_eq!(path.bbr.gains(), (739, 739));
}

#[test]
fn startup_ends_after_three_round_trips_without_growth_and_drain_at_the_bdp() {
    let mut path = ControlledPath::new();
    path.in_flight = 250_000;
    path.run(150);
    assert_eq!(path.bbr.mode, Mode::Startup);
    path.run(400); // the first round trip with the full rate, and three more
    assert_eq!((path.bbr.mode, path.bbr.full_bw_rounds), (Mode::Drain, 3));
    assert_eq!(path.bbr.pacing_rate, 8_000_000 * 88 / 256 * 99 / 100);
    path.in_flight = 106_000; // the BDP and three bursts of two segments
    path.run(1);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    assert_ne!(path.bbr.cycle, 1); // the cycle never begins with the gain 3/4
}

#[test]
fn a_growing_bandwidth_keeps_startup() {
    let mut path = ControlledPath::new();
    for _ in 0..12 {
        path.run(100);
        path.rate = path.rate * 5 / 4 + 1;
    }
    assert_eq!(path.bbr.mode, Mode::Startup);
}

#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut path = ControlledPath::new();
    path.run(600);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    let mut seen = Vec::new();
    for _ in 0..2400 {
        // The flight follows the pacing gain of the phase.
        path.in_flight = if path.bbr.cycle == 0 { 140_000 } else { 100_000 };
        path.run(1);
        if seen.last() != Some(&path.bbr.cycle) {
            seen.push(path.bbr.cycle);
        }
    }
    let start = seen[0];
    for (i, cycle) in seen.iter().enumerate() {
        assert_eq!(*cycle, (start + i) % 8, "{seen:?}");
    }
    assert!(seen.len() > 16, "{seen:?}");
    // Steady state: twice the BDP and three bursts; the window of the probing phase has two segments more.
    let target = if path.bbr.cycle == 0 { 208_000 } else { 206_000 };
    assert!(path.bbr.cwnd <= target + 2000 && path.bbr.cwnd >= target - 2000, "{}", path.bbr.cwnd);
}

#[test]
fn probe_rtt_begins_after_ten_seconds_and_restores_the_window() {
    let mut path = ControlledPath::new();
    path.run(9_900);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    let before = path.bbr.cwnd;
    path.run(110);
    assert_eq!((path.bbr.mode, path.bbr.cwnd), (Mode::ProbeRtt, 4 * MSS));
    assert!(path.bbr.limits_itself());
    path.in_flight = 4 * MSS;
    path.run(150);
    assert_eq!(path.bbr.mode, Mode::ProbeRtt); // 200 ms and a round trip
    path.run(100);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    assert!(path.bbr.cwnd + 2 * MSS >= before, "{} {before}", path.bbr.cwnd); // of the probing phase
    path.in_flight = 100_000;
    path.run(9_900);
    assert_eq!(path.bbr.mode, Mode::ProbeBw); // the next PROBE_RTT is ten seconds later
}

#[test]
fn recovery_conserves_packets_for_a_round_trip_and_restores_the_window() {
    let mut path = ControlledPath::new();
    path.run(1000);
    let before = path.bbr.cwnd;
    path.bbr.on_congestion(path.now, CongestionEvent::FastRecovery, Bytes(90_000));
    let lossy = |path: &ControlledPath, lost| AckSample {
        in_recovery: true,
        in_flight: Bytes(90_000),
        lost: Bytes(lost),
        ..path.ack()
    };
    path.delivered += 1000;
    let ack = lossy(&path, 5000);
    path.bbr.on_ack(path.now, &ack);
    assert_eq!(path.bbr.cwnd, 91_000);
    path.delivered += 1000;
    let ack = AckSample { in_flight: Bytes(85_000), ..lossy(&path, 0) };
    path.bbr.on_ack(path.now, &ack);
    assert_eq!(path.bbr.cwnd, 91_000);
    path.run(1);
    assert!(path.bbr.cwnd >= before.min(206_000), "{} {before}", path.bbr.cwnd);
}

#[test]
fn a_timeout_reduces_to_one_segment_and_the_end_of_the_repair_restores_the_window() {
    let mut path = ControlledPath::new();
    path.run(1000);
    let before = path.bbr.cwnd;
    path.bbr.on_congestion(path.now, CongestionEvent::Timeout, Bytes(0));
    assert_eq!(path.bbr.cwnd, MSS);
    path.delivered += 1000;
    let ack = AckSample { in_loss: true, ..path.ack() };
    path.bbr.on_ack(path.now, &ack);
    assert!(path.bbr.cwnd <= 4 * MSS, "{}", path.bbr.cwnd);
    path.run(1);
    assert!(path.bbr.cwnd >= before, "{} {before}", path.bbr.cwnd);
}

#[test]
fn application_limited_samples_do_not_lower_the_bandwidth() {
    let mut path = ControlledPath::new();
    path.run(600);
    let bw = path.bbr.bw.get();
    for round in 0..20 {
        path.delivered += 10_000;
        path.now += MS(100);
        let mut ack = path.ack();
        ack.rate.delivered = Bytes(10_000);
        ack.rate.prior_delivered = Bytes(path.delivered - 1);
        ack.rate.app_limited = true;
        path.bbr.on_ack(path.now, &ack);
        assert_eq!(path.bbr.bw.get(), bw, "{round}");
    }
    path.bbr.on_transmit_start(path.now, true);
    assert!(path.bbr.idle_restart);
    assert_eq!(path.bbr.pacing_rate, 8_000_000 * 99 / 100);
}
