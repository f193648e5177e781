//! The result of reassembly at an RLC receiver.

use crate::pdcp;

/// An SDU whose last byte has been received.
#[derive(Clone, PartialEq, Debug)]
pub enum Reassembled {
    /// A complete SDU.
    Sdu(pdcp::Pdu),
    /// An SDU with a missing part.
    Incomplete(pdcp::Pdu),
}
