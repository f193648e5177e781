//! Radio link monitoring (TS 36.331 §5.3.11, TS 36.133 §7.6; TS 38.331 §5.3.10): T310 runs from N310 "out of
//! sync" indications in a row until N311 "in sync" ones, and its expiry is a radio-link failure.
//!
//! Physical layer problems follow from the mean SINR of the serving cell: below Q_out on average over 200 ms
//! the link is out of sync, above Q_in over 100 ms in sync, in place of the error of a hypothetical PDCCH.

use crate::decibel::{from_db, to_db};
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// Samples of the out-of-sync and the in-sync evaluation (TS 36.133 §7.6.2.1: 200 ms and 100 ms), one per
/// 10 ms, the shortest interval of indications (§7.6.2.3).
const OUT_SAMPLES: usize = 20;
const IN_SAMPLES: usize = 10;

/// Parameters of radio link monitoring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkMonitorConfig {
    /// Mean SINR in dB below which the link is out of sync.
    pub q_out_db: f64,
    /// Mean SINR in dB above which the link is in sync.
    pub q_in_db: f64,
    /// Number of "out of sync" indications in a row that start T310.
    pub n310: u32,
    /// Number of "in sync" indications in a row that stop T310.
    pub n311: u32,
    /// T310.
    pub t310: SlotSpan,
}

/// State of one station's link.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkMonitor {
    /// The last SINRs, linear, the latest one at the end.
    samples: VecDeque<f64>,
    out_of_sync: u32,
    in_sync: u32,
    /// Slot in which T310 expires.
    expires_at: Option<Slot>,
}

impl LinkMonitor {
    /// The SINR of 10 ms. Returns whether T310 has expired; the state then begins anew.
    pub fn sample(&mut self, slot: Slot, config: &LinkMonitorConfig, sinr_db: f64) -> bool {
        if self.samples.len() == OUT_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(from_db(sinr_db));
        if self.expires_at.is_some_and(|at| at <= slot) {
            *self = Self::default();
            return true;
        }
        let mean_db = |count: usize| {
            let last = self.samples.iter().rev().take(count);
            (self.samples.len() >= count).then(|| to_db(last.sum::<f64>() / count as f64))
        };
        let is_out = mean_db(OUT_SAMPLES).is_some_and(|sinr| sinr < config.q_out_db);
        let is_in = mean_db(IN_SAMPLES).is_some_and(|sinr| sinr > config.q_in_db);
        self.out_of_sync = if is_out { self.out_of_sync + 1 } else { 0 };
        self.in_sync = if is_in { self.in_sync + 1 } else { 0 };
        if self.expires_at.is_none() && self.out_of_sync >= config.n310 {
            self.expires_at = Some(slot + config.t310);
        } else if self.in_sync >= config.n311 {
            self.expires_at = None;
        }
        false
    }
    /// Another cell serves the station, or none.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: LinkMonitorConfig =
        LinkMonitorConfig { q_out_db: -8.0, q_in_db: -6.0, n310: 1, n311: 1, t310: SlotSpan(1000) };

    /// The slot of the radio-link failure.
    fn fails_at(sinr_db: impl Fn(u64) -> f64) -> Option<u64> {
        let mut monitor = LinkMonitor::default();
        (0..500).map(|at| 10 * at).find(|slot| monitor.sample(Slot(*slot), &CONFIG, sinr_db(*slot)))
    }

    #[test]
    fn t310_expires_a_second_after_200_ms_out_of_sync() {
        assert_eq!(fails_at(|_| -8.1), Some(190 + 1000));
        assert_eq!(fails_at(|_| -7.9), None);
    }

    #[test]
    fn in_sync_indications_stop_t310() {
        // From 1100 ms on, the mean of 200 ms is below Q_out once two samples of 0 dB are left in it.
        assert_eq!(fails_at(|slot| if (900..1100).contains(&slot) { 0.0 } else { -12.0 }), Some(1270 + 1000));
        // Between both thresholds T310 goes on.
        assert_eq!(fails_at(|slot| if slot < 500 { -12.0 } else { -7.0 }), Some(1190));
    }
}
