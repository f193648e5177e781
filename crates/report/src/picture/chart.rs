//! Content of a chart: series of values, and names and units of its axes.

use super::canvas::ramp;
use super::scale::{Scale, plain, significant};

/// Number of classes of colours in `page/picture.css`. Chosen: the palette's; with more series, colours are
/// those of [`ramp`].
const COLOURS: usize = CLASSES.len();
/// The ends of their names.
const CLASSES: [&str; 7] = ["0", "1", "2", "3", "4", "5", "6"];
/// Number of classes of dashes in `page/picture.css`, the solid line included.
const DASHES: usize = 4;

/// A value, with the half width of its confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Value on the x axis, or the index of a category.
    pub x: f64,
    /// Value on the y axis; left out where it is not finite.
    pub y: f64,
    /// Half width of its confidence interval.
    pub half: Option<f64>,
}

/// Place of a series in the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// In a colour of its own.
    Ours,
    /// In the colour of the value of one key and the dashes of the value of another; see [`Kind::of_keys`].
    Keyed {
        /// Number of the colour.
        hue: usize,
        /// Number of the dashes; 0 is a solid line.
        dash: usize,
    },
    /// Published values: grey and dashed, or grey bars.
    Published,
    /// Thin and grey, in the background.
    Faint,
    /// Thin, in the colour of this number.
    Thin(usize),
}

impl Kind {
    /// A colour for the value `hue` of `hues` of one key, such as the group, and dashes for the value `dash`
    /// of `dashes` of another; a colour of its own where colours or dashes do not suffice.
    pub fn of_keys((hue, hues): (usize, usize), (dash, dashes): (usize, usize)) -> Self {
        if hues <= COLOURS && dashes <= DASHES { Self::Keyed { hue, dash } } else { Self::Ours }
    }
    /// The classes of a line beside that of its colour.
    pub(super) fn line_class(self) -> &'static str {
        match self {
            Self::Faint | Self::Thin(_) => "thin",
            Self::Published => "dash",
            Self::Keyed { dash, .. } => ["", "d1", "d2", "d3"][dash % DASHES],
            Self::Ours => "",
        }
    }
}

/// Values with one name and colour.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend. Series of the same name have one entry.
    pub name: String,
    /// The values.
    pub marks: Vec<Mark>,
    /// Its place.
    pub kind: Kind,
}

/// Kind of chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    /// Values over time.
    Lines,
    /// Points on an axis of quantities, joined by lines, with a band from end to end of their intervals.
    Points,
    /// Distributions: the value rises at each mark.
    Steps,
    /// Single points, each with its name.
    Scatter,
    /// Bars side by side.
    Bars,
    /// Bars stacked on one another.
    Stacked,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// Name and unit of the x axis.
    pub x: String,
    /// Name and unit of the y axis.
    pub y: String,
    /// Names on the x axis; empty where x is a number.
    pub categories: Vec<String>,
    /// The series.
    pub series: Vec<Series>,
    /// The kind of chart.
    pub style: Style,
    /// Largest possible value, such as 100 for percentages; the smallest is zero.
    pub most: f64,
    /// Whether the y axis begins at zero.
    pub from_zero: bool,
    /// End of the warm-up on the x axis; the part before it has a grey background.
    pub counts_from: Option<f64>,
}

/// The area between the axes, in SVG user units.
pub(super) struct Area {
    pub x: Scale,
    pub y: Scale,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Area {
    pub fn x_of(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.share(value)
    }
    /// The place of a value; at the edge for values beyond the axis.
    pub fn y_of(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.share(value).clamp(0.0, 1.0)
    }
}

impl Chart {
    /// Distributions as lines from 0 to 100% of the stations; the marks are those of
    /// [`steps`](super::steps).
    pub fn of_distributions(title: &str, x: &str, series: Vec<Series>) -> Self {
        Self {
            title: title.to_owned(),
            x: x.to_owned(),
            y: String::from("stations at or below, %"),
            categories: Vec::new(),
            series,
            style: Style::Steps,
            most: 100.0,
            from_zero: true,
            counts_from: None,
        }
    }
    /// The ends of a confidence interval, within the possible values.
    pub(super) fn interval(&self, mark: &Mark) -> Option<(f64, f64)> {
        let least = if mark.y < 0.0 || !self.from_zero { f64::NEG_INFINITY } else { 0.0 };
        mark.half.map(|half| ((mark.y - half).max(least), (mark.y + half).min(self.most.max(mark.y))))
    }
    /// The end of the class of a series' colour, or the colour itself.
    pub(super) fn colour(&self, index: usize) -> Colour {
        let coloured = |series: &&Series| series.kind == Kind::Ours;
        match self.series[index].kind {
            Kind::Faint => Colour::Class("x"),
            Kind::Published => Colour::Class("p"),
            Kind::Keyed { hue, .. } | Kind::Thin(hue) => Colour::Class(CLASSES[hue % COLOURS]),
            Kind::Ours => {
                let before = self.series[..index].iter().filter(coloured).count();
                let all = self.series.iter().filter(coloured).count();
                match CLASSES.get(before) {
                    Some(class) if all <= COLOURS => Colour::Class(class),
                    _ => Colour::Own(ramp(before as f64 / (all - 1) as f64)),
                }
            }
        }
    }
    /// Tooltip of a mark.
    pub(super) fn tip(&self, series: &Series, mark: &Mark) -> String {
        let mut tip = if self.legend().len() > 1 { format!("{}\n", series.name) } else { String::new() };
        let category = self.categories.get(mark.x.round() as usize).cloned();
        let x = category.unwrap_or_else(|| with_unit(&plain(mark.x), &self.x));
        let half = mark.half.map_or(String::new(), |half| format!(" ± {}", significant(half)));
        tip += &format!("{x}\n{}", with_unit(&format!("{}{half}", significant(mark.y)), &self.y));
        tip
    }

    /// The names of the series with the first series of each name.
    pub(super) fn legend(&self) -> Vec<(usize, &str)> {
        let mut names: Vec<(usize, &str)> = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            if !series.marks.is_empty() && !names.iter().any(|(_, name)| *name == series.name) {
                names.push((index, &series.name));
            }
        }
        names
    }
}

/// The colour of a series.
pub(super) enum Colour {
    /// End of the names of its classes.
    Class(&'static str),
    Own(String),
}

impl Colour {
    pub fn fill(&self) -> String {
        match self {
            Self::Class(end) => format!("f{end}"),
            Self::Own(colour) => colour.clone(),
        }
    }
    pub fn stroke(&self) -> String {
        match self {
            Self::Class(end) => format!("l{end}"),
            Self::Own(colour) => colour.clone(),
        }
    }
}

/// A number with the name or unit of its axis: `12 Mb/s` for the axis `goodput, Mb/s`, `key: 12` without a
/// unit.
fn with_unit(number: &str, axis: &str) -> String {
    match axis.rsplit_once(", ") {
        Some((name, unit)) => format!("{name}: {number} {unit}"),
        None if axis.contains('.') => format!("{axis}: {number}"),
        None => format!("{number} {axis}"),
    }
}
