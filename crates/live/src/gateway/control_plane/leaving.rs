//! Watches whether acknowledgments that the gateway sends towards servers leave this machine, in routed mode:
//! a firewall behind the gateway may drop those that it does not expect. The workers count what they send,
//! and a kernel program what leaves by the servers' interface.

/// Acknowledgments of a comparison. Chosen: a few may wait for the address of a neighbour.
const MIN_SENT: u64 = 32;
/// Share of missing ones that is too much. Chosen: the kernel's routing drops none; a firewall drops nearly
/// all early ones.
const MAX_MISSING_SHARE: f64 = 0.2;
/// Comparisons in a row with too many. Chosen: one may be a rule that ends one connection.
const STRIKES: u32 = 2;

/// The comparison of the two counters.
#[derive(Default)]
pub struct Leaving {
    /// Sent and left at the last comparison.
    before: Option<[u64; 2]>,
    strikes: u32,
    found: bool,
}

impl Leaving {
    /// Compares the counters. Whether acknowledgments are dropped on this machine, from now on until
    /// [`Self::default`].
    pub fn check(&mut self, sent: u64, left: u64) -> bool {
        let [sent_before, left_before] = *self.before.get_or_insert([sent, left]);
        let (more, more_left) = (sent - sent_before, left.saturating_sub(left_before));
        if more >= MIN_SENT {
            let missing = more.saturating_sub(more_left) as f64 / more as f64;
            self.strikes = if missing > MAX_MISSING_SHARE { self.strikes + 1 } else { 0 };
            self.before = Some([sent, left]);
        }
        self.found |= self.strikes >= STRIKES;
        self.found
    }
    /// Whether [`Self::check`] has found that.
    pub fn is_found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgments_that_do_not_leave_are_found_and_others_are_not() {
        let mut leaving = Leaving::default();
        let mut check = |sent: u64, left: u64| leaving.check(sent, left);
        assert!(!check(1000, 990));
        assert!(!check(1040, 990) && !check(1041, 990), "one comparison, and too few for the next");
        assert!(!check(1100, 1045), "all left");
        assert!(!check(1140, 1050) && check(1180, 1060));
        assert!(check(2000, 1900), "it stays found");
        let mut good = Leaving::default();
        assert!((0..1000).all(|n| !good.check(100 * n, 100 * n + n % 3)));
    }
}
