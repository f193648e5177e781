//! Parameters and connections of a registered control, from its maps.

use super::layout::{Flow, Key, Settings};
use super::maps::read_hint;
use super::parameters::Control;
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use paceline_net::Duration;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A registered control.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// How the window grows.
    pub control: Control,
    /// The process that registered it.
    pub process: u32,
    /// Whether that process runs.
    pub runs: bool,
    /// Paths of the network namespaces whose default it is.
    pub namespaces: Vec<String>,
    /// A fixed rate of payload in bytes per second.
    pub rate: Option<u64>,
    /// Period of the stated pattern.
    pub stated: Option<Duration>,
    /// The learned period.
    pub learned: Option<Duration>,
    /// Start of the pattern, if packets leave in its slots.
    pub phase: Option<Duration>,
    /// Whether the control gets the delay without the pattern's part.
    pub clean: bool,
    /// Its connections.
    pub flows: Vec<FlowReport>,
}

/// A connection.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowReport {
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Acknowledged payload bytes.
    pub bytes_acked: u64,
    /// Sent payload bytes, with repetitions.
    pub bytes_sent: u64,
    /// Retransmitted segments.
    pub retransmitted: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segment size, bytes.
    pub mss: u32,
    /// Smoothed, latest, and clean round-trip time in us.
    pub rtt_us: [u32; 3],
    /// Mean pacing rate, payload bytes per second.
    pub rate: u64,
}

/// Reads the maps that belong to these settings.
pub fn read(name: &str, runs: bool, namespaces: &[String], settings: &Settings) -> anyhow::Result<Report> {
    let open = |id| MapHandle::from_map_id(id).context("a map of the control is gone");
    let (flows, hint) = (open(settings.flows_map)?, read_hint(&open(settings.hint_map)?)?);
    let read = |key: Vec<u8>| {
        let flow = flows.lookup(&key, MapFlags::ANY).ok().flatten()?;
        Some(flow_report(&Key::from_bytes(&key)?, &Flow::from_bytes(&flow)?))
    };
    let mut flows: Vec<_> = flows.keys().filter_map(read).collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes_acked));
    let some = |ns: u64| (ns > 0).then(|| Duration::from_nanos(ns));
    Ok(Report {
        name: name.to_owned(),
        control: *Control::ALL.get(usize::from(settings.control)).context("an unknown control")?,
        process: settings.process,
        runs,
        namespaces: namespaces.to_owned(),
        rate: (settings.rate > 0).then_some(settings.rate),
        stated: some(settings.slots * settings.slot_ns),
        learned: some(hint.period_ns).filter(|_| settings.learn != 0),
        phase: (settings.gate != 0).then(|| Duration::from_nanos(settings.phase_ns)),
        clean: settings.clean != 0,
        flows,
    })
}

fn flow_report(key: &Key, flow: &Flow) -> FlowReport {
    let end = |bytes: [u8; 16], port| {
        let [a, b, c, d, ..] = bytes;
        let is_v4 = i32::from(key.family) == libc::AF_INET;
        let address = if is_v4 { IpAddr::from([a, b, c, d]) } else { Ipv6Addr::from(bytes).to_canonical() };
        SocketAddr::new(address, port)
    };
    FlowReport {
        local: end(key.local, key.local_port),
        remote: end(key.remote, key.remote_port),
        bytes_acked: flow.bytes_acked,
        bytes_sent: flow.bytes_sent,
        retransmitted: flow.retransmitted,
        cwnd: flow.cwnd,
        mss: flow.mss,
        rtt_us: [flow.srtt_us, flow.rtt_us, flow.clean_rtt_us],
        rate: flow.rate,
    }
}
