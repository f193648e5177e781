//! Captures as streams: packed by gzip or xz or plain, of any length, in bounded memory.

use crate::capture::magic::{self, GZIP, OTHERS, PCAPNG, XZ};
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
pub use pcap_file::DataLink;
use pcap_file::pcap::{PcapReader, PcapTsResolution};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use std::fmt::Display;
use std::io::{self, Read};

/// Read buffer, bytes. Chosen: more than the longest packet, 262144 bytes in libpcap.
const BUFFER_BYTES: usize = 1 << 20;
/// First bytes of a file that tell its format. Equals the length of the longest, that of xz.
const MAGIC_BYTES: usize = 6;

/// A packet of a capture.
pub struct Captured<'a> {
    /// Number of the interface in a pcapng file; 0 in a pcap file.
    pub interface: u32,
    /// Type of the link header.
    pub link: DataLink,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// The packet, from its link header on.
    pub data: &'a [u8],
    /// Bytes on the link, of which `data` may be the first ones.
    pub len: u32,
}

/// The result of reading a capture to its end, or to the place where it is damaged.
#[derive(Debug, Default)]
pub struct Reading {
    /// Names of the interfaces, empty where the file has none.
    pub names: Vec<String>,
    /// The reason why reading ended before the file did, such as a truncated file.
    pub damage: Option<String>,
    /// Packets without a time (Simple Packet Blocks of pcapng), which are left out.
    pub without_time: u64,
}

/// Gives each packet of a capture, packed or not, to `take`. An error says that the file is no capture.
pub fn read(mut file: impl Read, take: impl FnMut(&Captured<'_>)) -> Result<Reading, String> {
    let (magic, read) = first_bytes(&mut file).map_err(|error| format!("cannot be read: {error}"))?;
    if let Some((_, name)) = OTHERS.iter().find(|(other, _)| magic[..read].starts_with(other)) {
        return Err(format!("packed by {name}: unpack it first; allowed: gzip, xz"));
    }
    let whole = io::Cursor::new(magic).take(read as u64).chain(file);
    if magic.starts_with(GZIP) {
        unpacked(MultiGzDecoder::new(whole), "gzip", take)
    } else if magic.starts_with(XZ) {
        unpacked(XzReader::new(whole, true), "xz", take)
    } else {
        plain(magic, whole, take)
    }
}

/// Whether a file is a capture, packed or not. A damaged packed file is none.
pub fn is_capture(mut file: impl Read) -> io::Result<bool> {
    let (magic, read) = first_bytes(&mut file)?;
    let whole = io::Cursor::new(magic).take(read as u64).chain(file);
    let inner =
        |mut reader: &mut dyn Read| first_bytes(&mut reader).map(|(magic, _)| magic).unwrap_or_default();
    Ok(magic::is_capture(&if magic.starts_with(GZIP) {
        inner(&mut MultiGzDecoder::new(whole))
    } else if magic.starts_with(XZ) {
        inner(&mut XzReader::new(whole, true))
    } else {
        magic
    }))
}

fn unpacked(
    mut reader: impl Read,
    packing: &str,
    take: impl FnMut(&Captured<'_>),
) -> Result<Reading, String> {
    let first = first_bytes(&mut reader);
    let (magic, read) = first.map_err(|error| format!("damaged {packing} file: {error}"))?;
    plain(magic, io::Cursor::new(magic).take(read as u64).chain(reader), take)
}

fn first_bytes(reader: &mut impl Read) -> io::Result<([u8; MAGIC_BYTES], usize)> {
    let (mut magic, mut read) = ([0; MAGIC_BYTES], 0);
    while read < MAGIC_BYTES {
        match reader.read(&mut magic[read..]) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((magic, read))
}

fn plain(
    magic: [u8; MAGIC_BYTES],
    reader: impl Read,
    take: impl FnMut(&Captured<'_>),
) -> Result<Reading, String> {
    if !magic::is_capture(&magic) {
        return Err("is no capture; allowed: pcap, pcapng, and these packed by gzip or xz".into());
    }
    if magic.starts_with(&PCAPNG) { pcapng(reader, take) } else { pcap(reader, take) }
}

fn damaged(error: &dyn Display) -> String {
    format!("damaged capture: {error}")
}

fn pcap(reader: impl Read, mut take: impl FnMut(&Captured<'_>)) -> Result<Reading, String> {
    let mut reader = PcapReader::with_capacity(reader, BUFFER_BYTES).map_err(|error| damaged(&error))?;
    let (link, resolution) = (reader.header().datalink, reader.header().ts_resolution);
    let fraction_ns = if resolution == PcapTsResolution::MicroSecond { 1000 } else { 1 };
    let mut reading = Reading { names: vec![String::new()], ..Reading::default() };
    // Raw: some writers state fewer bytes in the file's heading or on the link than a packet has.
    while let Some(packet) = reader.next_raw_packet() {
        match packet {
            Ok(packet) => {
                let at_ns =
                    u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * fraction_ns;
                let len = packet.orig_len.max(packet.incl_len);
                take(&Captured { interface: 0, link, at_ns, data: &packet.data, len });
            }
            Err(error) => {
                reading.damage = Some(damaged(&error));
                break;
            }
        }
    }
    Ok(reading)
}

fn pcapng(reader: impl Read, mut take: impl FnMut(&Captured<'_>)) -> Result<Reading, String> {
    let mut reader = PcapNgReader::with_capacity(reader, BUFFER_BYTES).map_err(|error| damaged(&error))?;
    let mut reading = Reading::default();
    while let Some(block) = reader.next_block() {
        let (block, state) = match block {
            Ok(block) => block,
            Err(error) => {
                reading.damage = Some(damaged(&error));
                break;
            }
        };
        match block {
            Block::EnhancedPacket(packet) => {
                let interfaces = state.interfaces();
                // A later section lists its interfaces anew.
                for interface in interfaces.get(reading.names.len()..).unwrap_or_default() {
                    reading.names.push(name_of(&interface.options).unwrap_or_default());
                }
                let (interface, len) = (packet.interface_id, packet.original_len);
                let Some(description) = interfaces.get(interface as usize) else { continue };
                let at_ns = packet.timestamp.as_nanos() as u64;
                take(&Captured { interface, link: description.linktype, at_ns, data: &packet.data, len });
            }
            Block::SimplePacket(_) => reading.without_time += 1,
            _ => {}
        }
    }
    Ok(reading)
}

fn name_of(options: &[InterfaceDescriptionOption<'_>]) -> Option<String> {
    options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
        _ => None,
    })
}
