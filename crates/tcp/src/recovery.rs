//! The state of loss recovery: fast recovery with the proportional window of RFC 6937 as Linux computes it,
//! recovery after a timeout, and the proof by timestamps that a reduction was spurious (RFC 3522).
//!
//! Which segments are lost is told by `scoreboard`; what to do with the window afterwards by the control.

/// Where the sender stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery: repairs what acknowledgments told lost.
    Fast,
    /// Repairs after a timeout, in slow start.
    Timeout,
}

/// Recovery of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    phase: Phase,
    /// Recovery ends when everything below was acknowledged.
    end: u64,
    prr: Prr,
    /// Timestamp of the first retransmission; `None` before it.
    first_resent: Option<u32>,
    waiting_for_resend: bool,
}

/// Proportional rate reduction, in bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Prr {
    prior_cwnd: u64,
    ssthresh: u64,
    delivered: u64,
    sent: u64,
    window: u64,
}

impl Prr {
    /// Sets the window so that what was sent follows what was delivered, at the ratio of the reduction while
    /// too much is in flight, and in slow start when too little is.
    fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u64, safe: bool) {
        self.delivered += delivered;
        let mut allowed = if in_flight > self.ssthresh {
            let due = (u128::from(self.ssthresh) * u128::from(self.delivered))
                .div_ceil(u128::from(self.prior_cwnd.max(1)));
            (due as u64).saturating_sub(self.sent)
        } else {
            let credit = self.delivered.saturating_sub(self.sent).max(delivered);
            (credit + if safe { mss } else { 0 }).min(self.ssthresh - in_flight)
        };
        if self.sent == 0 {
            allowed = allowed.max(mss); // the first retransmission leaves at once
        }
        self.window = in_flight + allowed;
    }
}

impl Recovery {
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            end: 0,
            prr: Prr::default(),
            first_resent: None,
            waiting_for_resend: false,
        }
    }
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The window of fast recovery; `None` outside it.
    pub fn window(&self) -> Option<u64> {
        (self.phase == Phase::Fast).then_some(self.prr.window)
    }
    /// Enters fast recovery.
    pub fn enter_fast(&mut self, snd_nxt: u64, prior_cwnd: u64, ssthresh: u64) {
        self.enter(Phase::Fast, snd_nxt);
        self.prr = Prr { prior_cwnd, ssthresh, ..Prr::default() };
    }
    /// Enters the repair after a timeout.
    pub fn enter_timeout(&mut self, snd_nxt: u64) {
        self.enter(Phase::Timeout, snd_nxt);
    }
    fn enter(&mut self, phase: Phase, snd_nxt: u64) {
        // A timeout during a fast recovery is judged by the first retransmission of both.
        if self.phase == Phase::Open {
            self.waiting_for_resend = self.first_resent.is_none();
        }
        self.phase = phase;
        self.end = snd_nxt;
    }
    /// Whether a timeout now repeats a reduction that was made already.
    pub fn reduced_already(&self, snd_una: u64, repeated: bool) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Fast => snd_una < self.end,
            Phase::Timeout => repeated && snd_una < self.end,
        }
    }
    /// An acknowledgment arrived during fast recovery. `safe` tells that it advanced and that nothing more was
    /// lost.
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, mss: u32, safe: bool) {
        if self.phase == Phase::Fast && delivered > 0 {
            self.prr.on_ack(delivered, in_flight, u64::from(mss), safe);
        }
    }
    /// A segment was sent; `resent_at` is its timestamp if it was a retransmission.
    pub fn on_sent(&mut self, len: u64, resent_at: Option<u32>) {
        if self.phase == Phase::Fast {
            self.prr.sent += len;
        }
        if self.waiting_for_resend && resent_at.is_some() {
            self.first_resent = resent_at;
            self.waiting_for_resend = false;
        }
    }
    /// Whether an acknowledgment with this echo, which advanced, proves that the original had arrived.
    pub fn proves_spurious(&self, echo: Option<u32>) -> bool {
        self.phase != Phase::Open
            && matches!((echo, self.first_resent), (Some(echo), Some(first)) if (echo.wrapping_sub(first) as i32) < 0)
    }
    /// Whether an acknowledgment up to here ends the recovery.
    pub fn would_end(&self, snd_una: u64) -> bool {
        snd_una >= self.end
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(prior_cwnd: u64, ssthresh: u64) -> Recovery {
        let mut recovery = Recovery::new();
        recovery.enter_fast(100_000, prior_cwnd, ssthresh);
        recovery
    }

    #[test]
    fn sends_seven_for_ten_delivered_while_above_the_threshold() {
        // 100 segments of 1000 bytes, one lost: as each of the others is delivered, 70 of 100 may be sent.
        let mut recovery = fast(100_000, 70_000);
        let (mut in_flight, mut sent) = (99_000, 0);
        for _ in 0..60 {
            in_flight -= 1000;
            recovery.on_ack(1000, in_flight, 1000, false);
            while in_flight + 1000 <= recovery.window().unwrap() {
                in_flight += 1000;
                sent += 1000;
                recovery.on_sent(1000, None);
            }
        }
        assert_eq!(sent, 42_000);
    }

    #[test]
    fn the_first_retransmission_is_not_held_back() {
        let mut recovery = fast(100_000, 50_000);
        recovery.on_ack(1000, 97_000, 1000, false);
        assert_eq!(recovery.window(), Some(98_000));
    }

    #[test]
    fn below_the_threshold_it_grows_by_slow_start_only_when_nothing_more_was_lost() {
        let mut recovery = fast(100_000, 70_000);
        recovery.on_sent(1000, None);
        recovery.on_ack(1000, 20_000, 1000, true);
        assert_eq!(recovery.window(), Some(22_000));
        recovery.on_sent(2000, None);
        recovery.on_ack(1000, 20_000, 1000, false);
        assert_eq!(recovery.window(), Some(21_000));
        recovery.on_ack(500_000, 60_000, 1000, true);
        assert_eq!(recovery.window(), Some(70_000)); // never above the threshold
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_proves_a_spurious_one() {
        let mut recovery = Recovery::new();
        recovery.enter_timeout(5000);
        assert!(!recovery.proves_spurious(Some(1)));
        recovery.on_sent(1000, Some(100));
        recovery.on_sent(1000, Some(120));
        assert!(recovery.proves_spurious(Some(99)));
        assert!(!recovery.proves_spurious(Some(100)) && !recovery.proves_spurious(None));
        assert_eq!(recovery.try_end(4999, true), None);
        assert_eq!(recovery.try_end(5000, true), Some(Phase::Timeout));
        // A retransmission at 120 is on its way: in the next recovery its arrival proves nothing.
        recovery.enter_fast(9000, 5000, 2500);
        recovery.on_sent(1000, Some(130));
        assert!(!recovery.proves_spurious(Some(120)));
        assert_eq!(recovery.try_end(9000, false), Some(Phase::Fast));
        recovery.enter_fast(12_000, 5000, 2500);
        recovery.on_sent(1000, Some(200));
        assert!(recovery.proves_spurious(Some(199)));
    }

    #[test]
    fn a_second_timeout_or_one_in_fast_recovery_does_not_reduce_again() {
        let recovery = fast(100_000, 70_000);
        assert!(recovery.reduced_already(0, false));
        let mut recovery = Recovery::new();
        assert!(!recovery.reduced_already(0, false));
        recovery.enter_timeout(5000);
        assert!(recovery.reduced_already(0, true) && !recovery.reduced_already(0, false));
    }
}
