//! The journal: the sequence numbers of connections with exposure, in memory shared with the guardian
//! process.
//!
//! There is a record of 128 bytes for each slot of a worker's table of connections. Only the worker writes
//! it, and the guardian reads it after the gateway has died, so there are no locks. A record is valid while
//! its first word is not zero; this word is written last. A valid record is updated word by word, and each
//! word is consistent by itself. A new acknowledgment number is written before the acknowledgment leaves.
//!
//! Encapsulations are in a second part of the memory, behind all records.
//!
//! The memory (memfd_create(2)) is as large as the largest table; the kernel allocates the pages that were
//! written. Its size is sealed, so that no process can truncate it under another one.

use super::memory::Memory;
use super::presence::Presence;
use crate::datapath::frame::Link;
use anyhow::{Context, bail};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use paceline_net::tunnel::{self, Tunnel};
use paceline_net::{FlowKey, SeqNumber};
use paceline_pep::accelerator::{FlowRecord, Side};
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// 64-bit words of a record. Layout: the offsets below, padded to 128 bytes.
const WORDS: usize = 16;
/// 64-bit words ahead of the records. Layout: magic number, number of workers and the guardian's presence,
/// then for each worker the number of slots that were ever used, 64 bytes apart so that workers do not share
/// cache lines.
const HEADER: usize = 8 * (1 + crate::config::MAX_WORKERS);
/// Chosen: identifies the layout and its version.
const MAGIC: u64 = u64::from_be_bytes(*b"pacejnl3");
/// Slots of all workers together. Same as the largest `limits.max_flows` of a configuration.
const SLOTS: usize = 1 << 24;

// Layout of a record: offsets in 64-bit words.
const STATE: usize = 0;
const PORTS: usize = 1;
const ADDRESSES: usize = 2;
const DOWNLINK_SEQ: usize = 6;
const UPLINK_SEQ: usize = 7;
const TIMESTAMPS: usize = 8;
const LENGTHS: usize = 9;
const LINKS: usize = 10;
const LINK_WORDS: usize = 3;
/// 64-bit words of the encapsulation of one side. Layout: as many as the longest needs.
const TUNNEL_WORDS: usize = tunnel::MAX_LEN.div_ceil(8);
/// 64-bit words of the whole memory.
const ALL_WORDS: usize = HEADER + (WORDS + 2 * TUNNEL_WORDS) * SLOTS;

/// Layout: bit of the word LENGTHS that is set if the connection has timestamps.
const HAS_TIMESTAMPS: u64 = 1 << 16;
/// Layout: bits of the word LENGTHS from which on there are the lengths of the encapsulations, 8 bits each,
/// and a bit for each that says whether it has a checksum.
const TUNNEL_LENGTHS: usize = 24;
const TUNNEL_CHECKSUMS: usize = 40;

/// The journal of a running gateway.
pub struct Journal {
    memory: Arc<Memory>,
    file: OwnedFd,
    workers: usize,
}

/// The part of the journal that one worker writes.
pub struct Writer {
    memory: Arc<Memory>,
    worker: usize,
    first: usize,
    slots: usize,
    used: u64,
    writes: u64,
}

/// A valid record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Sequence numbers and timestamps of both ends.
    pub record: FlowRecord,
    /// Link headers by the side where packets leave, if known.
    pub links: [Option<Link>; 2],
}

impl Journal {
    /// An empty journal.
    pub fn new(workers: usize) -> anyhow::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create("paceline-journal", flags).context("cannot make the journal")?;
        let words = ALL_WORDS;
        nix::unistd::ftruncate(&file, 8 * words as i64).context("cannot make the journal")?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals())).context("cannot seal the journal")?;
        let memory = Memory::map(&file, words)?;
        memory.words()[0].store(MAGIC, Ordering::Relaxed);
        memory.words()[1].store(workers as u64, Ordering::Relaxed);
        Ok(Self { memory: Arc::new(memory), file, workers })
    }
    /// A descriptor of its memory, for another process.
    pub fn share(&self) -> anyhow::Result<OwnedFd> {
        self.file.try_clone().context("cannot duplicate a descriptor")
    }
    /// Whether there is a guardian.
    pub fn presence(&self) -> Presence {
        Presence::new(Arc::clone(&self.memory))
    }
    /// The writer of a worker.
    pub fn writer(&self, worker: usize) -> Writer {
        let slots = SLOTS / self.workers;
        Writer { memory: Arc::clone(&self.memory), worker, first: worker * slots, slots, used: 0, writes: 0 }
    }
}

impl Writer {
    /// Whether there is a guardian that reads the journal after a crash.
    pub fn is_guarded(&self) -> bool {
        Presence::is_in(&self.memory)
    }
    /// Number of calls of [`Self::write`].
    pub fn writes(&self) -> u64 {
        self.writes
    }
    fn record(&self, slot: u32) -> Option<&[AtomicU64]> {
        let slot = Some(slot as usize).filter(|slot| *slot < self.slots)?;
        let at = HEADER + WORDS * (self.first + slot);
        Some(&self.memory.words()[at..at + WORDS])
    }
    /// The words of a slot's encapsulations.
    fn tunnels(&self, slot: usize) -> &[AtomicU64] {
        let at = tunnels_at(self.first + slot);
        &self.memory.words()[at..at + 2 * TUNNEL_WORDS]
    }
    /// Writes the record of a slot, or clears it (None). The connection's addresses and link headers are
    /// written only into a cleared record.
    pub fn write(
        &mut self,
        slot: u32,
        record: Option<FlowRecord>,
        link: impl Fn(&FlowKey, Side) -> Option<Link>,
    ) {
        self.writes += 1;
        if u64::from(slot) >= self.used {
            self.used = u64::from(slot) + 1;
            self.memory.words()[8 * (1 + self.worker)].store(self.used, Ordering::Release);
        }
        let Some(words) = self.record(slot) else { return };
        let Some(record) = record else { return words[STATE].store(0, Ordering::Release) };
        let put = |at: usize, value: u64| words[at].store(value, Ordering::Relaxed);
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let timestamps = record.client_timestamp.zip(record.server_timestamp);
        let (client, server) = timestamps.unwrap_or_default();
        put(DOWNLINK_SEQ, pair(record.server_acked.0, record.client_sent.0));
        put(UPLINK_SEQ, pair(record.client_expects.0, record.server_expects.0));
        put(TIMESTAMPS, pair(client, server));
        if words[STATE].load(Ordering::Relaxed) != 0 {
            return; // addresses and link headers are there already
        }
        let FlowKey { src, dst, src_port, dst_port } = record.key;
        put(PORTS, u64::from(src_port) | u64::from(dst_port) << 16 | u64::from(src.is_ipv4()) << 32);
        for (n, address) in [src, dst].into_iter().enumerate() {
            let bits = crate::policy::mapped(address).to_bits();
            put(ADDRESSES + 2 * n, bits as u64);
            put(ADDRESSES + 2 * n + 1, (bits >> 64) as u64);
        }
        let mut lengths = if timestamps.is_some() { HAS_TIMESTAMPS } else { 0 };
        for side in [Side::Server, Side::Mobile] {
            let Some(link) = link(&record.key, side) else { continue };
            let mut bytes = [0; 8 * LINK_WORDS];
            bytes[..link.as_bytes().len()].copy_from_slice(link.as_bytes());
            lengths |= (link.as_bytes().len() as u64) << (8 * side as u64);
            for (n, word) in bytes.chunks_exact(8).enumerate() {
                put(
                    LINKS + LINK_WORDS * side as usize + n,
                    u64::from_ne_bytes(word.try_into().unwrap_or_default()),
                );
            }
            let Some(tunnel) = link.tunnel() else { continue };
            let mut bytes = [0; 8 * TUNNEL_WORDS];
            bytes[..tunnel.header_len()].copy_from_slice(tunnel.as_bytes());
            lengths |= (tunnel.header_len() as u64) << (TUNNEL_LENGTHS + 8 * side as usize);
            lengths |= u64::from(tunnel.has_checksum()) << (TUNNEL_CHECKSUMS + side as usize);
            let words = &self.tunnels(slot as usize)[TUNNEL_WORDS * side as usize..];
            for (to, word) in words.iter().zip(bytes.chunks_exact(8)) {
                to.store(u64::from_ne_bytes(word.try_into().unwrap_or_default()), Ordering::Relaxed);
            }
        }
        put(LENGTHS, lengths);
        words[STATE].store(1, Ordering::Release);
    }
}

/// The seals of a journal: its size, and the seals themselves.
fn seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL
}

/// Maps the journal of another process.
pub fn open(file: &File) -> anyhow::Result<Arc<Memory>> {
    let context = "cannot read the journal";
    let sealed = fcntl(file, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate);
    let has_size = file.metadata().context(context)?.len() == 8 * ALL_WORDS as u64;
    if !has_size || !sealed.is_ok_and(|sealed| sealed.contains(seals())) {
        bail!("the file is no journal");
    }
    Ok(Arc::new(Memory::map(&file.try_clone().context("cannot duplicate a descriptor")?.into(), ALL_WORDS)?))
}

/// Reads the valid records of a journal whose gateway has died.
pub fn read(memory: &Memory) -> anyhow::Result<Vec<Entry>> {
    fence(Ordering::Acquire);
    let words = memory.words();
    let word = |at: usize| words[at].load(Ordering::Relaxed);
    let workers = (word(1) as usize).clamp(1, crate::config::MAX_WORKERS);
    if word(0) != MAGIC {
        bail!("the file is no journal");
    }
    let slots = SLOTS / workers;
    let mut entries = Vec::new();
    for worker in 0..workers {
        let used = (word(8 * (1 + worker)) as usize).min(slots);
        for slot in 0..used {
            let at = HEADER + WORDS * (worker * slots + slot);
            if words[at + STATE].load(Ordering::Acquire) != 0 {
                let tunnels = tunnels_at(worker * slots + slot);
                entries.push(entry(
                    &std::array::from_fn(|n| word(at + n)),
                    &std::array::from_fn(|n| word(tunnels + n)),
                ));
            }
        }
    }
    Ok(entries)
}

/// The first word of a slot's encapsulations; slots of all workers are counted.
fn tunnels_at(slot: usize) -> usize {
    HEADER + WORDS * SLOTS + 2 * TUNNEL_WORDS * slot
}

fn entry(words: &[u64; WORDS], tunnels: &[u64; 2 * TUNNEL_WORDS]) -> Entry {
    let halves = |at: usize| (words[at] as u32, (words[at] >> 32) as u32);
    let v4 = words[PORTS] >> 32 & 1 != 0;
    let address = |at: usize| -> IpAddr {
        let v6 = Ipv6Addr::from_bits(u128::from(words[at]) | u128::from(words[at + 1]) << 64);
        v6.to_ipv4_mapped().filter(|_| v4).map_or(v6.into(), Into::into)
    };
    let key = FlowKey {
        src: address(ADDRESSES),
        dst: address(ADDRESSES + 2),
        src_port: words[PORTS] as u16,
        dst_port: (words[PORTS] >> 16) as u16,
    };
    let has_timestamps = words[LENGTHS] & HAS_TIMESTAMPS != 0;
    let (server_acked, client_sent) = halves(DOWNLINK_SEQ);
    let (client_expects, server_expects) = halves(UPLINK_SEQ);
    let (client_timestamp, server_timestamp) = halves(TIMESTAMPS);
    let record = FlowRecord {
        key,
        client_expects: SeqNumber(client_expects),
        client_sent: SeqNumber(client_sent),
        server_expects: SeqNumber(server_expects),
        server_acked: SeqNumber(server_acked),
        client_timestamp: has_timestamps.then_some(client_timestamp),
        server_timestamp: has_timestamps.then_some(server_timestamp),
    };
    let link = |side: usize| {
        let len = usize::from((words[LENGTHS] >> (8 * side)) as u8);
        let at = LINKS + LINK_WORDS * side;
        let bytes: Vec<u8> = words[at..at + LINK_WORDS].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let link = Link::from_bytes(bytes.get(..len)?)?;
        let len = usize::from((words[LENGTHS] >> (TUNNEL_LENGTHS + 8 * side)) as u8);
        let checksum = words[LENGTHS] >> (TUNNEL_CHECKSUMS + side) & 1 != 0;
        let tunnel = tunnels[TUNNEL_WORDS * side..].iter().take(TUNNEL_WORDS);
        let bytes: Vec<u8> = tunnel.flat_map(|word| word.to_ne_bytes()).collect();
        match len {
            0 => Some(link),
            _ => Tunnel::restore(link.ethertype(), bytes.get(..len)?, checksum)
                .map(|own| link.with_tunnel(own)),
        }
    };
    Entry { record, links: [link(0), link(1)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u32, v4: bool) -> FlowRecord {
        let address = |last: u32| -> IpAddr {
            if v4 {
                std::net::Ipv4Addr::from_bits(0x0a00_0000 + last).into()
            } else {
                Ipv6Addr::from_bits((0xfd_u128 << 120) + u128::from(last)).into()
            }
        };
        let key = FlowKey { src: address(1), dst: address(n), src_port: 443, dst_port: 40_000 + n as u16 };
        let seq = |add: u32| SeqNumber((u32::MAX - 5).wrapping_add(n + add));
        FlowRecord {
            key,
            client_expects: seq(1),
            client_sent: seq(2),
            server_expects: seq(3),
            server_acked: seq(4),
            client_timestamp: v4.then_some(n),
            server_timestamp: v4.then_some(u32::MAX),
        }
    }
    fn link(_: &FlowKey, side: Side) -> Option<Link> {
        let bytes = [7 + side as u8; 18];
        Link::from_bytes(&bytes[..if side == Side::Server { 14 } else { 18 }])
    }

    #[test]
    fn valid_records_are_read_from_the_shared_memory() {
        let journal = Journal::new(3).unwrap();
        let (mut first, mut last) = (journal.writer(0), journal.writer(2));
        first.write(9, Some(record(9, true)), link);
        first.write(4, Some(record(4, false)), |_, _| None);
        first.write(5, Some(record(5, true)), link);
        first.write(5, None, link);
        last.write(0, Some(record(1, true)), link);
        last.write(0, Some(FlowRecord { client_sent: SeqNumber(77), ..record(1, true) }), link);
        // A slot beyond the table is ignored.
        last.write(u32::MAX, Some(record(2, true)), link);
        let file = File::from(journal.share().unwrap());
        let read = || read(&open(&file).unwrap()).unwrap();
        let entries = read();
        let both = [Side::Server, Side::Mobile].map(|side| link(&record(1, true).key, side));
        let changed = FlowRecord { client_sent: SeqNumber(77), ..record(1, true) };
        assert_eq!(
            entries,
            [
                Entry { record: record(4, false), links: [None, None] },
                Entry { record: record(9, true), links: both.clone() },
                Entry { record: changed, links: both },
            ]
        );
        // A cleared slot gets a complete record again.
        first.write(5, Some(record(6, false)), link);
        assert_eq!(read()[1].record, record(6, false));
    }

    #[test]
    fn the_size_of_the_memory_cannot_change() {
        let journal = Journal::new(1).unwrap();
        let file = File::from(journal.share().unwrap());
        let len = file.metadata().unwrap().len();
        for other in [0, len - 1, len + 1] {
            assert!(file.set_len(other).is_err(), "{other}");
        }
        assert_eq!(file.metadata().unwrap().len(), len);
        assert!(fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)).is_err());
    }

    #[test]
    fn memory_without_a_journal_is_refused() {
        let file = File::from(memfd_create("other", MFdFlags::MFD_CLOEXEC).unwrap());
        assert!(open(&file).is_err());
        // Of the right size, but not sealed.
        file.set_len(8 * ALL_WORDS as u64).unwrap();
        assert!(open(&file).is_err());
    }
}
