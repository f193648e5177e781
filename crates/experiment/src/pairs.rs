//! Pairs of periods, of which one accelerates devices and the other does not: each device is compared with
//! itself in the pair, and the mean over devices is the pair's value.
//!
//! A pair is reduced to its values when its transfers have ended, so that memory does not grow with devices
//! times periods. Over all sizes, each size of each device counts the same, if it has transfers in both
//! periods: the mix of sizes cannot differ.

use super::measure::Measure;
use super::plan::Part;
use super::sums::{DeviceSums, Measured, SIZES};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Devices of which a pair keeps sums. Chosen: 15 MB; further devices do not count in it.
const MAX_DEVICES: usize = 16_384;
/// Pairs whose transfers may still end. Chosen: a transfer that lasts for two periods more counts.
const MAX_OPEN: usize = 2;

/// Means over the devices of a pair, for one measure and size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairValue {
    /// With acceleration.
    pub on: f64,
    /// Without.
    pub off: f64,
}

/// The values of a pair: None where no device has transfers in both periods.
type Values = Vec<Option<PairValue>>;

/// A pair of periods whose transfers are collected.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct OpenPair {
    number: u64,
    /// With acceleration, without.
    devices: BTreeMap<IpAddr, [DeviceSums; 2]>,
}

/// All pairs of an experiment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pairs {
    open: VecDeque<OpenPair>,
    closed: Vec<Values>,
    left_out: u64,
}

/// The rows of a report: measures by size, and unfinished transfers.
pub(super) fn rows() -> impl Iterator<Item = (Option<usize>, Measure)> {
    let classes = std::iter::once(None).chain((0..SIZES.len()).map(Some));
    let measures = classes.flat_map(|class| Measure::BY_SIZE.map(|measure| (class, measure)));
    measures.chain([(None, Measure::Unfinished)])
}

impl OpenPair {
    /// The device's values of a row, with acceleration and without; for all sizes, those of each size.
    fn values(sums: &[DeviceSums; 2], class: Option<usize>, measure: Measure) -> Vec<PairValue> {
        let sizes = match class {
            None if measure != Measure::Unfinished => 0..SIZES.len(),
            _ => 0..1,
        };
        let of = |n| {
            let class = if measure == Measure::Unfinished { None } else { class.or(Some(n)) };
            let [on, off] = sums.each_ref().map(|sums| measure.of(sums, class));
            Some(PairValue { on: on?, off: off? })
        };
        sizes.filter_map(of).collect()
    }
    fn reduce(&self) -> Values {
        let mean = |(class, measure)| {
            let all = self.devices.values().flat_map(|sums| Self::values(sums, class, measure));
            let (mut sum, mut count) = (PairValue { on: 0.0, off: 0.0 }, 0.0);
            for value in all {
                sum = PairValue { on: sum.on + value.on, off: sum.off + value.off };
                count += 1.0;
            }
            (count > 0.0).then(|| PairValue { on: sum.on / count, off: sum.off / count })
        };
        rows().map(mean).collect()
    }
}

impl Pairs {
    /// Adds a transfer of a period.
    pub fn record(&mut self, part: Part, transfer: &Measured) {
        if self.open.back().is_none_or(|open| open.number < part.pair) {
            self.open.push_back(OpenPair { number: part.pair, ..OpenPair::default() });
            if self.open.len() > MAX_OPEN {
                self.closed.extend(self.open.pop_front().map(|pair| pair.reduce()));
            }
        }
        let Some(pair) = self.open.iter_mut().find(|open| open.number == part.pair) else { return };
        if pair.devices.len() >= MAX_DEVICES && !pair.devices.contains_key(&transfer.device) {
            self.left_out += 1;
            return;
        }
        pair.devices.entry(transfer.device).or_default()[usize::from(!part.on)].add(transfer);
    }
    /// Transfers of devices that had no place.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
    /// The values of a row in each of the first `pairs`.
    pub fn values(&self, pairs: u64) -> Vec<Values> {
        let open = self.open.iter().filter(|open| open.number < pairs).map(OpenPair::reduce);
        self.closed.iter().cloned().chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Duration, Instant};

    fn transfer(device: u8, bytes: u64, ms: u64) -> Measured {
        Measured {
            device: [10, 0, 0, device].into(),
            bytes,
            time: Duration::from_millis(ms),
            rtt: None,
            sent: bytes,
            repeated: 0,
            finished: true,
            opened_at: Instant::ZERO,
            began_at: Instant::ZERO,
        }
    }
    fn part(pair: u64, on: bool) -> Part {
        Part { pair, on }
    }

    /// By hand: one device is twice as fast for its small transfers, the other equally fast for its large
    /// ones. Large transfers with acceleration and small ones without would look like a gain of their own.
    #[test]
    fn devices_are_compared_with_themselves_at_equal_sizes() {
        let mut pairs = Pairs::default();
        for (device, bytes, ms, on) in [
            (1, 5_000, 50, true),
            (1, 5_000, 100, false),
            (2, 5_000_000, 1000, true),
            (2, 5_000_000, 1000, false),
            (2, 5_000, 10, false),
            (3, 5_000_000, 1, true),
        ] {
            pairs.record(part(0, on), &transfer(device, bytes, ms));
        }
        let values = pairs.values(1);
        let row = |wanted: (Option<usize>, Measure)| {
            let at = rows().position(|row| row == wanted).unwrap();
            values[0][at].map(|value| libm::exp(value.on - value.off))
        };
        let ratios = [None, Some(0), Some(3), Some(1)].map(|class| row((class, Measure::Goodput)));
        let close = |ratio: Option<f64>, wanted: f64| (ratio.unwrap() - wanted).abs() < 1e-9;
        assert!(close(ratios[0], std::f64::consts::SQRT_2) && close(ratios[1], 2.0) && close(ratios[2], 1.0));
        assert_eq!((ratios[3], pairs.values(0).len()), (None, 0));
        assert_eq!(row((None, Measure::Unfinished)), Some(1.0));
    }

    #[test]
    fn pairs_are_reduced_when_their_transfers_have_ended() {
        let mut pairs = Pairs::default();
        for pair in 0..5 {
            pairs.record(part(pair, true), &transfer(1, 5_000, 100));
            pairs.record(part(pair, false), &transfer(1, 5_000, 100 + pair));
        }
        assert_eq!((pairs.open.len(), pairs.closed.len(), pairs.values(5).len()), (2, 3, 5));
        let before = pairs.clone();
        pairs.record(part(1, true), &transfer(1, 5_000, 1)); // too late
        assert_eq!(pairs, before);
    }
}
