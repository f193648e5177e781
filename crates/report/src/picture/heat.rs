//! A map of a figure over two quantities: a cell for each pair, its colour for the value.

use super::canvas::{Anchor, Canvas, LINE, WIDTH, ramp, short, width};
use super::scale::significant;
use crate::html;

/// Height of a cell at most, in SVG user units. Chosen: few rows do not make a tall picture.
const CELL: f64 = 34.0;
/// Steps of the legend's colours. Chosen: the steps are not visible.
const LEGEND_STEPS: usize = 40;

/// A value with the half width of its interval; none where nothing was measured.
pub type Cell = Option<(f64, Option<f64>)>;

/// Values over two quantities.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// Name of the x axis, with its unit.
    pub x: String,
    /// Name of the y axis, with its unit.
    pub y: String,
    /// Labels along the x axis, ascending.
    pub columns: Vec<String>,
    /// Labels along the y axis, ascending.
    pub rows: Vec<String>,
    /// Unit of the values.
    pub unit: String,
    /// Values by row and column.
    pub cells: Vec<Vec<Cell>>,
    /// Smallest and largest value of the colours, common to the maps that are compared.
    pub range: (f64, f64),
}

impl HeatMap {
    /// The map with its title; empty if all values are zero.
    pub fn figure(&self) -> String {
        let values = self.cells.iter().flatten().flatten();
        if values.clone().all(|(value, _)| *value == 0.0 || !value.is_finite()) {
            return String::new();
        }
        html::figure(&self.title, &self.svg())
    }

    /// The map without its title.
    pub fn svg(&self) -> String {
        let left = self.rows.iter().map(|label| width(label)).fold(0.0, f64::max) + 10.0;
        let (columns, rows) = (self.columns.len() as f64, self.rows.len() as f64);
        let cell = ((WIDTH - left - 10.0) / columns, (190.0 / rows).clamp(LINE, CELL));
        let top = LINE + 5.0;
        let bottom = top + rows * cell.1;
        let mut canvas = Canvas::default();
        canvas.text("faint", (4.0, LINE - 4.0), Anchor::Start, &short(&self.y, WIDTH - 8.0));
        for (row, label) in self.rows.iter().enumerate() {
            // The first row is the lowest, as on an axis.
            let y = bottom - (row + 1) as f64 * cell.1;
            canvas.text("ink", (left - 5.0, y + cell.1 / 2.0 + 4.5), Anchor::End, label);
            for (column, value) in self.cells[row].iter().enumerate() {
                let x = left + column as f64 * cell.0;
                self.cell(&mut canvas, (x, y), cell, (row, column), *value);
            }
        }
        let widest = self.columns.iter().map(|label| width(label)).fold(0.0, f64::max);
        let every = ((widest + 5.0) / cell.0).ceil().max(1.0) as usize;
        for (column, label) in self.columns.iter().enumerate().step_by(every) {
            let x = left + (column as f64 + 0.5) * cell.0;
            canvas.text("ink", (x, bottom + LINE - 2.0), Anchor::Middle, label);
        }
        let middle = (left + WIDTH) / 2.0;
        canvas.text("faint", (middle, bottom + 2.0 * LINE), Anchor::Middle, &short(&self.x, WIDTH - 8.0));
        let end = self.legend(&mut canvas, bottom + 2.0 * LINE + 10.0);
        canvas.finish(end, &self.title)
    }

    fn cell(
        &self,
        canvas: &mut Canvas,
        (x, y): (f64, f64),
        (wide, high): (f64, f64),
        (row, column): (usize, usize),
        value: Cell,
    ) {
        let Some((value, half)) = value.filter(|(value, _)| value.is_finite()) else { return };
        let half = half.map_or(String::new(), |half| format!(" ± {}", significant(half)));
        let tip = format!(
            "{}: {}\n{}: {}\n{}{half} {}",
            self.y,
            self.rows[row],
            self.x,
            self.columns[column],
            significant(value),
            self.unit
        );
        let share = self.share(value);
        canvas.rectangle(&ramp(share), (x, y), (wide - 1.0, high - 1.0), &tip);
        let text = significant(value);
        if width(&text) + 4.0 < wide {
            // Class of the text that stands out on the cell's colour.
            let class = if share < 0.45 { "note on-dark" } else { "note on-light" };
            canvas.text(class, (x + wide / 2.0, y + high / 2.0 + 4.0), Anchor::Middle, &text);
        }
    }

    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        if high > low { (value - low) / (high - low) } else { 0.5 }
    }

    /// The colours with their values; gives the end of the picture.
    fn legend(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let (low, high) = (significant(self.range.0), format!("{} {}", significant(self.range.1), self.unit));
        let left = 10.0 + width(&low);
        let right = WIDTH - 12.0 - width(&high);
        let step = (right - left) / LEGEND_STEPS as f64;
        canvas.text("ink", (left - 5.0, top + 10.0), Anchor::End, &low);
        for index in 0..LEGEND_STEPS {
            let colour = ramp(index as f64 / (LEGEND_STEPS - 1) as f64);
            canvas.rectangle(&colour, (left + index as f64 * step, top), (step + 0.5, 11.0), "");
        }
        canvas.text("ink", (right + 5.0, top + 10.0), Anchor::Start, &high);
        top + LINE + 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_colour_and_the_tooltip_of_its_value() {
        let names = |names: [&str; 2]| names.map(String::from).to_vec();
        let map = HeatMap {
            title: String::from("Goodput"),
            x: String::from("station.count"),
            y: String::from("cell.uplink_bandwidth, MHz"),
            columns: names(["1", "2"]),
            rows: names(["3", "5"]),
            unit: String::from("Mb/s"),
            cells: vec![
                vec![Some((10.0, Some(1.0))), Some((20.0, None))],
                vec![None, Some((30.0, Some(f64::NAN)))],
            ],
            range: (10.0, 30.0),
        };
        let figure = map.figure();
        assert!(figure.contains("3\nstation.count: 1\n10.00 ± 1.00 Mb/s</title>"), "{figure}");
        assert_eq!(figure.matches("<title>").count(), 3, "{figure}");
        assert!(figure.contains(&ramp(0.0)) && figure.contains(&ramp(1.0)), "{figure}");
        assert_ne!(ramp(0.0), ramp(0.5));
    }
}
