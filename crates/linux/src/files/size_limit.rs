//! The size at which a file that is being written ends.

use paceline_net::Bytes;

/// Bytes written to a file, and their limit.
#[derive(Debug)]
pub struct SizeLimit {
    written: Bytes,
    limit: Option<Bytes>,
}

impl SizeLimit {
    /// A limit; none for a file of any size.
    pub fn new(limit: Option<Bytes>) -> Self {
        Self { written: Bytes::ZERO, limit }
    }
    /// Counts a piece; whether it and all before it fit. The file ends with the first one that does not.
    pub fn admits(&mut self, bytes: u64) -> bool {
        self.written += Bytes(bytes);
        self.limit.is_none_or(|limit| self.written <= limit)
    }
}
