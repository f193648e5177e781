//! Explicit Congestion Notification (RFC 3168 §6.1): codepoints and flags of a sender, echoes of a receiver.
//!
//! With a congestion control that reacts in proportion to marks (DCTCP, RFC 8257 §3.2; early L4S), the
//! receiver echoes each change of the mark, and all segments are ECN-capable. Left out: Accurate ECN (RFC
//! 9768) and the nonce.

use crate::cc::Ecn;

/// Codepoints of the IP header (RFC 3168 §5).
const NOT_ECT: u8 = 0;
/// See [`NOT_ECT`]; RFC 3168 §5, RFC 9331.
const ECT1: u8 = 1;
/// See [`NOT_ECT`]; RFC 3168 §5.
const ECT0: u8 = 2;
/// Congestion Experienced (RFC 3168 §5).
pub(crate) const CE: u8 = 3;

/// The ECN state of one connection.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct EcnState {
    /// Both sides agreed on ECN in the handshake.
    agreed: bool,
    /// The codepoint that the congestion control requires.
    control: Ecn,
    /// The next new segment carries CWR.
    cwr_due: bool,
    /// ACKs carry ECE: until the peer's CWR, or with DCTCP while its segments are marked.
    echo: bool,
}

/// The reaction of a receiver to the codepoint of an arriving segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkEffect {
    Nothing,
    /// Acknowledge the next two segments without delay: the sender's window may be small.
    QuickAcks,
    /// The mark has changed: first a pending ACK leaves with the echo `before`, then one for this segment.
    Changed {
        before: bool,
    },
}

impl EcnState {
    pub fn new(agreed: bool, control: Ecn) -> Self {
        Self { agreed, control, cwr_due: false, echo: false }
    }
    fn echoes_each_change(&self) -> bool {
        self.control != Ecn::None
    }
    /// The codepoint of a segment. Only new data is ECN-capable (RFC 3168 §6.1.4, §6.1.5), unless the
    /// congestion control requires it of all segments.
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
    /// The reduction was undone (Linux `tcp_ecn_withdraw_cwr`).
    pub fn on_undone(&mut self) {
        self.cwr_due = false;
    }
    /// Whether a new data segment is to carry CWR, once after a reduction.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_due)
    }
    /// Whether an ACK carries ECE.
    pub fn sends_echo(&self) -> bool {
        self.echo
    }
    /// Whether the ECE flag of an ACK is an ECN echo.
    pub fn accepts_echo(&self, ece: bool) -> bool {
        self.agreed && ece
    }
    /// A data segment arrived with this codepoint, and with CWR if `cwr`.
    pub fn on_data(&mut self, codepoint: u8, cwr: bool) -> MarkEffect {
        if !self.agreed {
            return MarkEffect::Nothing;
        }
        let (marked, before) = (codepoint == CE, self.echo);
        if self.echoes_each_change() {
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
    fn the_echo_of_rfc_3168_lasts_until_cwr() {
        let mut receiver = EcnState::new(true, Ecn::None);
        assert_eq!(receiver.on_data(ECT0, false), MarkEffect::Nothing);
        assert_eq!(receiver.on_data(CE, false), MarkEffect::QuickAcks);
        assert_eq!(receiver.on_data(CE, false), MarkEffect::Nothing);
        assert_eq!(receiver.on_data(ECT0, false), MarkEffect::Nothing);
        assert!(receiver.sends_echo());
        receiver.on_data(ECT0, true);
        assert!(!receiver.sends_echo());
        receiver.on_data(CE, true); // marked on its way
        assert!(receiver.sends_echo());
    }

    #[test]
    fn the_echo_of_dctcp_follows_each_change() {
        let mut receiver = EcnState::new(true, Ecn::Ect0);
        let effects = [ECT0, CE, CE, ECT0].map(|codepoint| receiver.on_data(codepoint, false));
        let changed = |before| MarkEffect::Changed { before };
        assert_eq!(effects, [MarkEffect::Nothing, changed(false), MarkEffect::Nothing, changed(true)]);
    }

    #[test]
    fn only_new_data_is_ecn_capable_unless_the_control_requires_all() {
        let classic = EcnState::new(true, Ecn::None);
        assert_eq!((classic.codepoint(true), classic.codepoint(false)), (ECT0, NOT_ECT));
        let l4s = EcnState::new(true, Ecn::Ect1);
        assert_eq!((l4s.codepoint(true), l4s.codepoint(false)), (ECT1, ECT1));
        let mut off = EcnState::new(false, Ecn::Ect0);
        assert_eq!((off.codepoint(true), off.on_data(CE, false)), (NOT_ECT, MarkEffect::Nothing));
        off.on_reduced();
        assert!(!off.take_cwr() && !off.accepts_echo(true));
    }
}
