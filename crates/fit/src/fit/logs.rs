//! Estimates from logs, added to those of captures.

use super::{Fit, better};
use crate::estimate::capacity::{WINDOW, WindowRate};
use crate::estimate::{Confidence, Estimate, log};
use crate::log::{Format, Radio, Series};

impl Fit {
    pub(super) fn add_log(&mut self, name: &str, format: Format, series: &Series) {
        let rtt = log::base_rtt(series, name);
        self.compare("base round trip", self.base_rtt_ms.clone(), rtt.as_ref(), (0.1, 2.0));
        self.base_rtt_ms = better(self.base_rtt_ms.take(), rtt);
        let capacity = log::capacity(series, format, name);
        self.compare("capacity", self.capacity_mbps.clone(), capacity.as_ref(), (0.2, 0.0));
        if self.capacity_mbps.is_none() && !series.rates.is_empty() {
            self.direction = if series.is_upload { "upload" } else { "download" };
        }
        self.capacity_mbps = better(self.capacity_mbps.take(), capacity);
        self.jitter_ms = better(self.jitter_ms.take(), log::jitter(series, name));
        self.loss_percent = better(self.loss_percent.take(), log::loss(series, name));
        self.buffer_bytes = better(self.buffer_bytes.take(), log::buffer(series, name));
        if self.rtts.is_empty() {
            self.rtts.clone_from(&series.pings);
        }
        if self.rates.is_empty() {
            let windows = series.rates.iter().flat_map(|rate| {
                let steps = ((rate.span_s * 1e9 / WINDOW as f64) + 0.5).max(1.0) as usize;
                (0..steps).map(|step| WindowRate {
                    time_s: rate.time_s + step as f64 * WINDOW as f64 / 1e9,
                    mbps: rate.mbps,
                    queued: series.is_capacity,
                    full: false,
                })
            });
            self.rates = windows.collect();
        }
        let values =
            |of: fn(&Radio) -> Option<f64>| -> Vec<f64> { series.radio.iter().filter_map(of).collect() };
        if let Some([mean, deviation]) = log::radio(&values(|radio| radio.sinr_db), "SINR", name) {
            self.sinr_db = better(self.sinr_db.take(), Some(mean));
            self.sinr_deviation_db = better(self.sinr_deviation_db.take(), Some(deviation));
        }
        let first = |found: Option<[Estimate<f64>; 2]>| found.map(|[mean, _]| mean);
        let uplink = first(log::radio(&values(|radio| radio.uplink_sinr_db), "SINR of the uplink", name));
        self.uplink_sinr_db = better(self.uplink_sinr_db.take(), uplink);
        self.mcs = better(self.mcs.take(), first(log::radio(&values(|radio| radio.mcs), "MCS", name)));
        let blocks = values(|radio| radio.prb);
        let most = blocks.iter().copied().reduce(f64::max);
        let prb = most.map(|most| {
            Estimate::new(most, Confidence::Low, format!("the most of {} values in {name}", blocks.len()))
        });
        self.prb = better(self.prb.take(), prb);
        self.is_nr = self.is_nr.or(series.is_nr);
    }
    /// Says that two claims of different inputs contradict each other: `tolerance` as a share and in the unit
    /// of the values.
    fn compare(
        &mut self,
        what: &str,
        known: Option<Estimate<f64>>,
        found: Option<&Estimate<f64>>,
        (share, least): (f64, f64),
    ) {
        let (Some(known), Some(found)) = (known, found) else { return };
        let is_claimed = known.confidence.is_claim() && found.confidence.is_claim();
        let difference = (known.value - found.value).abs();
        if is_claimed && difference > (share * known.value.max(found.value)).max(least) {
            self.conflicts.push(format!(
                "{what}: {:.2} ({}) and {:.2} ({})",
                known.value, known.from, found.value, found.from
            ));
        }
    }
}
