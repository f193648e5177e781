//! The state of loss recovery: fast recovery and the reduction after an echo of congestion, recovery after a timeout
//! with the proof by forward acknowledgments that it was spurious (F-RTO, RFC 5682 §3 as Linux does it with and
//! without SACK), and the proofs by timestamps (RFC 3522) and DSACK (RFC 3708) that a reduction was.
//!
//! Which segments are lost is told by `scoreboard` and `rack`; what to do with the window afterwards by the control.

use crate::prr::Prr;

/// Where the sender stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// No loss is being repaired.
    Open,
    /// The window is being reduced after an echo of congestion; nothing was lost.
    Cwr,
    /// Fast recovery: repairs what acknowledgments told lost.
    Fast,
    /// Repairs after a timeout, in slow start.
    Timeout,
}

/// F-RTO after a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frto {
    Off,
    /// The first segment was sent again; the next ACK is awaited (step 1).
    Waiting,
    /// New data go out instead of retransmissions (step 2b).
    SendingNew,
    /// They went out; the next ACK decides (step 3).
    Deciding,
}

/// What F-RTO makes of an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrtoVerdict {
    /// Nothing yet, or not at all.
    None,
    /// The timeout was spurious.
    Spurious,
}

/// Recovery of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    phase: Phase,
    /// Recovery ends when everything below was acknowledged.
    end: u64,
    prr: Prr,
    frto: Frto,
    /// Timestamp of the first retransmission; `None` before it.
    first_resent: Option<u32>,
    waiting_for_resend: bool,
    /// Nothing was sent again since the recovery began.
    first_due: bool,
    /// Start of what the last reduction was about, and its retransmissions that no DSACK answered yet; `None` when
    /// there is nothing to take back.
    undo_from: Option<u64>,
    undo_resent: Option<u32>,
    /// A partial ACK restarted the timer already (RFC 6582 §4).
    pub partial_seen: bool,
}

impl Recovery {
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            prr: Prr::default(),
            frto: Frto::Off,
            first_resent: None,
            waiting_for_resend: false,
            first_due: false,
            undo_from: None,
            undo_resent: None,
            partial_seen: false,
        }
    }
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The end of the last recovery or of the one under way.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// The window of fast recovery or of a reduction; `None` outside them.
    pub fn window(&self) -> Option<u64> {
        matches!(self.phase, Phase::Fast | Phase::Cwr).then(|| self.prr.window())
    }
    /// Enters fast recovery. `in_network` counts retransmissions whose DSACK may come yet.
    pub fn enter_fast(&mut self, snd_una: u64, snd_nxt: u64, prr: Prr, in_network: u32) {
        // During a reduction for an echo of congestion, the window is on its way down already.
        if self.phase != Phase::Cwr {
            self.prr = prr;
        }
        self.enter(Phase::Fast, snd_una, snd_nxt, in_network);
    }
    /// Reduces the window after an echo of congestion.
    pub fn enter_cwr(&mut self, snd_nxt: u64, prr: Prr) {
        self.prr = prr;
        self.phase = Phase::Cwr;
        self.end = snd_nxt;
        self.undo_from = None;
    }
    /// Enters the repair after a timeout; `frto` looks for the proof that it was spurious.
    pub fn enter_timeout(&mut self, snd_una: u64, snd_nxt: u64, frto: bool) {
        self.enter(Phase::Timeout, snd_una, snd_nxt, 0);
        self.frto = if frto { Frto::Waiting } else { Frto::Off };
    }
    fn enter(&mut self, phase: Phase, snd_una: u64, snd_nxt: u64, in_network: u32) {
        // A timeout during a fast recovery is judged by the first retransmission of both.
        if matches!(self.phase, Phase::Open | Phase::Cwr) {
            self.waiting_for_resend = self.first_resent.is_none();
            // A reduction for an echo of congestion is not taken back with it.
            self.undo_from = (self.phase == Phase::Open).then_some(snd_una);
            self.undo_resent = (in_network > 0).then_some(in_network);
        }
        self.phase = phase;
        self.end = snd_nxt;
        self.first_due = true;
        self.partial_seen = false;
        self.frto = Frto::Off;
    }
    /// Whether the first retransmission of a fast recovery is still to be sent: no window holds it back.
    pub fn owes_first(&self) -> bool {
        self.phase == Phase::Fast && self.first_due
    }
    /// Whether a timeout now repeats a reduction that was made already.
    pub fn reduced_already(&self, snd_una: u64, repeated: bool) -> bool {
        match self.phase {
            Phase::Open | Phase::Cwr => false,
            Phase::Fast => snd_una < self.end,
            Phase::Timeout => repeated && snd_una < self.end,
        }
    }
    /// An acknowledgment arrived. `safe` tells that it advanced and that nothing more was lost.
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u32, safe: bool) {
        if self.window().is_some() {
            self.prr.on_ack(delivered, in_flight, u64::from(mss), safe);
        }
    }
    /// A segment was sent; `resent_at` is its timestamp if it was a retransmission.
    pub fn on_sent(&mut self, len: u64, resent_at: Option<u32>) {
        if self.window().is_some() {
            self.prr.on_sent(len);
        }
        if resent_at.is_some() {
            self.first_due = false;
            self.undo_resent = self.undo_from.map(|_| self.undo_resent.unwrap_or(0) + 1);
        }
        if self.waiting_for_resend && resent_at.is_some() {
            self.first_resent = resent_at;
            self.waiting_for_resend = false;
        }
    }
    /// A DSACK reports `segments` up to `end` that arrived twice; true if every retransmission since the last
    /// reduction did.
    pub fn on_dsack(&mut self, end: u64, snd_una: u64, segments: u32) -> bool {
        let (Some(from), Some(resent)) = (self.undo_from, self.undo_resent) else { return false };
        if end <= from || end > snd_una {
            return false;
        }
        let left = resent.saturating_sub(segments);
        self.undo_resent = Some(left);
        left == 0
    }
    /// Whether an acknowledgment with this echo, which advanced, proves that the original had arrived.
    pub fn proves_spurious(&self, echo: Option<u32>) -> bool {
        self.undo_from.is_some()
            && matches!(self.phase, Phase::Fast | Phase::Timeout)
            && matches!((echo, self.first_resent), (Some(echo), Some(first)) if (echo.wrapping_sub(first) as i32) < 0)
    }
    /// The reduction was taken back.
    pub fn forget_undo(&mut self) {
        self.undo_from = None;
        self.undo_resent = None;
    }
    /// Ends the recovery if everything sent before it was acknowledged; returns the phase that ended.
    pub fn try_end(&mut self, snd_una: u64, has_resent: bool) -> Option<Phase> {
        let ended = self.phase;
        (ended != Phase::Open && snd_una >= self.end).then(|| {
            self.leave(has_resent);
            ended
        })
    }
    /// Ends the recovery. While retransmissions of what was sent during it are in the network, `has_resent`, their
    /// arrival must not pass for that of an original in the next one.
    pub fn leave(&mut self, has_resent: bool) {
        self.phase = Phase::Open;
        self.first_resent = self.first_resent.filter(|_| has_resent);
        self.waiting_for_resend = false;
        self.frto = Frto::Off;
    }
}

/// F-RTO.
impl Recovery {
    /// An acknowledgment after a timeout. `original` tells that it reports data sent once only and before the
    /// timeout; `duplicate` that it is a duplicate or sacks something; `can_send_new` that there are new data, and
    /// room for them with the peer.
    pub fn frto_on_ack(
        &mut self,
        advanced: bool,
        original: bool,
        duplicate: bool,
        (snd_una, snd_nxt): (u64, u64),
        can_send_new: bool,
    ) -> FrtoVerdict {
        if self.phase != Phase::Timeout || self.frto == Frto::Off {
            return FrtoVerdict::None;
        }
        if original {
            return FrtoVerdict::Spurious;
        }
        if snd_nxt > self.end {
            self.frto = if duplicate { Frto::Off } else { Frto::Deciding };
        } else if advanced && snd_una < self.end {
            self.end = snd_nxt;
            self.frto = if can_send_new { Frto::SendingNew } else { Frto::Off };
        }
        FrtoVerdict::None
    }
    /// Whether new data go out instead of what is marked lost.
    pub fn frto_holds_back(&self) -> bool {
        matches!(self.frto, Frto::SendingNew)
    }
    /// There was nothing new to send: what is marked lost is repaired as usual.
    pub fn frto_give_up(&mut self) {
        self.frto = Frto::Off;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PrrMode;

    fn fast() -> Recovery {
        let mut recovery = Recovery::new();
        recovery.enter_fast(0, 100_000, Prr::new(PrrMode::Rfc9937, 100_000, 70_000), 0);
        recovery
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_proves_a_spurious_one() {
        let mut recovery = Recovery::new();
        recovery.enter_timeout(0, 5000, false);
        assert!(!recovery.proves_spurious(Some(1)));
        recovery.on_sent(1000, Some(100));
        recovery.on_sent(1000, Some(120));
        assert!(recovery.proves_spurious(Some(99)));
        assert!(!recovery.proves_spurious(Some(100)) && !recovery.proves_spurious(None));
        assert_eq!(recovery.try_end(4999, true), None);
        assert_eq!(recovery.try_end(5000, true), Some(Phase::Timeout));
        // A retransmission at 120 is on its way: in the next recovery its arrival proves nothing.
        recovery.enter_fast(5000, 9000, Prr::default(), 0);
        recovery.on_sent(1000, Some(130));
        assert!(!recovery.proves_spurious(Some(120)));
        assert_eq!(recovery.try_end(9000, false), Some(Phase::Fast));
        recovery.enter_fast(9000, 12_000, Prr::default(), 0);
        recovery.on_sent(1000, Some(200));
        assert!(recovery.proves_spurious(Some(199)));
    }

    #[test]
    fn a_second_timeout_or_one_in_fast_recovery_does_not_reduce_again() {
        let recovery = fast();
        assert!(recovery.reduced_already(0, false));
        let mut recovery = Recovery::new();
        assert!(!recovery.reduced_already(0, false));
        recovery.enter_timeout(0, 5000, false);
        assert!(recovery.reduced_already(0, true) && !recovery.reduced_already(0, false));
    }

    #[test]
    fn dsack_of_every_retransmission_proves_a_spurious_reduction_even_after_its_end() {
        let mut recovery = fast();
        recovery.on_sent(1000, Some(100));
        recovery.on_sent(1000, Some(100));
        assert!(!recovery.on_dsack(1000, 100_000, 1));
        assert!(!recovery.on_dsack(200_000, 100_000, 1)); // beyond what was acknowledged
        assert_eq!(recovery.try_end(100_000, false), Some(Phase::Fast));
        assert!(recovery.on_dsack(2000, 100_000, 1));
        recovery.forget_undo();
        assert!(!recovery.on_dsack(2000, 100_000, 1));
        // Without a retransmission there is nothing to prove.
        assert!(!fast().on_dsack(1000, 100_000, 1));
    }

    #[test]
    fn frto_sends_new_data_and_believes_an_original_or_a_duplicate() {
        let timeout = || {
            let mut recovery = Recovery::new();
            recovery.enter_timeout(0, 5000, true);
            recovery.on_sent(1000, Some(100));
            assert!(!recovery.frto_holds_back());
            // The retransmission is acknowledged: step 2b.
            assert_eq!(recovery.frto_on_ack(true, false, false, (1000, 5000), true), FrtoVerdict::None);
            assert!(recovery.frto_holds_back());
            recovery
        };
        let mut lost = timeout();
        assert_eq!(lost.frto_on_ack(false, false, true, (1000, 7000), true), FrtoVerdict::None);
        assert!(!lost.frto_holds_back());
        assert_eq!(lost.frto_on_ack(false, true, true, (1000, 7000), true), FrtoVerdict::None); // decided
        let mut spurious = timeout();
        assert_eq!(spurious.frto_on_ack(true, true, false, (2000, 7000), true), FrtoVerdict::Spurious);
        // Without new data, conventional recovery.
        let mut recovery = Recovery::new();
        recovery.enter_timeout(0, 5000, true);
        recovery.frto_on_ack(true, false, false, (1000, 5000), false);
        assert!(!recovery.frto_holds_back());
        assert_eq!(recovery.frto_on_ack(true, true, false, (2000, 5000), false), FrtoVerdict::None);
    }
}
