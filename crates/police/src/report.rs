//! Configuration and counters of a policer, read from its maps.

use super::POLICY_MAP;
use super::layout::{self, ONLY, address};
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use paceline_linux::bpf::tcx::Hook;
use paceline_pep::ack_policer::{Limit, Mode, Policy, Reason};
use std::net::SocketAddr;

/// One connection that a policer remembers.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowReport {
    /// The end that sends the ACKs.
    pub receiver: SocketAddr,
    /// The end that sends the data.
    pub sender: SocketAddr,
    /// VLAN identifiers, outer then inner; 0 without a tag.
    pub vlan: [u16; 2],
    /// Pure ACKs by decision.
    pub acks: Vec<(Reason, u64)>,
    /// Round trip in ns, from the handshake; 0 if unknown.
    pub rtt_ns: u64,
}

/// Configuration and counters of a policer.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Where it drops ACKs.
    pub direction: Hook,
    /// Which ACKs are dropped.
    pub policy: Policy,
    /// One limit for each connection.
    pub per_flow: bool,
    /// Packets in the policed direction.
    pub packets: u64,
    /// Packets in the data direction.
    pub data_packets: u64,
    /// Pure ACKs in the policed direction.
    pub acks: u64,
    /// Pure ACKs by decision.
    pub decisions: Vec<(Reason, u64)>,
    /// Connections, those with the most ACKs first.
    pub flows: Vec<FlowReport>,
}

impl Report {
    /// Pure ACKs that were dropped.
    pub fn dropped(&self) -> u64 {
        count(&self.decisions, Reason::Dropped)
    }
}

impl FlowReport {
    /// Pure ACKs that were seen.
    pub fn seen(&self) -> u64 {
        self.acks.iter().map(|(_, count)| count).sum()
    }
    /// Pure ACKs that were dropped.
    pub fn dropped(&self) -> u64 {
        count(&self.acks, Reason::Dropped)
    }
}

fn count(decisions: &[(Reason, u64)], wanted: Reason) -> u64 {
    decisions.iter().find(|(reason, _)| *reason == wanted).map_or(0, |(_, count)| *count)
}

/// Reads a policer's maps, which `map` opens by name.
pub(super) fn read(
    direction: Hook,
    map: impl Fn(&str) -> anyhow::Result<MapHandle>,
) -> anyhow::Result<Report> {
    let bytes = map(POLICY_MAP)?.lookup(&ONLY, MapFlags::ANY)?.context("the policer has no policy")?;
    let policy = layout::Policy::from_bytes(&bytes)
        .context("the policer is of another version of paceline: its policy has another layout")?;
    let mut total = layout::Counters::default();
    for bytes in map("counters")?.lookup_percpu(&ONLY, MapFlags::ANY)?.into_iter().flatten() {
        let cpu = layout::Counters::from_bytes(&bytes).context("the counters have another layout")?;
        total.packets += cpu.packets;
        total.data_packets += cpu.data_packets;
        total.acks += cpu.acks;
        total.reasons.iter_mut().zip(cpu.reasons).for_each(|(sum, count)| *sum += count);
    }
    let mut report = Report {
        direction,
        policy: Policy { mode: mode(&policy), limit: limit(&policy), max_segments: policy.max_segments },
        per_flow: policy.per_flow != 0,
        packets: total.packets,
        data_packets: total.data_packets,
        acks: total.acks,
        decisions: by_reason(total.reasons),
        flows: flows(&map("flows")?),
    };
    report.flows.sort_by_key(|flow| std::cmp::Reverse(flow.seen()));
    Ok(report)
}

fn mode(policy: &layout::Policy) -> Mode {
    if u32::from(policy.mode) == layout::MODE_SAFE { Mode::Safe } else { Mode::Published }
}

fn limit(policy: &layout::Policy) -> Limit {
    match u32::from(policy.limit) {
        layout::LIMIT_RATE => Limit::Rate { bytes_per_s: policy.bytes_per_s, burst: policy.burst },
        layout::LIMIT_SHARE => Limit::Share(policy.share),
        _ => Limit::PerRtt(policy.per_rtt),
    }
}

fn by_reason(counts: [u64; Reason::ALL.len()]) -> Vec<(Reason, u64)> {
    Reason::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

fn flows(map: &MapHandle) -> Vec<FlowReport> {
    let entry = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??; // it may have made room meanwhile
        let key = layout::Key::from_bytes(&key)?;
        let entry = layout::Entry::from_bytes(&value)?;
        let rtt_ns = match (entry.flow.sender_rtt, entry.flow.receiver_rtt) {
            (0, _) | (_, 0) => 0,
            (to_sender, to_receiver) => to_sender + to_receiver,
        };
        Some(FlowReport {
            receiver: SocketAddr::new(address(key.src), key.src_port),
            sender: SocketAddr::new(address(key.dst), key.dst_port),
            vlan: [key.vlan_outer, key.vlan_inner],
            acks: by_reason(entry.reasons.map(u64::from)),
            rtt_ns,
        })
    };
    map.keys().filter_map(entry).collect()
}
