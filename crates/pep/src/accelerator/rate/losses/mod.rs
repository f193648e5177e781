//! Meaning of losses: whether they come from a full buffer (`short_buffer`, `buffer_high_water`), how many
//! bytes in flight a buffer takes (`flight_cap`), whether other devices fill it too (`congestion`), how fast
//! the flight after a repair leaves (`refill`), and losses of a radio that fades (`fading`, which tells the
//! radio's silences from the sender's pauses by `ack_due`).

pub(in crate::accelerator) mod ack_due;
pub(in crate::accelerator) mod buffer_high_water;
pub(in crate::accelerator) mod congestion;
pub(in crate::accelerator) mod fading;
pub(in crate::accelerator) mod flight_cap;
pub(in crate::accelerator) mod refill;
pub(in crate::accelerator) mod short_buffer;
