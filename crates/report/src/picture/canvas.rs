//! Shapes and text of a picture.

use crate::html::escape;
use std::fmt::Write;

/// Width in SVG user units. Chosen: on a page 390 px wide with a scroll bar, text of 13 units is 11 px high.
pub const WIDTH: f64 = 400.0;
/// Height of a line of text in SVG user units. Chosen: 1.3 times the height of the letters.
pub const LINE: f64 = 17.0;

/// Where a text stands beside its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The picture that is drawn.
#[derive(Default)]
pub struct Canvas {
    svg: String,
}

impl Canvas {
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(
            self.svg,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }
    /// A rectangle from its upper left corner; `style` is a class or a colour such as `#123456`.
    pub fn rectangle(&mut self, style: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let (style, tip) = (paint("fill", style), title(tip));
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.svg,
            "<rect {style} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">{tip}</rect>"
        );
    }
    pub fn circle(&mut self, style: &str, (x, y): (f64, f64), radius: f64, tip: &str) {
        let (style, tip) = (paint("fill", style), title(tip));
        let _ = write!(self.svg, "<circle {style} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{tip}</circle>");
    }
    /// A line through points; `style` is the class of its colour, or a colour.
    pub fn path(&mut self, style: &str, more: &str, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let style = match style.strip_prefix('#') {
            Some(_) => format!("class=\"l {more}\" stroke=\"{style}\""),
            None => format!("class=\"l {style} {more}\""),
        };
        let _ = write!(self.svg, "<polyline {style} points=\"{}\"/>", list(points));
    }
    /// An arrow from a place to another on a curve that passes `bend` below the middle, or above if negative.
    pub fn arrow(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64), bend: f64) {
        // The middle of a quadratic curve is half way from its chord to the control point.
        let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0 + 2.0 * bend);
        let head = if bend < 0.0 { -5.0 } else { 5.0 };
        let _ = write!(
            self.svg,
            "<path class=\"l thin {class}\" d=\"M{x1:.1} {y1:.1}Q{x:.1} {y:.1} {x2:.1} {y2:.1}\
             m-3 {head:.1}l3 {:.1}l3 {head:.1}\"/>",
            -head
        );
    }
    /// A surface without a border.
    pub fn polygon(&mut self, style: &str, points: &[(f64, f64)]) {
        let style = match style.strip_prefix('#') {
            Some(_) => format!("class=\"band\" fill=\"{style}\""),
            None => format!("class=\"band {style}\""),
        };
        let _ = write!(self.svg, "<polygon {style} points=\"{}\"/>", list(points));
    }
    /// A vertical interval with its ends marked.
    pub fn whisker(&mut self, class: &str, x: f64, (low, high): (f64, f64)) {
        let _ = write!(
            self.svg,
            "<path class=\"{class}\" fill=\"none\" d=\"M{:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6\"/>",
            x - 3.0
        );
    }
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(text);
        let _ = write!(self.svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>");
    }
    /// A text that rises to its end at the given place.
    pub fn slanted(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let _ = write!(
            self.svg,
            "<text class=\"ink\" text-anchor=\"end\" transform=\"translate({x:.1} {y:.1}) rotate(-35)\">{text}</text>"
        );
    }
    /// Another picture of this height, placed at `top`.
    pub fn inner(&mut self, svg: &str, top: f64, height: f64) {
        let place = format!("<svg y=\"{top:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" ");
        self.svg += &svg.trim_end().replacen("<svg ", &place, 1);
    }
    /// The whole picture of [`WIDTH`] and this height; `name` is its name for screen readers.
    pub fn finish(self, height: f64, name: &str) -> String {
        format!(
            "<svg class=\"picture\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\
             <rect class=\"ground\" x=\"0\" y=\"0\" width=\"{WIDTH}\" height=\"{height:.0}\"/>{}</svg>\n",
            escape(name),
            self.svg
        )
    }
}

/// Width of a text of 13 units in SVG user units. The reader's font is not known: these are the widths of
/// DejaVu Sans, the widest of the usual sans-serif fonts, rounded up.
pub fn width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' => 3.7,
        ' ' | 'f' | 't' | 'r' | 'I' | '.' | ',' | ':' | ';' | '(' | ')' | '[' | ']' | '-' | '/' => 5.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 13.0,
        'A'..='Z' | '=' | '+' | '±' | '<' | '>' => 10.9,
        _ => 8.3,
    }
}

/// A text truncated to a width in SVG user units, to four characters at least.
pub fn short(text: &str, most: f64) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for (count, c) in text.chars().enumerate() {
        if count >= 3 && width(&kept) + character_width(c) + character_width('…') > most {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// A colour between those of a sequence from dark blue to light green, for a share from 0 to 1. All differ in
/// lightness, and all stand out on white and on black.
pub fn ramp(share: f64) -> String {
    // Chosen: the middle of Matplotlib's viridis (Smith, van der Walt 2015); red, green, blue from 0 to 255.
    const STOPS: [(f64, f64, f64); 5] = [
        (65.0, 68.0, 135.0),
        (42.0, 120.0, 142.0),
        (34.0, 168.0, 132.0),
        (122.0, 209.0, 81.0),
        (200.0, 224.0, 32.0),
    ];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place as usize).min(STOPS.len() - 2);
    let (a, b, part) = (STOPS[index], STOPS[index + 1], place - index as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

fn list(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<String>>().join(" ")
}

/// A class, or a colour as the value of an attribute.
fn paint(attribute: &str, style: &str) -> String {
    if style.starts_with('#') { format!("{attribute}=\"{style}\"") } else { format!("class=\"{style}\"") }
}

fn title(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}
