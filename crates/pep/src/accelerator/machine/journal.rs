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
    /// A reset for each end, with the exact sequence number that RFC 5961, section 3.2 requires.
    pub(in crate::accelerator) fn resets(&self) -> [(Side, Packet); 2] {
        let to_client = reset(
            self.key,
            self.client_expects,
            self.server_expects,
            self.server_timestamp,
            self.client_timestamp,
        );
        let to_server = reset(
            self.key.reversed(),
            self.server_expects,
            self.server_acked,
            self.client_timestamp,
            self.server_timestamp,
        );
        [(Side::Mobile, to_client), (Side::Server, to_server)]
    }
}

fn reset(key: FlowKey, seq: SeqNumber, ack: SeqNumber, val: Option<u32>, ecr: Option<u32>) -> Packet {
    let ip = IpHeader { src: key.src, dst: key.dst, traffic_class: 0, hop_limit: HOP_LIMIT, special: false };
    let timestamps = val.zip(ecr).map(|(val, ecr)| Timestamps { val, ecr });
    let tcp = TcpHeader {
        src_port: key.src_port,
        dst_port: key.dst_port,
        seq,
        ack,
        flags: TcpFlags::RST.with(TcpFlags::ACK),
        window: 0,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload_len: 0,
    };
    rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
}
