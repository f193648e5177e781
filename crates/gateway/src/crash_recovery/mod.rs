//! Crash recovery: no connection hangs when the gateway's process dies.
//!
//! Before an early acknowledgment leaves, the worker writes the connection's sequence numbers to the
//! [`journal`], which is memory shared with a second process, the [`guardian`]. The guardian waits on a pipe.
//! When the gateway's end of the pipe closes, it reads the journal, and the [`rescuer`] probes both ends of
//! every connection in it, and resets the connections whose client lacks acknowledged bytes. Without a
//! guardian nothing is acknowledged early: workers see its [`presence`]. A guardian that dies is started
//! again.

pub mod guardian;
pub mod journal;
mod memory;
pub mod presence;
pub mod rescuer;
mod watched;
