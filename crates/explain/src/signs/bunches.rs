//! Bunches of ACKs: many within a short time, after a gap in which none came.
//!
//! The data of a bunch left over a longer time than its ACKs took to come: they were held back behind the
//! capture point and let go together (ACK compression: Zhang, Shenker and Clark, SIGCOMM 1991).

use paceline_net::Instant;

/// Share of a round trip that a gap must last. Chosen: shorter gaps do not stop a window of ACK-clocked data;
/// an eighth instead changes no largest cause of the tested scenarios.
const GAP_PARTS: u64 = 4;
/// Share of the gap within which the ACKs of a bunch come. Chosen: with a quarter instead, slow start's own
/// bursts would count.
const BUNCH_PARTS: u64 = 8;
/// ACKs of a bunch. Chosen: two or three come together by delayed ACKs.
const LEAST_ACKS: u32 = 4;
/// Times by which the data of a bunch left over a longer time than its ACKs took. Chosen: an ordinary queue
/// spreads ACKs instead.
const COMPRESSION: u64 = 4;

/// The gap and the bunch that are going on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bunches {
    last: Option<Instant>,
    gap_ns: u64,
    start: Instant,
    end: Instant,
    acks: u32,
    /// Times at which the first and the last data of the bunch left.
    sent: Option<(Instant, Instant)>,
    /// Number of bunches.
    pub count: u64,
}

impl Bunches {
    /// An ACK of new data that left at `sent_at`, with this smoothed round trip. Returns the length of the
    /// gap before the bunch that has just ended, in ns, if it was one.
    pub fn on_ack(&mut self, at: Instant, sent_at: Option<Instant>, rtt_ns: u64) -> Option<u64> {
        let gap_ns = self.last.map_or(0, |last| at.since(last).as_nanos());
        self.last = Some(at);
        if at.since(self.start).as_nanos() <= self.gap_ns / BUNCH_PARTS && self.acks > 0 {
            self.acks += 1;
            self.end = at;
            if let (Some((first, _)), Some(sent_at)) = (self.sent, sent_at) {
                self.sent = Some((first, sent_at));
            }
            return None;
        }
        let ended = self.ended();
        let is_gap = rtt_ns > 0 && gap_ns >= rtt_ns / GAP_PARTS;
        *self = Self {
            last: self.last,
            gap_ns: if is_gap { gap_ns } else { 0 },
            start: at,
            end: at,
            acks: u32::from(is_gap),
            sent: sent_at.map(|sent_at| (sent_at, sent_at)),
            count: self.count + u64::from(ended.is_some()),
        };
        ended
    }
    fn ended(&self) -> Option<u64> {
        let (first, last) = self.sent?;
        let (left_ns, came_ns) = (last.since(first).as_nanos(), self.end.since(self.start).as_nanos());
        let is_compressed = left_ns >= (COMPRESSION * came_ns).max(self.gap_ns / 2);
        (self.acks >= LEAST_ACKS && is_compressed).then_some(self.gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number and gaps of bunches: data leave each millisecond, ACKs come after 50 ms at multiples of a time.
    fn bunches(every_us: u64) -> (u64, u64) {
        let mut bunches = Bunches::default();
        let mut waited_ns = 0;
        for data in 0..1000u64 {
            let sent_us = 1000 * data;
            let at_us = (sent_us + 50_000).next_multiple_of(every_us) + data % (every_us / 1000) * 10;
            let (sent, at) = (Instant::from_nanos(1000 * sent_us), Instant::from_nanos(1000 * at_us));
            waited_ns += bunches.on_ack(at, Some(sent), 50_000_000).unwrap_or(0);
        }
        (bunches.count, waited_ns)
    }

    #[test]
    fn acks_that_are_held_back_come_in_bunches() {
        let (count, waited_ns) = bunches(40_000);
        assert!((20..=25).contains(&count) && (700_000_000..1_000_000_000).contains(&waited_ns), "{count}");
        assert_eq!(bunches(1000), (0, 0));
        assert_eq!(bunches(5000), (0, 0), "shorter than a quarter of the round trip");
    }
}
