//! Packets that met an idle uplink, in an idle cell: their round trips by side of the capture point.

use crate::capture::{Captures, Flow};
use std::net::IpAddr;

/// Silence of a client after which its uplink counts as idle, ns. Chosen: grants that follow data end within
/// 20 ms in open base stations.
const IDLE: u64 = 30_000_000;
/// Longest round trip, ns. Chosen: longer ones have another cause.
const LONGEST: u64 = 1_000_000_000;
/// Round trips below which no radio is between the point and the end, ns. Chosen: no radio has a shorter one.
const NEAR: u64 = 1_500_000;

/// Round trips of one client: time of passing and of being back, ns.
#[derive(Clone, Debug)]
pub struct Idle {
    /// The end to which they went: 0 client, 1 server.
    pub to: usize,
    /// The round trips.
    pub trips: Vec<(u64, u64)>,
}

/// The round trips through idle uplinks at a point: of data of servers and the client's acknowledgment, of
/// data of a client and the server's, of echo requests, and of handshakes.
pub fn idle(captures: &Captures, point: usize) -> Vec<Idle> {
    let flows = || captures.flows.iter().filter(move |flow| flow.point == point);
    let mut clients: Vec<IpAddr> = flows().map(|flow| flow.ends[0].ip()).collect();
    let echoes = &captures.points[point].echoes.pairs;
    let servers: Vec<IpAddr> = flows().map(|flow| flow.ends[1].ip()).collect();
    clients.extend(echoes.iter().map(|echo| echo.by).filter(|by| !servers.contains(by)));
    clients.sort_unstable();
    clients.dedup();
    let of_client = |client: IpAddr| {
        let own: Vec<&Flow> = flows().filter(|flow| flow.ends[0].ip() == client).collect();
        let asked: Vec<(u64, u64)> =
            echoes.iter().filter(|echo| echo.by == client).map(|echo| (echo.at, echo.back)).collect();
        of_client(&own, &asked)
    };
    let mut list: Vec<Idle> = clients.into_iter().flat_map(of_client).collect();
    let asked: Vec<(u64, u64)> =
        echoes.iter().filter(|echo| servers.contains(&echo.by)).map(|echo| (echo.at, echo.back)).collect();
    list.push(Idle { to: 0, trips: spaced(&asked) });
    for idle in &mut list {
        idle.trips.retain(|(at, back)| (NEAR..=LONGEST).contains(&back.saturating_sub(*at)));
    }
    list.retain(|idle| !idle.trips.is_empty());
    list
}

/// Those that come after a silence of the others.
fn spaced(trips: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let is_spaced = |index: usize| index == 0 || trips[index].0.saturating_sub(trips[index - 1].1) >= IDLE;
    (0..trips.len()).filter(|index| is_spaced(*index)).map(|index| trips[index]).collect()
}

fn of_client(flows: &[&Flow], asked: &[(u64, u64)]) -> [Idle; 2] {
    let mut sent: Vec<u64> = flows
        .iter()
        .flat_map(|flow| {
            let [client, server] = &flow.directions;
            let data = client.data.iter().map(|data| data.at);
            data.chain(server.acks.iter().map(|ack| ack.at)).chain(flow.handshake[0])
        })
        .chain(asked.iter().map(|(at, _)| *at))
        .collect();
    sent.sort_unstable();
    let is_idle = |at: u64| {
        let before = sent.partition_point(|other| *other < at);
        before == 0 || at - sent[before - 1] >= IDLE
    };
    let mut to_client: Vec<(u64, u64)> = Vec::new();
    let mut to_server: Vec<(u64, u64)> = asked.iter().copied().filter(|(at, _)| is_idle(*at)).collect();
    for flow in flows {
        let [client, server] = &flow.directions;
        if let [Some(syn), Some(syn_ack), ack] = flow.handshake
            && !flow.syn_repeated
        {
            to_server.push((syn, syn_ack));
            to_client.extend(ack.filter(|ack| is_idle(*ack)).map(|ack| (syn_ack, ack)));
        }
        for data in server.data.iter().filter(|data| !data.is_repair && !data.was_repeated) {
            let Some(acked) = data.acked_at.filter(|acked| is_idle(*acked)) else { continue };
            // One acknowledgment of several segments is one packet.
            if to_client.last().is_none_or(|(_, back)| *back != acked) {
                to_client.push((data.at, acked));
            }
        }
        for data in client.data.iter().filter(|data| !data.is_repair && !data.was_repeated) {
            if let Some(acked) = data.acked_at.filter(|_| is_idle(data.at)) {
                to_server.push((data.at, acked));
            }
        }
    }
    [Idle { to: 0, trips: to_client }, Idle { to: 1, trips: to_server }]
}
