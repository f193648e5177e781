//! The contract of everything that handles packets: simulator, emulator and live gateway drive the same nodes.
//!
//! A node has no clock, no I/O and no threads. It is told the time, given packets, and asked for its output until
//! there is none. Every packet that enters leaves by [`Output::Transmit`] or [`Output::Drop`], or is held.

use crate::packet::{FlowKey, Packet};
use crate::time::Instant;

/// One of a node's attachment points; each node documents its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub u16);

/// Something that handles packets.
pub trait Node {
    /// A packet arrives at `from`.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet);
    /// The time of [`Node::poll_timeout`] has come. Calling early is harmless.
    fn handle_timeout(&mut self, now: Instant);
    /// The next output, in order; `None` when there is no more at this time.
    fn poll_output(&mut self, now: Instant) -> Option<Output>;
    /// When [`Node::handle_timeout`] wants to be called next; never in the past of the last call.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// What a node emits.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// The packet leaves by the port.
    Transmit(Port, Packet),
    /// The packet ends here, and why.
    Drop(Packet, DropReason),
    /// Something that the outside may want to know; boxed, since it is rare and packets then move in two words.
    Event(Box<Event>),
}

/// Why a packet ended at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// A bounded queue was full.
    QueueFull,
    /// An ACK filter found it superseded: no congestion signal.
    AckFiltered,
    /// Its transport block failed in every HARQ transmission.
    HarqFailed,
    /// RLC gave up waiting for a missing segment (t-Reordering or the reordering window).
    RlcReassembly,
    /// PDCP's discard timer expired.
    PdcpDiscard,
    /// It was under way when the radio link failed.
    RadioLinkFailure,
    /// No station, route or endpoint has this destination.
    NoRoute,
    /// A lossy link lost it.
    LinkLoss,
}

/// A notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Every byte of a finite transfer was acknowledged; the key is in the direction of the data.
    TransferComplete(FlowKey),
    /// A side gave the connection up because the peer did not answer; the key is in the direction from that side.
    ConnectionTimedOut(FlowKey),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_two_words() {
        assert_eq!(size_of::<Option<Output>>(), 16);
    }
}
