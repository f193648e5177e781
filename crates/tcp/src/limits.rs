//! The reason why a sender does not send more, as exact time: from the SYN to the last acknowledgment every
//! moment is attributed to one [`Limit`] (Linux `tcp_info`: `busy_time`, `rwnd_limited`, `sndbuf_limited`,
//! and the time that these leave out).
//!
//! A wait for the retransmission timer is recognised only when the timer expires. All time since the last
//! progress is then attributed to [`Limit::Timeout`], whatever it was attributed to before.

use paceline_net::{Duration, Instant};

/// The reason why a sender does not send more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// The connection is being opened: from the first SYN, sent or received.
    Handshake,
    /// The application has written no more, or a small segment waits (Nagle).
    Application,
    /// The send buffer is full of unacknowledged data.
    SendBuffer,
    /// The peer's receive window is used up.
    ReceiveWindow,
    /// The congestion window is used up, also while it is reduced after an ECN echo.
    CongestionWindow,
    /// Pacing delays the next segment.
    Pacing,
    /// Fast recovery is under way.
    Recovery,
    /// Nothing was delivered until the retransmission timer expired, or the repair after it is under way.
    Timeout,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; LIMIT_COUNT] = [
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

/// Number of limits; by definition of [`Limit`].
const LIMIT_COUNT: usize = 8;

/// A sender's lifetime, divided by limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LimitTimes([Duration; LIMIT_COUNT]);

impl LimitTimes {
    /// A lifetime spent in one limit.
    pub fn only(limit: Limit, time: Duration) -> Self {
        let mut times = Self::default();
        times.0[limit as usize] = time;
        times
    }
    /// The time attributed to `limit`.
    pub fn of(&self, limit: Limit) -> Duration {
        self.0[limit as usize]
    }
    /// The sum over all limits: the connection's lifetime so far.
    pub fn life(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, time| sum + *time)
    }
    /// The fraction of the lifetime attributed to `limit`, 0 to 1; 0 for a lifetime of zero.
    pub fn share(&self, limit: Limit) -> f64 {
        let life = self.life().as_nanos();
        if life == 0 { 0.0 } else { self.of(limit).as_nanos() as f64 / life as f64 }
    }
    /// Adds the times of another connection.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, time)| *sum += time);
    }
}

/// Attributes the lifetime of one sender to limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitTracker {
    /// Up to the last progress.
    confirmed: LimitTimes,
    /// Since the last progress; becomes [`Limit::Timeout`] if the retransmission timer expires.
    provisional: LimitTimes,
    /// The current limit and since when; `None` before and after the lifetime.
    current: Option<(Limit, Instant)>,
}

impl LimitTracker {
    /// `limit` applies from `now` on. The first call begins the lifetime.
    pub fn set(&mut self, now: Instant, limit: Limit) {
        match &mut self.current {
            Some((current, _)) if *current == limit => {}
            _ => {
                self.accumulate(now);
                self.current = Some((limit, now));
            }
        }
    }
    fn accumulate(&mut self, now: Instant) {
        if let Some((limit, since)) = &mut self.current {
            self.provisional.0[*limit as usize] += now.since(*since);
            *since = now;
        }
    }
    /// Data was delivered, or the first segment of a burst leaves: the time until now keeps its attribution.
    pub fn on_progress(&mut self, now: Instant) {
        self.accumulate(now);
        self.confirmed.add(&std::mem::take(&mut self.provisional));
    }
    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, now: Instant) {
        self.accumulate(now);
        let waited = std::mem::take(&mut self.provisional).life();
        self.confirmed.0[Limit::Timeout as usize] += waited;
    }
    /// Ends the lifetime: everything was acknowledged, or the connection was given up.
    pub fn end(&mut self, now: Instant) {
        self.on_progress(now);
        self.current = None;
    }
    /// The times until `now`.
    pub fn times(&self, now: Instant) -> LimitTimes {
        let mut tracker = self.clone();
        tracker.on_progress(now);
        tracker.confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const SPAN: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn every_moment_is_attributed_to_one_limit() {
        let mut tracker = LimitTracker::default();
        assert_eq!(tracker.times(MS(50)).life(), Duration::ZERO);
        tracker.set(MS(100), Limit::Handshake);
        tracker.set(MS(130), Limit::CongestionWindow);
        tracker.set(MS(140), Limit::CongestionWindow);
        tracker.set(MS(150), Limit::Pacing);
        let times = tracker.times(MS(160));
        assert_eq!(times.life(), SPAN(60));
        let spans = [Limit::Handshake, Limit::CongestionWindow, Limit::Pacing].map(|limit| times.of(limit));
        assert_eq!(spans, [SPAN(30), SPAN(20), SPAN(10)]);
        let sum: f64 = Limit::ALL.iter().map(|limit| times.share(*limit)).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        tracker.end(MS(170));
        assert_eq!(tracker.times(MS(900)).life(), SPAN(70));
    }

    #[test]
    fn a_timeout_takes_all_time_since_the_last_progress() {
        let mut tracker = LimitTracker::default();
        tracker.set(MS(0), Limit::CongestionWindow);
        tracker.on_progress(MS(40));
        tracker.set(MS(60), Limit::Application);
        tracker.on_timeout(MS(260));
        tracker.set(MS(260), Limit::Timeout);
        let times = tracker.times(MS(300));
        assert_eq!(times.of(Limit::CongestionWindow), SPAN(40));
        assert_eq!((times.of(Limit::Application), times.of(Limit::Timeout)), (Duration::ZERO, SPAN(260)));
    }
}
