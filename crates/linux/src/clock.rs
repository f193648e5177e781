//! The monotonic clock (`CLOCK_MONOTONIC`), and sleeping until an instant.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use paceline_net::{Duration, Instant};
use std::io;
use std::os::fd::BorrowedFd;

/// A clock, real or of a test.
pub trait Clock {
    /// The present time.
    fn now(&mut self) -> Instant;
    /// Waits until a descriptor is readable, `until` is reached, or a signal arrives.
    fn wait(&mut self, readable: &[BorrowedFd<'_>], until: Instant) -> io::Result<()>;
}

/// `CLOCK_MONOTONIC`, counted from the creation of the value.
#[derive(Debug)]
pub struct Monotonic {
    start_ns: u64,
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has a monotonic clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// `CLOCK_MONOTONIC`: the clock of bpf_ktime_get_ns in kernel programs.
pub fn now() -> Instant {
    Instant::from_nanos(monotonic_ns())
}

/// Sleeps until an instant of [`now`]'s clock, or a signal.
pub fn sleep_until(at: Instant) {
    let at = TimeSpec::from_duration(std::time::Duration::from_nanos(at.as_nanos()));
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
}

/// Sleeps for `time`, or until a signal.
pub fn pause(time: Duration) {
    sleep_until(now() + time);
}

impl Monotonic {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start_ns: monotonic_ns() }
    }
}

impl Clock for Monotonic {
    fn now(&mut self) -> Instant {
        Instant::from_nanos(monotonic_ns() - self.start_ns)
    }
    fn wait(&mut self, readable: &[BorrowedFd<'_>], until: Instant) -> io::Result<()> {
        let wait = until.since(self.now());
        if wait == Duration::ZERO {
            return Ok(());
        }
        let mut fds: Vec<PollFd<'_>> =
            readable.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos()));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
