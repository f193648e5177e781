//! The layout of a chart: the place of its axes, labels and legend.

use super::canvas::{Anchor, Canvas, LINE, WIDTH, short, width};
use super::chart::{Area, Chart, Kind, Mark, Series, Style};
use super::scale::Scale;
use super::{bars, lines};
use crate::html;

/// Height of the area between the axes in SVG user units. Chosen: half its width, a usual proportion.
const HEIGHT: f64 = 190.0;
/// Slope of slanted labels: the sine of 35 degrees.
const SLANT: f64 = 0.574;

/// Length of a slanted label at most, in SVG user units. Chosen: longer ones take more room than the bars.
const MAX_SLANTED: f64 = 150.0;

/// Charts below one another as one picture, with a heading. A chart without marks is replaced by its title.
pub fn below_one_another(heading: &str, charts: &[Chart]) -> String {
    let mut body = Canvas::default();
    body.text("ink", (4.0, LINE), Anchor::Start, &short(heading, WIDTH - 8.0));
    let mut top = 2.0 * LINE;
    for chart in charts {
        if chart.series.iter().all(|series| series.marks.is_empty()) {
            let text = format!("{}: none", chart.title);
            body.text("faint", (4.0, top + LINE), Anchor::Start, &short(&text, WIDTH - 8.0));
            top += 2.0 * LINE;
            continue;
        }
        let (svg, height) = chart.svg_and_height();
        body.inner(&svg, top, height);
        top += height + LINE;
    }
    body.finish(top, heading)
}

impl Chart {
    /// The chart with its title; empty if all values are zero, or a distribution has one value.
    pub fn figure(&self) -> String {
        let mut chart = self.clone();
        for series in &mut chart.series {
            series.marks.retain(|mark| mark.x.is_finite() && mark.y.is_finite());
            for mark in &mut series.marks {
                mark.half = mark.half.filter(|half| half.is_finite() && *half > 0.0);
            }
        }
        if chart.series.iter().all(|series| series.marks.iter().all(|mark| mark.y == 0.0)) {
            return String::new();
        }
        let first = chart.series.iter().flat_map(|series| &series.marks).map(|mark| mark.x).next();
        let one_value = |series: &Series| series.marks.iter().all(|mark| Some(mark.x) == first);
        if self.style == Style::Steps && chart.series.iter().all(one_value) {
            return String::new();
        }
        html::figure(&self.title, &chart.svg())
    }

    /// The chart as SVG.
    pub fn svg(&self) -> String {
        self.svg_and_height().0
    }

    /// The picture, and its height in SVG user units.
    fn svg_and_height(&self) -> (String, f64) {
        let (x, y) = (self.x_scale(), self.y_scale());
        let labels: Vec<String> = y.at.iter().map(|at| y.label(*at)).collect();
        let left = labels.iter().map(|label| width(label)).fold(0.0, f64::max) + 12.0;
        let left = left.max(self.room_for_slanted(left));
        let top = LINE + 7.0;
        let area = Area { x, y, left, right: WIDTH - 14.0, top, bottom: top + HEIGHT };
        let mut canvas = Canvas::default();
        canvas.text("faint", (4.0, LINE - 4.0), Anchor::Start, &short(&self.y, WIDTH - 8.0));
        for (at, label) in area.y.at.iter().zip(&labels) {
            let y = area.y_of(*at);
            canvas.line("grid", (left, y), (area.right, y));
            canvas.text("ink", (left - 6.0, y + 4.5), Anchor::End, label);
        }
        if let Some(from) = self.counts_from.filter(|from| *from > area.x.low) {
            let end = area.x_of(from.min(area.x.high));
            canvas.rectangle("shade", (left, top), (end - left, HEIGHT), "");
            canvas.text("faint", (left + 4.0, top + 13.0), Anchor::Start, "warm-up");
        }
        match self.style {
            Style::Bars | Style::Stacked => bars::draw(self, &area, &mut canvas),
            _ => lines::draw(self, &area, &mut canvas),
        }
        let zero = area.y_of(area.y.low.max(0.0).min(area.y.high));
        canvas.line("axis", (left, zero), (area.right, zero));
        let below = self.x_labels(&area, &mut canvas);
        let height = self.draw_legend(area.bottom + below, &mut canvas);
        (canvas.finish(height, &self.title), height)
    }

    /// Room for the first of slanted labels to the left of its place, which ends at the axis of y; zero for
    /// level labels.
    fn room_for_slanted(&self, left: f64) -> f64 {
        let step = (WIDTH - 14.0 - left) / self.categories.len().max(1) as f64;
        let longest = self.categories.iter().map(|name| width(name)).fold(0.0, f64::max);
        if self.slanted(step) { longest.min(MAX_SLANTED) * 0.82 - step / 2.0 + 6.0 } else { 0.0 }
    }

    /// Whether names are too long for the places of `step` units each. Numbers are always level.
    fn slanted(&self, step: f64) -> bool {
        let numbers = self.categories.iter().all(|name| name.parse::<f64>().is_ok());
        !numbers && self.categories.iter().any(|name| width(name) + 6.0 > step)
    }

    /// Draws labels and name of the x axis; gives the height that they take.
    fn x_labels(&self, area: &Area, canvas: &mut Canvas) -> f64 {
        let place = |at: f64| (area.x_of(at), area.bottom);
        let mut below = LINE;
        if self.categories.is_empty() {
            let mut free = f64::NEG_INFINITY;
            for at in &area.x.at {
                let (label, (x, y)) = (area.x.label(*at), place(*at));
                let half = width(&label) / 2.0;
                canvas.line("axis", (x, y), (x, y + 3.0));
                // A label is left out where it would touch the one before.
                if x - half > free {
                    let x = x.min(WIDTH - half);
                    canvas.text("ink", (x, y + LINE), Anchor::Middle, &label);
                    free = x + half + 5.0;
                }
            }
        } else {
            let step = (area.right - area.left) / self.categories.len() as f64;
            let longest = self.categories.iter().map(|name| width(name)).fold(0.0, f64::max);
            // Numbered stations are labelled at every few places, other names at every one.
            let numbers = self.categories.iter().all(|name| name.parse::<f64>().is_ok());
            let every = if numbers { ((longest + 6.0) / step).ceil() } else { (LINE / step).ceil() };
            let slanted = self.slanted(step);
            for at in (0..self.categories.len()).step_by(every.max(1.0) as usize) {
                let (x, y) = place(at as f64);
                if slanted {
                    // Room to the left of the label, which rises to its end.
                    let room = (x / (1.0 - SLANT * SLANT).sqrt()).min(MAX_SLANTED);
                    let name = short(&self.categories[at], room);
                    below = below.max(width(&name) * SLANT + 12.0);
                    canvas.slanted((x + 4.0, y + 13.0), &name);
                } else {
                    canvas.text("ink", (x, y + LINE), Anchor::Middle, &self.categories[at]);
                }
            }
        }
        if !self.x.is_empty() {
            below += LINE + 1.0;
            let middle = (area.left + area.right) / 2.0;
            canvas.text("faint", (middle, area.bottom + below), Anchor::Middle, &short(&self.x, WIDTH - 8.0));
        }
        below + 6.0
    }

    /// Draws the legend below `top`, if it has two entries or more; gives the end of the picture.
    fn draw_legend(&self, top: f64, canvas: &mut Canvas) -> f64 {
        let names = self.legend();
        let published = |series: &Series| series.kind == Kind::Published;
        if names.len() < 2 && !self.series.iter().any(published) {
            return top;
        }
        let (mut x, mut y) = (8.0, top + 11.0);
        for (index, name) in names {
            let name = short(name, WIDTH - 40.0);
            let needed = 22.0 + width(&name) + 10.0;
            if x > 8.0 && x + needed > WIDTH {
                (x, y) = (8.0, y + LINE);
            }
            match self.series[index].kind {
                Kind::Keyed { dash: 1.., .. } | Kind::Thin(_) => {
                    let (colour, class) = (self.colour(index).stroke(), self.series[index].kind.line_class());
                    canvas.path(&colour, class, &[(x, y - 4.5), (x + 18.0, y - 4.5)]);
                }
                _ => canvas.rectangle(&self.colour(index).fill(), (x, y - 8.0), (16.0, 7.0), ""),
            }
            canvas.text("ink", (x + 22.0, y), Anchor::Start, &name);
            x += needed;
        }
        y + 8.0
    }

    fn x_scale(&self) -> Scale {
        if !self.categories.is_empty() {
            let high = self.categories.len() as f64 - 0.5;
            return Scale { low: -0.5, high, log: false, at: Vec::new(), decimals: 0 };
        }
        let mut places: Vec<f64> =
            self.series.iter().flat_map(|series| &series.marks).map(|mark| mark.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (low, high) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
        match self.style {
            Style::Points => Scale::of_places(&places),
            // A time axis starts at 0, not at the first sample or at the only one.
            Style::Lines if low < 0.1 * high || low == high => ends(Scale::nice(0.0, high), 0.0, high),
            // Room for the last point.
            Style::Scatter => ends(Scale::nice(0.0, 1.05 * high), 0.0, 1.05 * high),
            _ if low == high => Scale::of_places(&places),
            _ => ends(Scale::nice(low, high), low, high),
        }
    }

    fn y_scale(&self) -> Scale {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let top = |mark: &Mark| self.interval(mark).map_or(mark.y, |(_, high)| high);
        let bottom = |mark: &Mark| self.interval(mark).map_or(mark.y, |(low, _)| low);
        let mut high = marks().map(top).fold(0.0f64, f64::max);
        if self.style == Style::Stacked {
            let sum = |at: usize| marks().filter(|mark| mark.x as usize == at).map(|m| m.y).sum::<f64>();
            high = (0..self.categories.len()).map(sum).fold(high, f64::max);
            // Shares may add up to a little more than all of them.
            high = if high < self.most * (1.0 + 1e-9) { high.min(self.most) } else { high };
        }
        let start = if self.from_zero { 0.0 } else { high };
        let low = marks().map(bottom).fold(start, f64::min);
        // A single value has the axis from zero.
        let mut scale = Scale::nice(if low < high { low } else { low.min(0.0) }, high);
        scale.low = scale.at.first().copied().unwrap_or(0.0);
        scale.high = scale.at.last().copied().unwrap_or(1.0);
        if high <= self.most {
            scale.high = scale.high.min(self.most);
            scale.at.retain(|at| *at <= self.most);
        }
        scale
    }
}

/// A scale that ends at these values, with the labels between them.
fn ends(mut scale: Scale, low: f64, high: f64) -> Scale {
    (scale.low, scale.high) = (low, high);
    scale.at.retain(|at| *at >= low && *at <= high);
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(style: Style, marks: &[(f64, f64)]) -> Chart {
        let mark = |(x, y): &(f64, f64)| Mark { x: *x, y: *y, half: Some(0.5) };
        let series =
            Series { name: String::from("<a>"), marks: marks.iter().map(mark).collect(), kind: Kind::Ours };
        Chart {
            title: String::from("t & u"),
            x: String::from("station.count"),
            y: String::from("goodput, Mb/s"),
            categories: Vec::new(),
            series: vec![series],
            style,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        }
    }

    #[test]
    fn a_single_value_at_the_largest_possible_one_has_an_axis() {
        let mut chart = chart(Style::Points, &[(1.0, 1.0), (2.0, 1.0)]);
        chart.series[0].marks.iter_mut().for_each(|mark| mark.half = None);
        (chart.most, chart.from_zero) = (1.0, false);
        assert!(!chart.figure().contains("NaN"), "{}", chart.figure());
    }

    #[test]
    fn a_distribution_of_one_value_is_not_drawn() {
        let of = |xs: [f64; 2]| {
            let series = chart(Style::Steps, &[(xs[0], 50.0), (xs[1], 100.0)]).series;
            Chart::of_distributions("MCS", "MCS index", series).figure()
        };
        assert!(of([28.0, 28.0]).is_empty() && of([27.0, 28.0]).contains("<polyline"));
    }
}
