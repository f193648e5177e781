//! Pictures of a figure over swept keys: lines with confidence bands over a quantity, a map over two
//! quantities with many values, bars over names.

pub mod key;

use key::{Key, short};
use paceline_report::picture::{Chart, HeatMap, Kind, Mark, Series, Style};

/// Values that each of two quantities must have for a map. Chosen: families of up to three lines are easier
/// to read.
const MAP_VALUES: usize = 4;

/// A point of a sweep with one figure of it.
pub struct Point {
    /// The values of the keys.
    pub values: Vec<String>,
    pub mean: f64,
    /// Half width of the 95% confidence interval.
    pub half: Option<f64>,
}

/// The figure that is drawn.
pub struct Figure<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// Largest possible value.
    pub most: f64,
}

/// The pictures; empty if all values are zero.
pub fn pictures(keys: &[Key], points: &[Point], figure: &Figure<'_>) -> String {
    let quantity = |index: &usize| keys[*index].values.len() > 1 && keys[*index].numbers().is_some();
    let mut quantities: Vec<usize> = (0..keys.len()).filter(quantity).collect();
    // The quantity with the most values is the axis.
    quantities.sort_by_key(|index| std::cmp::Reverse(keys[*index].values.len()));
    match quantities[..] {
        [x, y, ..] if keys[y].values.len() >= MAP_VALUES => maps(keys, points, figure, (x.min(y), x.max(y))),
        [x, ..] => lines(keys, points, figure, x),
        [] if keys.is_empty() => String::new(),
        [] => bars(keys, points, figure),
    }
}

/// The values of the other keys in words.
fn name(point: &Point, without: &[usize]) -> String {
    let others = point.values.iter().enumerate().filter(|(index, _)| !without.contains(index));
    others.map(|(_, value)| short(value)).collect::<Vec<_>>().join(", ")
}

fn place(key: &Key, value: &str) -> Option<usize> {
    key.values.iter().position(|other| other == value)
}

/// A line or bars for each combination of the other keys. The first of these keys has a colour for each of
/// its values; where there are more, lines have dashes for the others' values (`dashed`).
fn series(points: &[Point], along: usize, x: &dyn Fn(&str) -> Option<f64>, dashed: bool) -> Vec<Series> {
    let first = (0..points.first().map_or(0, |point| point.values.len())).find(|index| *index != along);
    let hue = |point: &Point| first.map_or("", |index| &point.values[index]).to_owned();
    let rest = |point: &Point| name(point, &first.into_iter().chain([along]).collect::<Vec<_>>());
    let distinct = |of: &dyn Fn(&Point) -> String| {
        let mut values: Vec<String> = Vec::new();
        for value in points.iter().map(of) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let (hues, dashes) = (distinct(&hue), distinct(&rest));
    let place = |values: &[String], value: &str| values.iter().position(|v| v == value).unwrap_or(0);
    let kind = |point: &Point| match dashes.len() {
        2.. if !dashed => Kind::Ours,
        count => {
            Kind::of_keys((place(&hues, &hue(point)), hues.len()), (place(&dashes, &rest(point)), count))
        }
    };
    let mut series: Vec<Series> = Vec::new();
    for point in points {
        let Some(x) = x(&point.values[along]) else { continue };
        let mark = Mark { x, y: point.mean, half: point.half };
        let name = name(point, &[along]);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.marks.push(mark),
            None => series.push(Series { name, marks: vec![mark], kind: kind(point) }),
        }
    }
    for series in &mut series {
        series.marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    series
}

fn lines(keys: &[Key], points: &[Point], figure: &Figure<'_>, along: usize) -> String {
    let key = &keys[along];
    let Some((numbers, _)) = key.numbers() else { return String::new() };
    let x = |value: &str| place(key, value).map(|place| numbers[place]);
    let chart = Chart {
        title: figure.title.to_owned(),
        x: key.axis(),
        y: figure.unit.to_owned(),
        categories: Vec::new(),
        series: series(points, along, &x, true),
        style: Style::Points,
        most: figure.most,
        from_zero: true,
        counts_from: None,
    };
    chart.figure()
}

/// Bars over the values of the last key, beside one another for the other keys.
fn bars(keys: &[Key], points: &[Point], figure: &Figure<'_>) -> String {
    let along = keys.len() - 1;
    let x = |value: &str| place(&keys[along], value).map(|place| place as f64);
    let chart = Chart {
        title: figure.title.to_owned(),
        x: keys[along].key.clone(),
        y: figure.unit.to_owned(),
        categories: keys[along].values.iter().map(|value| short(value)).collect(),
        series: series(points, along, &x, false),
        style: Style::Bars,
        most: figure.most,
        from_zero: true,
        counts_from: None,
    };
    chart.figure()
}

/// A map for each combination of the other keys, all with the same colours.
fn maps(keys: &[Key], points: &[Point], figure: &Figure<'_>, (x, y): (usize, usize)) -> String {
    let values = || points.iter().map(|point| point.mean).filter(|mean| mean.is_finite());
    let range = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    // The labels are the numbers in ascending order.
    let order = |key: &Key| {
        let numbers = key.numbers().map_or_else(Vec::new, |(numbers, _)| numbers);
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
        let labels: Vec<String> = order.iter().map(|index| numbers[*index].to_string()).collect();
        (order, labels)
    };
    let ((column_order, columns), (row_order, rows)) = (order(&keys[x]), order(&keys[y]));
    let mut maps: Vec<(String, HeatMap)> = Vec::new();
    for point in points {
        let name = name(point, &[x, y]);
        if !maps.iter().any(|(other, _)| *other == name) {
            let title =
                if name.is_empty() { figure.title.to_owned() } else { format!("{}: {name}", figure.title) };
            let map = HeatMap {
                title,
                x: keys[x].axis(),
                y: keys[y].axis(),
                columns: columns.clone(),
                rows: rows.clone(),
                unit: figure.unit.to_owned(),
                cells: vec![vec![None; columns.len()]; rows.len()],
                range,
            };
            maps.push((name.clone(), map));
        }
        let column =
            place(&keys[x], &point.values[x]).and_then(|at| column_order.iter().position(|o| *o == at));
        let row = place(&keys[y], &point.values[y]).and_then(|at| row_order.iter().position(|o| *o == at));
        let map = maps.iter_mut().find(|(other, _)| *other == name);
        if let (Some(row), Some(column), Some((_, map))) = (row, column, map) {
            map.cells[row][column] = Some((point.mean, point.half));
        }
    }
    maps.iter().map(|(_, map)| map.figure()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str, values: &[&str]) -> Key {
        Key { key: key.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    fn drawn(keys: &[Key]) -> String {
        let mut points = vec![Vec::new()];
        for key in keys {
            points = points
                .iter()
                .flat_map(|point: &Vec<String>| {
                    key.values
                        .iter()
                        .map(|value| [&point[..], std::slice::from_ref(value)].concat())
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        let points: Vec<Point> = points
            .into_iter()
            .enumerate()
            .map(|(index, values)| Point { values, mean: index as f64, half: Some(0.25) })
            .collect();
        let figure = Figure { title: "Goodput", unit: "Mb/s", most: f64::INFINITY };
        pictures(keys, &points, &figure)
    }

    #[test]
    fn a_quantity_is_an_axis_with_a_line_and_a_band_for_each_name() {
        let names = key("ack_filter.scheme", &["basic", "safe"]);
        let svg = drawn(&[names, key("station.count", &["1", "2", "4"])]);
        assert_eq!(svg.matches("<polygon class=\"band").count(), 2, "{svg}");
        assert_eq!((svg.matches("<svg").count(), svg.matches("<polyline").count()), (1, 2));
        assert!(svg.contains(">safe</text>") && svg.contains(">station.count</text>"), "{svg}");
    }

    #[test]
    fn two_quantities_with_many_values_are_a_map_and_with_few_a_family_of_lines() {
        let rates = key("core.hops.0.rate", &["1 Mb/s", "10 Mb/s", "100 Mb/s", "1 Gb/s"]);
        let counts = key("station.count", &["1", "2", "3", "4"]);
        let svg = drawn(&[rates.clone(), counts]);
        assert!(svg.matches("<title>").count() == 16 && !svg.contains("<polyline"), "{svg}");
        let svg = drawn(&[rates, key("station.count", &["1", "2"])]);
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(svg.contains(">core.hops.0.rate, Mb/s</text>") && svg.contains(">1000</text>"), "{svg}");
    }

    #[test]
    fn names_alone_are_bars() {
        let svg = drawn(&[key("ack_filter.scheme", &["basic", "safe", "hybrid(6)"])]);
        assert!(
            svg.contains("<title>safe\n1.00 ± 0.250 Mb/s</title>") && !svg.contains("<polyline"),
            "{svg}"
        );
    }
}
