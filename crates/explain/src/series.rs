//! Acknowledged bytes and round trips over time, in bins whose width doubles as a connection goes on.

use paceline_net::Instant;

/// Most bins. Chosen: a picture shows as many values; a connection takes 2 KB.
const MAX_BINS: usize = 64;
/// First width of a bin, ns. Chosen: shorter than the round trips of most connections.
const FIRST_WIDTH_NS: u64 = 10_000_000;

/// A part of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Acknowledged bytes.
    pub bytes: u64,
    rtt_sum_ns: u64,
    rtt_count: u64,
}

impl Bin {
    /// The mean round trip, ns.
    pub fn rtt_ns(&self) -> Option<f64> {
        (self.rtt_count > 0).then(|| self.rtt_sum_ns as f64 / self.rtt_count as f64)
    }
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.rtt_sum_ns += other.rtt_sum_ns;
        self.rtt_count += other.rtt_count;
    }
}

/// The bins from the first event on.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Start of the first bin.
    pub start: Option<Instant>,
    /// Binary logarithm of the width over the first one.
    doublings: u32,
    bins: Vec<Bin>,
}

impl Series {
    /// Bytes that were acknowledged at a time, and a round trip that ended then.
    pub fn add(&mut self, at: Instant, bytes: u64, rtt_ns: Option<u64>) {
        let start = *self.start.get_or_insert(at);
        let passed_ns = at.since(start).as_nanos();
        while passed_ns / self.width_ns() >= MAX_BINS as u64 {
            let halved = self.bins.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair.iter().skip(1).for_each(|bin| sum.add(bin));
                sum
            });
            self.bins = halved.collect();
            self.doublings += 1;
        }
        let index = (passed_ns / self.width_ns()) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
        }
        let (rtt_sum_ns, rtt_count) = rtt_ns.map_or((0, 0), |ns| (ns, 1));
        self.bins[index].add(&Bin { bytes, rtt_sum_ns, rtt_count });
    }
    /// Width of a bin, ns.
    pub fn width_ns(&self) -> u64 {
        FIRST_WIDTH_NS << self.doublings
    }
    /// The bins.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_to_the_end_of_its_range_ends_in_one_of_few_bins() {
        let mut series = Series::default();
        [0, u64::MAX].iter().for_each(|ns| series.add(Instant::from_nanos(*ns), 1, None));
        assert!(series.bins().len() <= MAX_BINS);
        assert_eq!(series.bins().iter().map(|bin| bin.bytes).sum::<u64>(), 2);
    }

    #[test]
    fn a_long_connection_has_the_same_bytes_in_wider_bins() {
        let mut series = Series::default();
        (0..100_000u64).for_each(|ms| series.add(Instant::from_nanos(ms * 1_000_000), 3, Some(ms + 1)));
        assert!(series.bins().len() <= MAX_BINS && series.bins().len() > MAX_BINS / 2 - 1);
        assert_eq!(series.bins().iter().map(|bin| bin.bytes).sum::<u64>(), 300_000);
        assert!(series.bins().windows(2).all(|pair| pair[0].rtt_ns() < pair[1].rtt_ns()));
    }
}
