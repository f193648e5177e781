//! Watches whether acknowledgments that the gateway sends towards servers leave this machine, in routed mode:
//! a firewall behind the gateway may drop those that it does not expect, which are the early ones. The
//! workers count what they send, and a kernel program what leaves by the servers' interface.

/// Early acknowledgments of a comparison. Chosen: a few may wait for the address of a neighbour.
const MIN_EARLY: u64 = 8;
/// Comparisons in a row in which more than half of as many are missing. Chosen: one may be a rule that ends
/// one connection; the kernel's routing drops none.
const STRIKES: u32 = 2;

/// Acknowledgments so far.
#[derive(Clone, Copy)]
pub struct Acks {
    /// Sent by the workers.
    pub sent: u64,
    /// Of those, early ones.
    pub early: u64,
    /// Seen to leave.
    pub left: u64,
}

/// The comparison of the counters.
#[derive(Default)]
pub struct Leaving {
    /// The counters at the last comparison.
    before: Option<Acks>,
    strikes: u32,
    found: bool,
}

impl Leaving {
    /// Compares the counters. Whether acknowledgments are dropped on this machine, from now on until
    /// [`Self::default`].
    pub fn check(&mut self, now: Acks) -> bool {
        let before = *self.before.get_or_insert(now);
        let early = now.early - before.early;
        if early >= MIN_EARLY {
            let missing = (now.sent - before.sent).saturating_sub(now.left.saturating_sub(before.left));
            self.strikes = if 2 * missing > early { self.strikes + 1 } else { 0 };
            self.before = Some(now);
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
    fn early_acknowledgments_that_do_not_leave_are_found_and_others_are_not() {
        let mut leaving = Leaving::default();
        let mut check = |sent, early, left| leaving.check(Acks { sent, early, left });
        assert!(!check(1000, 50, 990));
        assert!(!check(1100, 60, 1080) && !check(1101, 61, 1080), "one comparison, and too few for the next");
        assert!(!check(1200, 80, 1180), "all left");
        assert!(!check(1300, 90, 1270) && check(1400, 110, 1355));
        assert!(check(2000, 200, 1955), "it stays found");
        let mut good = Leaving::default();
        assert!((0..1000).all(|n| !good.check(Acks { sent: 100 * n, early: 20 * n, left: 100 * n + n % 3 })));
    }
}
