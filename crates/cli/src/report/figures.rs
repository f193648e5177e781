//! The figures that pictures of sweeps and comparisons show.

use super::over_keys::key::Key;
use super::over_keys::{self, Point};
use paceline_report::table::{has_figure, shows_acks};
use paceline_sim::Totals;

/// A picture: title, unit, decimals, value.
pub type Figure = (&'static str, &'static str, usize, fn(&Totals) -> f64);

/// The pictures of sweeps and comparisons, the three that answer first. Chosen: goodput, delays, losses and
/// utilisation; a chart of zeros is left out.
const FIGURES: [Figure; 15] = [
    ("Goodput of all stations", "Mb/s", 2, |t| t.goodput_mbps),
    ("Mean round-trip time", "ms", 1, |t| t.rtt_mean_ms),
    ("Segments retransmitted", "%", 3, |t| 100.0 * t.retransmission_share),
    ("Upload of all stations", "Mb/s", 2, |t| t.upload_mbps),
    ("Fairness between stations", "Jain index", 4, |t| t.jain_index),
    ("Round-trip time, 95th percentile", "ms", 1, |t| t.rtt_p95_ms),
    ("Downlink PRBs used", "%", 1, |t| 100.0 * t.downlink_prb_share),
    ("Uplink PRBs used", "%", 1, |t| 100.0 * t.uplink_prb_share),
    ("Transport blocks retransmitted by HARQ", "%", 1, |t| 100.0 * t.harq_retransmission_share),
    ("Scheduling requests", "1/s", 0, |t| t.scheduling_requests_per_s),
    ("Capacity of the link", "Mb/s", 2, |t| t.link_capacity_mbps),
    ("Time in the link's queue, mean", "ms", 1, |t| t.link_delay_mean_ms),
    ("Time in the link's queue, 95th percentile", "ms", 1, |t| t.link_delay_p95_ms),
    ("Lost by link or radio", "1/s", 1, |t| t.radio_losses_per_s),
    ("UDP datagrams lost", "%", 2, |t| 100.0 * t.udp_loss_share),
];

/// Chosen: what an ACK filter changes.
const ACKS: [Figure; 2] = [
    ("ACKs sent", "1/s", 0, |t| t.acks_sent_per_s),
    ("ACKs discarded", "1/s", 0, |t| t.acks_discarded_per_s),
];

/// The figures that are shown of these totals: those of ACKs where some are discarded or ACKs limit.
pub fn shown<'a>(totals: impl IntoIterator<Item = &'a Totals>) -> Vec<&'static Figure> {
    let totals: Vec<&Totals> = totals.into_iter().collect();
    let acks = if totals.iter().any(|totals| shows_acks(totals)) { &ACKS[..] } else { &[] };
    FIGURES
        .iter()
        .chain(acks)
        .filter(|figure| totals.iter().any(|totals| has_figure(figure.3(totals))))
        .collect()
}

/// The values of the keys at a point, means over the seeds, and half widths of the confidence intervals.
pub type PointTotals = (Vec<String>, Totals, Option<Totals>);

/// Pictures of every figure over the keys.
pub fn pictures(keys: &[Key], points: &[PointTotals]) -> Vec<String> {
    let picture = |(title, unit, _, value): &Figure| {
        let point = |(values, mean, ci95): &PointTotals| Point {
            values: values.clone(),
            mean: value(mean),
            half: ci95.as_ref().map(value),
        };
        let most = match *unit {
            "%" => 100.0,
            "Jain index" => 1.0,
            _ => f64::INFINITY,
        };
        let figure = over_keys::Figure { title, unit, most };
        over_keys::pictures(keys, &points.iter().map(point).collect::<Vec<_>>(), &figure)
    };
    let shown = shown(points.iter().map(|(_, mean, _)| mean));
    shown.into_iter().map(picture).filter(|picture| !picture.is_empty()).collect()
}
