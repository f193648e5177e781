//! Exact timers and real-time priorities (sched(7)).

use nix::sys::prctl;
use std::fs::File;
use std::io::{self, Write};

/// Real-time priority of threads of this program. Chosen: above all threads without one.
pub const PROGRAM: libc::c_int = 10;
/// Real-time priority of kernel threads that receive packets for a measurement. Chosen: above [`PROGRAM`].
pub const PACKETS: libc::c_int = 20;

/// Keeps idle processors from sleeping while the file is open (PM QoS, `/dev/cpu_dma_latency`): the host
/// takes up to a millisecond to wake a virtual processor that sleeps. Without the permission, timers run
/// later.
pub fn stay_awake() -> Option<File> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// Requests exact timers and, if permitted, real-time priority for this thread. Child processes do not
/// inherit the priority.
pub fn prefer_this_thread() {
    let _ = prctl::set_timerslack(1);
    let _ = set_fifo(0, PROGRAM);
}

/// Gives a thread real-time priority (SCHED_FIFO); 0 is the calling one.
pub fn set_fifo(thread: i32, priority: libc::c_int) -> io::Result<()> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // `struct sched_param` has one member. musl's function for this system call always fails.
    // SAFETY: the call reads one number that lives here.
    #[allow(unsafe_code)]
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
