use super::*;
use crate::cc::{LossSample, RateSample};

const MSS: u64 = 1000;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A path of 1 MB/s and 100 ms: one ACK of a segment per ms, a hundred per round trip.
struct ControlledPath {
    bbr: Bbr3,
    now: Instant,
    delivered: u64,
    lost: u64,
    in_flight: u64,
}

impl ControlledPath {
    fn new() -> Self {
        let mut bbr = Bbr3::new(MSS as u32, 10, 1, true);
        bbr.on_established(Instant::ZERO, Some(MS(100)));
        Self { bbr, now: Instant::ZERO, delivered: 0, lost: 0, in_flight: 100_000 }
    }
    fn ack(&mut self) -> AckSample {
        self.now += MS(1);
        self.delivered += 1000;
        AckSample {
            acked: Bytes(1000),
            advanced: true,
            rtt: Some(MS(100)),
            srtt: Some(MS(100)),
            cwnd_limited: self.in_flight >= self.bbr.cwnd,
            in_flight: Bytes(self.in_flight),
            delivered: Bytes(self.delivered),
            rate: RateSample {
                delivered: Bytes(100_000),
                interval: MS(100),
                prior_delivered: Bytes(self.delivered.saturating_sub(100_000)),
                tx_in_flight: Bytes(self.in_flight),
                ..Default::default()
            },
            ..Default::default()
        }
    }
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            let ack = self.ack();
            self.bbr.on_ack(self.now, &ack);
        }
    }
    /// An acknowledgment that marks `lost` bytes as lost, of a flight in which `of_flight` bytes were lost.
    fn lose(&mut self, lost: u64, of_flight: u64) {
        self.lost += lost;
        let mut ack = self.ack();
        ack.in_recovery = true;
        ack.lost = Bytes(lost);
        ack.rate.lost = Bytes(of_flight);
        let (tx_in_flight, app_limited) = (Bytes(self.in_flight), false);
        ack.loss = Some(LossSample { lost: Bytes(of_flight), tx_in_flight, app_limited });
        self.bbr.on_ack(self.now, &ack);
    }
    /// Runs until the state is reached, with the flight of the states before it.
    fn run_to(&mut self, state: State) {
        for _ in 0..10_000 {
            if self.bbr.state == state {
                return;
            }
            self.in_flight = match self.bbr.state {
                State::Up => 125_000,
                State::Down => 80_000,
                State::ProbeRtt => 50_000,
                _ => 100_000,
            };
            self.run(1);
        }
        panic!("never in {state:?}: {:?}", self.bbr);
    }
}

#[test]
fn startup_paces_at_2_77_and_ends_by_bandwidth() {
    let mut path = ControlledPath::new();
    assert_eq!(path.bbr.pacing_rate, 800_000 * 277 / 100);
    path.in_flight = 250_000;
    path.run(500);
    assert_eq!((path.bbr.state, path.bbr.full_bw_reached), (State::Drain, true));
    assert_eq!(path.bbr.pacing_rate, 8_000_000 * 50 * 99 / 10_000);
    path.run(450); // at most three round trips, though the queue does not drain
    assert_eq!(path.bbr.state, State::Down);
    assert_eq!(path.bbr.inflight_longterm, NONE);
}

#[test]
fn six_lossy_acks_in_a_round_trip_of_recovery_end_startup() {
    let mut path = ControlledPath::new();
    path.run(150);
    path.bbr.on_congestion(path.now, CongestionEvent::FastRecovery, Bytes(0));
    for _ in 0..5 {
        path.lose(1000, 1000);
        path.run(5);
    }
    assert_eq!(path.bbr.state, State::Startup);
    // More than a round trip later, 3% of the flight are lost.
    for _ in 0..30 {
        path.lose(1000, 3000);
        for _ in 0..9 {
            let mut ack = path.ack();
            ack.in_recovery = true;
            ack.rate.lost = Bytes(3000);
            path.bbr.on_ack(path.now, &ack);
        }
        if path.bbr.full_bw_reached {
            break;
        }
    }
    assert!(path.bbr.full_bw_reached && path.bbr.state != State::Startup);
    assert_eq!(path.bbr.inflight_longterm, 100_000);
}

#[test]
fn the_cycle_is_down_cruise_refill_up() {
    let mut path = ControlledPath::new();
    path.run_to(State::Cruise);
    let began = path.now;
    for state in [State::Refill, State::Up, State::Down, State::Cruise] {
        path.run_to(state);
    }
    // Without losses there is no bound, and one probe in two to three seconds and some round trips.
    assert_eq!(path.bbr.inflight_longterm, NONE);
    let span = path.now.since(began);
    assert!(span > MS(2000) && span < MS(4000), "{span:?}");
}

#[test]
fn gains_are_those_of_the_draft() {
    let mut path = ControlledPath::new();
    for (state, gains) in [
        (State::Startup, (277, 200)),
        (State::Drain, (50, 200)),
        (State::Down, (90, 200)),
        (State::Cruise, (100, 200)),
        (State::Refill, (100, 200)),
        (State::Up, (125, 225)),
        (State::ProbeRtt, (100, 50)),
    ] {
        path.bbr.state = state;
        assert_eq!(path.bbr.gains(), gains, "{state:?}");
    }
}

#[test]
fn a_probe_that_loses_too_much_sets_the_bound_at_2_percent_loss() {
    let mut path = ControlledPath::new();
    path.run_to(State::Up);
    path.in_flight = 120_000;
    path.run(110);
    path.bbr.on_congestion(path.now, CongestionEvent::FastRecovery, Bytes(0));
    path.lose(1000, 1000); // 0.8 %: tolerated
    assert_eq!((path.bbr.state, path.bbr.inflight_longterm), (State::Up, NONE));
    // 3000 of 120,000 are lost: 2% of the 117,000 before are 2340, and 2340/0.98 more fit.
    path.lose(3000, 3000);
    assert_eq!(path.bbr.state, State::Down);
    assert_eq!(path.bbr.inflight_longterm, 117_000 + 2340 * 100 / 98);
    let bound = path.bbr.inflight_longterm;
    path.lose(3000, 6000); // once per probe
    assert_eq!(path.bbr.inflight_longterm, bound);
    // In Cruise 15% are left to others.
    path.run_to(State::Cruise);
    path.run(1);
    assert_eq!(path.bbr.inflight_with_headroom(), bound - bound / 100 * 15);
    assert!(path.bbr.cwnd <= bound - bound / 100 * 15);
}

#[test]
fn losses_outside_probes_lower_the_short_term_bounds_by_30_percent_at_most() {
    let mut path = ControlledPath::new();
    path.run_to(State::Cruise);
    path.bbr.on_congestion(path.now, CongestionEvent::FastRecovery, Bytes(0));
    path.lose(1000, 1000);
    path.run(101);
    // The delivery of the round trip bounds from below: 1 MB/s and a flight of 100,000.
    assert_eq!(path.bbr.bw_shortterm, 8_000_000);
    assert!(path.bbr.inflight_shortterm >= 100_000 && path.bbr.inflight_shortterm < path.bbr.prior_cwnd);
    path.run_to(State::Refill);
    assert_eq!((path.bbr.bw_shortterm, path.bbr.inflight_shortterm), (NONE, NONE));
}

#[test]
fn probe_rtt_begins_after_five_seconds_with_half_the_bdp() {
    let mut path = ControlledPath::new();
    path.run_to(State::ProbeRtt);
    assert!(path.now > Instant::from_millis(5000) && path.now < Instant::from_millis(5200), "{:?}", path.now);
    path.run(1);
    assert_eq!(path.bbr.cwnd, 50_000);
    assert!(path.bbr.limits_itself());
    path.in_flight = 50_000;
    path.run(400);
    assert_ne!(path.bbr.state, State::ProbeRtt);
    assert!(path.bbr.cwnd > 150_000, "{}", path.bbr.cwnd);
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut path = ControlledPath::new();
    path.run_to(State::Up);
    path.in_flight = 120_000;
    path.run(110);
    let before = path.bbr.cwnd;
    path.bbr.on_congestion(path.now, CongestionEvent::FastRecovery, Bytes(0));
    path.lose(5000, 5000);
    assert_eq!(path.bbr.state, State::Down);
    path.bbr.on_congestion(path.now, CongestionEvent::Undo, Bytes(0));
    assert_eq!((path.bbr.state, path.bbr.inflight_longterm), (State::Refill, NONE));
    assert!(path.bbr.cwnd >= before);
}

#[test]
fn a_timeout_reduces_to_the_flight_and_one_segment() {
    let mut path = ControlledPath::new();
    path.run_to(State::Cruise);
    let before = path.bbr.cwnd;
    path.bbr.on_congestion(path.now, CongestionEvent::Timeout, Bytes(0));
    assert_eq!(path.bbr.cwnd, MSS);
    let mut ack = path.ack();
    ack.in_loss = true;
    path.bbr.on_ack(path.now, &ack);
    assert!(path.bbr.cwnd <= 4 * MSS, "{}", path.bbr.cwnd);
    path.run(1);
    assert!(path.bbr.cwnd >= before, "{} {before}", path.bbr.cwnd);
}
