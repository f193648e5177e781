//! The transfers of a capture: those of the client with most data, at the capture point that has them.

use paceline_explain::report::{ConnectionReport, Explanation};
use paceline_fit::capture::{Captures, Direction, Flow};
use std::net::IpAddr;

/// Length of the part of a capture that is simulated, s. Chosen: hundreds of round trips, of which more
/// change a mean little.
const HORIZON_S: f64 = 60.0;
/// Most transfers that are simulated, those with most data. Chosen: seconds of computing; others are noted.
const MOST: usize = 200;
/// Share of the lifetime from which on the application's writing decides: data are simulated as written
/// evenly over the time. Chosen: most of the time.
const WRITTEN: f64 = 0.5;
/// Share of the lifetime from which on the receive window is simulated as it was. Below it, a window that
/// grows as Linux's gives the same times.
const WINDOWED: f64 = 0.1;

/// A transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Index of its connection in the explanation.
    pub connection: Option<usize>,
    /// Opening of the connection after that of the first one, s.
    pub start_s: f64,
    /// Bytes that were acknowledged.
    pub bytes: u64,
    /// Time from opening to the last acknowledgment, s.
    pub completion_s: f64,
    /// Mean round trip, ms.
    pub rtt_ms: Option<f64>,
    /// Time over which the application wrote, s; none if all data were there at once.
    pub written_s: Option<f64>,
}

/// The measured transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Transfers in the order of their opening.
    pub transfers: Vec<Transfer>,
    /// Whether the client sent the data.
    pub is_upload: bool,
    /// Mean completion time, s.
    pub completion_s: f64,
    /// Mean round trip, by bytes, ms.
    pub rtt_ms: Option<f64>,
    /// Receive window where it limited, bytes.
    pub window: Option<f64>,
    /// Share of the lifetimes in which the application had no data.
    pub application: f64,
    /// Share of the captured data that are of other clients.
    pub others: f64,
    /// Share of the waits above the least round trip that ACKs had on their way, where clocks tell.
    pub ack_waits: Option<f64>,
    /// Segments of the transfers.
    pub segments: usize,
    /// Statements on parts that are left out.
    pub notes: Vec<String>,
}

impl Measured {
    /// The transfers of these captures; an error says why there are none.
    pub fn new(captures: &Captures, explanation: &Explanation) -> Result<Self, String> {
        let (point, client, from) = largest(captures).ok_or("no data in the captures")?;
        let is_of = |flow: &&Flow| {
            flow.point == point
                && flow.ends[0].ip() == client
                && flow.main().0 == from
                && flow.main().1.bytes > 0
        };
        let flows: Vec<&Flow> = captures.flows.iter().filter(is_of).collect();
        let first =
            flows.iter().filter_map(|flow| opening(flow, from)).min().ok_or("no data in the captures")?;
        let end = first + (HORIZON_S * 1e9) as u64;
        let mut notes = Vec::new();
        let mut found = Vec::new();
        for flow in &flows {
            let report = report(explanation, flow);
            if let Some((transfer, cut)) = transfer(flow, from, (first, end), report) {
                found.push((transfer, report.map(|(_, report)| report)));
                if cut {
                    notes.push(format!("the first {HORIZON_S:.0} s of the capture are simulated"));
                }
            }
        }
        notes.dedup();
        let left = |count: usize, what: &str| format!("{count} {what}: not simulated");
        if found.len() > MOST {
            notes.push(left(found.len() - MOST, "connections with least data"));
            found.sort_by_key(|(transfer, _)| std::cmp::Reverse(transfer.bytes));
            found.truncate(MOST);
        }
        let others = captures
            .flows
            .iter()
            .filter(|flow| flow.point == point && !is_of(flow) && flow.main().1.bytes > 0);
        match others.count() {
            0 => {}
            count => notes.push(left(count, "connections of other clients or of the other direction")),
        }
        found.sort_by(|(a, _), (b, _)| a.start_s.total_cmp(&b.start_s));
        if found.is_empty() {
            return Err("no acknowledged data in the captures".into());
        }
        let life: f64 = found.iter().map(|(transfer, _)| transfer.completion_s).sum();
        let share = |of: fn(&ConnectionReport) -> f64| {
            let sum = found.iter().map(|(transfer, report)| transfer.completion_s * report.map_or(0.0, of));
            sum.sum::<f64>() / life.max(f64::MIN_POSITIVE)
        };
        let windowed = share(|report| report.cause_shares.receive_window) >= WINDOWED;
        let window = found.iter().max_by_key(|(transfer, _)| transfer.bytes).and_then(|(_, report)| {
            let report = (*report)?;
            let direction = if from == 0 { &report.to_server } else { &report.to_client };
            direction.window_median_bytes
        });
        let application = share(|report| report.cause_shares.application);
        let transfers: Vec<Transfer> = found.into_iter().map(|(transfer, _)| transfer).collect();
        let timed: Vec<(f64, f64)> =
            transfers.iter().filter_map(|own| Some((own.bytes as f64, own.rtt_ms?))).collect();
        let bytes: f64 = timed.iter().map(|(bytes, _)| bytes).sum();
        Ok(Self {
            is_upload: from == 0,
            completion_s: life / transfers.len() as f64,
            rtt_ms: (bytes > 0.0).then(|| timed.iter().map(|(bytes, rtt)| bytes * rtt).sum::<f64>() / bytes),
            window: window.filter(|window| windowed && *window > 0.0),
            application,
            others: others_share(captures, (point, client)),
            ack_waits: ack_waits(&flows, from),
            segments: flows.iter().map(|flow| flow.directions[from].data.len()).sum(),
            transfers,
            notes,
        })
    }
}

/// Capture point, client and sending end with most data, the same as the fit's.
fn largest(captures: &Captures) -> Option<(usize, IpAddr, usize)> {
    let mut groups: Vec<((usize, IpAddr, usize), u64)> = Vec::new();
    for flow in &captures.flows {
        let (from, direction) = flow.main();
        let key = (flow.point, flow.ends[0].ip(), from);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, bytes)) => *bytes += direction.bytes,
            None => groups.push((key, direction.bytes)),
        }
    }
    groups
        .into_iter()
        .rev()
        .max_by_key(|(_, bytes)| *bytes)
        .map(|(key, _)| key)
        .filter(|_| !captures.flows.is_empty())
}

/// Time of the SYN, or of the first data, ns.
fn opening(flow: &Flow, from: usize) -> Option<u64> {
    flow.handshake[0].or_else(|| flow.directions[from].data.first().map(|data| data.at))
}

fn report<'a>(explanation: &'a Explanation, flow: &Flow) -> Option<(usize, &'a ConnectionReport)> {
    let [client, server] = flow.ends.map(|end| end.to_string());
    explanation.connections.iter().enumerate().find(|(_, own)| own.client == client && own.server == server)
}

/// Share of the data at a point that are of other clients.
fn others_share(captures: &Captures, (point, client): (usize, IpAddr)) -> f64 {
    let here = captures.flows.iter().filter(|flow| flow.point == point);
    let (mut own, mut all) = (0.0, 0.0);
    for flow in here {
        let bytes = flow.main().1.bytes as f64;
        all += bytes;
        own += if flow.ends[0].ip() == client { bytes } else { 0.0 };
    }
    1.0 - own / f64::max(all, 1.0)
}

/// Longest tick of a timestamp clock that tells where packets wait, ns: Linux has 1 ms.
const FINE_TICK: f64 = 1.5e6;
/// Least mean wait that is told apart, ns: ten ticks of that clock.
const LEAST_WAIT: f64 = 10e6;

/// The receiver's timestamp in an ACK is free of the ACK's own delay: what the round trip has more was that
/// of the ACK.
fn ack_waits(flows: &[&Flow], from: usize) -> Option<f64> {
    let (mut trips, mut ways, mut count) = (0.0, 0.0, 0.0);
    for flow in flows {
        let clock = &flow.directions[1 - from].clock;
        if clock.tick().is_none_or(|tick| tick > FINE_TICK) {
            continue;
        }
        let once = flow.directions[from].data.iter().filter(|data| !data.is_repair && !data.was_repeated);
        let samples: Vec<(f64, f64)> = once
            .filter_map(|data| {
                let trip = data.acked_at?.saturating_sub(data.at) as f64;
                Some((trip, clock.since_first(data.acked_value?)? - data.at as f64))
            })
            .collect();
        let least = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).fold(f64::INFINITY, f64::min);
        let (trip, way) = (least(|own| own.0), least(|own| own.1));
        trips += samples.iter().map(|own| own.0 - trip).sum::<f64>();
        ways += samples.iter().map(|own| own.1 - way).sum::<f64>();
        count += samples.len() as f64;
    }
    (trips > LEAST_WAIT * count).then(|| (1.0 - ways / trips).clamp(0.0, 1.0))
}

/// The transfer of a flow until `end`, and whether there are later data.
fn transfer(
    flow: &Flow,
    from: usize,
    (first, end): (u64, u64),
    report: Option<(usize, &ConnectionReport)>,
) -> Option<(Transfer, bool)> {
    let direction: &Direction = &flow.directions[from];
    let start = opening(flow, from)?;
    let acked = || direction.data.iter().filter(|data| data.acked_at.is_some_and(|at| at <= end));
    let last = acked().filter_map(|data| data.acked_at).max()?;
    let begin = acked().map(|data| data.start).min()?;
    let bytes = acked().map(|data| data.start + u64::from(data.len)).max()? - begin;
    let cut = direction.data.iter().any(|data| data.acked_at.is_some_and(|at| at > end));
    // Without its handshake, a connection began a round trip before its first data.
    let unseen = match (flow.handshake[0], report) {
        (None, Some((_, report))) => report.rtt_min_ms.unwrap_or(0.0) / 1e3,
        _ => 0.0,
    };
    let written = report.filter(|(_, report)| report.cause_shares.application >= WRITTEN).map(|_| {
        let times = || acked().map(|data| data.at);
        (times().max().unwrap_or(start) - times().min().unwrap_or(start)) as f64 / 1e9
    });
    let of_rtt = |report: &ConnectionReport| {
        let points = report.over_time.iter().filter_map(|point| Some((point.goodput_mbps, point.rtt_ms?)));
        let (sum, weight) =
            points.fold((0.0, 0.0), |(sum, weight), (rate, rtt)| (sum + rate * rtt, weight + rate));
        if weight > 0.0 { Some(sum / weight) } else { report.rtt_median_ms }
    };
    let transfer = Transfer {
        connection: report.map(|(index, _)| index),
        start_s: start.saturating_sub(first) as f64 / 1e9,
        bytes,
        completion_s: last.saturating_sub(start) as f64 / 1e9 + unseen,
        rtt_ms: report.and_then(|(_, report)| of_rtt(report)),
        written_s: written.filter(|seconds| *seconds > 0.0),
    };
    Some((transfer, cut))
}
