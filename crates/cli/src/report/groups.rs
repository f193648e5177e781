//! Groups of stations beside one another: the stations of each `[[station]]` table of a scenario.

use super::over_keys::key::Key;
use super::over_keys::{self, Point};
use paceline_report::html;
use paceline_sim::results::{GroupFigures, GroupMeans, GroupResult};

/// A figure: title, unit, decimals, value.
type Figure = (&'static str, &'static str, usize, fn(&GroupFigures) -> f64);

/// The figures of the table and the pictures. Chosen: those that differ between congestion controls.
const FIGURES: [Figure; 6] = [
    ("Goodput per station", "Mb/s", 2, |g| g.goodput_per_station_mbps),
    ("Mean round-trip time of a group", "ms", 1, |g| g.rtt_mean_ms),
    ("Segments retransmitted of a group", "%", 3, |g| 100.0 * g.retransmission_share),
    ("Goodput of a group", "Mb/s", 2, |g| g.goodput_mbps),
    ("Upload of a group", "Mb/s", 2, |g| g.upload_mbps),
    ("Fairness in a group", "Jain index", 4, |g| g.jain_index),
];

/// The names of the groups over several points: a group's name where all points have it, else the key of its
/// table, since a swept key may give the name.
pub fn labels<'a>(points: impl Iterator<Item = &'a [GroupMeans]> + Clone) -> Vec<String> {
    let groups = points.clone().map(<[GroupMeans]>::len).max().unwrap_or(0);
    let label = |index: usize| {
        let mut all = points.clone().filter_map(|groups| groups.get(index)).map(GroupMeans::label);
        let first = all.next().unwrap_or_default();
        if all.all(|other| other == first) { first } else { format!("station.{index}") }
    };
    (0..groups).map(label).collect()
}

/// The figures of each group; empty with one group.
pub fn table(groups: &[GroupResult]) -> String {
    if groups.len() < 2 {
        return String::new();
    }
    let shown: Vec<&Figure> =
        FIGURES.iter().filter(|figure| groups.iter().any(|group| figure.3(&group.mean) != 0.0)).collect();
    let head = ["group", "stations"].map(String::from).into_iter();
    let head: Vec<String> =
        head.chain(shown.iter().map(|(title, unit, ..)| format!("{title}, {unit}"))).collect();
    let line = |group: &GroupResult| {
        let figures = shown.iter().map(|(_, _, decimals, value)| {
            let mean = format!("{:.decimals$}", value(&group.mean));
            let with_half = |ci95: &GroupFigures| format!("{mean} ± {:.decimals$}", value(ci95));
            group.ci95.as_ref().map_or(mean.clone(), with_half)
        });
        [group.label(), group.stations.to_string()].into_iter().chain(figures).collect::<Vec<String>>()
    };
    html::table(&head, &groups.iter().map(line).collect::<Vec<_>>(), 1)
}

/// A picture of each figure over the swept keys, with a line or bar for each group; empty with one group.
/// `points` are the values of the keys and the groups at each point.
pub fn pictures(keys: &[Key], points: &[(&[String], &[GroupMeans])]) -> Vec<String> {
    let groups = points.iter().map(|(_, groups)| groups.len()).max().unwrap_or(0);
    if groups < 2 {
        return Vec::new();
    }
    let mut keys = keys.to_vec();
    // First, so that bars stand over the values of a swept key.
    let names = labels(points.iter().map(|(_, groups)| *groups));
    keys.insert(0, Key { key: String::from("group"), values: names.clone() });
    let picture = |(title, unit, _, value): &Figure| {
        let of_group = |values: &[String], group: &GroupMeans| Point {
            values: std::iter::once(names[group.group].clone()).chain(values.iter().cloned()).collect(),
            mean: value(&group.mean),
            half: group.ci95.as_ref().map(value),
        };
        let points = points.iter().flat_map(|(values, groups)| groups.iter().map(|g| of_group(values, g)));
        let most = match *unit {
            "%" => 100.0,
            "Jain index" => 1.0,
            _ => f64::INFINITY,
        };
        let figure = over_keys::Figure { title, unit, most };
        over_keys::pictures(&keys, &points.collect::<Vec<_>>(), &figure)
    };
    FIGURES.iter().map(picture).filter(|picture| !picture.is_empty()).collect()
}
