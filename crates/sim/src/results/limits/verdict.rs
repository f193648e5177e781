//! The verdict on a group of stations: a sentence that names the limit of its TCP.
//!
//! The largest limit of the senders gives one half of the sentence. Where a window, pacing or losses limit,
//! the other half names the place on the path: a direction of the radio in which most of the round-trip time
//! passes or whose capacity is used up, a wired hop, or the place of most losses. With a proxy, the sentence
//! is about the side that limits.

use super::senders::SenderSums;
use super::shares::LimitShares;
use super::sides::{PathUse, Side, StationSenders};
use crate::counters::Proxy;
use crate::results::statistics::ratio;
use paceline_net::words::{bit_rate, bytes, ms, percent};
use paceline_tcp::Limit;
use serde::{Deserialize, Serialize};

/// Share of a capacity from which on it is used up. Chosen: grants and segments do not fill every PRB and
/// every moment.
const USED_UP: f64 = 0.9;

/// Share of time from which on a full RLC window is named. Chosen: it lowers the rate by up to as much.
const STALLED: f64 = 0.1;

/// The senders of one side of a proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideResult {
    /// The side.
    pub side: Side,
    /// Mean round-trip time of the side, ms.
    pub rtt_mean_ms: f64,
    /// Shares of the lifetimes of the side's senders.
    pub limits: LimitShares,
    /// The largest limit of the side, in words.
    pub verdict: String,
}

/// The verdict on several connections.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::results) struct Verdict {
    /// A sentence without its subject, the connections.
    pub text: String,
    /// The side that limits, with a proxy.
    pub side: Option<Side>,
    /// Both sides of a proxy; empty without one.
    pub sides: Vec<SideResult>,
}

impl Verdict {
    pub fn new(senders: &StationSenders) -> Self {
        let StationSenders { ends, relays, path, .. } = senders;
        let Some(side_of_ends) = senders.side_of_ends() else {
            let text = Part { sums: ends, path, side: None, relay: false }.verdict();
            return Self { text, side: None, sides: Vec::new() };
        };
        let other = if side_of_ends == Side::Server { Side::Radio } else { Side::Server };
        let parts = [(ends, side_of_ends, false), (relays, other, true)];
        let parts = parts.map(|(sums, side, relay)| Part { sums, path, side: Some(side), relay });
        let waits = [Limit::Application, Limit::Handshake].map(|limit| relays.times.share(limit));
        let limiting = &parts[usize::from(waits[0] + waits[1] <= 0.5)];
        let result = |part: &Part<'_>, side| SideResult {
            side,
            rtt_mean_ms: part.sums.rtt_ms(),
            limits: LimitShares::new(&part.sums.times),
            verdict: part.verdict(),
        };
        let words = limiting.side.map_or("", Side::word);
        Self {
            text: format!("on the {words} side {}", limiting.verdict()),
            side: limiting.side,
            sides: vec![result(&parts[0], side_of_ends), result(&parts[1], other)],
        }
    }
}

/// The senders of one side, or of the whole path.
struct Part<'a> {
    sums: &'a SenderSums,
    path: &'a PathUse,
    side: Option<Side>,
    /// Whether these are the proxy's senders.
    relay: bool,
}

impl Part<'_> {
    fn verdict(&self) -> String {
        let share = |limit: &Limit| self.sums.times.share(*limit);
        let largest = Limit::ALL.into_iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let largest = largest.expect("there are limits");
        let share = percent(share(&largest));
        let tcp = format!("{} {share} of the time ({})", self.name(largest), self.reason(largest));
        match self.place(largest) {
            Some(place) => format!("limited by {place}; {tcp}"),
            None => tcp,
        }
    }
    /// The limit as a part of a sentence.
    fn name(&self, limit: Limit) -> String {
        let owner = match (self.path.proxy, self.relay, limit) {
            (Some(Proxy::Accelerator), true, Limit::Pacing) => {
                return "limited by the accelerator's rate".into();
            }
            (Some(_), true, Limit::Application) => return "waiting for data of the other side".into(),
            (Some(Proxy::Accelerator), false, Limit::ReceiveWindow) if self.side.is_some() => {
                "accelerator's "
            }
            (Some(Proxy::SplitTcp), false, Limit::ReceiveWindow) if self.side.is_some() => "proxy's ",
            (Some(_), true, Limit::SendBuffer) => "proxy's ",
            _ => "",
        };
        let name = match limit {
            Limit::Handshake => "connecting",
            Limit::Application => "without data to send",
            Limit::SendBuffer => return format!("limited by the {owner}send buffer"),
            Limit::ReceiveWindow => return format!("limited by the {owner}receive window"),
            Limit::CongestionWindow => "limited by the congestion window",
            Limit::Pacing => "limited by pacing",
            Limit::Recovery => "repairing losses",
            Limit::Timeout => "waiting for time-outs",
        };
        name.into()
    }
    fn reason(&self, limit: Limit) -> String {
        let sums = self.sums;
        let rtt = sums.rtt_ms();
        let per_round_trip = |window: u64| {
            let rate = if rtt > 0.0 { window as f64 * 8.0 / (rtt / 1e3) } else { 0.0 };
            format!("{} at {} is {}", bytes(window as f64), ms(rtt), bit_rate(rate))
        };
        match limit {
            Limit::ReceiveWindow => per_round_trip(sums.window),
            Limit::SendBuffer => per_round_trip(sums.send_buffer),
            Limit::CongestionWindow => per_round_trip((sums.rate() / 8.0 * rtt / 1e3) as u64),
            Limit::Pacing => format!("{} at {}", bit_rate(sums.rate()), ms(rtt)),
            Limit::Application if self.relay => format!("{} came", bit_rate(sums.rate())),
            Limit::Application => format!("it wrote {}", bit_rate(sums.rate())),
            Limit::Recovery => {
                format!("{} of the segments sent again", percent(ratio(sums.retransmissions, sums.segments)))
            }
            Limit::Timeout => format!("{} of them", sums.timeouts),
            Limit::Handshake => {
                let each = sums.times.of(Limit::Handshake).as_millis_f64() / sums.flows.max(1) as f64;
                format!("{} each", ms(each))
            }
        }
    }
    /// The place on the path that explains a limit, if there is one.
    fn place(&self, limit: Limit) -> Option<String> {
        match limit {
            Limit::Handshake | Limit::Application => None,
            Limit::Timeout => self.rlc_window().or_else(|| self.losses()),
            Limit::Pacing | Limit::ReceiveWindow | Limit::SendBuffer => self.radio(),
            Limit::CongestionWindow | Limit::Recovery => self.radio().or_else(|| self.losses()),
        }
    }
    fn radio(&self) -> Option<String> {
        self.rlc_window().or_else(|| self.radio_delay()).or_else(|| self.used_up())
    }
    /// The direction in which a full RLC window holds data back, if there is one.
    fn rlc_window(&self) -> Option<String> {
        if self.side == Some(Side::Server) { None } else { rlc_window(self.path.window_stalls()) }
    }
    /// The direction of the radio in which packets spend most of the round-trip time, if there is one.
    fn radio_delay(&self) -> Option<String> {
        if self.side == Some(Side::Server) {
            return None;
        }
        let (shares, rtt) = (self.sums.round_trip(), ms(self.sums.rtt_ms()));
        let sentence = |name: &str, sum: f64, parts: &[(&str, f64)]| {
            let parts: Vec<String> =
                parts.iter().map(|(part, share)| format!("{part} {}", percent(*share))).collect();
            let sum = percent(sum.min(1.0));
            format!("the {name}, where {sum} of the round trip of {rtt} passes ({})", parts.join(", "))
        };
        if shares.uplink() > 0.5 {
            let parts =
                [("queue", shares.uplink_queue), ("grants", shares.grant), ("HARQ", shares.uplink_harq)];
            return Some(sentence("uplink", shares.uplink(), &parts));
        }
        let parts = [("queue", shares.downlink_queue), ("HARQ", shares.downlink_harq)];
        (shares.downlink() > 0.5).then(|| sentence("downlink", shares.downlink(), &parts))
    }
    /// The part of the path whose capacity is used up, if there is one.
    fn used_up(&self) -> Option<String> {
        let path = self.path;
        let used = if path.is_link { "the capacity is" } else { "the PRBs are" };
        let radio = |name: &str, share: f64| {
            (share, format!("the {name}, where {} of {used} in use", percent(share)))
        };
        let wired = |share: f64| {
            (share, format!("the wired path, whose busiest hop sends {} of the time", percent(share)))
        };
        let mut parts = Vec::new();
        if self.side != Some(Side::Server) {
            parts.push(radio("downlink", path.downlink()));
            parts.push(radio("uplink", path.uplink()));
            parts.push(wired(path.behind_proxy()));
        }
        if self.side != Some(Side::Radio) {
            parts.push(wired(path.before_proxy()));
        }
        let most = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        most.filter(|(share, _)| *share >= USED_UP).map(|(_, text)| text)
    }
    /// The place of most losses, if there were any.
    fn losses(&self) -> Option<String> {
        let path = self.path;
        let mut places = Vec::new();
        if self.side != Some(Side::Server) {
            places.push((path.radio_losses, "losses on the radio"));
            places.push((path.queue_drops, "drops at a full queue of the radio"));
            places.push((path.wired_drops[1], "drops at a full queue of the wired path"));
        }
        if self.side != Some(Side::Radio) {
            places.push((path.wired_drops[0], "drops at a full queue of the wired path"));
        }
        let most = places.into_iter().max_by_key(|(count, _)| *count).filter(|(count, _)| *count > 0);
        most.filter(|_| self.sums.retransmissions > 0)
            .map(|(count, text)| format!("{text} ({count} packets)"))
    }
}

/// The direction in which a full RLC window holds data back, if it does so for long; of the shares of time of
/// the downlink and the uplink.
fn rlc_window([down, up]: [f64; 2]) -> Option<String> {
    let (share, name) = if up > down { (up, "uplink") } else { (down, "downlink") };
    (share >= STALLED)
        .then(|| format!("the sequence window of RLC AM in the {name}, full {} of the time", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_rlc_window_is_named_from_a_tenth_of_the_time_on() {
        assert_eq!(rlc_window([0.09, 0.0]), None);
        let downlink = "the sequence window of RLC AM in the downlink, full 40% of the time";
        assert_eq!(rlc_window([0.4, 0.3]).as_deref(), Some(downlink));
        assert!(rlc_window([0.1, 0.2]).is_some_and(|text| text.contains("uplink, full 20%")));
    }
}
