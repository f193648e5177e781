//! A chart as SVG: lines, points with confidence intervals, or bars, over numbers or categories.
//!
//! Title and legend are HTML beside the SVG, so that long names wrap and nothing covers the data. Values that
//! are not finite are left out.

use super::axis::{Ticks, decimals, thousands};
use super::html::{self, escape};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// Colours of the series, in order: the published palette of Okabe and Ito (2008) for all kinds of colour
/// vision, without yellow, which is pale on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Colour of series in the background. Chosen: lighter than the palette, darker than the grid.
const GREY: RGBColor = RGBColor(190, 190, 190);
/// Width and height in SVG user units. Chosen: two charts fit side by side on a page.
const SIZE: (u32, u32) = (560, 300);

/// A value, with the half width of its confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Value on the x axis, or the index of a category.
    pub x: f64,
    pub y: f64,
    pub half: Option<f64>,
}

/// Values with one name and colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend. Series of the same name have one entry.
    pub name: String,
    pub marks: Vec<Mark>,
    /// Drawn thin and grey, in the background.
    pub faint: bool,
}

/// Kind of chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    Lines,
    /// Points with their confidence intervals, joined by a line.
    Points,
    /// Single points, each with its name.
    Scatter,
    /// Bars side by side.
    Bars,
    /// Bars stacked on one another.
    Stacked,
}

#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    /// Name and unit of the x axis.
    pub x: String,
    /// Name and unit of the y axis.
    pub y: String,
    /// Names on the x axis; empty where x is a number.
    pub categories: Vec<String>,
    pub series: Vec<Series>,
    pub style: Style,
    /// Largest possible value, such as 100 for percentages; the smallest is zero.
    pub most: f64,
    pub from_zero: bool,
    /// End of the warm-up on the x axis; the part before it has a grey background.
    pub counts_from: Option<f64>,
}

impl Chart {
    /// The chart with title and legend; empty if all values are zero.
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
        let title = escape(&self.title);
        let svg = chart.svg().expect("drawing into memory does not fail");
        let svg = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1);
        html::figure(&self.title, &(chart.legend() + &svg))
    }

    fn legend(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut keys = String::new();
        for (index, series) in self.series.iter().enumerate() {
            if names.contains(&series.name.as_str()) {
                continue;
            }
            names.push(&series.name);
            let RGBColor(r, g, b) = self.colour(index);
            let _ = write!(
                keys,
                "<span><i style=\"background:rgb({r},{g},{b})\"></i>{}</span> ",
                escape(&series.name)
            );
        }
        if names.len() < 2 { String::new() } else { format!("<p class=\"legend\">{keys}</p>\n") }
    }

    /// The colour of a series: the next one of the palette for each series that is not in the background.
    fn colour(&self, index: usize) -> RGBColor {
        if self.series[index].faint {
            return GREY;
        }
        let before = self.series[..index].iter().filter(|series| !series.faint).count();
        COLOURS[before % COLOURS.len()]
    }

    fn svg(&self) -> Result<String, Box<dyn std::error::Error>> {
        let (x, y) = (self.x_ticks(), self.y_ticks());
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            area.fill(&WHITE)?;
            let mut builder = ChartBuilder::on(&area);
            builder.margin(8).margin_right(20).x_label_area_size(44).y_label_area_size(66);
            let mut context = builder.build_cartesian_2d(x.clone(), y.clone())?;
            let named = |at: &f64| match self.categories.get(at.round() as usize) {
                Some(name) if !self.categories.is_empty() => short(name, 70 / self.categories.len()),
                _ => format!("{at:.*}", x.decimals),
            };
            let mut mesh = context.configure_mesh();
            mesh.disable_x_mesh().light_line_style(TRANSPARENT).bold_line_style(RGBColor(225, 225, 225));
            mesh.axis_style(RGBColor(110, 110, 110)).x_desc(&self.x).y_desc(&self.y);
            mesh.label_style(("sans-serif", 15)).axis_desc_style(("sans-serif", 16));
            let number = |at: &f64| thousands(&format!("{at:.*}", y.decimals));
            mesh.x_label_formatter(&named).y_label_formatter(&number).draw()?;
            if let Some(from) = self.counts_from.filter(|from| *from > x.low) {
                let ground = RGBColor(120, 120, 120).mix(0.1).filled();
                context
                    .draw_series([Rectangle::new([(x.low, y.low), (from.min(x.high), y.high)], ground)])?;
                let style = ("sans-serif", 14).into_font().color(&RGBColor(110, 110, 110));
                let style = style.pos(Pos::new(HPos::Left, VPos::Top));
                let place = (x.low + 0.01 * (x.high - x.low), y.high - 0.02 * (y.high - y.low));
                context.draw_series([Text::new("warm-up", place, style)])?;
            }
            let mut base = vec![0.0; self.categories.len().max(self.longest())];
            for index in 0..self.series.len() {
                match self.style {
                    Style::Bars | Style::Stacked => self.bars(&mut context, index, &mut base)?,
                    Style::Scatter => self.scatter(&mut context, index, x.high - x.low)?,
                    Style::Lines | Style::Points => self.points(&mut context, index, x.high - x.low)?,
                }
            }
            area.present()?;
        }
        Ok(svg)
    }

    fn longest(&self) -> usize {
        self.series.iter().map(|series| series.marks.len()).max().unwrap_or(0)
    }

    fn points(&self, context: &mut Context<'_>, index: usize, width: f64) -> Drawn {
        let (series, colour) = (&self.series[index], self.colour(index));
        let points = self.style == Style::Points;
        // Several series at one value of x are drawn side by side, so that their confidence intervals do not
        // overlap.
        let middle = (self.series.len() - 1) as f64 / 2.0;
        let shift = if points { (index as f64 - middle) * 0.009 * width } else { 0.0 };
        let stroke = if series.faint { 1 } else { 2 };
        let line = series.marks.iter().map(|mark| (mark.x + shift, mark.y));
        if !points || self.categories.is_empty() {
            let style = colour.stroke_width(stroke);
            if points && index > 0 {
                context.draw_series(DashedLineSeries::new(line.clone(), 9, 6, style))?;
            } else {
                context.draw_series(LineSeries::new(line.clone(), style))?;
            }
        }
        if points {
            let bars = series.marks.iter().filter_map(|mark| Some((mark, self.interval(mark)?)));
            let bars = bars.map(|(mark, (low, high))| {
                let style = colour.stroke_width(1).filled();
                ErrorBar::new_vertical(mark.x + shift, low, mark.y, high, style, 7)
            });
            context.draw_series(bars)?;
            context.draw_series(line.map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        Ok(())
    }

    fn scatter(&self, context: &mut Context<'_>, index: usize, width: f64) -> Drawn {
        let (series, colour) = (&self.series[index], self.colour(index));
        for mark in &series.marks {
            if let Some((low, high)) = self.interval(mark) {
                let style = colour.stroke_width(1).filled();
                context.draw_series([ErrorBar::new_vertical(mark.x, low, mark.y, high, style, 7)])?;
            }
            context.draw_series([Circle::new((mark.x, mark.y), 4, colour.filled())])?;
            let style = ("sans-serif", 13).into_font().color(&colour);
            // Names are placed above and below the points in turn, so that those of close points do not
            // overlap.
            let vertical = if index.is_multiple_of(2) { VPos::Bottom } else { VPos::Top };
            let style = style.pos(Pos::new(HPos::Left, vertical));
            let name = short(&series.name, 32);
            context.draw_series([Text::new(name, (mark.x + 0.012 * width, mark.y), style)])?;
        }
        Ok(())
    }

    fn bars(&self, context: &mut Context<'_>, index: usize, base: &mut [f64]) -> Drawn {
        let (series, colour) = (&self.series[index], self.colour(index));
        let beside = if self.style == Style::Bars { self.series.len() as f64 } else { 1.0 };
        let width = 0.8 / beside;
        let left = |x: f64| x - 0.4 + if self.style == Style::Bars { index as f64 * width } else { 0.0 };
        for mark in &series.marks {
            let from = if self.style == Style::Stacked { base[mark.x as usize] } else { 0.0 };
            let (x, to) = (left(mark.x), from + mark.y);
            let bar = Rectangle::new([(x, from), (x + width * 0.96, to)], colour.filled());
            context.draw_series([bar])?;
            if let Some((low, high)) = self.interval(mark) {
                let style = RGBColor(60, 60, 60).stroke_width(1).filled();
                context.draw_series([ErrorBar::new_vertical(x + width * 0.48, low, to, high, style, 5)])?;
            }
            if self.style == Style::Stacked {
                base[mark.x as usize] = to;
            }
        }
        Ok(())
    }

    fn x_ticks(&self) -> Ticks {
        if !self.categories.is_empty() {
            let count = self.categories.len();
            let every = count.div_ceil(20);
            let at = (0..count).step_by(every).map(|index| index as f64).collect();
            return Ticks { low: -0.5, high: count as f64 - 0.5, at, decimals: 0 };
        }
        let mut places: Vec<f64> =
            self.series.iter().flat_map(|series| &series.marks).map(|mark| mark.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (low, high) = (places.first().copied().unwrap_or(0.0), places.last().copied().unwrap_or(1.0));
        // A time axis starts at 0, not at the first sample.
        let low = match self.style {
            Style::Scatter => 0.0,
            Style::Lines if low < 0.1 * high => 0.0,
            _ => low,
        };
        // Room for the names to the right of the points.
        let high = if self.style == Style::Scatter { 1.3 * high } else { high };
        let mut ticks = Ticks::nice(low, high);
        let margin = if self.style == Style::Points { 0.05 * (high - low) } else { 0.0 };
        (ticks.low, ticks.high) = (low - margin, high + margin);
        if low == high {
            (ticks.low, ticks.high) = (low - 1.0, high + 1.0);
        }
        let apart = places.windows(2).all(|pair| pair[1] - pair[0] >= 0.07 * (high - low));
        if self.style == Style::Points && apart && places.len() <= 12 {
            ticks.decimals = places.iter().map(|at| decimals(*at)).max().unwrap_or(0);
            ticks.at = places;
        }
        ticks.at.retain(|at| *at >= ticks.low && *at <= ticks.high);
        ticks
    }

    fn y_ticks(&self) -> Ticks {
        let marks = || self.series.iter().flat_map(|series| &series.marks);
        let top = |mark: &Mark| self.interval(mark).map_or(mark.y, |(_, high)| high);
        let bottom = |mark: &Mark| self.interval(mark).map_or(mark.y, |(low, _)| low);
        let mut high = marks().map(top).fold(0.0f64, f64::max);
        if self.style == Style::Stacked {
            let sum = |at: usize| marks().filter(|mark| mark.x as usize == at).map(|m| m.y).sum::<f64>();
            high = (0..self.categories.len()).map(sum).fold(high, f64::max);
        }
        let low = if self.from_zero { 0.0 } else { marks().map(bottom).fold(high, f64::min) };
        let mut ticks = Ticks::nice(low, high);
        ticks.low = ticks.at.first().copied().unwrap_or(0.0);
        ticks.high = ticks.at.last().copied().unwrap_or(1.0);
        if high <= self.most {
            ticks.high = ticks.high.min(self.most);
            ticks.at.retain(|at| *at <= self.most);
        }
        ticks
    }

    /// The ends of a confidence interval, within the possible values.
    fn interval(&self, mark: &Mark) -> Option<(f64, f64)> {
        mark.half.map(|half| ((mark.y - half).max(0.0), (mark.y + half).min(self.most.max(mark.y))))
    }
}

type Context<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Ticks, Ticks>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A name truncated to a number of characters.
fn short(name: &str, most: usize) -> String {
    let most = most.max(4);
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_are_not_drawn() {
        let mark = |x, y| Mark { x, y, half: Some(f64::NAN) };
        let marks = vec![mark(0.0, f64::NAN), mark(1.0, 2.0), mark(f64::INFINITY, 1.0)];
        let series = vec![Series { name: String::from("<a>"), marks, faint: false }];
        let chart = Chart {
            title: String::from("t & u"),
            x: String::from("x"),
            y: String::from("y"),
            categories: Vec::new(),
            series,
            style: Style::Points,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        let figure = chart.figure();
        assert!(figure.contains("<svg") && figure.contains("t &amp; u"), "{figure}");
        assert!(!figure.contains("NaN") && !figure.contains("inf"), "{figure}");
    }
}
