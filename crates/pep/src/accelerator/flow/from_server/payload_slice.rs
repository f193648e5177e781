//! Payload bytes of a server's packet, shared between the store and the packets that carry them to the
//! client: a driver that gathers (scatter-gather I/O) sends them without a copy.

use std::fmt;
use std::sync::Arc;

/// Part of a received datagram. The datagram's memory is freed with its last slice.
#[derive(Clone, PartialEq, Eq)]
pub struct PayloadSlice {
    datagram: Arc<Box<[u8]>>,
    from: u32,
    until: u32,
}

impl PayloadSlice {
    /// The bytes `from..until` of `datagram`.
    pub(in crate::accelerator) fn new(datagram: &Arc<Box<[u8]>>, from: usize, until: usize) -> Self {
        debug_assert!(from <= until && until <= datagram.len(), "within the datagram");
        Self { datagram: Arc::clone(datagram), from: from as u32, until: until as u32 }
    }
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.datagram[self.from as usize..self.until as usize]
    }
}

impl fmt::Debug for PayloadSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PayloadSlice({} bytes)", self.until - self.from)
    }
}
