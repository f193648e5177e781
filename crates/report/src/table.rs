//! Text tables: the totals of results side by side, and text in aligned columns.

use paceline_sim::Totals;
use paceline_study::Paired;

/// A row: name, unit, decimals, value.
pub type Row = (&'static str, &'static str, usize, fn(&Totals) -> f64);

/// The rows of a table of totals. Chosen: the totals that readers compare; `summary.json` has all.
pub const ROWS: [Row; 41] = [
    ("goodput", "Mb/s", 2, |t| t.goodput_mbps),
    ("upload", "Mb/s", 2, |t| t.upload_mbps),
    ("ACKs at the uplink buffers", "1/s", 0, |t| t.acks_in_per_s),
    ("ACKs discarded", "1/s", 0, |t| t.acks_discarded_per_s),
    ("ACKs sent", "1/s", 0, |t| t.acks_sent_per_s),
    ("RTT, mean", "ms", 1, |t| t.rtt_mean_ms),
    ("RTT, 95th percentile", "ms", 1, |t| t.rtt_p95_ms),
    ("segments retransmitted", "%", 3, |t| 100.0 * t.retransmission_share),
    ("Jain index", "", 4, |t| t.jain_index),
    ("downlink PRBs used", "%", 1, |t| 100.0 * t.downlink_prb_share),
    ("uplink PRBs used", "%", 1, |t| 100.0 * t.uplink_prb_share),
    ("uplink grants used", "%", 1, |t| 100.0 * t.uplink_grant_share),
    ("scheduling requests", "1/s", 0, |t| t.scheduling_requests_per_s),
    ("wait for a grant after a request, mean", "ms", 1, |t| t.sr_wait_mean_ms),
    ("random accesses", "1/s", 1, |t| t.random_accesses_per_s),
    ("random access, mean", "ms", 1, |t| t.random_access_mean_ms),
    ("preambles that collided", "%", 1, |t| 100.0 * t.preamble_collision_share),
    ("uplink grants limited by PRBs", "%", 1, |t| 100.0 * t.uplink_block_limited_share),
    ("uplink grants limited by power", "%", 1, |t| 100.0 * t.uplink_power_limited_share),
    ("stations without service", "", 1, |t| t.stations_without_service),
    ("TCP limited by the receive window", "%", 1, |t| 100.0 * t.receive_window_share),
    ("TCP limited by the congestion window", "%", 1, |t| 100.0 * t.congestion_window_share),
    ("TCP limited by the send buffer", "%", 1, |t| 100.0 * t.send_buffer_share),
    ("TCP limited by pacing", "%", 1, |t| 100.0 * t.pacing_share),
    ("TCP without data to send", "%", 1, |t| 100.0 * t.application_share),
    ("TCP in loss recovery", "%", 1, |t| 100.0 * t.recovery_share),
    ("TCP waiting for timeouts", "%", 1, |t| 100.0 * t.timeout_share),
    ("TCP connecting", "%", 1, |t| 100.0 * t.handshake_share),
    ("round trip in the downlink queue", "%", 1, |t| 100.0 * t.rtt_downlink_queue_share),
    ("round trip in the uplink queue", "%", 1, |t| 100.0 * t.rtt_uplink_queue_share),
    ("round trip waiting for a grant", "%", 1, |t| 100.0 * t.rtt_grant_share),
    ("round trip in HARQ", "%", 1, |t| 100.0 * t.rtt_harq_share),
    ("link capacity downlink", "Mb/s", 2, |t| t.link_capacity_mbps),
    ("sent by the link downlink", "Mb/s", 2, |t| t.link_sent_mbps),
    ("time in the link's queue, mean", "ms", 1, |t| t.link_delay_mean_ms),
    ("time in the link's queue, 95th percentile", "ms", 1, |t| t.link_delay_p95_ms),
    ("dropped at the downlink queue", "1/s", 1, |t| t.downlink_queue_drops_per_s),
    ("dropped at the uplink queue", "1/s", 1, |t| t.uplink_queue_drops_per_s),
    ("lost by link or radio", "1/s", 1, |t| t.radio_losses_per_s),
    ("UDP datagrams lost", "%", 3, |t| 100.0 * t.udp_loss_share),
    ("UDP delay one way, mean", "ms", 1, |t| t.udp_delay_mean_ms),
];

/// A column of a table of totals.
pub struct Column<'a> {
    /// Heading.
    pub name: String,
    /// Means over the seeds.
    pub mean: &'a Totals,
    /// Half widths of the 95% confidence intervals.
    pub ci95: Option<&'a Totals>,
    /// Whether the figures are differences, whose signs are shown.
    pub is_difference: bool,
}

impl<'a> Column<'a> {
    /// A column of means with their intervals.
    pub fn of_means(name: String, mean: &'a Totals, ci95: Option<&'a Totals>) -> Self {
        Self { name, mean, ci95, is_difference: false }
    }
    /// The differences from another column, by pairs of runs with equal seeds.
    pub fn of_pairs(paired: &'a Paired) -> Self {
        let (name, mean, ci95) = (String::from("difference"), &paired.mean, paired.ci95.as_ref());
        Self { name, mean, ci95, is_difference: true }
    }
    /// A figure with its interval; empty where it was not measured.
    pub fn cell(&self, (_, _, decimals, value): &Row) -> String {
        let (mean, decimals) = (value(self.mean), *decimals);
        if mean.is_nan() {
            return String::new();
        }
        let shown = format!("{mean:.decimals$}");
        let is_zero = !shown.contains(|digit: char| ('1'..='9').contains(&digit));
        let mean = match self.is_difference {
            true if is_zero => format!("{:.decimals$}", 0.0),
            true => format!("{mean:+.decimals$}"),
            false => shown,
        };
        self.ci95.map_or(mean.clone(), |ci95| format!("{mean} ± {:.decimals$}", value(ci95)))
    }
}

/// The totals of `columns` side by side. Rows without a figure other than zero are left out; a figure that
/// was not measured is empty.
pub fn render(columns: &[Column<'_>]) -> String {
    let mut lines = vec![vec![String::new(), String::new()]];
    lines[0].extend(columns.iter().map(|column| column.name.clone()));
    for row in ROWS.iter().filter(|row| columns.iter().any(|column| has_figure((row.3)(column.mean)))) {
        let mut line = vec![row.0.to_owned(), row.1.to_owned()];
        line.extend(columns.iter().map(|column| column.cell(row)));
        lines.push(line);
    }
    align(&lines, 2)
}

/// Whether a figure was measured and is not zero.
pub fn has_figure(value: f64) -> bool {
    value.abs() > 0.0
}

/// Aligns cells in columns: the first `left` columns flush left, the others flush right.
pub fn align(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (index, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            text += &if index < left { format!("{cell}{pad}  ") } else { format!("{pad}{cell}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_empty_and_a_row_without_figures_is_left_out() {
        let simulated = Totals { goodput_mbps: 2.0, rtt_mean_ms: 7.0, ..Totals::default() };
        let none = f64::NAN;
        let emulated =
            Totals { goodput_mbps: 1.0, rtt_mean_ms: none, pacing_share: none, ..simulated.clone() };
        let column = |name: &str, mean| Column::of_means(name.into(), mean, None);
        let text = render(&[column("simulated", &simulated), column("emulated", &emulated)]);
        assert!(text.contains("simulated  emulated\n") && text.contains("2.00      1.00\n"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("RTT, mean") && line.ends_with("7.0")), "{text}");
        assert!(!text.contains("NaN") && !text.contains("pacing"), "{text}");
    }
}
