//! A worker: one thread with the accelerators of its share of the devices.
//!
//! [`event_loop`] is the thread. Each turn it reads frames from its packet sockets, hands packets to the
//! [`engine`], runs due timers, and sends the engine's packets. [`batching`] decides how long it pauses
//! before the next turn; [`port`] has its sockets and send queue on one interface, and [`waiting`]
//! the frames that an interface's queue has refused. Requests from the control
//! plane are handled between turns.
//!
//! [`engine`] chooses by policy what happens to a packet: a `pep` accelerator (with or without early
//! acknowledgments), the queue ahead of the servers' line with its ACK filter ([`uplink`]), or the kernel.
//! [`counters`] counts frames, turns and losses of the worker.

pub mod batching;
pub mod counters;
pub mod engine;
pub mod event_loop;
pub mod port;
pub mod uplink;
mod waiting;
