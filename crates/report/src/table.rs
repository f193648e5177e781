//! Text tables: the totals of results side by side, and text in aligned columns.

use paceline_sim::Totals;
use paceline_study::Paired;

/// A row: name, unit, decimals, value.
pub type Row = (&'static str, &'static str, usize, fn(&Totals) -> f64);

/// Columns of a terminal that a table has at most. Chosen: an editor or a terminal beside another window; the
/// lines of this project's files have no more.
pub(crate) const MAX_WIDTH: usize = 100;
/// Width of a column of text at least. Chosen: three or four words of a sentence.
const MIN_TEXT: usize = 24;
/// Share of the round trip in the uplink from which on ACKs limit: as in the verdicts, most of it.
const ACKS_LIMIT: f64 = 0.5;

/// Chosen: rates of payload.
const RATES: [Row; 2] =
    [("goodput", "Mb/s", 2, |t| t.goodput_mbps), ("upload", "Mb/s", 2, |t| t.upload_mbps)];

/// Chosen: what an ACK filter changes.
const ACKS: [Row; 3] = [
    ("ACKs at the uplink buffers", "1/s", 0, |t| t.acks_in_per_s),
    ("ACKs discarded", "1/s", 0, |t| t.acks_discarded_per_s),
    ("ACKs sent", "1/s", 0, |t| t.acks_sent_per_s),
];

/// Chosen: the totals that readers compare; `summary.json` has all.
const OTHERS: [Row; 36] = [
    ("RTT after the warm-up, mean", "ms", 1, |t| t.rtt_mean_ms),
    ("RTT after the warm-up, 95th percentile", "ms", 1, |t| t.rtt_p95_ms),
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

/// Whether figures of ACKs are shown: some are discarded, or most of a round trip passes in the uplink.
pub fn shows_acks(totals: &Totals) -> bool {
    let in_uplink = totals.rtt_uplink_queue_share + totals.rtt_grant_share;
    totals.acks_discarded_per_s > 0.0 || in_uplink > ACKS_LIMIT
}

/// The rows of a table of these totals: those with a figure other than zero, those of ACKs where
/// [`shows_acks`].
pub fn rows(totals: &[&Totals]) -> Vec<&'static Row> {
    let acks = if totals.iter().any(|totals| shows_acks(totals)) { &ACKS[..] } else { &[] };
    let all = RATES.iter().chain(acks).chain(&OTHERS);
    all.filter(|row| totals.iter().any(|totals| has_figure((row.3)(totals)))).collect()
}

/// A figure and its unit as a heading.
pub fn heading(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

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

/// The totals of `columns` side by side, a line for each of [`rows`], below headings that may break; a line
/// for each column if that would be wider than a terminal. A figure that was not measured is empty.
pub fn render(columns: &[Column<'_>]) -> String {
    let rows = rows(&columns.iter().map(|column| column.mean).collect::<Vec<_>>());
    let line = |row: &&Row| -> Vec<String> {
        let cells = columns.iter().map(|column| column.cell(row));
        [row.0.to_owned(), row.1.to_owned()].into_iter().chain(cells).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let name = |column: &Column<'_>| vec![column.name.clone()];
    let whole = [stacked(2, &columns.iter().map(name).collect::<Vec<_>>()), lines.clone()].concat();
    if columns.len() == 1 || row_width(&widths(&whole)) <= MAX_WIDTH {
        return align(&whole, 2);
    }
    let cells = widths(&lines);
    let broken = |(column, width): (&Column<'_>, &usize)| wrapped(&column.name, *width);
    let heads: Vec<Vec<String>> = columns.iter().zip(cells.iter().skip(2)).map(broken).collect();
    let broken = [stacked(2, &heads), lines].concat();
    if row_width(&widths(&broken)) <= MAX_WIDTH {
        return align(&broken, 2);
    }
    align(&by_column(columns, &rows), 1)
}

/// The lines of headings of one or several lines, which end at the same line, behind `empty` columns.
fn stacked(empty: usize, heads: &[Vec<String>]) -> Vec<Vec<String>> {
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let cell = |head: &Vec<String>| (at + head.len()).checked_sub(height).map(|at| head[at].clone());
        let before = std::iter::repeat_n(String::new(), empty);
        before.chain(heads.iter().map(|head| cell(head).unwrap_or_default())).collect()
    };
    (0..height).map(line).collect()
}

/// A line for each of `columns`, below headings of several lines.
fn by_column(columns: &[Column<'_>], rows: &[&Row]) -> Vec<Vec<String>> {
    let name = |column: &Column<'_>| {
        if column.is_difference { "  ".to_owned() + &column.name } else { column.name.clone() }
    };
    let mut lines: Vec<Vec<String>> = columns.iter().map(|column| vec![name(column)]).collect();
    let mut heads = Vec::new();
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|column| column.cell(row)).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        heads.push(wrapped(&heading(row.0, row.1), width));
        lines.iter_mut().zip(cells).for_each(|(line, cell)| line.push(cell));
    }
    [stacked(1, &heads), lines].concat()
}

/// A text in lines of at most `width` characters, or of one word; a text that fits stays as it is.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Whether a figure was measured and is not zero.
pub fn has_figure(value: f64) -> bool {
    value.abs() > 0.0
}

/// Aligns cells in columns: the first `left` columns flush left, others flush right. In a table wider than
/// a terminal the texts of the first columns break; if that does not suffice, the table becomes blocks below
/// one another, each with these columns.
pub fn align(lines: &[Vec<String>], left: usize) -> String {
    let widths = widths(lines);
    let left = left.min(widths.len());
    let (first, others) = widths.split_at(left);
    let narrow = fitted(first, MAX_WIDTH.saturating_sub(row_width(others) + 2));
    let (first, blocks) = match row_width(&[&narrow, others].concat()) {
        ..=MAX_WIDTH => (narrow, vec![(left..widths.len()).collect()]),
        _ => {
            let widest = others.iter().max().map_or(0, |width| width + 2);
            let first = fitted(first, MAX_WIDTH.saturating_sub(widest));
            let blocks = blocks(others, MAX_WIDTH.saturating_sub(row_width(&first)));
            (first, blocks.into_iter().map(|block| block.into_iter().map(|at| left + at).collect()).collect())
        }
    };
    let block = |columns: &Vec<usize>| {
        let rows = lines.iter().flat_map(|line| row(line, &first, columns, &widths));
        // Headings of several lines are shorter in some blocks.
        rows.skip_while(|row| row.is_empty()).map(|row| row + "\n").collect::<String>()
    };
    blocks.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// Widths of text columns in a line of at most `most` characters: the widest ones become narrower, to
/// [`MIN_TEXT`] at least.
fn fitted(widths: &[usize], most: usize) -> Vec<usize> {
    let mut widths = widths.to_vec();
    while row_width(&widths) > most {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_TEXT => *widest -= 1,
            _ => break,
        }
    }
    widths
}

/// The columns of these widths in blocks of at most `most` characters, or of one column.
fn blocks(widths: &[usize], most: usize) -> Vec<Vec<usize>> {
    let (mut blocks, mut used) = (vec![Vec::new()], 0);
    for (column, width) in widths.iter().enumerate() {
        if used > 0 && used + width + 2 > most {
            blocks.push(Vec::new());
            used = 0;
        }
        used += width + 2;
        blocks.last_mut().expect("there is a first block").push(column);
    }
    blocks
}

/// The lines of a row: texts of the first columns in their widths, and the cells of `columns`.
fn row(line: &[String], first: &[usize], columns: &[usize], widths: &[usize]) -> Vec<String> {
    let texts: Vec<Vec<String>> = line.iter().zip(first).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = texts.iter().map(Vec::len).max().unwrap_or(1);
    let of_line = |at: usize| {
        let mut text = String::new();
        for (cell, width) in texts.iter().zip(first) {
            text += &format!("{:<width$}  ", cell.get(at).map_or("", |cell| cell));
        }
        for column in columns.iter().filter(|_| at == 0) {
            let width = widths[*column];
            text += &format!("{:>width$}  ", line.get(*column).map_or("", |cell| cell));
        }
        text.trim_end().to_owned()
    };
    (0..height).map(of_line).collect()
}

/// The width of each column, in characters.
fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|l| l.get(column)).map(|c| c.chars().count()).max();
    (0..columns).map(|column| width(column).unwrap_or(0)).collect()
}

/// The width of a line with columns of these widths, two spaces between them.
fn row_width(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2)
}
