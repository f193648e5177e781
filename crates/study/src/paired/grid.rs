//! Differences between the points of a sweep, by pairs of runs with equal seeds.

use super::Paired;
use crate::grid::Axis;
use paceline_sim::Totals;

/// The difference of a point from the one that has the first value of the compared key and the same values of
/// the others.
#[derive(Clone, Debug)]
pub struct PointDifference {
    /// Index of the point.
    pub point: usize,
    /// The first value of the compared key.
    pub against: String,
    /// The differences.
    pub paired: Paired,
    /// The values of the keys, and the difference in words.
    pub sentence: String,
}

/// The differences of all points. `runs` has seeds and totals of the runs of each point, in the order of the
/// grid.
pub fn of_grid(axes: &[Axis], runs: &[Vec<(u64, Totals)>]) -> Vec<PointDifference> {
    if axes.iter().any(|axis| axis.key == "run.seed") {
        return Vec::new(); // runs with equal seeds would be the same runs
    }
    let Some(Baselines { axis, of_points }) = Baselines::of(axes.iter().map(|axis| &axis.values[..])) else {
        return Vec::new();
    };
    let of_point = |(point, baseline): (usize, &Option<usize>)| {
        let paired = Paired::of(runs.get((*baseline)?)?, runs.get(point)?)?;
        let against = plain(&axes[axis].values[0]).to_owned();
        let value = |index: usize| {
            let stride: usize = axes[index + 1..].iter().map(|axis| axis.values.len()).product();
            let values = &axes[index].values;
            format!("{}={}", axes[index].key, plain(&values[point / stride % values.len()]))
        };
        let others = (0..axes.len()).filter(|index| *index != axis && axes[*index].values.len() > 1);
        let others: String = others.map(|index| format!(", {}", value(index))).collect();
        let sentence = format!("{} against {against}{others}: {}", value(axis), paired.sentence());
        Some(PointDifference { point, against, paired, sentence })
    };
    of_points.iter().enumerate().filter_map(of_point).collect()
}

/// The points of a grid beside which others are compared. `axes` are the values of the swept keys, and the
/// points are ordered as in [`crate::Grid`]: the value of the last key changes fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Baselines {
    /// Index of the key that is compared: the first with names as values, else the first.
    axis: usize,
    /// For each point the one with the first value of this key and the same values of the others; none of
    /// those themselves.
    of_points: Vec<Option<usize>>,
}

impl Baselines {
    /// The baselines of a grid; none where no key has two values.
    fn of<'a>(axes: impl IntoIterator<Item = &'a [String]>) -> Option<Self> {
        let axes: Vec<&[String]> = axes.into_iter().collect();
        let several = || (0..axes.len()).filter(|axis| axes[*axis].len() > 1);
        let of_names = |axis: &usize| !axes[*axis].iter().all(|value| is_quantity(value));
        let axis = several().find(of_names).or_else(|| several().next())?;
        let stride: usize = axes[axis + 1..].iter().map(|values| values.len()).product();
        let points = axes.iter().map(|values| values.len()).product();
        let baseline = |point: usize| {
            let place = point / stride % axes[axis].len();
            (place > 0).then(|| point - place * stride)
        };
        Some(Self { axis, of_points: (0..points).map(baseline).collect() })
    }
}

/// A value in the notation of `--set` without quotes around it.
fn plain(value: &str) -> &str {
    value.trim_matches('"')
}

/// Whether a value in the notation of `--set` is a number, with or without a unit.
fn is_quantity(value: &str) -> bool {
    let number = plain(value).trim_start_matches(['+', '-']);
    number.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_compared_with_the_first_name_at_equal_other_keys() {
        let axis = |key: &str, values: &[&str]| Axis {
            key: key.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = [axis("ack_filter.scheme", &["none", "basic"]), axis("station.count", &["1", "2"])];
        let runs: Vec<Vec<(u64, Totals)>> = [10.0, 20.0, 11.0, 30.0]
            .iter()
            .map(|goodput| {
                (1..3).map(|seed| (seed, Totals { goodput_mbps: *goodput, ..Totals::default() })).collect()
            })
            .collect();
        let found = of_grid(&axes, &runs);
        assert_eq!(found.iter().map(|own| own.point).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(
            found[1].sentence,
            "ack_filter.scheme=basic against none, station.count=2: Goodput 50% higher (50 to 50%) (2 pairs of \
             equal seeds, 95% intervals)."
        );
    }

    #[test]
    fn points_are_compared_over_the_first_key_with_names() {
        let values = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (counts, schemes) = (values(&["1", "2"]), values(&["none", "basic", "hybrid(6)"]));
        let of = Baselines::of([&counts[..], &schemes[..]]).unwrap();
        assert_eq!((of.axis, &of.of_points[..]), (1, &[None, Some(0), Some(0), None, Some(3), Some(3)][..]));
        let of = Baselines::of([&counts[..], &values(&["1 ms", "2 ms"])[..]]).unwrap();
        assert_eq!((of.axis, &of.of_points[..]), (0, &[None, None, Some(0), Some(1)][..]));
        assert_eq!(Baselines::of([&counts[..1]]), None);
    }
}
