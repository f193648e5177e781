//! A setting that a host measures with its own TCP and forwarding, and its figures: the client of a router
//! downloads from a source, and a policer in front of the router drops ACKs.

use paceline_pep::ack_policer::Mode;
use serde::{Deserialize, Serialize};

/// A setting: source, sessions and policer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Rate of the source, Mb/s.
    pub rate_mbps: u32,
    /// Queue of the source, bytes.
    pub queue_bytes: u32,
    /// Sessions, of which every second one has the client's second address.
    pub sessions: u32,
    /// Congestion control of the sessions.
    pub control: String,
    /// ACKs to be dropped, percent; zero is no policer.
    pub drop_percent: u32,
    /// Mode of the policer.
    pub mode: Mode,
    /// A bucket for each session in place of one for all.
    pub per_flow: bool,
    /// Whether the client's second address is exempt.
    pub exempt: bool,
    /// Number of the run at this setting.
    pub run: u32,
}

impl Setting {
    /// The same without a policer.
    pub fn without_policer(&self) -> Self {
        Self { drop_percent: 0, mode: Mode::Published, per_flow: false, exempt: false, ..self.clone() }
    }
}

/// The figures of a setting after the warm-up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Rate of each session, Mb/s of payload.
    pub rates_mbps: Vec<f64>,
    /// Segments that the server sent again, from the beginning on.
    pub retransmissions: u64,
    /// Payload of the first 3 s, MB.
    pub first_3_s_mb: f64,
    /// CPU time of the router's forwarding, share of one CPU.
    pub load: f64,
    /// Packets per second through the router, both directions.
    pub packets_per_s: f64,
    /// ACKs per second that reach the router.
    pub acks_per_s: f64,
    /// ACKs that the policer has seen.
    pub acks_seen: u64,
    /// ACKs that the policer has dropped.
    pub acks_dropped: u64,
    /// Samples over time: seconds, and the bytes of each session until then.
    pub samples: Vec<(f64, Vec<u64>)>,
}

impl Figures {
    /// Rate of all sessions, Mb/s.
    pub fn rate(&self) -> f64 {
        self.rates_mbps.iter().sum()
    }
    /// Rate over time of each session: a point for each sample.
    pub fn rates_over_time(&self) -> Vec<Vec<(f64, f64)>> {
        let point = |pair: &[(f64, Vec<u64>)], session: usize| {
            let ((from, before), (to, after)) = (&pair[0], &pair[1]);
            (*to, 8e-6 * (after[session] - before[session]) as f64 / (to - from))
        };
        let session = |session| self.samples.windows(2).map(|pair| point(pair, session)).collect();
        (0..self.rates_mbps.len()).map(session).collect()
    }
}
