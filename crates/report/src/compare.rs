//! Results side by side: the keys in which their scenarios differ, labels of them, and the difference in
//! words.

use crate::table::Column;
use crate::table::has_figure;
use paceline_sim::Totals;
use paceline_study::paired::Figure;
use paceline_study::{Difference, Paired};
use std::collections::{BTreeMap, BTreeSet};

/// Keys in the label of a column at most; results that differ in more keys are labelled by their names.
/// Chosen: longer labels make the columns wider than the figures in them.
const MAX_LABEL_KEYS: usize = 3;
/// Keys that a sentence lists at most. Chosen: a sentence of two lines.
const MAX_LISTED_KEYS: usize = 6;

/// One of the results.
#[derive(Clone, Debug)]
pub struct Side {
    /// Name: that of the folder.
    pub name: String,
    /// `simulated` or `emulated`.
    pub mode: String,
    /// Means over the seeds.
    pub mean: Totals,
    /// Half widths of their 95% confidence intervals; none with one seed.
    pub ci95: Option<Totals>,
    /// The resolved scenario: values by dotted keys; empty where it is not known.
    pub scenario: BTreeMap<String, String>,
    /// Seeds and totals of the runs.
    pub runs: Vec<(u64, Totals)>,
}

/// The differences of each side after the first from the first, by pairs of runs with equal seeds; none of a
/// side without such pairs.
pub fn differences(sides: &[Side]) -> Vec<Option<Paired>> {
    let of_first = |side: &Side| paired(sides.first()?, side);
    sides.iter().enumerate().map(|(at, side)| of_first(side).filter(|_| at > 0)).collect()
}

/// The pairs of two sides. An emulation runs in real time: equal seeds do not make it a pair.
fn paired(first: &Side, second: &Side) -> Option<Paired> {
    let simulated = |side: &Side| side.mode != "emulated";
    Paired::of(&first.runs, &second.runs).filter(|_| simulated(first) && simulated(second))
}

/// The columns of a table: the means of each side, and beside them its differences from the first.
pub fn columns<'a>(
    sides: &'a [Side],
    labels: &[String],
    differences: &'a [Option<Paired>],
) -> Vec<Column<'a>> {
    let of_side = |((side, label), paired): ((&'a Side, &String), &'a Option<Paired>)| {
        let means = Column::of_means(label.clone(), &side.mean, side.ci95.as_ref());
        std::iter::once(means).chain(paired.as_ref().map(Column::of_pairs))
    };
    sides.iter().zip(labels).zip(differences).flat_map(of_side).collect()
}

/// A sentence on each side that has runs with the first one's seeds.
pub fn sentences(labels: &[String], differences: &[Option<Paired>]) -> Vec<String> {
    let sentence = |(label, paired): (&String, &Option<Paired>)| {
        Some(format!("{label} against {}: {}", labels[0], paired.as_ref()?.sentence()))
    };
    labels.iter().zip(differences).filter_map(sentence).collect()
}

/// The values of a scenario by their dotted keys; empty for a text that is not TOML.
pub fn values(resolved: &str) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    if let Ok(table) = resolved.parse::<toml::Table>() {
        flatten(&toml::Value::Table(table), String::new(), &mut flat);
    }
    flat
}

/// The values of a document by their dotted keys; tables in an array are numbered, other arrays are values.
fn flatten(value: &toml::Value, path: String, flat: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(name, value)| flatten(value, below(name), flat));
        }
        toml::Value::Array(values) if values.iter().any(toml::Value::is_table) => {
            values.iter().enumerate().for_each(|(i, value)| flatten(value, below(&i.to_string()), flat));
        }
        toml::Value::String(text) => drop(flat.insert(path, text.clone())),
        other => drop(flat.insert(path, other.to_string())),
    }
}

/// The scenario keys whose values are not the same on all sides.
pub fn differing_keys(sides: &[Side]) -> Vec<String> {
    let keys: BTreeSet<&String> = sides.iter().flat_map(|l| l.scenario.keys()).collect();
    let differs = |key: &&String| sides.iter().any(|l| l.scenario.get(*key) != sides[0].scenario.get(*key));
    keys.into_iter().filter(differs).cloned().collect()
}

/// The labels of the columns: the values of the keys that differ, or the names where none or too
/// many differ. A name is added where two labels would be the same.
pub fn labels(sides: &[Side], differing: &[String]) -> Vec<String> {
    let by_name = differing.is_empty()
        || differing.len() > MAX_LABEL_KEYS
        || sides.iter().any(|l| l.scenario.is_empty());
    let one_mode = sides.iter().all(|l| l.mode == sides[0].mode);
    let label = |l: &Side| {
        let mut label = if by_name {
            l.name.clone()
        } else {
            // A key that a scenario lacks has no part in its label, unless nothing else is left.
            let part = |key: &String| Some(format!("{}={}", short(key, differing), l.scenario.get(key)?));
            let parts: Vec<String> = differing.iter().filter_map(part).collect();
            if parts.is_empty() { l.name.clone() } else { parts.join(" ") }
        };
        if !one_mode || l.mode != "simulated" {
            label += &format!(" ({})", l.mode);
        }
        label
    };
    let labels: Vec<String> = sides.iter().map(label).collect();
    let same = |label: &String| labels.iter().filter(|other| *other == label).count() > 1;
    let unique = |(label, l): (&String, &Side)| {
        if same(label) && !by_name { format!("{label} in {}", l.name) } else { label.clone() }
    };
    labels.iter().zip(sides).map(unique).collect()
}

/// The last part of a key, or the whole key if another one ends in the same part.
fn short<'a>(key: &'a str, all: &[String]) -> &'a str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let same = all.iter().filter(|other| last(other) == last(key)).count();
    if same > 1 { key } else { &key[key.rfind('.').map_or(0, |at| at + 1)..] }
}

/// Chosen: the figures that answer whether a change helps, of those in [`crate::table::rows`].
const FIGURES: [Figure; 7] = [
    Figure { name: "Goodput", unit: "Mb/s", decimals: 2, of: |t| t.goodput_mbps },
    Figure { name: "Upload", unit: "Mb/s", decimals: 2, of: |t| t.upload_mbps },
    Figure { name: "The mean round-trip time", unit: "ms", decimals: 1, of: |t| t.rtt_mean_ms },
    Figure {
        name: "The 95th percentile of the round-trip time",
        unit: "ms",
        decimals: 1,
        of: |t| t.rtt_p95_ms,
    },
    Figure {
        name: "The share of retransmitted segments",
        unit: "%",
        decimals: 2,
        of: |t| 100.0 * t.retransmission_share,
    },
    Figure { name: "The number of ACKs sent", unit: "per second", decimals: 0, of: |t| t.acks_sent_per_s },
    Figure {
        name: "The number of ACKs discarded",
        unit: "per second",
        decimals: 0,
        of: |t| t.acks_discarded_per_s,
    },
];

/// The difference of the second side from the first, a sentence for each statement: the keys, then figures.
pub fn words(first: &Side, second: &Side) -> Vec<String> {
    let sides = [first.clone(), second.clone()];
    let mut sentences = vec![keys_in_words(&sides)];
    let paired = paired(first, second);
    sentences.extend(paired.as_ref().map(Paired::sentence));
    sentences.extend(FIGURES.iter().filter_map(|figure| change(figure, first, second, paired.as_ref())));
    if first.ci95.is_none() || second.ci95.is_none() {
        sentences.push(String::from("With one seed a small difference may be chance: run several."));
    }
    sentences
}

fn keys_in_words(sides: &[Side; 2]) -> String {
    let keys = differing_keys(sides);
    let value = |side: &Side, key: &String| side.scenario.get(key).map_or("left out", |v| v).to_owned();
    let part = |key: &String| format!("{key} from {} to {}", value(&sides[0], key), value(&sides[1], key));
    let mut parts: Vec<String> = keys.iter().take(MAX_LISTED_KEYS).map(part).collect();
    match keys.len().checked_sub(MAX_LISTED_KEYS) {
        _ if keys.is_empty() => return String::from("Both have the same scenario."),
        Some(more) if more > 0 => parts.push(format!("and {more} more")),
        _ => {}
    }
    format!("Changed: {}.", parts.join(", "))
}

/// How a figure changes; none where neither side has it.
fn change(figure: &Figure, first: &Side, second: &Side, paired: Option<&Paired>) -> Option<String> {
    let Figure { name, unit, decimals, of } = *figure;
    let (was, is) = (of(&first.mean), of(&second.mean));
    if (!has_figure(was) && !has_figure(is)) || was.is_nan() || is.is_nan() {
        return None;
    }
    let difference = Difference { first: was, second: is, mean: is - was, half: None };
    if difference.is_unchanged(figure) {
        return Some(format!("{name} stays at {is:.decimals$} {unit}."));
    }
    let direction = if is > was { "rises" } else { "falls" };
    let by = if was == 0.0 { String::new() } else { format!(", by {}", difference.size(figure)) };
    let half = |side: &Side| side.ci95.as_ref().map(of);
    // Pairs of equal seeds decide; without them, intervals that overlap say little.
    let of_pairs = paired.filter(|paired| paired.ci95.is_some());
    let chance = match (half(first), half(second)) {
        _ if of_pairs.is_some_and(|paired| paired.difference(of).may_be_zero()) => {
            "; by pairs of equal seeds the difference may be zero"
        }
        _ if of_pairs.is_some() => "",
        (Some(a), Some(b)) if (is - was).abs() <= a + b => "; the confidence intervals overlap",
        _ => "",
    };
    Some(format!("{name} {direction} from {was:.decimals$} to {is:.decimals$} {unit}{by}{chance}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(resolved: &str, goodput_mbps: f64, ci95: Option<f64>) -> Side {
        let totals = |goodput_mbps| Totals { goodput_mbps, ..Totals::default() };
        let (mean, ci95) = (totals(goodput_mbps), ci95.map(totals));
        let scenario = values(resolved);
        Side { name: "x".into(), mode: "simulated".into(), mean, ci95, scenario, runs: Vec::new() }
    }

    #[test]
    fn pairs_of_equal_seeds_decide_where_the_intervals_overlap() {
        let totals = |goodput_mbps| Totals { goodput_mbps, ..Totals::default() };
        let of_runs = |by: f64| {
            let runs = vec![(1, totals(10.0 + by)), (2, totals(30.0 + by)), (3, totals(50.0 + by))];
            Side { runs, ..side("", 30.0 + by, Some(30.0)) }
        };
        let (first, second) = (of_runs(0.0), of_runs(3.0));
        let said = words(&first, &second);
        assert_eq!(said[1], "Goodput 10% higher (10 to 10%) (3 pairs of equal seeds, 95% intervals).");
        assert_eq!(said[2], "Goodput rises from 30.00 to 33.00 Mb/s, by 10%.");
        let sides = [first, second];
        let labels = ["a", "b"].map(str::to_owned);
        let paired = differences(&sides);
        assert!(paired[0].is_none());
        let table = crate::table::render(&columns(&sides, &labels, &paired));
        assert!(table.contains("33.00 ± 30.00  +3.00 ± 0.00"), "{table}");
        assert!(sentences(&labels, &paired)[0].starts_with("b against a: Goodput 10% higher"));
    }

    #[test]
    fn overlapping_intervals_are_named() {
        let said = words(&side("", 20.0, Some(3.0)), &side("", 22.0, Some(1.0)));
        assert!(said[1].ends_with("by 10%; the confidence intervals overlap."), "{said:?}");
    }
}
