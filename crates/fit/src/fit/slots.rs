//! The slots of a path: by arrivals, and by timestamps.

use crate::capture::Flow;
use crate::estimate::pattern::{self, Link, Seen, Slots};
use crate::estimate::profile::{Profile, SLOTS};
use crate::estimate::{Estimate, quantile};
use crate::path::{Path, Side};

/// Packets from which on a lattice of their times is no chance. Chosen: the mean vector of so many has a
/// standard deviation of 0.1.
const LATTICE: usize = 100;

/// Whether the packets of either end come on a lattice of slots.
pub fn is_slotted(flow: &Flow) -> bool {
    flow.directions.iter().any(|direction| {
        let data: Vec<(u64, f64)> = direction.data.iter().map(|data| (data.at, 1.0)).collect();
        let acks: Vec<(u64, f64)> = direction.acks.iter().map(|ack| (ack.at, 1.0)).collect();
        [data, acks].iter().any(|arrivals| {
            arrivals.len() >= LATTICE
                && SLOTS.iter().any(|slot| Profile::of_arrivals(arrivals, *slot).is_some())
        })
    })
}

/// The pattern by arrivals behind the radio.
pub fn by_arrivals(path: &Path, is_busy: &dyn Fn(u64) -> bool) -> Option<Estimate<Slots>> {
    if path.side != Side::Before {
        return None;
    }
    let arrivals: Vec<(u64, f64)> = path
        .deliveries
        .iter()
        .filter(|delivery| is_busy(delivery.delivered))
        .map(|delivery| (delivery.passed, f64::from(delivery.wire)))
        .collect();
    let profiles: Vec<Profile> =
        SLOTS.iter().filter_map(|slot| Profile::of_arrivals(&arrivals, *slot)).collect();
    let link = if path.from == 1 { Link::Down } else { Link::Up };
    pattern::find(&profiles, link, Seen::Arrivals)
}

/// The pattern by the timestamps that the receiver wrote when it acknowledged.
pub fn by_timestamps(flow: &Flow, path: &Path, is_busy: &dyn Fn(u64) -> bool) -> Option<Estimate<Slots>> {
    let (from, direction) = flow.main();
    let receiver = &flow.directions[1 - from].clock;
    // Other clocks have too long a tick.
    if from != path.from || path.side != Side::Behind || receiver.tick()? > 1.5e6 {
        return None;
    }
    let acks = || direction.acks.iter().filter(|ack| ack.bytes > 0 && is_busy(ack.at));
    let usual = quantile(&acks().map(|ack| ack.bytes as f64).collect::<Vec<_>>(), 0.5)?;
    // An acknowledgment behind a repaired loss counts as others.
    let ticks: Vec<(i64, f64)> =
        acks().filter_map(|ack| Some((i64::from(ack.tsval?), (ack.bytes as f64).min(2.0 * usual)))).collect();
    let link = if path.from == 1 { Link::Down } else { Link::Up };
    pattern::find(&[Profile::of_ticks(&ticks)], link, Seen::Timestamps)
}
