//! The estimate of a capture: its frames go through the policer's Rust form.
//!
//! A packet that a router forwards is in a capture of several interfaces once for each. A policer is at one
//! of them: the one with the most TCP segments counts.

use crate::failure::{Failure, Outcome};
use anyhow::Context;
use ipnet::IpNet;
use paceline_import::capture::file::{self, Captured};
use paceline_police::{
    FirstHeader, Frame, FrameKey, FramePolicer, PoliceConfig, PolicerConfig, Reason, parse,
};
use pcap_file::DataLink;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Bytes of TCP/IPv4 headers, above which a captured packet that is longer on the link than one frame was
/// merged of segments. Chosen: the largest payload of an Ethernet frame of 1500 bytes.
const ONE_FRAME: u32 = 1460;

/// Packets of a count, and the decisions that a policer would have made.
#[derive(Default)]
pub struct Estimate {
    pub seconds: f64,
    pub policed_packets: u64,
    pub data_packets: u64,
    pub acks: u64,
    pub decisions: Vec<(Reason, u64)>,
    /// The interface that was counted, where a capture has several.
    pub interface: Option<String>,
}

/// An interface of a capture: its number in the file, and in a capture of all interfaces (`any`) the index
/// that the link header names.
type Interface = (u32, u32);

/// The packets of an interface.
#[derive(Default)]
struct Packets {
    frames: Vec<(u64, Frame)>,
    /// Packets without a TCP segment that can be read.
    others: u64,
    /// Times of the first packet and of the last.
    span: Option<(u64, u64)>,
}

/// Counts the packets of a capture, and what a policer would do with them.
pub fn estimate(name: &str, config: &PoliceConfig, receivers: Option<IpNet>) -> Outcome<Estimate> {
    let bytes = std::fs::read(name).with_context(|| format!("cannot read {name}"))?;
    if !file::is_capture(&bytes) {
        return Err(Failure::input(format!("{name}: neither pcap nor pcapng")));
    }
    let mut interfaces: BTreeMap<Interface, Packets> = BTreeMap::new();
    let names = file::read(&bytes, |captured| add(&mut interfaces, captured, config.gtp));
    let names = names.map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let several = interfaces.len() > 1;
    let busiest = interfaces.into_iter().rev().max_by_key(|(_, packets)| packets.frames.len());
    let (interface, packets) = busiest.unwrap_or_default();
    let Some((first, last)) = packets.span.filter(|(first, last)| last > first) else {
        return Err(Failure::input(format!("{name}: two packets or more are needed")));
    };
    let estimate = Estimate {
        seconds: (last - first) as f64 / 1e9,
        data_packets: packets.others,
        interface: several.then(|| name_of(interface, &names)),
        ..Estimate::default()
    };
    Ok(judge(&packets.frames, receivers, config, first, estimate))
}

fn add(interfaces: &mut BTreeMap<Interface, Packets>, captured: &Captured<'_>, gtp: bool) {
    // linux/if_packet.h and LINKTYPE_LINUX_SLL2 of libpcap: bytes 4 to 7 are the index of the interface.
    let index = match captured.link {
        DataLink::LINUX_SLL2 => captured.data.get(4..8).and_then(|index| index.first_chunk()),
        _ => None,
    };
    let interface = (captured.interface, index.map_or(0, |index| u32::from_be_bytes(*index)));
    let packets = interfaces.entry(interface).or_default();
    let (first, last) = packets.span.unwrap_or((captured.at_ns, captured.at_ns));
    packets.span = Some((first.min(captured.at_ns), last.max(captured.at_ns)));
    let (link, skip) = match captured.link {
        DataLink::ETHERNET => (FirstHeader::Ethernet, 0),
        DataLink::LINUX_SLL => (FirstHeader::Ip, 16),
        DataLink::LINUX_SLL2 => (FirstHeader::Ip, 20),
        DataLink::NULL | DataLink::LOOP => (FirstHeader::Ip, 4),
        _ => (FirstHeader::Ip, 0),
    };
    let merged = if captured.len > ONE_FRAME + 100 { ONE_FRAME } else { 0 };
    match captured.data.get(skip..).and_then(|data| parse(link, data, gtp, merged)) {
        Some(frame) => packets.frames.push((captured.at_ns, frame)),
        None => packets.others += 1,
    }
}

fn name_of((number, index): Interface, names: &[String]) -> String {
    match names.get(number as usize).filter(|name| !name.is_empty()) {
        Some(name) if index == 0 => name.clone(),
        _ if index == 0 => format!("interface {number}"),
        _ => format!("interface index {index}"),
    }
}

/// Gives the frames to the policer's Rust form.
fn judge(
    frames: &[(u64, Frame)],
    network: Option<IpNet>,
    config: &PoliceConfig,
    first: u64,
    mut estimate: Estimate,
) -> Estimate {
    let from_receiver = from_receivers(frames, network);
    let mut policer = FramePolicer::new(PolicerConfig { policy: config.policy, per_flow: config.per_flow });
    let mut counts = [0; Reason::ALL.len()];
    for (at, frame) in frames {
        let now = at.saturating_sub(first) + 1; // 0 means unknown
        if !from_receiver(&frame.key) {
            estimate.data_packets += 1;
            policer.observe(frame, now);
            continue;
        }
        estimate.policed_packets += 1;
        let exempt = config.exempts(&frame.key);
        let reason = if exempt { Reason::Exempt } else { policer.police(frame, now) };
        if frame.segment.is_pure_ack() {
            estimate.acks += 1;
            counts[reason as usize] += 1;
        }
    }
    estimate.decisions = Reason::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
    estimate
}

/// Whether a frame with this key comes from the receiver of the connection's data.
fn from_receivers(frames: &[(u64, Frame)], network: Option<IpNet>) -> impl Fn(&FrameKey) -> bool {
    let mut payload: BTreeMap<FrameKey, u64> = BTreeMap::new();
    for (_, frame) in frames {
        *payload.entry(frame.key).or_default() += u64::from(frame.segment.payload);
    }
    move |key| match network {
        Some(network) => network.contains(&address(key.src)),
        None => {
            let sent = |key: &FrameKey| payload.get(key).copied().unwrap_or(0);
            let other = key.reversed();
            sent(key) < sent(&other) || (sent(key) == sent(&other) && *key < other)
        }
    }
}

fn address(bytes: [u8; 16]) -> IpAddr {
    let v6 = Ipv6Addr::from(bytes);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}
