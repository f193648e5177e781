//! Messages to the service manager (sd_notify(3)): ready, reloading, stopping, and the watchdog's pings.
//!
//! A ping is sent only while every part of the program works, which the caller finds out. The manager kills
//! a program whose pings stay away for `WatchdogSec=`.

use paceline_linux::clock;
use paceline_net::{Duration, Instant};
use sd_notify::NotifyState;

/// Time that a stop may take beyond its limit. Chosen: a worker's last packets and the removal of devices
/// take much less, on a busy machine too.
const STOP_MARGIN: Duration = Duration::from_secs(10);

/// The service manager, if one has started this program.
pub struct Manager {
    /// Time between two pings; None without a watchdog.
    ping_interval: Option<Duration>,
    pinged_at: Instant,
}

impl Manager {
    /// The manager named by the environment (`$NOTIFY_SOCKET`, `$WATCHDOG_USEC`). Pings are sent three times
    /// in the watchdog's time, so that a late one does no harm.
    pub fn from_environment() -> Self {
        let watchdog = sd_notify::watchdog_enabled();
        let ping_interval = watchdog
            .map(|limit| Duration::from_micros((limit.as_micros() / 3).try_into().unwrap_or(u64::MAX)));
        Self { ping_interval, pinged_at: Instant::ZERO }
    }
    /// The program does its work; `status` says which.
    pub fn ready(&self, status: &str) {
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }
    /// The configuration is being read again; [`Self::ready`] ends it.
    pub fn reloading(&self) {
        let now = clock::now().as_nanos() / 1000;
        send(&[NotifyState::Reloading, NotifyState::MonotonicUsec(now.into())]);
    }
    /// The program ends within `limit`, however short the manager's own limit is.
    pub fn stopping(&self, limit: Duration) {
        let microseconds = (limit + STOP_MARGIN).as_nanos() / 1000;
        let extend = NotifyState::ExtendTimeoutUsec(microseconds.try_into().unwrap_or(u32::MAX));
        send(&[NotifyState::Stopping, NotifyState::Status("delivering acknowledged data"), extend]);
    }
    /// Pings the watchdog if a ping is due and `works` confirms that the whole program works. To be called
    /// several times a second.
    pub fn ping(&mut self, works: impl FnOnce() -> bool) {
        let now = clock::now();
        let Some(interval) = self.ping_interval else { return };
        if now.since(self.pinged_at) >= interval && works() {
            self.pinged_at = now;
            send(&[NotifyState::Watchdog]);
        }
    }
}

/// Errors are ignored: the manager notices that a message is missing.
fn send(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
