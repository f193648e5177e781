//! The result of reassembly at an RLC receiver.

use paceline_net::Packet;

/// An SDU whose last byte has been received.
#[derive(Clone, PartialEq, Debug)]
pub enum Reassembled {
    /// A complete SDU.
    Sdu(Packet),
    /// An SDU with a missing part.
    Incomplete(Packet),
}
