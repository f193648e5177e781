//! Packets that met an idle uplink: the time at which their cause or they themselves came to the capture
//! point, and the time at which they, or the answer to them, were back behind the radio.

use crate::capture::{Captures, Flow};
use std::net::IpAddr;

/// Silence of a client after which its uplink counts as idle, ns. Chosen: grants that follow data end within
/// 20 ms in open base stations.
const IDLE: u64 = 30_000_000;
/// Longest time from a cause to its effect, ns. Chosen: longer ones have another cause.
const LONGEST: u64 = 500_000_000;
/// Delays below which cause and effect are on the same side of the radio, ns. Chosen: no radio has a shorter
/// round trip.
const NEAR: u64 = 1_500_000;

/// Times of coming and of being back, ns.
pub type Pairs = Vec<(u64, u64)>;

/// Pairs of the clients at a point: by data of servers and the client's acknowledgment, by data of a client
/// and the server's acknowledgment, and by echo requests.
pub fn pairs(captures: &Captures, point: usize) -> Vec<Pairs> {
    let flows = || captures.flows.iter().filter(move |flow| flow.point == point);
    let mut clients: Vec<IpAddr> = flows().map(|flow| flow.ends[0].ip()).collect();
    clients.sort_unstable();
    clients.dedup();
    let of_tcp = clients.into_iter().flat_map(|client| {
        let own: Vec<&Flow> = flows().filter(|flow| flow.ends[0].ip() == client).collect();
        of_client(&own)
    });
    let echoes = &captures.points[point].echoes.pairs;
    let starts = echoes.iter().enumerate().filter(|(index, (at, _))| {
        *index == 0 || at.saturating_sub(echoes[index - 1].0) >= IDLE
    });
    let of_echoes: Pairs = starts.map(|(_, pair)| *pair).collect();
    of_tcp.chain([of_echoes]).map(far).filter(|pairs| !pairs.is_empty()).collect()
}

fn far(pairs: Pairs) -> Pairs {
    let is_far = |(came, back): &(u64, u64)| (NEAR..=LONGEST).contains(&back.saturating_sub(*came));
    pairs.into_iter().filter(is_far).collect()
}

fn of_client(flows: &[&Flow]) -> [Pairs; 2] {
    let mut sent: Vec<u64> = flows
        .iter()
        .flat_map(|flow| {
            let [client, server] = &flow.directions;
            let data = client.data.iter().map(|data| data.at);
            data.chain(server.acks.iter().map(|ack| ack.at))
        })
        .collect();
    sent.sort_unstable();
    let is_idle = |at: u64| {
        let before = sent.partition_point(|other| *other < at);
        before == 0 || at - sent[before - 1] >= IDLE
    };
    let (mut by_server, mut by_client) = (Pairs::new(), Pairs::new());
    for flow in flows {
        let [client, server] = &flow.directions;
        for data in server.data.iter().filter(|data| !data.is_repair && !data.was_repeated) {
            let Some(acked) = data.acked_at.filter(|acked| is_idle(*acked)) else { continue };
            // One acknowledgment of several segments is one packet.
            if by_server.last().is_none_or(|(_, back)| *back != acked) {
                by_server.push((data.at, acked));
            }
        }
        for data in client.data.iter().filter(|data| !data.is_repair && !data.was_repeated) {
            if let Some(acked) = data.acked_at.filter(|_| is_idle(data.at)) {
                by_client.push((data.at, acked));
            }
        }
    }
    [by_server, by_client]
}
