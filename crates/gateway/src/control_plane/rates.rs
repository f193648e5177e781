//! Measured rates of connections and devices: what they have acknowledged between two looks.

use paceline_linux::clock;
use paceline_net::{Duration, Instant};
use std::collections::BTreeMap;

/// Least time between the two looks. Chosen: some round trips.
const LEAST: Duration = Duration::from_millis(500);
/// An earlier look is of no use: the rate would be one of long ago. Chosen: longer than the interval of the
/// page and of `top`.
const MOST: Duration = Duration::from_secs(10);

/// A look: the time, and the bytes that each has acknowledged until then.
#[derive(Clone, Debug)]
pub struct Look<K> {
    at: Instant,
    delivered: BTreeMap<K, u64>,
}

impl<K: Ord + Copy> Look<K> {
    /// A look at present, without entries yet.
    pub fn now() -> Self {
        Self { at: clock::now(), delivered: BTreeMap::new() }
    }
    /// Notes an entry, and gives its rate in b/s since an earlier look. A new entry has acknowledged all of
    /// its bytes since. Keys that are there twice, as of a device in two accelerators, are added up.
    pub fn rate(&mut self, since: &Self, key: K, delivered: u64) -> u64 {
        let all = self.delivered.entry(key).or_default();
        *all += delivered;
        // A device's count begins anew with its first connection.
        let before = since.delivered.get(&key).copied().filter(|before| before <= all).unwrap_or(0);
        let seconds = self.at.since(since.at).as_secs_f64();
        if seconds > 0.0 { (8.0 * (*all - before) as f64 / seconds) as u64 } else { 0 }
    }
    /// Notes an entry.
    pub fn note(&mut self, key: K, delivered: u64) {
        *self.delivered.entry(key).or_default() += delivered;
    }
    /// Waits until a further look gives a rate: false if this one is too old for it.
    pub fn wait(&self) -> bool {
        let age = clock::now().since(self.at);
        if age < LEAST {
            clock::pause(LEAST.saturating_sub(age));
        }
        age <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_was_acknowledged_since_the_earlier_look() {
        let look = |seconds| Look { at: Instant::ZERO + Duration::from_secs(seconds), ..Look::now() };
        let (mut first, mut second) = (look(1), look(3));
        first.note(1, 1000);
        assert_eq!(second.rate(&first, 1, 3000), 8000);
        assert_eq!(second.rate(&first, 2, 500), 2000, "a new one");
        let mut third = look(4);
        assert_eq!(third.rate(&second, 1, 100), 800, "it began anew");
        assert_eq!(third.rate(&look(4), 3, 100), 0);
        assert!(!look(1).wait());
    }
}
