//! (to be written)

pub(in crate::accelerator) mod client;
pub(in crate::accelerator) mod uplink;
