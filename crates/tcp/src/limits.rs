//! What a connection waits for, as exact time: at every moment from the SYN to the last acknowledgment one thing keeps
//! the sender from sending more, or it repairs a loss (what Linux's `tcp_info` tells of as `busy_time`, `rwnd_limited`
//! and `sndbuf_limited`, and the other half of it).
//!
//! The time in which a sender only waits for its retransmission timer shows up when the timer expires: all since the
//! last progress is then the timeout's, whatever it was taken for before.

use paceline_net::{Duration, Instant};

/// What keeps a sender from sending more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// The connection is being opened: from the first SYN, sent or received.
    Handshake,
    /// The application has written no more, or wrote a small piece that waits (Nagle).
    Application,
    /// The send buffer is full of what is not acknowledged yet.
    SendBuffer,
    /// The peer's window is used up.
    ReceiveWindow,
    /// The congestion window is used up, that of a reduction for a mark included.
    CongestionWindow,
    /// The next segment is not due by its spacing.
    Pacing,
    /// Fast recovery is under way.
    Recovery,
    /// Nothing came until the retransmission timer expired, or what was lost is being repaired after it.
    Timeout,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; COUNT] = [
        Self::Handshake,
        Self::Application,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Pacing,
        Self::Recovery,
        Self::Timeout,
    ];
}

const COUNT: usize = 8;

/// Time by what a sender waited for: all of its life.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LimitTimes([Duration; COUNT]);

impl LimitTimes {
    /// All of it for one thing.
    pub(crate) fn only(limit: Limit, time: Duration) -> Self {
        let mut times = Self::default();
        times.0[limit as usize] = time;
        times
    }
    /// The time for one of them.
    pub fn of(&self, limit: Limit) -> Duration {
        self.0[limit as usize]
    }
    /// All of it: the connection's life so far.
    pub fn life(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, time| sum + *time)
    }
    /// Share of the life; of no life, zero.
    pub fn share(&self, limit: Limit) -> f64 {
        let life = self.life().as_nanos();
        if life == 0 { 0.0 } else { self.of(limit).as_nanos() as f64 / life as f64 }
    }
    /// Adds those of another connection.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, time)| *sum += time);
    }
}

/// The account of one sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    settled: LimitTimes,
    /// Since the last progress: it may yet turn out to have been a wait for the timer.
    open: LimitTimes,
    /// What counts now, and since when; nothing before the life and after it.
    now: Option<(Limit, Instant)>,
}

impl Account {
    /// From now on this is what the sender waits for. Begins the life.
    pub fn set(&mut self, now: Instant, limit: Limit) {
        match &mut self.now {
            Some((current, _)) if *current == limit => {}
            _ => {
                self.close(now);
                self.now = Some((limit, now));
            }
        }
    }
    /// What counts so far goes to its place.
    fn close(&mut self, now: Instant) {
        if let Some((limit, since)) = &mut self.now {
            self.open.0[*limit as usize] += now.since(*since);
            *since = now;
        }
    }
    /// Something was delivered, or the first segment leaves: what was waited for till now is settled.
    pub fn on_progress(&mut self, now: Instant) {
        self.close(now);
        self.settled.add(&std::mem::take(&mut self.open));
    }
    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, now: Instant) {
        self.close(now);
        let waited = std::mem::take(&mut self.open).life();
        self.settled.0[Limit::Timeout as usize] += waited;
    }
    /// Everything was acknowledged, or the connection is given up: the life is over.
    pub fn end(&mut self, now: Instant) {
        self.on_progress(now);
        self.now = None;
    }
    /// The times till `now`.
    pub fn times(&self, now: Instant) -> LimitTimes {
        let mut account = self.clone();
        account.on_progress(now);
        account.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const SPAN: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn every_moment_counts_once() {
        let mut account = Account::default();
        assert_eq!(account.times(MS(50)).life(), Duration::ZERO);
        account.set(MS(100), Limit::Handshake);
        account.set(MS(130), Limit::CongestionWindow);
        account.set(MS(140), Limit::CongestionWindow);
        account.set(MS(150), Limit::Pacing);
        let times = account.times(MS(160));
        assert_eq!(times.life(), SPAN(60));
        let spans = [Limit::Handshake, Limit::CongestionWindow, Limit::Pacing].map(|limit| times.of(limit));
        assert_eq!(spans, [SPAN(30), SPAN(20), SPAN(10)]);
        let sum: f64 = Limit::ALL.iter().map(|limit| times.share(*limit)).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        account.end(MS(170));
        assert_eq!(account.times(MS(900)).life(), SPAN(70));
    }

    #[test]
    fn a_timeout_takes_all_since_the_last_progress() {
        let mut account = Account::default();
        account.set(MS(0), Limit::CongestionWindow);
        account.on_progress(MS(40));
        account.set(MS(60), Limit::Application);
        account.on_timeout(MS(260));
        account.set(MS(260), Limit::Timeout);
        let times = account.times(MS(300));
        assert_eq!(times.of(Limit::CongestionWindow), SPAN(40));
        assert_eq!((times.of(Limit::Application), times.of(Limit::Timeout)), (Duration::ZERO, SPAN(260)));
    }
}
