//! The phase of loss recovery, and the proofs that a reduction was spurious.
//!
//! Phases: fast recovery, the reduction after an ECN echo, and recovery after a timeout. Proofs: forward
//! acknowledgments after a timeout (F-RTO, RFC 5682 §3 as Linux does it with and without SACK), timestamps
//! (Eifel, RFC 3522), DSACK (RFC 3708). Left out: the detection of losses (`scoreboard`, `time_detection`)
//! and the window after a recovery, which is the congestion control's.

use super::prr::Prr;
use crate::timestamps::is_older;

/// The phase of a sender (Linux `tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sender) enum Phase {
    /// No loss is being repaired.
    Open,
    /// The window is being reduced after an ECN echo; no loss is known.
    Cwr,
    /// Fast recovery: losses that acknowledgments indicated are being repaired.
    Fast,
    /// Losses are being repaired after a timeout, in slow start.
    Timeout,
}

/// The step of F-RTO after a timeout (RFC 5682 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frto {
    Off,
    /// Step 1: the first segment was sent again; the next ACK is awaited.
    Waiting,
    /// Step 2b: new data is sent instead of retransmissions.
    SendingNew,
    /// Step 3: new data was sent; the next ACK decides.
    Deciding,
}

/// The conclusion of F-RTO from an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sender) enum FrtoVerdict {
    /// None yet, or F-RTO is off.
    None,
    /// The timeout was spurious.
    Spurious,
}

/// Recovery of one connection.
#[derive(Clone, Debug)]
pub(in crate::sender) struct Recovery {
    phase: Phase,
    /// RecoveryPoint: recovery ends when everything below this offset is acknowledged.
    end: u64,
    prr: Prr,
    frto: Frto,
    /// Timestamp of the first retransmission (Linux `retrans_stamp`); `None` before it.
    first_resent: Option<u32>,
    /// The next retransmission sets `first_resent`.
    awaits_stamp: bool,
    /// No segment was sent again since the recovery began.
    first_due: bool,
    /// SND.UNA at the last reduction (Linux `undo_marker`), and its retransmissions that no DSACK reported
    /// yet (`undo_retrans`); `None` if no reduction can be undone.
    undo_from: Option<u64>,
    undo_resent: Option<u32>,
    /// A partial ACK has restarted the timer (RFC 6582 §4).
    pub partial_ack_seen: bool,
}

impl Recovery {
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            prr: Prr::default(),
            frto: Frto::Off,
            first_resent: None,
            awaits_stamp: false,
            first_due: false,
            undo_from: None,
            undo_resent: None,
            partial_ack_seen: false,
        }
    }
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// End of the recovery under way, or of the last one.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// The window of PRR in bytes, in fast recovery or after an ECN echo; `None` otherwise.
    pub fn window(&self) -> Option<u64> {
        matches!(self.phase, Phase::Fast | Phase::Cwr).then(|| self.prr.window())
    }
    /// Enters fast recovery. `in_network` is the number of earlier retransmissions that a DSACK may still
    /// report.
    pub fn enter_fast(&mut self, snd_una: u64, snd_nxt: u64, prr: Prr, in_network: u32) {
        // After an ECN echo, a reduction is under way already.
        if self.phase != Phase::Cwr {
            self.prr = prr;
        }
        self.enter(Phase::Fast, snd_una, snd_nxt, in_network);
    }
    /// Begins the reduction after an ECN echo.
    pub fn enter_cwr(&mut self, snd_nxt: u64, prr: Prr) {
        self.prr = prr;
        self.phase = Phase::Cwr;
        self.end = snd_nxt;
        self.undo_from = None;
    }
    /// Enters recovery after a timeout; with `frto`, F-RTO checks whether it is spurious.
    pub fn enter_timeout(&mut self, snd_una: u64, snd_nxt: u64, frto: bool) {
        self.enter(Phase::Timeout, snd_una, snd_nxt, 0);
        self.frto = if frto { Frto::Waiting } else { Frto::Off };
    }
    fn enter(&mut self, phase: Phase, snd_una: u64, snd_nxt: u64, in_network: u32) {
        // For a timeout during fast recovery, the first retransmission of both phases counts.
        if matches!(self.phase, Phase::Open | Phase::Cwr) {
            self.awaits_stamp = self.first_resent.is_none();
            // A reduction after an ECN echo is not undone together with this one.
            self.undo_from = (self.phase == Phase::Open).then_some(snd_una);
            self.undo_resent = (in_network > 0).then_some(in_network);
        }
        self.phase = phase;
        self.end = snd_nxt;
        self.first_due = true;
        self.partial_ack_seen = false;
        self.frto = Frto::Off;
    }
    /// Whether the first retransmission of a fast recovery is still to be sent; it leaves whatever the window
    /// is.
    pub fn awaits_first_retransmission(&self) -> bool {
        self.phase == Phase::Fast && self.first_due
    }
    /// Whether the reduction for a timeout has been made already, by this recovery; `repeated` if the timer
    /// is backed off.
    pub fn is_already_reduced(&self, snd_una: u64, repeated: bool) -> bool {
        match self.phase {
            Phase::Open | Phase::Cwr => false,
            Phase::Fast => snd_una < self.end,
            Phase::Timeout => repeated && snd_una < self.end,
        }
    }
    /// An acknowledgment delivered `delivered` bytes; see [`Prr::on_ack`].
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u32, safe: bool) {
        if self.window().is_some() {
            self.prr.on_ack(delivered, in_flight, u64::from(mss), safe);
        }
    }
    /// A segment of `len` bytes was sent; `resent_at` is its timestamp if it is a retransmission.
    pub fn on_sent(&mut self, len: u64, resent_at: Option<u32>) {
        if self.window().is_some() {
            self.prr.on_sent(len);
        }
        if resent_at.is_some() {
            self.first_due = false;
            self.undo_resent = self.undo_from.map(|_| self.undo_resent.unwrap_or(0) + 1);
        }
        if self.awaits_stamp && resent_at.is_some() {
            self.first_resent = resent_at;
            self.awaits_stamp = false;
        }
    }
    /// A DSACK reports `segments` duplicates that end at `end`; true if every retransmission since the last
    /// reduction has been reported (RFC 3708).
    pub fn on_dsack(&mut self, end: u64, snd_una: u64, segments: u32) -> bool {
        let (Some(from), Some(resent)) = (self.undo_from, self.undo_resent) else { return false };
        if end <= from || end > snd_una {
            return false;
        }
        let left = resent.saturating_sub(segments);
        self.undo_resent = Some(left);
        left == 0
    }
    /// Whether the echo of an acknowledgment that advanced SND.UNA proves that the original had arrived (RFC
    /// 3522 §3.2).
    pub fn is_spurious_by_echo(&self, echo: Option<u32>) -> bool {
        self.undo_from.is_some()
            && matches!(self.phase, Phase::Fast | Phase::Timeout)
            && echo.zip(self.first_resent).is_some_and(|(echo, first)| is_older(echo, first))
    }
    /// The reduction was undone, and cannot be undone again.
    pub fn clear_undo(&mut self) {
        self.undo_from = None;
        self.undo_resent = None;
    }
    /// Ends the recovery if everything sent before it is acknowledged; returns the phase that ended.
    pub fn try_end(&mut self, snd_una: u64, has_resent: bool) -> Option<Phase> {
        let ended = self.phase;
        (ended != Phase::Open && snd_una >= self.end).then(|| {
            self.leave(has_resent);
            ended
        })
    }
    /// Ends the recovery. If retransmissions are still in the network, `has_resent`, the timestamp of the
    /// first one is kept: in the next recovery their arrival must not be taken for that of an original.
    pub fn leave(&mut self, has_resent: bool) {
        self.phase = Phase::Open;
        self.first_resent = self.first_resent.filter(|_| has_resent);
        self.awaits_stamp = false;
        self.frto = Frto::Off;
    }
}

/// F-RTO (RFC 5682).
impl Recovery {
    /// Processes an acknowledgment after a timeout. `original` if it acknowledges data sent once and before
    /// the timeout; `duplicate` if it is a duplicate or sacks data; `can_send_new` if there is new data and
    /// the peer's window has room for it.
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
    /// Whether new data is sent instead of retransmissions (step 2b).
    pub fn frto_sends_new(&self) -> bool {
        matches!(self.frto, Frto::SendingNew)
    }
    /// There is no new data to send: conventional recovery goes on.
    pub fn stop_frto(&mut self) {
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
    fn an_echo_older_than_the_first_retransmission_proves_the_recovery_spurious() {
        let mut recovery = Recovery::new();
        recovery.enter_timeout(0, 5000, false);
        assert!(!recovery.is_spurious_by_echo(Some(1)));
        recovery.on_sent(1000, Some(100));
        recovery.on_sent(1000, Some(120));
        assert!(recovery.is_spurious_by_echo(Some(99)));
        assert!(!recovery.is_spurious_by_echo(Some(100)) && !recovery.is_spurious_by_echo(None));
        assert_eq!(recovery.try_end(4999, true), None);
        assert_eq!(recovery.try_end(5000, true), Some(Phase::Timeout));
        // The retransmission at 120 is in flight: its arrival in the next recovery proves nothing.
        recovery.enter_fast(5000, 9000, Prr::default(), 0);
        recovery.on_sent(1000, Some(130));
        assert!(!recovery.is_spurious_by_echo(Some(120)));
        assert_eq!(recovery.try_end(9000, false), Some(Phase::Fast));
        recovery.enter_fast(9000, 12_000, Prr::default(), 0);
        recovery.on_sent(1000, Some(200));
        assert!(recovery.is_spurious_by_echo(Some(199)));
    }

    #[test]
    fn a_second_timeout_or_one_in_fast_recovery_does_not_reduce_again() {
        let recovery = fast();
        assert!(recovery.is_already_reduced(0, false));
        let mut recovery = Recovery::new();
        assert!(!recovery.is_already_reduced(0, false));
        recovery.enter_timeout(0, 5000, false);
        assert!(recovery.is_already_reduced(0, true) && !recovery.is_already_reduced(0, false));
    }

    #[test]
    fn dsacks_of_all_retransmissions_prove_a_reduction_spurious_even_after_the_recovery() {
        let mut recovery = fast();
        recovery.on_sent(1000, Some(100));
        recovery.on_sent(1000, Some(100));
        assert!(!recovery.on_dsack(1000, 100_000, 1));
        assert!(!recovery.on_dsack(200_000, 100_000, 1)); // above SND.UNA
        assert_eq!(recovery.try_end(100_000, false), Some(Phase::Fast));
        assert!(recovery.on_dsack(2000, 100_000, 1));
        recovery.clear_undo();
        assert!(!recovery.on_dsack(2000, 100_000, 1));
        // Without a retransmission there is nothing to prove.
        assert!(!fast().on_dsack(1000, 100_000, 1));
    }

    #[test]
    fn frto_sends_new_data_and_decides_by_the_next_acknowledgment() {
        let timeout = || {
            let mut recovery = Recovery::new();
            recovery.enter_timeout(0, 5000, true);
            recovery.on_sent(1000, Some(100));
            assert!(!recovery.frto_sends_new());
            // The retransmission is acknowledged: step 2b.
            assert_eq!(recovery.frto_on_ack(true, false, false, (1000, 5000), true), FrtoVerdict::None);
            assert!(recovery.frto_sends_new());
            recovery
        };
        let mut lost = timeout();
        assert_eq!(lost.frto_on_ack(false, false, true, (1000, 7000), true), FrtoVerdict::None);
        assert!(!lost.frto_sends_new());
        assert_eq!(lost.frto_on_ack(false, true, true, (1000, 7000), true), FrtoVerdict::None); // decided
        let mut spurious = timeout();
        assert_eq!(spurious.frto_on_ack(true, true, false, (2000, 7000), true), FrtoVerdict::Spurious);
        // Without new data, conventional recovery.
        let mut recovery = Recovery::new();
        recovery.enter_timeout(0, 5000, true);
        recovery.frto_on_ack(true, false, false, (1000, 5000), false);
        assert!(!recovery.frto_sends_new());
        assert_eq!(recovery.frto_on_ack(true, true, false, (2000, 5000), false), FrtoVerdict::None);
    }
}
