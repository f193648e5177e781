//! The path of a capture's largest group of connections: their data with the delay that each segment had
//! before and behind the capture point, on top of the least one.
//!
//! Behind the point the delay is that from a segment to its acknowledgment; before it, the time since the
//! sender's timestamp. The side with the longer delays has the bottleneck.

use crate::capture::{Captures, Data, Flow};
use std::net::IpAddr;

/// Longest tick of a timestamp clock that is finer than the wait for an acknowledgment, ns: Linux has 1 ms.
const FINE_TICK: f64 = 1.5e6;

/// A delivery at the bottleneck's far end.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Time at which the segment passed the point, ns.
    pub passed: u64,
    /// Time at which its delivery was seen, ns.
    pub delivered: u64,
    /// Delay on top of the least one on the bottleneck's side, ns; none of repaired data.
    pub queue: Option<f64>,
    /// Bytes of the datagram.
    pub wire: u32,
}

/// A loss: the segment before which, or instead of which, the queue was full.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Index of the last delivery in front of the lost segment.
    pub before: usize,
    /// Time at which the lost segment was at the capture point; that of the segment in front of it if it was
    /// lost before the point.
    pub at: u64,
}

/// The side of the capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Between the data's sender and the point.
    Before,
    /// Between the point and the data's receiver.
    Behind,
}

/// The data of all connections of one client in one direction at one point.
#[derive(Clone, Debug)]
pub struct Path {
    /// Capture point.
    pub point: usize,
    /// The end that sends the data: 0 client, 1 server.
    pub from: usize,
    /// Side of the bottleneck.
    pub side: Side,
    /// Deliveries in the order of passing.
    pub deliveries: Vec<Delivery>,
    /// Losses in the order of passing.
    pub losses: Vec<Loss>,
    /// Segments.
    pub segments: u64,
    /// Segments that were lost on either side.
    pub lost: u64,
    /// Least delay on the bottleneck's side, ns: round trip behind the point, zero before it.
    pub least: f64,
    /// Longest time from passing to delivery, ns.
    pub longest: u64,
}

/// The group of connections with most data: point, address of the client, end that sends. `points` leaves out
/// others.
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
    // Of equal groups the first: the point nearest the beginning of the file.
    groups.into_iter().rev().max_by_key(|(_, bytes)| *bytes).map(|(key, _)| key)
}

impl Path {
    /// The paths of the largest client: one for each capture point that its data passed.
    pub fn all(captures: &Captures) -> Vec<Self> {
        let Some((_, client, from)) = largest(captures) else { return Vec::new() };
        let of_point = |point| {
            let flows: Vec<&Flow> = captures
                .flows
                .iter()
                .filter(|flow| flow.point == point && flow.ends[0].ip() == client && flow.main().0 == from)
                .collect();
            Self::of(point, from, &flows)
        };
        (0..captures.points.len()).filter_map(of_point).collect()
    }
    fn of(point: usize, from: usize, flows: &[&Flow]) -> Option<Self> {
        let sides = [Side::Before, Side::Behind].map(|side| Self::on_side(point, from, flows, side));
        let spread = |path: &Self| {
            let queues: Vec<f64> = path.deliveries.iter().filter_map(|delivery| delivery.queue).collect();
            crate::estimate::quantile(&queues, 0.9).unwrap_or(0.0)
        };
        let [before, behind] = sides;
        let path = if spread(&before) > spread(&behind) { before } else { behind };
        (!path.deliveries.is_empty()).then_some(path)
    }
    fn on_side(point: usize, from: usize, flows: &[&Flow], side: Side) -> Self {
        let mut path = Self {
            point,
            from,
            side,
            deliveries: Vec::new(),
            losses: Vec::new(),
            segments: 0,
            lost: 0,
            least: f64::INFINITY,
            longest: 0,
        };
        let mut losses = Vec::new();
        for flow in flows {
            let direction = &flow.directions[from];
            path.segments += direction.data.len() as u64;
            let (sender, receiver) = (&direction.clock, &flow.directions[1 - from].clock);
            // The receiver's timestamp of an acknowledgment is free of the acknowledgment's own delays.
            let by_receiver = receiver.tick().is_some_and(|tick| tick <= FINE_TICK);
            let round_trip = |data: &Data| Some(data.acked_at?.saturating_sub(data.at) as f64);
            let delay = |data: &Data| {
                if data.is_repair || data.was_repeated {
                    return None;
                }
                match side {
                    Side::Behind if by_receiver => {
                        Some(receiver.since_first(data.acked_value?)? - data.at as f64)
                    }
                    Side::Behind => round_trip(data),
                    Side::Before => Some(data.at as f64 - sender.since_first(data.tsval?)?),
                }
            };
            let once = direction.data.iter().filter(|data| !data.is_repair && !data.was_repeated);
            let shortest = once.filter_map(round_trip).fold(f64::INFINITY, f64::min);
            let least = direction.data.iter().filter_map(delay).fold(f64::INFINITY, f64::min);
            for data in &direction.data {
                let queue = delay(data).map(|delay| delay - least);
                let delivered = match (side, queue) {
                    (Side::Before, _) => Some(data.at),
                    (Side::Behind, Some(queue)) => Some(data.at + (shortest + queue) as u64),
                    (Side::Behind, None) => data.acked_at,
                };
                let Some(delivered) = delivered else { continue };
                path.longest = path.longest.max(delivered.saturating_sub(data.at));
                path.deliveries.push(Delivery { passed: data.at, delivered, queue, wire: data.wire });
            }
            for (index, data) in direction.data.iter().enumerate() {
                let is_lost = match side {
                    Side::Before => data.behind_hole && index > 0,
                    Side::Behind => data.was_repeated && !data.is_repair,
                };
                if is_lost {
                    let at = if side == Side::Before { direction.data[index - 1].at } else { data.at };
                    losses.push(at);
                }
            }
            path.lost += if side == Side::Before { direction.holes } else { direction.repeated };
            if side == Side::Behind {
                path.least = path.least.min(shortest);
            }
        }
        if side == Side::Before {
            path.least = 0.0;
        }
        path.deliveries.sort_by_key(|delivery| delivery.passed);
        losses.sort_unstable();
        for at in losses {
            let before = path.deliveries.partition_point(|delivery| delivery.passed <= at);
            if before > 0 {
                path.losses.push(Loss { before: before - 1, at });
            }
        }
        path
    }
}
