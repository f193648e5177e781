//! Tail loss probes (RFC 8985 §7, as Linux): when ACKs stop before everything is acknowledged, one segment leaves
//! after two round-trip times, new if there is one, or else the last again, so that its ACK tells what was lost.
//! When the probe repaired the only loss, the window is reduced for it nevertheless.

use paceline_net::{Duration, Instant};

/// Added to two round-trip times, against an ACK a little late (`TCP_TIMEOUT_MIN`).
pub(crate) const GRACE: Duration = Duration::from_millis(2);

/// The probe of one connection; at most one is out.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TailProbe {
    due: bool,
    out: Option<Out>,
}

#[derive(Clone, Copy, Debug)]
struct Out {
    /// `snd_nxt` when it left.
    high: u64,
    /// It was the last segment again, not a new one.
    again: bool,
}

/// What an acknowledgment says about a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeVerdict {
    /// Nothing, or that nothing was lost.
    None,
    /// The probe repaired a loss that nothing else told.
    Repaired,
}

/// What the verdict on a probe depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeAck {
    pub una: u64,
    /// A DSACK reports the probe as a duplicate.
    pub dsack: bool,
    /// It advanced, sacked something, carried data or changed the window.
    pub eventful: bool,
}

impl TailProbe {
    /// The time from the last segment until a probe: `single` if one segment is out, whose ACK may be delayed.
    pub fn timeout(
        srtt: Option<Duration>,
        single: bool,
        min_rto: Duration,
        initial_rto: Duration,
    ) -> Duration {
        match srtt {
            Some(srtt) => srtt * 2 + if single { min_rto } else { GRACE },
            None => initial_rto,
        }
    }
    /// The timer expired.
    pub fn set_due(&mut self) {
        self.due = true;
    }
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
    pub fn is_out(&self) -> bool {
        self.out.is_some()
    }
    /// End of what the probe that is out covers, if it sent the last segment again.
    pub fn resent_end(&self) -> Option<u64> {
        self.out.filter(|out| out.again).map(|out| out.high)
    }
    pub fn on_sent(&mut self, snd_nxt: u64, again: bool) {
        self.out = Some(Out { high: snd_nxt, again });
    }
    /// A recovery began: the episode is over.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
    pub fn on_ack(&mut self, ack: &ProbeAck) -> ProbeVerdict {
        let Some(out) = self.out.filter(|out| ack.una >= out.high) else { return ProbeVerdict::None };
        let repaired = out.again && !ack.dsack && ack.una > out.high;
        if repaired || !out.again || ack.dsack || !ack.eventful {
            self.out = None;
        }
        if repaired { ProbeVerdict::Repaired } else { ProbeVerdict::None }
    }
}

/// When a timer of `rto` for a segment sent at `sent_at` expires, if that is still to come.
pub(crate) fn left(rto: Duration, sent_at: Instant, now: Instant) -> Option<Duration> {
    Some(rto.saturating_sub(now.since(sent_at))).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_timeout_is_two_round_trips_and_the_delay_of_a_lone_segments_ack() {
        assert_eq!(TailProbe::timeout(Some(MS(50)), false, MS(200), MS(1000)), MS(102));
        assert_eq!(TailProbe::timeout(Some(MS(50)), true, MS(200), MS(1000)), MS(300));
        assert_eq!(TailProbe::timeout(None, true, MS(200), MS(1000)), MS(1000));
    }

    #[test]
    fn the_verdict_follows_from_what_comes_back() {
        let ack = |una, dsack, eventful| ProbeAck { una, dsack, eventful };
        let probe = |again| {
            let mut probe = TailProbe::default();
            probe.on_sent(5000, again);
            probe
        };
        let mut new = probe(false);
        assert_eq!(new.on_ack(&ack(4000, false, true)), ProbeVerdict::None);
        assert!(new.is_out());
        assert_eq!(new.on_ack(&ack(5000, false, true)), ProbeVerdict::None);
        assert!(!new.is_out());
        // The probe's own ACK may be that of the original: only what follows tells.
        let mut again = probe(true);
        assert_eq!(again.on_ack(&ack(5000, false, true)), ProbeVerdict::None);
        assert!(again.is_out());
        assert_eq!(again.on_ack(&ack(6000, false, true)), ProbeVerdict::Repaired);
        assert!(!again.is_out());
        let mut duplicate = probe(true);
        duplicate.on_ack(&ack(5000, false, true));
        assert_eq!(duplicate.on_ack(&ack(5000, false, false)), ProbeVerdict::None);
        assert!(!duplicate.is_out());
        let mut dsack = probe(true);
        assert_eq!(dsack.on_ack(&ack(5000, true, true)), ProbeVerdict::None);
        assert!(!dsack.is_out());
    }
}
