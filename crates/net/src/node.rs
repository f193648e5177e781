//! The interface of every packet processor: simulator, emulator and live gateway drive the same nodes.
//!
//! A node has no clock, no I/O and no threads. Its caller passes the time and packets, and polls it for
//! output until there is none. Every packet that enters leaves by [`Output::Transmit`] or [`Output::Drop`],
//! or is still in the node.

use crate::packet::{FlowKey, Packet};
use crate::time::Instant;

/// An attachment point of a node; each node documents its ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub u16);

/// A packet processor.
pub trait Node {
    /// A packet arrives at `from`.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet);
    /// The time of [`Node::poll_timeout`] has come. An early call has no effect.
    fn handle_timeout(&mut self, now: Instant);
    /// Another node has another serving cell for a station.
    fn handle_serving_cell(&mut self, _now: Instant, _of: ServingCell) {}
    /// The next output, in order; `None` when there is no more at this time.
    fn poll_output(&mut self, now: Instant) -> Option<Output>;
    /// The time at which to call [`Node::handle_timeout`] next; not before the time of the last call.
    fn poll_timeout(&self) -> Option<Instant>;

    /// [`Node::poll_output`] until there is no more, then [`Node::poll_timeout`]. A node that is one of
    /// several kinds overrides this, so that it finds its kind once and not once per call.
    #[inline]
    fn poll_all(&mut self, now: Instant, mut output: impl FnMut(Output)) -> Option<Instant>
    where
        Self: Sized,
    {
        while let Some(next) = self.poll_output(now) {
            output(next);
        }
        self.poll_timeout()
    }
    /// [`Node::handle_packet`] and [`Node::poll_all`].
    #[inline]
    fn deliver(
        &mut self,
        now: Instant,
        from: Port,
        packet: Packet,
        output: impl FnMut(Output),
    ) -> Option<Instant>
    where
        Self: Sized,
    {
        self.handle_packet(now, from, packet);
        self.poll_all(now, output)
    }
    /// [`Node::handle_timeout`] if it is due, and [`Node::poll_all`].
    #[inline]
    fn expire(&mut self, now: Instant, output: impl FnMut(Output)) -> Option<Instant>
    where
        Self: Sized,
    {
        match self.poll_timeout() {
            Some(due) if due <= now => {
                self.handle_timeout(now);
                self.poll_all(now, output)
            }
            later => later,
        }
    }
}

/// An output of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// The packet leaves through the port.
    Transmit(Port, Packet),
    /// The packet ends here, for this reason.
    Drop(Packet, DropReason),
    /// A notification; boxed, so that an output has two words.
    Event(Box<Event>),
}

/// The reason why a packet ended at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// A bounded queue was full.
    QueueFull,
    /// Active queue management dropped it as a congestion signal (RFC 8289).
    ActiveQueueManagement,
    /// An ACK filter discarded it as superseded; no congestion signal.
    AckFiltered,
    /// An ACK policer dropped it as superseded; no congestion signal.
    AckPoliced,
    /// Its transport block failed in every HARQ transmission.
    HarqFailed,
    /// RLC stopped waiting for a missing segment (t-Reordering or the reordering window).
    RlcReassembly,
    /// PDCP had stopped waiting for it when it arrived (t-Reordering of NR).
    PdcpReordering,
    /// PDCP's discard timer expired.
    PdcpDiscard,
    /// The radio link failed while the packet was in transmission.
    RadioLinkFailure,
    /// No station, route or endpoint has this destination.
    NoRoute,
    /// A lossy link lost it.
    LinkLoss,
    /// Its bearer left the path on which the packet was in transmission.
    PathSwitch,
}

/// From now on the packets of a station pass another cell's part of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServingCell {
    /// The station.
    pub station: usize,
    /// Its cell, by index of the served cells.
    pub cell: usize,
    /// Whether it is the direction from the station; else the one towards it.
    pub uplink: bool,
}

/// A notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A station has another serving cell.
    ServingCell(ServingCell),
    /// Every byte of a finite transfer was acknowledged; the key is in the direction of the data.
    TransferComplete(FlowKey),
    /// A side gave the connection up because the peer does not answer; the key is in the direction from that
    /// side.
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
