//! The journal of exposed connections: their servers have ACKs for bytes that the clients lack. After a crash
//! these connections cannot continue; the journal has the sequence numbers with which both ends are reset.
//!
//! The list changes with the connections, so that a journal costs as much as there are exposed connections,
//! not open ones. A new acknowledgment is reported at once, because the journal must have it before the
//! server does. The end of an exposure is reported later, because most connections are exposed again soon.
//! Left out: storage of the records.

use crate::accelerator::machine::entry::{FlowEntry, NOT_LISTED};
use crate::accelerator::machine::index::Table;
use crate::accelerator::{FlowRecord, Side};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, FlowKey, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

/// Hop limit of resets. Chosen: Linux's default.
const HOP_LIMIT: u8 = 64;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Journal {
    /// Bytes acknowledged early in all.
    total_exposure: u64,
    /// The driver keeps a journal.
    enabled: bool,
    /// Slots of the connections that the journal has.
    list: Vec<u32>,
    /// Slots whose records must be written before any packet is sent.
    changed: Vec<u32>,
    /// Slots of connections that have ended.
    ended: Vec<u32>,
    /// Position in the list at which the next sweep begins.
    position: usize,
}

impl Journal {
    pub fn enable(&mut self) {
        self.enabled = true;
    }
    pub fn total_exposure(&self) -> u64 {
        self.total_exposure
    }
    /// Updates the totals and the list from a connection.
    pub fn update(&mut self, slot: u32, entry: &mut FlowEntry) {
        let (exposure, acked) = (entry.flow.exposure(), entry.flow.acked());
        self.total_exposure = self.total_exposure + exposure - entry.charged.exposure;
        entry.charged.exposure = exposure;
        if self.enabled && exposure > 0 && acked != entry.journal_acked {
            entry.journal_acked = acked;
            if entry.journal_place == NOT_LISTED {
                entry.journal_place = self.list.len() as u32;
                self.list.push(slot);
            }
            if !entry.journal_changed {
                entry.journal_changed = true;
                self.changed.push(slot);
            }
        }
    }
    /// A connection was removed from `flows`.
    pub fn remove(&mut self, slot: u32, entry: &FlowEntry, flows: &mut Table<FlowEntry>) {
        self.total_exposure -= entry.charged.exposure;
        if entry.journal_place != NOT_LISTED {
            self.ended.push(slot);
            self.unlist(entry.journal_place, flows);
        }
    }
    fn unlist(&mut self, at: u32, flows: &mut Table<FlowEntry>) {
        self.list.swap_remove(at as usize);
        if let Some(moved) = self.list.get(at as usize).and_then(|slot| flows.get_mut(*slot)) {
            moved.journal_place = at;
        }
    }
    /// Writes what must be written before any packet is sent; `None` for a slot that is empty now.
    pub fn changes(&mut self, flows: &mut Table<FlowEntry>, mut write: impl FnMut(u32, Option<FlowRecord>)) {
        // Ends first: a slot may have another connection since.
        self.ended.drain(..).for_each(|slot| write(slot, None));
        for slot in self.changed.drain(..) {
            let Some(entry) = flows.get_mut(slot).filter(|entry| entry.journal_changed) else { continue };
            entry.journal_changed = false;
            if entry.journal_place != NOT_LISTED {
                write(slot, Some(entry.flow.record()));
            }
        }
    }
    /// Writes up to `count` connections of the list, round robin: their records, or `None` for those that are
    /// no longer exposed.
    pub fn sweep(
        &mut self,
        count: usize,
        flows: &mut Table<FlowEntry>,
        mut write: impl FnMut(u32, Option<FlowRecord>),
    ) {
        if count >= self.list.len() {
            self.position = 0; // each of them once
        }
        for _ in 0..count.min(self.list.len()) {
            if self.position >= self.list.len() {
                self.position = 0;
            }
            let Some(&slot) = self.list.get(self.position) else { return };
            let Some(entry) = flows.get_mut(slot) else { return };
            if entry.flow.exposure() > 0 {
                write(slot, Some(entry.flow.record()));
                self.position += 1;
            } else {
                entry.journal_place = NOT_LISTED;
                entry.journal_acked = 0;
                write(slot, None);
                self.unlist(self.position as u32, flows);
            }
        }
    }
}

impl FlowRecord {
    /// The packets that end a connection at both ends. A reset counts only with the number that its receiver
    /// expects next (RFC 5961, section 3.2). A client whose acknowledgments do not come here may have
    /// everything that was sent, hence a second reset. A probe for each end follows, with an old number: an
    /// end that is not reset yet answers it, and the other one, which has no connection any more, resets it.
    pub(in crate::accelerator) fn resets(&self) -> impl Iterator<Item = (Side, Packet)> {
        let to_client = |seq, flags| {
            let ends = (self.server_timestamp, self.client_timestamp);
            (Side::Mobile, empty(self.key, (seq, self.server_expects), ends, flags))
        };
        let to_server = |seq, flags| {
            let ends = (self.client_timestamp, self.server_timestamp);
            (Side::Server, empty(self.key.reversed(), (seq, self.server_acked), ends, flags))
        };
        let (reset, probe) = (TcpFlags::RST.with(TcpFlags::ACK), TcpFlags::ACK);
        let sent = (self.client_sent != self.client_expects).then(|| to_client(self.client_sent, reset));
        let resets = [to_server(self.server_expects, reset), to_client(self.client_expects, reset)];
        let probes = [
            to_client(self.client_expects + u32::MAX, probe),
            to_server(self.server_expects + u32::MAX, probe),
        ];
        resets.into_iter().chain(sent).chain(probes)
    }
}

/// A segment without payload, with its sequence and acknowledgment numbers, and its TSval and TSecr.
fn empty(
    key: FlowKey,
    (seq, ack): (SeqNumber, SeqNumber),
    (val, ecr): (Option<u32>, Option<u32>),
    flags: TcpFlags,
) -> Packet {
    let ip = IpHeader { src: key.src, dst: key.dst, traffic_class: 0, hop_limit: HOP_LIMIT, special: false };
    let timestamps = val.zip(ecr).map(|(val, ecr)| Timestamps { val, ecr });
    let tcp = TcpHeader {
        src_port: key.src_port,
        dst_port: key.dst_port,
        seq,
        ack,
        flags,
        window: 0,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload_len: 0,
    };
    rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
}
