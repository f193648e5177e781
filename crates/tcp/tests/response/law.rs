//! The law of a congestion control alone under the RFC's deterministic losses, in segments or in bytes:
//! acknowledgments at equal intervals over the round trip, and a loss that reduces the window at once.
//! Without a sender there are no retransmissions; the difference to the window of a whole endpoint is the
//! cost of the repairs.

use super::tables::Entry;
use paceline_net::{Bytes, Instant};
use paceline_tcp::{
    AckSample, CongestionControl, CongestionEvent, Controller, CwndUnit, EndpointConfig, SlowStartExit,
};

const SEGMENT: u64 = 1000;

/// The average window in segments over `periods` losses, after as many to converge.
pub fn law(entry: &Entry, unit: CwndUnit, peak: u64, periods: u64) -> f64 {
    let addresses = ["198.18.0.1:5000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
    let config = EndpointConfig {
        variant: entry.variant,
        cwnd_unit: unit,
        initial_window: peak as u32,
        hystart: SlowStartExit::Off,
        fast_convergence: false,
        ..EndpointConfig::new(addresses[0], addresses[1])
    };
    let mut control = Controller::new(&config.congestion_control(SEGMENT as u32, true));
    let rtt_ns = entry.rtt.as_nanos() as f64;
    // The controls read the time from the clock, so the start is far from zero.
    let mut now_ns = 1e9;
    let mut measured_from_ns = now_ns;
    for period in 0..2 * periods {
        if period == periods {
            measured_from_ns = now_ns;
        }
        let now = Instant::from_nanos(now_ns as u64);
        control.on_congestion(now, CongestionEvent::FastRecovery, Bytes(0));
        control.on_congestion(now, CongestionEvent::RecoveryEnd, Bytes(0));
        for _ in 0..entry.period {
            now_ns += rtt_ns * SEGMENT as f64 / control.cwnd().0 as f64;
            let now = Instant::from_nanos(now_ns as u64);
            control.on_sent(now, Bytes(SEGMENT), control.cwnd());
            control.on_ack(now, &sample(entry));
        }
    }
    (periods * entry.period) as f64 * rtt_ns / (now_ns - measured_from_ns)
}

fn sample(entry: &Entry) -> AckSample {
    AckSample {
        acked: Bytes(SEGMENT),
        advanced: true,
        cwnd_limited: true,
        rtt: Some(entry.rtt),
        srtt: Some(entry.rtt),
        min_rtt: Some(entry.rtt),
        ..AckSample::default()
    }
}
