//! Captures as pcapng (draft-ietf-opsawg-pcapng): raw IP, the first bytes of each packet, timestamps in
//! nanoseconds.
//!
//! A capture of a simulated model has one interface for the servers' side, one per station and, with blocks
//! of NR, one for the radio, and simulated time. Blocks are complete, in UDP datagrams in Wireshark's format
//! "MAC-NR over UDP"; a block that is longer than a datagram has several packets. A capture of a gateway's
//! connection has the interfaces `server` and `mobile`, and real time.

use super::size_limit::SizeLimit;
use anyhow::Context;
use etherparse::PacketBuilder;
use paceline_net::{Bytes, Instant, Packet, wire};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::block_common::Block;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::{PcapNgReader, PcapNgWriter};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes captured of each packet. Chosen: IPv6 and TCP headers with all options have 100.
pub const SNAP_LEN: u32 = 256;
/// Bytes of a block of the file beside the packet's bytes: the fields of an Enhanced Packet Block (pcapng
/// §4.3).
pub const BLOCK_BYTES: u64 = 32;
/// Largest datagram with a radio block: the maximum of IPv4 (RFC 791).
const RADIO_SNAP_LEN: u32 = 65_535;
/// Name of the interface with the radio blocks.
const RADIO: &str = "radio (MAC-NR)";
/// Both addresses of the datagrams with radio blocks. Chosen: the loopback address, which no simulated packet
/// has.
const RADIO_ADDRESS: [u8; 4] = [127, 0, 0, 1];
/// Both ports of these datagrams. Chosen: the heuristic of Wireshark accepts any.
const RADIO_PORT: u16 = 9999;
/// Time to live of these datagrams (RFC 1700, the recommended default).
const RADIO_TTL: u8 = 64;
// Direction in the flags of a packet (pcapng, epb_flags).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// The content of a capture of a simulated model.
pub struct Content {
    /// Number of stations.
    pub stations: usize,
    /// Whether there is an interface for radio blocks.
    pub radio: bool,
    /// Size of the file at which the capture ends.
    pub limit: Option<Bytes>,
}

struct Inner {
    writer: PcapNgWriter<BufWriter<File>>,
    error: Option<anyhow::Error>,
    size: SizeLimit,
}

/// A capture file being written.
pub struct Writer {
    inner: Arc<Mutex<Inner>>,
    /// Number of the interface with radio blocks.
    radio: u32,
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().expect("a capture is written by one thread")
}

/// A datagram with a part of a radio block.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(RADIO_ADDRESS, RADIO_ADDRESS, RADIO_TTL).udp(RADIO_PORT, RADIO_PORT);
    let mut out = Vec::with_capacity(builder.size(payload.len()));
    builder.write(&mut out, payload).expect("a part of a block fits into a datagram");
    out
}

fn interface(name: String, snaplen: u32) -> InterfaceDescriptionBlock<'static> {
    InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(name)),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ],
    }
}

impl Inner {
    /// Writes a packet of `len` bytes, of which `data` are the first, unless the capture has ended.
    fn write(&mut self, now: Instant, interface_id: u32, original_len: u32, data: Vec<u8>) {
        if !self.size.admits(BLOCK_BYTES + data.len() as u64) || self.error.is_some() {
            return;
        }
        let timestamp = std::time::Duration::from_nanos(now.as_nanos());
        let (data, options) = (Cow::Owned(data), Vec::new());
        let block = EnhancedPacketBlock { interface_id, timestamp, original_len, data, options };
        self.error = self.writer.write_pcapng_block(block).err().map(anyhow::Error::from);
    }
}

impl Writer {
    /// Makes a capture file with an interface for the servers, one per station and one for the radio.
    pub fn create(path: &Path, content: &Content) -> anyhow::Result<Self> {
        let context = || format!("cannot write {}", path.display());
        let file = File::create(path).with_context(context)?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).with_context(context)?;
        let stations = (0..content.stations).map(|index| format!("station-{index}"));
        for name in std::iter::once("servers".to_owned()).chain(stations) {
            writer.write_pcapng_block(interface(name, SNAP_LEN)).with_context(context)?;
        }
        if content.radio {
            let radio = interface(RADIO.to_owned(), RADIO_SNAP_LEN);
            writer.write_pcapng_block(radio).with_context(context)?;
        }
        let inner = Inner { writer, error: None, size: SizeLimit::new(content.limit) };
        Ok(Self { inner: Arc::new(Mutex::new(inner)), radio: content.stations as u32 + 1 })
    }
    /// A function that captures packets on an interface by its number: 0 for the servers, then the stations.
    pub fn packets(&self) -> impl FnMut(Instant, u32, &Packet) + Send + 'static {
        let inner = Arc::clone(&self.inner);
        move |now, interface, packet| {
            let mut data = wire::emit(packet);
            data.truncate(SNAP_LEN as usize);
            lock(&inner).write(now, interface, packet.len, data);
        }
    }
    /// A function that captures parts of radio blocks, each a payload of "MAC-NR over UDP".
    pub fn radio(&self) -> impl FnMut(Instant, &[u8]) + Send + 'static {
        let (inner, radio) = (Arc::clone(&self.inner), self.radio);
        move |at, payload| {
            let data = datagram(payload);
            lock(&inner).write(at, radio, data.len() as u32, data);
        }
    }
    /// Completes the file. Returns the first error that occurred while it was written.
    pub fn finish(self) -> anyhow::Result<()> {
        let mut inner = lock(&self.inner);
        if let Some(error) = inner.error.take() {
            return Err(error.context("cannot write the capture"));
        }
        inner.writer.get_mut().flush().context("cannot write the capture")
    }
}

/// A capture of a gateway's connection: packets that arrive and leave on two interfaces.
pub struct FlowWriter<W: Write>(PcapNgWriter<BufWriter<W>>);

impl<W: Write> FlowWriter<W> {
    /// Starts a capture with these names of interfaces.
    pub fn new(out: W, names: [&str; 2]) -> anyhow::Result<Self> {
        let context = "cannot write the capture";
        let mut writer = PcapNgWriter::new(BufWriter::new(out)).context(context)?;
        for name in names {
            writer.write_pcapng_block(interface(name.to_owned(), SNAP_LEN)).context(context)?;
        }
        Ok(Self(writer))
    }
    /// Writes a datagram of `len` bytes, of which `data` are the first. `at_ns` is in nanoseconds since 1970.
    pub fn write(
        &mut self,
        at_ns: u64,
        interface_id: u32,
        leaves: bool,
        len: u32,
        data: &[u8],
    ) -> anyhow::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: std::time::Duration::from_nanos(at_ns),
            original_len: len,
            data: Cow::Borrowed(data),
            options: vec![EnhancedPacketOption::Flags(if leaves { OUTBOUND } else { INBOUND })],
        };
        self.0.write_pcapng_block(block).context("cannot write the capture").map(|_| ())
    }
    /// Flushes the buffer.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.0.get_mut().flush().context("cannot write the capture")
    }
}

/// Number of packets in a capture file.
pub fn count(path: &Path) -> anyhow::Result<u64> {
    let context = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(context)?;
    let mut reader = PcapNgReader::new(std::io::BufReader::new(file)).with_context(context)?;
    let mut packets = 0;
    while let Some(block) = reader.next_block() {
        packets += u64::from(matches!(block.with_context(context)?.0, Block::EnhancedPacket(_)));
    }
    Ok(packets)
}
