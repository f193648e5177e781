//! Packets that met an idle uplink: the time of their cause at the capture point, and the time at which they,
//! or the answer to them, passed it.

use crate::capture::{Captures, Flow};
use std::net::IpAddr;

/// Silence of a client after which its uplink counts as idle, ns. Chosen: grants that follow data end within
/// 20 ms in open base stations.
const IDLE: u64 = 30_000_000;
/// Longest time from a cause to its effect, ns. Chosen: longer ones have another cause.
const LONGEST: u64 = 500_000_000;
/// Times below which cause and effect are on the same side of the radio, ns.
const NEAR: u64 = 1_500_000;

/// A packet of a client or towards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Passing {
    at: u64,
    by_client: bool,
}

/// The pairs of the client with most of them at a point.
pub fn pairs(captures: &Captures, point: usize) -> Vec<(u64, u64)> {
    let mut clients: Vec<IpAddr> = captures
        .flows
        .iter()
        .filter(|flow| flow.point == point)
        .map(|flow| flow.ends[0].ip())
        .collect();
    clients.sort_unstable();
    clients.dedup();
    let of_tcp = clients.into_iter().map(|client| {
        let flows = captures.flows.iter().filter(|flow| flow.point == point && flow.ends[0].ip() == client);
        of_packets(flows.flat_map(packets).collect())
    });
    let echoes = captures.points[point].echoes.pairs.clone();
    let spaced: Vec<(u64, u64)> = echoes
        .iter()
        .enumerate()
        .filter(|(index, (at, _))| *index == 0 || at.saturating_sub(echoes[index - 1].0) >= IDLE)
        .map(|(_, pair)| *pair)
        .collect();
    let far = |pairs: Vec<(u64, u64)>| -> Vec<(u64, u64)> {
        pairs.into_iter().filter(|(came, left)| left.saturating_sub(*came) >= NEAR).collect()
    };
    of_tcp.chain([spaced]).map(far).max_by_key(Vec::len).unwrap_or_default()
}

fn packets(flow: &Flow) -> Vec<Passing> {
    let [client, server] = &flow.directions;
    let by = |direction: &crate::capture::Direction, by_client| {
        direction.data.iter().map(move |data| Passing { at: data.at, by_client }).collect::<Vec<_>>()
    };
    let mut list = by(client, true);
    list.extend(by(server, false));
    list.extend(server.acks.iter().map(|ack| Passing { at: ack.at, by_client: true }));
    list.extend(client.acks.iter().map(|ack| Passing { at: ack.at, by_client: false }));
    list
}

/// Pairs: a packet towards the client and the client's answer behind the radio, or a packet of the client and
/// the server's answer.
fn of_packets(mut packets: Vec<Passing>) -> Vec<(u64, u64)> {
    packets.sort_unstable();
    let mut pairs = [Vec::new(), Vec::new()];
    // Last packet of the client, and the first packet from each end since the other end's last one.
    let mut last_of_client: Option<u64> = None;
    let mut cause: [Option<(u64, bool)>; 2] = [None, None];
    for packet in packets {
        let from = usize::from(!packet.by_client);
        let is_idle = last_of_client.is_none_or(|last| packet.at.saturating_sub(last) >= IDLE);
        if let Some((came, was_idle)) = cause[1 - from].take()
            && packet.at - came <= LONGEST
        {
            let counts = if packet.by_client { is_idle } else { was_idle };
            if counts {
                pairs[from].push((came, packet.at));
            }
        }
        if cause[from].is_none() {
            cause[from] = Some((packet.at, is_idle));
        }
        if packet.by_client {
            last_of_client = Some(packet.at);
        }
    }
    let [by_server, by_client] = pairs;
    let far = |pairs: &[(u64, u64)]| pairs.iter().filter(|(came, left)| left - came >= NEAR).count();
    if far(&by_client) > far(&by_server) { by_client } else { by_server }
}
