//! Paths of two hops: a node between them passes on the PDCP PDUs that it receives, below the one PDCP of the
//! bearer. RLC of each hop ends there; COUNTs do not.
//!
//! A PDU that waits in the node is an unconfirmed one of the path: where the path changes, the sending end
//! has its SDU again.

use crate::pdcp::{self, Leg, PdcpConfig, Waiting};
use crate::rlc::Rlc;
use paceline_net::{Bytes, DropTail};

/// A hop of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// From the sending end, to the receiving one or to the node between them.
    First,
    /// From the node to the receiving end.
    Relay,
}

/// The RLC entities of a path.
pub(crate) struct PathRlc {
    pub first: Rlc,
    pub relay: Option<Relay>,
}

impl From<Rlc> for PathRlc {
    fn from(first: Rlc) -> Self {
        Self { first, relay: None }
    }
}

/// The second hop of a path.
pub(crate) struct Relay {
    /// PDUs that wait for RLC, in the order of their arrival.
    pub(super) tx: pdcp::Tx,
    /// An empty buffer: all PDUs have their numbers.
    pub(super) above: DropTail,
    /// Most bytes of packets that wait.
    limit: Bytes,
    pub rlc: Rlc,
}

impl Relay {
    pub fn new(pdcp: PdcpConfig, rlc: Rlc, limit: Bytes) -> Self {
        Self { tx: pdcp::Tx::new(pdcp), above: DropTail::new(Bytes::ZERO), limit, rlc }
    }
    pub(super) fn waiting(&self) -> Waiting {
        self.tx.waiting(Leg::Main, &self.above)
    }
    /// Bytes of the packets that wait.
    pub(super) fn queued(&self) -> u64 {
        let waiting = self.waiting();
        waiting.bytes - u64::from(self.tx.header_bytes()) * waiting.packets
    }
    /// A PDU arrives from the first hop: returned if the buffer is full.
    pub(super) fn push(&mut self, pdu: pdcp::Pdu) -> Option<pdcp::Pdu> {
        let bytes = u64::from(pdu.bytes() - self.tx.header_bytes());
        if self.queued() + bytes > self.limit.0 {
            return Some(pdu);
        }
        self.tx.pass_on(pdu);
        None
    }
    /// A PDU arrives as the path ends.
    pub(super) fn take_in(&mut self, pdu: pdcp::Pdu) {
        self.tx.pass_on(pdu);
    }
    pub(super) fn held(&self) -> u64 {
        self.tx.held() + self.rlc.held()
    }
    pub(super) fn idle(&self) -> bool {
        self.rlc.idle()
    }
    /// Ends the hop: calls `left` with the PDUs that RLC has not delivered for certain, then with those that
    /// wait.
    pub(super) fn release(mut self, mut left: impl FnMut(pdcp::Pdu)) {
        self.rlc.release(&mut left);
        self.tx.take_numbered().into_iter().for_each(left);
    }
}
