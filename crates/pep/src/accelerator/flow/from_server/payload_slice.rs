//! Bytes that a server sent, shared between the buffer that keeps them until the client has them and what is on its
//! way out: a driver that gathers never copies them.

use std::fmt;
use std::sync::Arc;

/// Part of a datagram that came. It stays as long as anybody has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Stretch {
    datagram: Arc<Box<[u8]>>,
    from: u32,
    until: u32,
}

impl Stretch {
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

impl fmt::Debug for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stretch({} bytes)", self.until - self.from)
    }
}
