//! Explicit Congestion Notification (RFC 3168 §6.1): what senders set, what receivers echo. A control that answers
//! marks in proportion (DCTCP, RFC 8257 §3.2; the first L4S ones) has a receiver that echoes each change of the mark,
//! and ECT on everything it sends.
//!
//! Left out: Accurate ECN (RFC 9768) and the nonce.

use crate::cc::Ecn;

/// The codepoints of the IP header.
const NOT_ECT: u8 = 0;
const ECT1: u8 = 1;
const ECT0: u8 = 2;
pub(crate) const CE: u8 = 3;

/// ECN of one connection, agreed on or not.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct EcnState {
    agreed: bool,
    /// What the control asks for.
    control: Ecn,
    /// The next new segment tells that the window was reduced.
    cwr_due: bool,
    /// The peer is to be told of congestion: until its CWR, or for the last segment.
    echo: bool,
}

/// What an arriving mark asks of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkEffect {
    Nothing,
    /// Acknowledge the next two segments quickly: the sender's window may be small.
    QuickAcks,
    /// The mark has changed: what is owed is acknowledged with the echo of before, then this at once.
    Changed {
        before: bool,
    },
}

impl EcnState {
    pub fn new(agreed: bool, control: Ecn) -> Self {
        Self { agreed, control, cwr_due: false, echo: false }
    }
    fn per_packet(&self) -> bool {
        self.control != Ecn::None
    }
    /// The codepoint of a segment; only new data are ECN-capable, unless the control wants it on all.
    pub fn codepoint(&self, new_data: bool) -> u8 {
        match self.control {
            _ if !self.agreed => NOT_ECT,
            Ecn::Ect1 => ECT1,
            Ecn::Ect0 => ECT0,
            Ecn::None if new_data => ECT0,
            Ecn::None => NOT_ECT,
        }
    }
    /// The window was reduced.
    pub fn on_reduced(&mut self) {
        self.cwr_due = self.agreed;
    }
    /// Whether a new data segment carries CWR; it is then taken as sent.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_due)
    }
    /// Whether an acknowledgment carries ECE.
    pub fn echoes(&self) -> bool {
        self.echo
    }
    /// Whether an acknowledgment's ECE means something.
    pub fn believes(&self, ece: bool) -> bool {
        self.agreed && ece
    }
    /// A data segment arrived with this codepoint, and CWR or not.
    pub fn on_data(&mut self, codepoint: u8, cwr: bool) -> MarkEffect {
        if !self.agreed {
            return MarkEffect::Nothing;
        }
        let (marked, before) = (codepoint == CE, self.echo);
        if self.per_packet() {
            self.echo = marked;
            return if marked == before { MarkEffect::Nothing } else { MarkEffect::Changed { before } };
        }
        if cwr {
            self.echo = false;
        }
        let fresh = marked && !self.echo;
        self.echo |= marked;
        if fresh { MarkEffect::QuickAcks } else { MarkEffect::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_echo_lasts_until_the_window_was_reduced() {
        let mut receiver = EcnState::new(true, Ecn::None);
        assert_eq!(receiver.on_data(ECT0, false), MarkEffect::Nothing);
        assert_eq!(receiver.on_data(CE, false), MarkEffect::QuickAcks);
        assert_eq!(receiver.on_data(CE, false), MarkEffect::Nothing);
        assert_eq!(receiver.on_data(ECT0, false), MarkEffect::Nothing);
        assert!(receiver.echoes());
        receiver.on_data(ECT0, true);
        assert!(!receiver.echoes());
        receiver.on_data(CE, true); // marked again on the way
        assert!(receiver.echoes());
    }

    #[test]
    fn the_echo_of_dctcp_follows_each_change() {
        let mut receiver = EcnState::new(true, Ecn::Ect0);
        let effects = [ECT0, CE, CE, ECT0].map(|codepoint| receiver.on_data(codepoint, false));
        let changed = |before| MarkEffect::Changed { before };
        assert_eq!(effects, [MarkEffect::Nothing, changed(false), MarkEffect::Nothing, changed(true)]);
    }

    #[test]
    fn only_new_data_are_ecn_capable_unless_the_control_wants_all() {
        let classic = EcnState::new(true, Ecn::None);
        assert_eq!((classic.codepoint(true), classic.codepoint(false)), (ECT0, NOT_ECT));
        let l4s = EcnState::new(true, Ecn::Ect1);
        assert_eq!((l4s.codepoint(true), l4s.codepoint(false)), (ECT1, ECT1));
        let mut off = EcnState::new(false, Ecn::Ect0);
        assert_eq!((off.codepoint(true), off.on_data(CE, false)), (NOT_ECT, MarkEffect::Nothing));
        off.on_reduced();
        assert!(!off.take_cwr() && !off.believes(true));
    }
}
