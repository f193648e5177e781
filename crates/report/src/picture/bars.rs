//! Bars over names, side by side or stacked, with confidence intervals.

use super::canvas::Canvas;
use super::chart::{Area, Chart, Style};

pub(super) fn draw(chart: &Chart, area: &Area, canvas: &mut Canvas) {
    let mut bases = vec![0.0; chart.categories.len()];
    let beside = if chart.style == Style::Bars { chart.series.len() as f64 } else { 1.0 };
    // A fifth of the place of a category is empty.
    let step = 0.8 / beside;
    for (index, series) in chart.series.iter().enumerate() {
        let shift = if chart.style == Style::Bars { index as f64 * step } else { 0.0 };
        for mark in &series.marks {
            let Some(base) = bases.get_mut(mark.x as usize) else { continue };
            let from = if chart.style == Style::Stacked { *base } else { 0.0 };
            let to = from + mark.y;
            let (left, right) = (mark.x - 0.4 + shift, mark.x - 0.4 + shift + 0.94 * step);
            let (left, right) = (area.x_of(left), area.x_of(right));
            let (a, b) = (area.y_of(from), area.y_of(to));
            let size = (right - left, (a - b).abs());
            canvas.rectangle(&chart.colour(index).fill(), (left, a.min(b)), size, &chart.tip(series, mark));
            if let Some((low, high)) = chart.interval(mark) {
                canvas.whisker("whisker", (left + right) / 2.0, (area.y_of(low), area.y_of(high)));
            }
            *base = to;
        }
    }
}
