//! The journal: what must outlive a crash, in memory that a second process has too ([`super::guardian`]).
//!
//! A record is 128 bytes, one for each slot of a worker's connections. It is written by the worker alone and read
//! when the gateway is dead, so that nothing waits for anything: a record counts from its first word on, which is
//! written last, and the numbers of a record that counts are changed a word at a time, each word true by itself. What
//! is acknowledged to a server is written before the acknowledgment leaves.
//!
//! The memory is as large as the largest table, and takes room where it was written.

#![allow(unsafe_code)]

use crate::gateway::datapath::frame::Link;
use anyhow::{Context, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};
use paceline_net::{FlowKey, SeqNumber};
use paceline_pep::accelerator::{FlowRecord, Side};
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a record.
const WORDS: usize = 16;
/// Words ahead of the records: what there is, and for each worker how many slots were ever used.
const HEADER: usize = 8 * (1 + crate::gateway::config::MAX_WORKERS);
/// Marks the layout.
const MAGIC: u64 = u64::from_be_bytes(*b"pacejnl1");
/// Slots of all workers together: what the configuration allows at most.
const SLOTS: usize = 1 << 24;

// Words of a record.
const STATE: usize = 0;
const PORTS: usize = 1;
const ADDRESSES: usize = 2;
const DOWN: usize = 6;
const UP: usize = 7;
const TIMESTAMPS: usize = 8;
const LENGTHS: usize = 9;
const LINKS: usize = 10;
const LINK_WORDS: usize = 3;

/// Set in the word of lengths where the connection has timestamps.
const TIMED: u64 = 1 << 16;

/// A mapping of the journal's memory.
struct Memory {
    start: *const AtomicU64,
    words: usize,
}

// SAFETY: it is used as atomic words only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(fd: &OwnedFd, words: usize) -> anyhow::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; the descriptor is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8 * words,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map the journal");
        }
        Ok(Self { start: start.cast(), words })
    }
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words, page-aligned, for as long as `self` lives; the file is not made
        // shorter by anyone.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and nobody has a reference into it any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), 8 * self.words) };
    }
}

/// The gateway's side of the journal.
pub struct Journal {
    memory: Arc<Memory>,
    file: OwnedFd,
    workers: usize,
}

/// One worker's part.
pub struct Writer {
    memory: Arc<Memory>,
    worker: usize,
    first: usize,
    slots: usize,
    used: u64,
    writes: u64,
}

/// A record that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where the ends stand.
    pub record: FlowRecord,
    /// Link headers by the side where they leave, if known.
    pub links: [Option<Link>; 2],
}

impl Journal {
    /// An empty one.
    pub fn new(workers: usize) -> anyhow::Result<Self> {
        let file =
            memfd_create("paceline-journal", MFdFlags::MFD_CLOEXEC).context("cannot make the journal")?;
        let words = HEADER + WORDS * SLOTS;
        nix::unistd::ftruncate(&file, 8 * words as i64).context("cannot make the journal")?;
        let memory = Memory::map(&file, words)?;
        memory.words()[0].store(MAGIC, Ordering::Relaxed);
        memory.words()[1].store(workers as u64, Ordering::Relaxed);
        Ok(Self { memory: Arc::new(memory), file, workers })
    }
    /// Its memory, for another process.
    pub fn share(&self) -> anyhow::Result<OwnedFd> {
        self.file.try_clone().context("cannot duplicate a descriptor")
    }
    /// A worker's part.
    pub fn writer(&self, worker: usize) -> Writer {
        let slots = SLOTS / self.workers;
        Writer { memory: Arc::clone(&self.memory), worker, first: worker * slots, slots, used: 0, writes: 0 }
    }
}

impl Writer {
    /// How often something was written.
    pub fn writes(&self) -> u64 {
        self.writes
    }
    fn record(&self, slot: u32) -> Option<&[AtomicU64]> {
        let slot = Some(slot as usize).filter(|slot| *slot < self.slots)?;
        let at = HEADER + WORDS * (self.first + slot);
        Some(&self.memory.words()[at..at + WORDS])
    }
    /// Writes what a slot's connection is like, or that it has none to be kept.
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
        let timed = record.client_timestamp.zip(record.server_timestamp);
        let (client, server) = timed.unwrap_or_default();
        put(DOWN, pair(record.server_acked.0, record.client_sent.0));
        put(UP, pair(record.client_expects.0, record.server_expects.0));
        put(TIMESTAMPS, pair(client, server));
        if words[STATE].load(Ordering::Relaxed) != 0 {
            return; // what has not changed is there
        }
        let FlowKey { src, dst, src_port, dst_port } = record.key;
        put(PORTS, u64::from(src_port) | u64::from(dst_port) << 16 | u64::from(src.is_ipv4()) << 32);
        for (n, address) in [src, dst].into_iter().enumerate() {
            let bits = crate::gateway::policy::mapped(address).to_bits();
            put(ADDRESSES + 2 * n, bits as u64);
            put(ADDRESSES + 2 * n + 1, (bits >> 64) as u64);
        }
        let mut lengths = if timed.is_some() { TIMED } else { 0 };
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
        }
        put(LENGTHS, lengths);
        words[STATE].store(1, Ordering::Release);
    }
}

/// What a journal holds, read from its memory when nobody writes any more.
pub fn read(file: &File) -> anyhow::Result<Vec<Entry>> {
    let words = HEADER + WORDS * SLOTS;
    if file.metadata().context("cannot read the journal")?.len() != 8 * words as u64 {
        bail!("this is no journal");
    }
    let memory = Memory::map(&file.try_clone().context("cannot duplicate a descriptor")?.into(), words)?;
    fence(Ordering::Acquire);
    let words = memory.words();
    let word = |at: usize| words[at].load(Ordering::Relaxed);
    let workers = (word(1) as usize).clamp(1, crate::gateway::config::MAX_WORKERS);
    if word(0) != MAGIC {
        bail!("this is no journal");
    }
    let slots = SLOTS / workers;
    let mut entries = Vec::new();
    for worker in 0..workers {
        let used = (word(8 * (1 + worker)) as usize).min(slots);
        for slot in 0..used {
            let at = HEADER + WORDS * (worker * slots + slot);
            if words[at + STATE].load(Ordering::Acquire) != 0 {
                entries.push(entry(&std::array::from_fn(|n| word(at + n))));
            }
        }
    }
    Ok(entries)
}

fn entry(words: &[u64; WORDS]) -> Entry {
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
    let timed = words[LENGTHS] & TIMED != 0;
    let (server_acked, client_sent) = halves(DOWN);
    let (client_expects, server_expects) = halves(UP);
    let (client_timestamp, server_timestamp) = halves(TIMESTAMPS);
    let record = FlowRecord {
        key,
        client_expects: SeqNumber(client_expects),
        client_sent: SeqNumber(client_sent),
        server_expects: SeqNumber(server_expects),
        server_acked: SeqNumber(server_acked),
        client_timestamp: timed.then_some(client_timestamp),
        server_timestamp: timed.then_some(server_timestamp),
    };
    let link = |side: usize| {
        let len = usize::from((words[LENGTHS] >> (8 * side)) as u8);
        let at = LINKS + LINK_WORDS * side;
        let bytes: Vec<u8> = words[at..at + LINK_WORDS].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Link::from_bytes(bytes.get(..len)?)
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
    fn another_process_reads_what_counts() {
        let journal = Journal::new(3).unwrap();
        let (mut first, mut last) = (journal.writer(0), journal.writer(2));
        first.write(9, Some(record(9, true)), link);
        first.write(4, Some(record(4, false)), |_, _| None);
        first.write(5, Some(record(5, true)), link);
        first.write(5, None, link);
        last.write(0, Some(record(1, true)), link);
        last.write(0, Some(FlowRecord { client_sent: SeqNumber(77), ..record(1, true) }), link);
        // Beyond the table nothing is written, and nothing breaks.
        last.write(u32::MAX, Some(record(2, true)), link);
        let file = File::from(journal.share().unwrap());
        let entries = read(&file).unwrap();
        let both = [Side::Server, Side::Mobile].map(|side| link(&record(1, true).key, side));
        let changed = FlowRecord { client_sent: SeqNumber(77), ..record(1, true) };
        assert_eq!(
            entries,
            [
                Entry { record: record(4, false), links: [None, None] },
                Entry { record: record(9, true), links: both },
                Entry { record: changed, links: both },
            ]
        );
        // A slot that was empty gets another connection whole.
        first.write(5, Some(record(6, false)), link);
        assert_eq!(read(&file).unwrap()[1].record, record(6, false));
    }

    #[test]
    fn other_memory_is_refused() {
        let file = File::from(memfd_create("other", MFdFlags::MFD_CLOEXEC).unwrap());
        assert!(read(&file).is_err());
    }
}
