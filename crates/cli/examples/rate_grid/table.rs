//! The rows as text and as CSV, the families' means, and by how much a row misses the accelerator's aims.

use crate::arms::{ARMS, Arm, Figures};
use crate::families;
use crate::row::{Row, Yardstick};
use paceline_report::table::align;

/// The means of a family's rows, or one row.
struct Line {
    name: String,
    figures: [Figures; ARMS.len()],
    misses: Vec<String>,
    /// Sum of the points.
    points: f64,
}

/// The aims that a row misses, and by how much, in points. Beside BBR: at most a point less of the capacity,
/// half its delay, 2% sent again beyond the losses of the link. On a shared hop (RFC 2914): 2% sent again,
/// 0.95 of the capacity, CUBIC's delay and Jain's index of 0.9; and beside others 0.7 of the rate that either
/// has with CUBIC in its place.
fn misses(row: Yardstick, figures: &[Figures; ARMS.len()]) -> Vec<(String, f64)> {
    let [cubic, bbr, own] = *figures;
    let mut misses = Vec::new();
    let mut bound = |name: &str, missing: f64| {
        if missing > 0.0 {
            misses.push((name.to_owned(), missing));
        }
    };
    match row {
        Yardstick::Link => {
            bound("share", 100.0 * (bbr.share - 0.01 - own.share));
            bound("delay", 10.0 * (own.delay_ms / (bbr.delay_ms / 2.0).max(1.0) - 1.0).min(1.0));
            bound("again", 100.0 * (own.again - bbr.again.min(cubic.again) - 0.02));
        }
        Yardstick::Cell { .. } => {
            bound("share", 100.0 * (0.99 - own.share / bbr.share));
            bound("delay", 10.0 * (own.delay_ms / (bbr.delay_ms / 2.0).max(1.0) - 1.0).min(1.0));
            bound("again", 100.0 * (own.again - 0.02));
        }
        Yardstick::Transfers => {
            bound("late", 100.0 * (own.received_s / bbr.received_s.min(cubic.received_s) - 1.0));
            bound("again", 100.0 * (own.again - bbr.again.min(cubic.again) - 0.02));
        }
        Yardstick::Hop { beside, .. } => {
            bound("again", 100.0 * (own.again - 0.02));
            bound("share", 100.0 * (0.95 - own.share));
            bound("delay", 10.0 * (own.delay_ms / cubic.delay_ms - 1.0).min(1.0));
            if beside {
                bound("others", 100.0 * (0.7 - own.others_mbps / cubic.others_mbps));
                bound("own", 100.0 * (0.7 - own.own_mbps / cubic.own_mbps));
            } else {
                bound("Jain", 100.0 * (0.9 - own.jain));
            }
        }
    }
    misses
}

fn line(row: &Row, figures: [Figures; ARMS.len()]) -> Line {
    let misses = misses(row.yardstick, &figures);
    let points = misses.iter().map(|(_, missing)| missing).sum();
    let misses = misses.into_iter().map(|(name, missing)| format!("{name} {missing:.1}")).collect();
    Line { name: row.name.clone(), figures, misses, points }
}

/// The figures that matter for a yardstick.
fn cells(yardstick: Yardstick, own: Figures) -> Vec<String> {
    let share = match yardstick {
        Yardstick::Cell { .. } => format!("{:.1}", own.share),
        _ => format!("{:.1}%", 100.0 * own.share),
    };
    let last = match yardstick {
        Yardstick::Transfers => format!("{:.3} s", own.received_s),
        Yardstick::Hop { beside: true, .. } => format!("{:.1}:{:.1}", own.own_mbps, own.others_mbps),
        Yardstick::Hop { .. } => format!("J {:.2}", own.jain),
        _ => String::new(),
    };
    vec![share, format!("{:.0}", own.delay_ms), format!("{:.1}%", 100.0 * own.again), last]
}

fn mean(of: &[[Figures; ARMS.len()]]) -> [Figures; ARMS.len()] {
    let n = of.len() as f64;
    std::array::from_fn(|arm| {
        let mean = |value: fn(&Figures) -> f64| of.iter().map(|own| value(&own[arm])).sum::<f64>() / n;
        Figures {
            share: mean(|own| own.share),
            delay_ms: mean(|own| own.delay_ms),
            again: mean(|own| own.again),
            jain: mean(|own| own.jain),
            own_mbps: mean(|own| own.own_mbps),
            others_mbps: mean(|own| own.others_mbps),
            received_s: mean(|own| own.received_s),
        }
    })
}

const HEAD: &str = "share of the capacity (cells: Mb/s), p95 of the queue's delay in ms, sent again; J: Jain's index; \
                    a:b: Mb/s of each station compared and beside\n\n";

/// Families with their means and scores, then every row of each.
pub fn text(rows: &[Row], results: &[[Figures; ARMS.len()]]) -> String {
    let head: Vec<String> = ["", "cubic", "", "", "", "bbr", "", "", "", "accelerator", "", "", "", "misses"]
        .map(str::to_owned)
        .into();
    let (mut means, mut all) = (vec![head.clone()], String::new());
    for family in families::names(rows) {
        let of: Vec<usize> = (0..rows.len()).filter(|n| rows[*n].family == family).collect();
        let mut lines: Vec<Line> = of.iter().map(|n| line(&rows[*n], results[*n])).collect();
        let figures: Vec<_> = of.iter().map(|n| results[*n]).collect();
        let yardstick = rows[of[0]].yardstick;
        let score = 0.0 + lines.iter().map(|line| line.points).sum::<f64>() / lines.len() as f64;
        let name = format!("{family} ({})", lines.len());
        means.push(words(
            yardstick,
            &Line { name, figures: mean(&figures), misses: vec![format!("{score:.2}")], points: score },
        ));
        lines.sort_by(|a, b| b.points.total_cmp(&a.points));
        let own: Vec<_> =
            [head.clone()].into_iter().chain(lines.iter().map(|line| words(yardstick, line))).collect();
        all += &format!("\n{family}\n{}", align(&own, 1));
    }
    format!(
        "{HEAD}means of the families, and the points that a row misses in the mean\n{}{all}",
        align(&means, 1)
    )
}

fn words(yardstick: Yardstick, line: &Line) -> Vec<String> {
    let figures = line.figures.iter().flat_map(|own| cells(yardstick, *own));
    [line.name.clone()].into_iter().chain(figures).chain([line.misses.join(", ")]).collect()
}

pub fn csv(rows: &[Row], results: &[[Figures; ARMS.len()]]) -> String {
    let mut text = String::from(
        "family,row,arm,share,delay_p95_ms,sent_again,jain,compared_mbps,beside_mbps,received_s,misses\n",
    );
    for (row, figures) in rows.iter().zip(results) {
        for (arm, own) in ARMS.iter().zip(figures) {
            let points = if *arm == Arm::Accelerator { line(row, *figures).points } else { 0.0 };
            text += &format!(
                "{},\"{}\",{},{:.4},{:.2},{:.5},{:.3},{:.3},{:.3},{:.4},{points:.2}\n",
                row.family,
                row.name.replace('"', "'"),
                arm.name(),
                own.share,
                own.delay_ms,
                own.again,
                own.jain,
                own.own_mbps,
                own.others_mbps,
                own.received_s
            );
        }
    }
    text
}
