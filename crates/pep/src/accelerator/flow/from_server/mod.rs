//! (to be written)

pub(in crate::accelerator) mod ahead;
pub(in crate::accelerator) mod inbound;
pub(in crate::accelerator) mod paws;
pub(in crate::accelerator) mod payload_slice;
pub(in crate::accelerator) mod store;
