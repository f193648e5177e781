//! A congestion control of one's own, beside CUBIC: additive increase, and a fifth less after a loss or, once
//! in a round trip, when this is longer than one and a half times its minimum.

use paceline_net::{Bytes, Instant};
use paceline_sim::{Run, scenario};
use paceline_tcp::{AckSample, CongestionControl, CongestionEvent, OwnControl};

const LINK: &str = r#"
run = { duration = "20 s" }
link = { delay = "20 ms", queue = "500 kB", fixed = { downlink_rate = "20 Mb/s" } }
[[station]]
"#;

#[derive(Clone, Debug)]
struct Careful {
    mss: f64,
    cwnd: f64,
    round_ends: u64,
}

impl CongestionControl for Careful {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        self.cwnd += self.mss * sample.acked.0 as f64 / self.cwnd;
        if let (Some(rtt), Some(least)) = (sample.rtt, sample.min_rtt)
            && sample.snd_una > self.round_ends
        {
            self.round_ends = sample.snd_nxt;
            if rtt.as_secs_f64() > 1.5 * least.as_secs_f64() {
                self.cwnd *= 0.8;
            }
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, _in_flight: Bytes) {
        let lost = matches!(event, CongestionEvent::FastRecovery | CongestionEvent::Timeout);
        self.cwnd = if lost { (0.8 * self.cwnd).max(2.0 * self.mss) } else { self.cwnd };
    }
    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd as u64)
    }
    fn ssthresh(&self) -> Bytes {
        Bytes(u64::MAX)
    }
}

pub fn main() {
    let scenario = scenario::load("link.toml", LINK, &[]).unwrap_or_else(|error| panic!("{error}"));
    let new = |mss: f64| Careful { mss, cwnd: 10.0 * mss, round_ends: 0 };
    let careful = OwnControl::new(move |parameters| new(parameters.mss.into()));
    for name in ["cubic", "careful"] {
        let mut run = Run::new(&scenario, 1, None);
        if name == "careful" {
            run.control_by(&careful);
        }
        while !run.is_over() {
            run.step();
        }
        let totals = run.finish().totals;
        println!("{name}: {:.1} Mb/s, round trip {:.0} ms", totals.goodput_mbps, totals.rtt_mean_ms);
    }
}
