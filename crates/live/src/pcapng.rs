//! Captures as pcapng (draft-ietf-opsawg-pcapng): raw IP, the first bytes of each packet, timestamps in
//! nanoseconds.
//!
//! A capture of a simulated model has one interface for the servers' side and one per station, and simulated
//! time. A capture of a gateway's connection has the interfaces `server` and `mobile`, and real time.

use anyhow::Context;
use paceline_net::{Instant, Packet, wire};
use paceline_sim::Capture;
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
use std::sync::{Arc, Mutex};

/// Bytes captured of each packet. Chosen: IPv6 and TCP headers with all options have 100.
const SNAP_LEN: u32 = 256;
// Direction in the flags of a packet (pcapng, epb_flags).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

type Inner = (PcapNgWriter<BufWriter<File>>, Option<anyhow::Error>);

/// A capture file being written.
pub struct Writer {
    inner: Arc<Mutex<Inner>>,
}

/// Makes a capture file with an interface for the servers and one per station, and the function that captures
/// a packet.
pub fn create(path: &Path, stations: usize) -> anyhow::Result<(Writer, Capture)> {
    let context = || format!("cannot write {}", path.display());
    let file = File::create(path).with_context(context)?;
    let mut writer = PcapNgWriter::new(BufWriter::new(file)).with_context(context)?;
    let names =
        std::iter::once("servers".to_owned()).chain((0..stations).map(|index| format!("station-{index}")));
    for name in names {
        writer.write_pcapng_block(interface(name)).with_context(context)?;
    }
    let inner = Arc::new(Mutex::new((writer, None)));
    let shared = Arc::clone(&inner);
    let capture: Capture = Box::new(move |now, interface, packet| {
        let mut inner = shared.lock().expect("a capture is written by one thread");
        if inner.1.is_none()
            && let Err(error) = write(&mut inner.0, now, interface, packet)
        {
            inner.1 = Some(error);
        }
    });
    Ok((Writer { inner }, capture))
}

fn interface(name: String) -> InterfaceDescriptionBlock<'static> {
    InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: SNAP_LEN,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(name)),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ],
    }
}

fn write(
    writer: &mut PcapNgWriter<BufWriter<File>>,
    now: Instant,
    interface: u32,
    packet: &Packet,
) -> anyhow::Result<()> {
    let mut data = wire::emit(packet);
    data.truncate(SNAP_LEN as usize);
    let block = EnhancedPacketBlock {
        interface_id: interface,
        timestamp: std::time::Duration::from_nanos(now.as_nanos()),
        original_len: packet.len,
        data: Cow::Owned(data),
        options: Vec::new(),
    };
    writer.write_pcapng_block(block)?;
    Ok(())
}

impl Writer {
    /// Completes the file. Returns the first error that occurred while it was written.
    pub fn finish(self) -> anyhow::Result<()> {
        let mut inner = self.inner.lock().expect("a capture is written by one thread");
        if let Some(error) = inner.1.take() {
            return Err(error.context("cannot write the capture"));
        }
        inner.0.get_mut().flush().context("cannot write the capture")
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
            writer.write_pcapng_block(interface(name.to_owned())).context(context)?;
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
