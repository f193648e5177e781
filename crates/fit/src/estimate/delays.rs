//! Round trips without queue, by side of the capture point, and their jitter.

use super::quantile;
use crate::capture::{Captures, Flow};

/// Samples of the round trip from the point to one end and back.
#[derive(Clone, Debug, Default)]
pub struct Half {
    /// Time of passing and round trip, ns.
    pub samples: Vec<(u64, u64)>,
}

impl Half {
    /// The least round trip, ms.
    pub fn least_ms(&self) -> Option<f64> {
        self.samples.iter().map(|(_, rtt)| *rtt as f64 / 1e6).reduce(f64::min)
    }
    /// A quantile, ms.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        quantile(&self.samples.iter().map(|(_, rtt)| *rtt as f64 / 1e6).collect::<Vec<_>>(), share)
    }
}

/// Both halves at a capture point: towards clients, towards servers.
pub fn halves(captures: &Captures, point: usize) -> [Half; 2] {
    let mut halves = [Half::default(), Half::default()];
    for flow in captures.flows.iter().filter(|flow| flow.point == point) {
        add(flow, &mut halves);
    }
    halves
}

fn add(flow: &Flow, halves: &mut [Half; 2]) {
    let at = flow.handshake.iter().flatten().min().copied().unwrap_or(0);
    for (half, sample) in halves.iter_mut().zip(flow.handshake_halves()) {
        half.samples.extend(sample.map(|rtt| (at, rtt)));
    }
    for (end, half) in halves.iter_mut().enumerate() {
        half.samples.extend(flow.echoes[end].iter().copied());
        // Data towards this end, and their acknowledgment.
        let towards = &flow.directions[1 - end];
        half.samples.extend(
            towards
                .data
                .iter()
                .filter(|data| !data.is_repair && !data.was_repeated)
                .filter_map(|data| Some((data.at, data.acked_at?.saturating_sub(data.at)))),
        );
    }
}
