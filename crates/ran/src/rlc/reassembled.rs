//! RE

use paceline_net::Packet;

/// What reassembly makes of a PDU's elements.
#[derive(Clone, PartialEq, Debug)]
pub enum Reassembled {
    /// A complete SDU.
    Sdu(Packet),
    /// An SDU of which an earlier part is missing.
    Incomplete(Packet),
}
