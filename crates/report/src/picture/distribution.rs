//! The distribution of values as a line: the share of values at or below each one.

use super::Mark;

/// Steps of a line at most. Chosen: one for every two units of a picture's width.
const MAX_STEPS: usize = 200;

/// The cumulative distribution of the finite values, in percent; empty without values. With more than
/// [`MAX_STEPS`] values, evenly spaced ones are kept, the last one always.
pub fn steps(values: impl IntoIterator<Item = f64>) -> Vec<Mark> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let every = count.div_ceil(MAX_STEPS).max(1);
    let kept = (1..=count).filter(|rank| rank % every == 0 || *rank == count);
    kept.map(|rank| Mark { x: values[rank - 1], y: 100.0 * rank as f64 / count as f64, half: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_rises_to_a_hundred_percent_at_the_largest_value() {
        let marks = steps([3.0, 1.0, f64::NAN, 2.0, 2.0]);
        let pairs: Vec<(f64, f64)> = marks.iter().map(|mark| (mark.x, mark.y)).collect();
        assert_eq!(pairs, [(1.0, 25.0), (2.0, 50.0), (2.0, 75.0), (3.0, 100.0)]);
        assert!(steps([]).is_empty());
        let many = steps((0..1000).map(f64::from));
        assert!(many.len() <= MAX_STEPS && many.last().is_some_and(|mark| mark.x == 999.0), "{many:?}");
    }
}
