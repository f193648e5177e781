//! Packets that met an idle uplink, in an idle cell: their round trips by side of the capture point.

use crate::capture::{Captures, Data, Flow};
use crate::estimate::delays::{Half, Idle};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Silence of a client after which its uplink counts as idle, ns. Chosen: grants that follow data end within
/// 20 ms in open base stations.
const IDLE: u64 = 30_000_000;
/// Time after a packet of the client within which data count as released by it, ns. Chosen: servers answer
/// faster.
const RELEASED: u64 = 5_000_000;
/// Longest round trip, ns. Chosen: longer ones have another cause.
const LONGEST: u64 = 1_000_000_000;
/// Round trips below which no radio is between the point and the end, ns. Chosen: no radio has a shorter one.
const NEAR: u64 = 1_500_000;

/// The round trips through idle uplinks at a point: of data of servers and the client's acknowledgment, of
/// data of a client and the server's, of requests and their answers, and of handshakes.
pub fn idle(captures: &Captures, point: usize, halves: &[Half; 2]) -> Vec<Idle> {
    let flows = || captures.flows.iter().filter(move |flow| flow.point == point);
    let ends = |end: usize| flows().map(|flow| flow.ends[end].ip()).collect::<BTreeSet<IpAddr>>();
    let [mut clients, servers] = [ends(0), ends(1)];
    let echoes = captures.points[point].echoes.pairs();
    let mut asked: BTreeMap<(IpAddr, IpAddr), Vec<(u64, u64)>> = BTreeMap::new();
    for echo in &echoes {
        asked.entry((echo.by, echo.of)).or_default().push((echo.at, echo.back));
    }
    // By the end that asked, by the end that answered.
    let mut by_client: BTreeMap<IpAddr, [Vec<(u64, u64)>; 2]> = BTreeMap::new();
    for ((by, of), trips) in asked {
        let is_answered = clients.contains(&of) || servers.contains(&by);
        let is_asked = clients.contains(&by) || servers.contains(&of) || is_towards_server(&trips, halves);
        let (client, kind) = if is_asked && !is_answered { (by, 0) } else { (of, 1) };
        clients.insert(client);
        by_client.entry(client).or_default()[kind].extend(trips);
    }
    let mut list = Vec::new();
    for client in clients {
        let own: Vec<&Flow> = flows().filter(|flow| flow.ends[0].ip() == client).collect();
        list.extend(of_client(&own, by_client.remove(&client).unwrap_or_default()));
    }
    let is_far = |(at, back): &(u64, u64)| (NEAR..=LONGEST).contains(&back.saturating_sub(*at));
    for idle in &mut list {
        idle.trips.retain(is_far);
        idle.prompt.retain(is_far);
        idle.handshakes.retain(is_far);
    }
    list.retain(|idle| [&idle.trips, &idle.prompt, &idle.handshakes].iter().any(|trips| !trips.is_empty()));
    list
}

/// Whether the answers to an end that has no connection come from the server: their least round trip is
/// nearer that of connections towards the server. Without connections they do.
fn is_towards_server(trips: &[(u64, u64)], halves: &[Half; 2]) -> bool {
    let least = |trips: &[(u64, u64)]| trips.iter().map(|(at, back)| back - at).min();
    let of_half = |half: &Half| half.samples.iter().map(|(_, rtt)| *rtt).min();
    match (least(trips), of_half(&halves[0]), of_half(&halves[1])) {
        (Some(own), Some(client), Some(server)) => own.abs_diff(server) <= own.abs_diff(client),
        _ => true,
    }
}

/// The round trips of one client: `asked` has those of its requests and of requests to it.
fn of_client(flows: &[&Flow], [asked, answered]: [Vec<(u64, u64)>; 2]) -> [Idle; 2] {
    let mut sent: Vec<u64> = flows
        .iter()
        .flat_map(|flow| {
            let [client, server] = &flow.directions;
            let data = client.data.iter().map(|data| data.at);
            data.chain(server.acks.iter().map(|ack| ack.at)).chain(flow.handshake[0])
        })
        .chain(asked.iter().map(|(at, _)| *at))
        .chain(answered.iter().map(|(_, back)| *back))
        .collect();
    sent.sort_unstable();
    let is_idle = |at: u64| {
        let before = sent.partition_point(|other| *other < at);
        before == 0 || at - sent[before - 1] >= IDLE
    };
    // Data that a packet of the client released come at its phase of the period.
    let is_released = |at: u64| {
        let until = sent.partition_point(|other| *other <= at);
        until > 0 && at - sent[until - 1] < RELEASED
    };
    let asked: Vec<(u64, u64)> = asked.into_iter().filter(|(at, _)| is_idle(*at)).collect();
    let answered: Vec<(u64, u64)> = answered.into_iter().filter(|(_, back)| is_idle(*back)).collect();
    let mut to_client = Idle { to: 0, trips: answered.clone(), prompt: answered, handshakes: Vec::new() };
    let mut to_server = Idle { to: 1, trips: asked.clone(), prompt: asked, handshakes: Vec::new() };
    for flow in flows {
        let [client, server] = &flow.directions;
        if let [Some(syn), Some(syn_ack), ack] = flow.handshake
            && !flow.syn_repeated
        {
            to_server.handshakes.push((syn, syn_ack));
            to_client.handshakes.extend(ack.filter(|ack| is_idle(*ack)).map(|ack| (syn_ack, ack)));
        }
        // By acknowledgment: those of several segments are one packet.
        for acked in server.data.chunk_by(|a, b| a.acked_at.is_some() && a.acked_at == b.acked_at) {
            let Some(back) = once(acked).filter(|back| is_idle(*back)) else { continue };
            let at = acked[0].at;
            if !is_released(at) {
                to_client.trips.push((at, back));
                to_client.prompt.extend((acked.len() > 1).then_some((at, back)));
            }
        }
        for acked in client.data.chunk_by(|a, b| a.acked_at.is_some() && a.acked_at == b.acked_at) {
            let at = acked[0].at;
            if let Some(back) = once(acked).filter(|_| is_idle(at)) {
                to_server.trips.push((at, back));
                to_server.prompt.extend((acked.len() > 1).then_some((at, back)));
            }
        }
    }
    [to_client, to_server]
}

/// The time of the acknowledgment of segments that were sent once.
fn once(acked: &[Data]) -> Option<u64> {
    let is_once = acked.iter().all(|data| !data.is_repair && !data.was_repeated);
    acked[0].acked_at.filter(|_| is_once)
}
