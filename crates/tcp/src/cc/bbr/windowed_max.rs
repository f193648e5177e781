//! The maximum over a sliding window in three entries (the filter of Linux `win_minmax`, after K. Nichols):
//! the largest value, and the largest ones since the two entries before, so that an expired maximum has a
//! successor.

/// Time and value; the time has any unit and does not decrease.
type Entry = (u64, u64);

/// A windowed maximum.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct WindowedMax {
    best: [Entry; 3],
}

impl WindowedMax {
    /// The maximum.
    pub fn get(&self) -> u64 {
        self.best[0].1
    }
    /// Adds a value; values older than `window` no longer count.
    pub fn update(&mut self, window: u64, now: u64, value: u64) {
        let new = (now, value);
        if value >= self.best[0].1 || now - self.best[2].0 > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        let age = now - self.best[0].0;
        if age > window {
            self.best = [self.best[1], self.best[2], new];
            if now - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    #[test]
    fn the_filter_is_close_to_the_true_maximum_and_never_above() {
        for seed in 0..50 {
            println!("seed {seed}");
            let mut stream = Stream::new(seed, "windowed max");
            let (mut filter, mut all) = (WindowedMax::default(), Vec::new());
            let (mut sum, mut true_sum) = (0, 0);
            for now in 0..300 {
                let value = stream.below(1000);
                all.push(value);
                filter.update(10, now, value);
                let most = all.iter().rev().take(11).max().copied().unwrap();
                assert!(filter.get() <= most && filter.get() >= value, "{now}: {filter:?}");
                (sum, true_sum) = (sum + filter.get(), true_sum + most);
            }
            assert!(sum * 100 >= true_sum * 95, "{sum} of {true_sum}");
        }
    }

    #[test]
    fn a_maximum_lasts_for_the_window() {
        let mut filter = WindowedMax::default();
        filter.update(10, 0, 100);
        for now in 1..=10 {
            filter.update(10, now, 50);
            assert_eq!(filter.get(), 100);
        }
        filter.update(10, 11, 50);
        assert_eq!(filter.get(), 50);
    }
}
