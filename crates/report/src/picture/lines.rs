//! Lines over numbers: values over time, points with confidence bands, distributions, named points.

use super::canvas::Canvas;
use super::chart::{Area, Chart, Kind, Mark, Style};

/// Marks of a line over time with a tooltip. Chosen: one for every eight units of a picture's width.
const MAX_TIPS: usize = 48;
/// Radius around a mark in which its tooltip is shown, in SVG user units. Chosen: the tip of a finger needs
/// more, but neighbouring marks are as close as this.
const REACH: f64 = 7.0;

pub(super) fn draw(chart: &Chart, area: &Area, canvas: &mut Canvas) {
    if chart.style == Style::Points {
        for index in 0..chart.series.len() {
            intervals(chart, area, canvas, index);
        }
    }
    for index in 0..chart.series.len() {
        match chart.style {
            Style::Scatter => scatter(chart, area, canvas, index),
            _ => line(chart, area, canvas, index),
        }
    }
    if chart.style != Style::Scatter {
        for index in 0..chart.series.len() {
            tips(chart, area, canvas, index);
        }
    }
}

fn place(area: &Area, mark: &Mark) -> (f64, f64) {
    (area.x_of(mark.x), area.y_of(mark.y))
}

/// Bands between the ends of the intervals; marks without a neighbour that has an interval have whiskers.
fn intervals(chart: &Chart, area: &Area, canvas: &mut Canvas, index: usize) {
    let colour = chart.colour(index);
    let ends: Vec<Option<(f64, f64, f64)>> = chart.series[index]
        .marks
        .iter()
        .map(|mark| {
            let (low, high) = chart.interval(mark)?;
            Some((area.x_of(mark.x), area.y_of(low), area.y_of(high)))
        })
        .collect();
    for run in ends.split(Option::is_none) {
        let run: Vec<(f64, f64, f64)> = run.iter().flatten().copied().collect();
        match run[..] {
            [] => {}
            [(x, low, high)] => canvas.whisker(&colour.stroke(), x, (low, high)),
            _ => {
                let upper = run.iter().map(|(x, _, high)| (*x, *high));
                let lower = run.iter().rev().map(|(x, low, _)| (*x, *low));
                canvas.polygon(&colour.fill(), &upper.chain(lower).collect::<Vec<_>>());
            }
        }
    }
}

fn line(chart: &Chart, area: &Area, canvas: &mut Canvas, index: usize) {
    let (series, colour) = (&chart.series[index], chart.colour(index));
    let mut points: Vec<(f64, f64)> = series.marks.iter().map(|mark| place(area, mark)).collect();
    if chart.style == Style::Steps {
        points = steps(area, &points);
    }
    canvas.path(&colour.stroke(), series.kind.line_class(), &points);
    if chart.style == Style::Points {
        for point in points {
            canvas.circle(&colour.fill(), point, 3.0, "");
        }
    }
}

/// A staircase: level up to each mark, then up to its share.
fn steps(area: &Area, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let Some(first) = points.first() else { return Vec::new() };
    let mut path = vec![(area.left, area.y_of(0.0)), (first.0, area.y_of(0.0))];
    let mut level = path[0].1;
    for (x, y) in points {
        path.extend([(*x, level), (*x, *y)]);
        level = *y;
    }
    path.push((area.right, level));
    path
}

/// Places that show the values of a line; of a long line, some.
fn tips(chart: &Chart, area: &Area, canvas: &mut Canvas, index: usize) {
    let series = &chart.series[index];
    if matches!(series.kind, Kind::Faint | Kind::Thin(_)) {
        return;
    }
    let every = if chart.style == Style::Points { 1 } else { series.marks.len().div_ceil(MAX_TIPS).max(1) };
    for mark in series.marks.iter().step_by(every) {
        canvas.circle("hit", place(area, mark), REACH, &chart.tip(series, mark));
    }
}

fn scatter(chart: &Chart, area: &Area, canvas: &mut Canvas, index: usize) {
    let (series, colour) = (&chart.series[index], chart.colour(index));
    for mark in &series.marks {
        let (x, y) = place(area, mark);
        if let Some((low, high)) = chart.interval(mark) {
            canvas.whisker(&colour.stroke(), x, (area.y_of(low), area.y_of(high)));
        }
        let tip =
            format!("{}\n{}", series.name, chart.tip(series, mark).trim_start_matches(&series.name).trim());
        canvas.circle(&colour.fill(), (x, y), 4.5, &tip);
    }
}
