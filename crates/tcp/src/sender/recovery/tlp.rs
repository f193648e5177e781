//! Tail loss probe (RFC 8985 §7, as Linux): when ACKs stop before everything is acknowledged, one segment
//! leaves after two round-trip times, a new one if there is one, else the last one again. Its ACK shows which
//! segments were lost. If the probe repaired the only loss, the window is reduced nevertheless (RFC 8985
//! §7.4.2).

use crate::sender::timers::TIMEOUT_MIN;
use paceline_net::Duration;

/// The probe of one connection; at most one is outstanding.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct TailProbe {
    due: bool,
    outstanding: Option<Outstanding>,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// TLP.end_seq: SND.NXT when the probe was sent.
    end: u64,
    /// TLP.is_retrans: the last segment was sent again.
    is_retransmission: bool,
}

/// The conclusion from an acknowledgment about a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sender) enum ProbeVerdict {
    /// None, or that nothing was lost.
    None,
    /// The probe repaired a loss that nothing else indicated.
    Repaired,
}

/// The properties of an acknowledgment that decide on a probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct ProbeAck {
    pub una: u64,
    /// A DSACK reports the probe as a duplicate.
    pub dsack: bool,
    /// The ACK advanced SND.UNA, sacked data, carried data or changed the window.
    pub eventful: bool,
}

impl TailProbe {
    /// Time from the last segment until a probe (RFC 8985 §7.2). If a `single` segment is outstanding, its
    /// ACK may be delayed.
    pub fn timeout(
        srtt: Option<Duration>,
        single: bool,
        min_rto: Duration,
        initial_rto: Duration,
    ) -> Duration {
        match srtt {
            Some(srtt) => srtt * 2 + if single { min_rto } else { TIMEOUT_MIN },
            None => initial_rto,
        }
    }
    /// The timer expired: the probe leaves with the next segment.
    pub fn set_due(&mut self) {
        self.due = true;
    }
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }
    /// End of the outstanding probe, if it sent the last segment again.
    pub fn retransmission_end(&self) -> Option<u64> {
        self.outstanding.filter(|probe| probe.is_retransmission).map(|probe| probe.end)
    }
    pub fn on_sent(&mut self, snd_nxt: u64, is_retransmission: bool) {
        self.outstanding = Some(Outstanding { end: snd_nxt, is_retransmission });
    }
    /// A recovery began: the probe has no further use.
    pub fn cancel(&mut self) {
        *self = Self::default();
    }
    pub fn on_ack(&mut self, ack: &ProbeAck) -> ProbeVerdict {
        let Some(probe) = self.outstanding.filter(|probe| ack.una >= probe.end) else {
            return ProbeVerdict::None;
        };
        let repaired = probe.is_retransmission && !ack.dsack && ack.una > probe.end;
        if repaired || !probe.is_retransmission || ack.dsack || !ack.eventful {
            self.outstanding = None;
        }
        if repaired { ProbeVerdict::Repaired } else { ProbeVerdict::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_timeout_is_two_rtts_plus_the_ack_delay_of_a_single_segment() {
        assert_eq!(TailProbe::timeout(Some(MS(50)), false, MS(200), MS(1000)), MS(102));
        assert_eq!(TailProbe::timeout(Some(MS(50)), true, MS(200), MS(1000)), MS(300));
        assert_eq!(TailProbe::timeout(None, true, MS(200), MS(1000)), MS(1000));
    }

    #[test]
    fn only_an_ack_beyond_a_retransmitted_probe_shows_that_it_repaired_a_loss() {
        let ack = |una, dsack, eventful| ProbeAck { una, dsack, eventful };
        let probe = |again| {
            let mut probe = TailProbe::default();
            probe.on_sent(5000, again);
            probe
        };
        let mut new = probe(false);
        assert_eq!(new.on_ack(&ack(4000, false, true)), ProbeVerdict::None);
        assert!(new.is_outstanding());
        assert_eq!(new.on_ack(&ack(5000, false, true)), ProbeVerdict::None);
        assert!(!new.is_outstanding());
        // The ACK of the probe may be that of the original: only a later ACK decides.
        let mut again = probe(true);
        assert_eq!(again.on_ack(&ack(5000, false, true)), ProbeVerdict::None);
        assert!(again.is_outstanding());
        assert_eq!(again.on_ack(&ack(6000, false, true)), ProbeVerdict::Repaired);
        assert!(!again.is_outstanding());
        let mut duplicate = probe(true);
        duplicate.on_ack(&ack(5000, false, true));
        assert_eq!(duplicate.on_ack(&ack(5000, false, false)), ProbeVerdict::None);
        assert!(!duplicate.is_outstanding());
        let mut dsack = probe(true);
        assert_eq!(dsack.on_ack(&ack(5000, true, true)), ProbeVerdict::None);
        assert!(!dsack.is_outstanding());
    }
}
