//! The GTP-U tunnels of a connection in the table.
//!
//! Addresses and ports do not name a connection inside tunnels: two subscribers may have equal private ones.
//! The TEID does, but the two directions of a subscriber have different ones, and a packet shows its own
//! alone. The handshake pairs them: the SYN gives the tunnel of its direction, and the SYN-ACK that
//! acknowledges exactly this SYN gives that of the other direction.

use super::flow::{Flow, Phase};
use super::frame::{Frame, Tunnel};
use paceline_net::TcpFlags;

/// Tunnels of both directions; all zero outside GTP-U.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tunnels {
    policed: Tunnel,
    data: Tunnel,
}

impl Tunnels {
    /// Whether a frame is of the connection of these tunnels and `flow`; a SYN makes it so. `direction`:
    /// `SynPoliced` or `SynData`, as for [`Flow::on_syn`].
    pub(super) fn admit(&mut self, flow: &Flow, direction: Phase, frame: &Frame) -> bool {
        let segment = &frame.segment;
        let (own, other) = match direction {
            Phase::SynData => (&mut self.data, &mut self.policed),
            _ => (&mut self.policed, &mut self.data),
        };
        if segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK) {
            // A new connection, which may be another subscriber's; the earlier one is no longer policed.
            (*own, *other) = (frame.tunnel, Tunnel::default());
            return true;
        }
        let are_tunnels = own.teid == 0 && other.teid != 0 && frame.tunnel.teid != 0;
        if are_tunnels && segment.has(TcpFlags::SYN) && flow.awaited_ack(direction) == Some(segment.ack) {
            *own = frame.tunnel;
            return true;
        }
        *own == frame.tunnel && (own.teid == 0) == (other.teid == 0)
    }

    /// Whether a frame in the policed direction is in the tunnel of the last one, for policers that do not
    /// read the data direction.
    pub(super) fn follow(&mut self, frame: &Frame) -> bool {
        std::mem::replace(&mut self.policed, frame.tunnel) == frame.tunnel
    }
}
