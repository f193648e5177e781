//! Amounts of data by row: since the row before, or the values of a counter, whose differences are these.

use super::names::is_counter;
use super::options::{Amounts, Options};

/// Values from which a column that never falls, though it rises, is a counter. Chosen: ten values in order
/// by chance are one case in three million; five that rise at every step, one in 120.
const NEVER_FALLING: usize = 10;
/// Same as [`NEVER_FALLING`], for values of which each is above the one before.
const RISING: usize = 5;
/// Share of steps that rise at least. Chosen: amounts that are almost constant are no counter.
const RISING_SHARE: f64 = 0.25;
/// Share of steps at which a counter may begin anew, once in any case. Chosen: 32 bits at 1 Gb/s, and far
/// from the half of amounts since the row before.
const RESTART_SHARE: f64 = 0.04;
/// Share of steps that rise where a counter begins anew. Chosen: far from the half.
const RISING_BESIDE_RESTARTS: f64 = 0.9;
/// Where a counter of 32 bits begins anew (SNMP's Counter32, RFC 2578 section 7.1.6), bytes.
const WRAP: f64 = 4_294_967_296.0;

/// How the values of a column are meant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Kind {
    pub is_counter: bool,
    /// Whether neither the name nor an option states it.
    pub is_guess: bool,
}

/// Decides by the option, by the name, or by the values.
pub fn kind(name: &str, values: &[Option<f64>], options: &Options) -> Kind {
    if let Some(amounts) = options.amounts {
        return Kind { is_counter: amounts == Amounts::Counter, is_guess: false };
    }
    let values: Vec<f64> = values.iter().flatten().copied().collect();
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let (mut falls, mut rises) = (0, 0);
    steps.for_each(|step| {
        falls += usize::from(step < 0.0);
        rises += usize::from(step > 0.0);
    });
    let count = values.len();
    let steps = count.saturating_sub(1) as f64;
    let never_falls = falls == 0 && rises > 0;
    let by_values = (never_falls && count >= NEVER_FALLING && rises as f64 >= RISING_SHARE * steps)
        || (never_falls && count >= RISING && rises + 1 == count)
        || (count >= NEVER_FALLING
            && falls as f64 <= (RESTART_SHARE * steps).max(1.0)
            && rises as f64 >= RISING_BESIDE_RESTARTS * steps);
    let by_name = is_counter(name) && never_falls;
    Kind { is_counter: by_name || by_values, is_guess: !by_name }
}

/// The amounts since the row before with a value, and how often the counter began anew. `bytes` are those of
/// one unit. The first value has no amount.
pub fn differences(values: &[Option<f64>], bytes: f64) -> (Vec<Option<f64>>, usize) {
    let wrap = WRAP / bytes;
    let steps: Vec<(f64, f64)> = {
        let values: Vec<f64> = values.iter().flatten().copied().collect();
        values.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let most = steps.iter().map(|(before, after)| after - before).fold(0.0, f64::max);
    let (mut before, mut restarts) = (None, 0);
    let difference = |value: &Option<f64>| {
        let value = (*value)?;
        let last = before.replace(value)?;
        if value >= last {
            return Some(value - last);
        }
        restarts += 1;
        // Past 2^32 the difference is like the others; otherwise the counter began at 0.
        let wrapped = value + wrap - last;
        Some(if last < wrap && wrapped <= 2.0 * most { wrapped } else { value })
    };
    let differences = values.iter().map(difference).collect();
    (differences, restarts)
}

#[cfg(test)]
mod tests {
    use super::{differences, kind};
    use crate::options::{Amounts, Options};

    fn is_counter(name: &str, values: &[f64]) -> bool {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        kind(name, &values, &Options::default()).is_counter
    }

    #[test]
    fn values_that_never_fall_are_a_counters() {
        let counter: Vec<f64> = (0..20).map(|n| f64::from(n * n)).collect();
        assert!(is_counter("rx_bytes", &counter) && is_counter("rx_bytes", &counter[..5]));
        // An outage, and a restart.
        let outage: Vec<f64> = (0..40).map(|n| f64::from(n.min(20))).collect();
        assert!(is_counter("rx_bytes", &outage));
        let restart: Vec<f64> = (0..40).map(|n| f64::from(1 + n % 25)).collect();
        assert!(is_counter("rx_bytes", &restart));
        assert!(is_counter("total_bytes", &[1.0, 3.0, 3.0]));
        for amounts in [
            &[5.0; 30][..],
            &[1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1001.0],
            &[1.0, 3.0, 3.0],
            &[1.0, 5.0, 2.0, 7.0, 1.0, 8.0, 8.0, 9.0, 4.0, 6.0, 3.0],
        ] {
            assert!(!is_counter("bytes", amounts), "{amounts:?}");
        }
        let each = Options { amounts: Some(Amounts::EachRow), ..Options::default() };
        let values: Vec<Option<f64>> = counter.into_iter().map(Some).collect();
        assert!(!kind("rx_bytes", &values, &each).is_counter);
    }

    #[test]
    fn differences_pass_rows_without_value_restarts_and_32_bits() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(
            differences(&[Some(1.0), None, Some(4.0), Some(9.0)], 1.0),
            (vec![None, None, Some(3.0), Some(5.0)], 0)
        );
        let restart = some(&[100.0, 200.0, 300.0, 20.0, 90.0]);
        assert_eq!(differences(&restart, 1.0).0[3..], [Some(20.0), Some(70.0)]);
        let wrap = some(&[4_294_967_000.0, 4_294_967_200.0, 104.0]);
        assert_eq!(differences(&wrap, 1.0), (vec![None, Some(200.0), Some(200.0)], 1));
    }
}
