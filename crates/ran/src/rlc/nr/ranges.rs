//! The bytes of one SDU that a receiver has.

use paceline_net::Ranges;

/// The end of a range that reaches the last byte of its SDU: the receiver need not know the SDU's length.
pub const END: u32 = u32::MAX;

/// Whether every byte of the SDU is there.
pub fn is_complete(received: &Ranges<u32>) -> bool {
    received.contains(0, END)
}

/// Whether a byte is missing before the last one that is there.
pub fn has_gap(received: &Ranges<u32>) -> bool {
    received.end().is_some_and(|end| !received.contains(0, end))
}
