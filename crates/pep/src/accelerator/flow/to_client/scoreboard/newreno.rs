//! Loss recovery for clients without SACK (NewReno, RFC 6582).
//!
//! Such a client reports the first missing byte only; each duplicate ACK says that one more segment has left
//! the path. Since segments above a hole cannot be told apart, none of them is marked lost for having been
//! overtaken, as RACK would do. A partial acknowledgment reveals the next hole. One hole a round trip is too
//! slow for many holes: when duplicate ACKs show that more than a few segments are missing, everything up to
//! the end of the recovery is sent again, once. If a segment arrives that was not retransmitted, the recovery
//! was spurious and is undone. To mark a flight as lost takes time for each segment: a client that invents
//! ACKs causes it once in a round trip, and the undoing takes time for lost segments alone.

use crate::accelerator::flow::steps::step;
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::flow::to_client::scoreboard::records::Records;
use crate::accelerator::flow::to_client::scoreboard::sent::{LOST, RETRANSMITTED, Sent};
use paceline_net::{Duration, Instant};

/// Duplicate ACKs that indicate a loss (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u8 = 3;
/// Missing segments that are retransmitted one each round trip. Chosen: three round trips cost less than to
/// send a whole flight again.
const MAX_SINGLE_REPAIRS: u64 = 3;
/// Least time between two marks of the whole flight, where the round trip is shorter. Chosen: longer than
/// that of any radio; the flight of 64 MiB takes less than a millisecond.
const MIN_FLIGHT_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(in crate::accelerator) struct NewReno {
    /// End of the recovery under way: an acknowledgment below it is a partial one (`recover` of RFC 6582).
    recover: Option<u64>,
    /// Everything below `recover` was sent again; and when that was done last.
    resent_all: bool,
    resent_at: Option<Instant>,
    /// Holes repaired one by one since.
    single_repairs: u64,
    /// Duplicate ACKs outside a recovery.
    duplicates: u8,
    /// The last recovery was undone as spurious. Not twice in a row: the path may have become shorter.
    undone: bool,
    /// Bytes in flight that duplicate ACKs have reported as arrived, above a hole.
    arrived: u64,
    /// Bytes reported as arrived whose records were marked lost since, because they cannot be told apart.
    arrived_of_lost: u64,
    /// Spurious retransmissions in flight: bytes already acknowledged, each segment of which the client will
    /// answer with a duplicate ACK. And when the last of them was sent.
    spurious: u64,
    spurious_at: Instant,
}

/// The records that an ACK covers, examined before they are removed.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Covered {
    first: Sent,
    bytes: u64,
    /// Bytes of the other records: retransmissions that have arrived, and those still in flight.
    arrived: u64,
    spurious: u64,
    /// The first record was acknowledged sooner after its retransmission than the minimum round-trip time,
    early: bool,
    /// and sooner than three quarters of that time.
    very_early: bool,
    /// The minimum round-trip time.
    min_rtt: Duration,
}

impl NewReno {
    /// Bytes that count as in flight and have left the path.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }
    pub fn is_recovering(&self) -> bool {
        self.recover.is_some()
    }
    /// The records are going to be sent again; those that have arrived will arrive twice.
    fn move_arrived_to_lost(&mut self) {
        self.arrived_of_lost += std::mem::take(&mut self.arrived);
    }
    fn end_recovery(&mut self) {
        (self.recover, self.resent_all, self.single_repairs, self.duplicates) = (None, false, 0, 0);
    }

    /// A duplicate ACK that reports nothing else. A segment has `segment` bytes; retransmissions are answered
    /// within `overdue`. Returns the bytes in flight that it reports as arrived, and whether the first record
    /// is lost.
    pub fn on_duplicate(
        &mut self,
        records: &mut Records,
        now: Instant,
        segment: u32,
        overdue: Duration,
    ) -> (u64, bool) {
        let Some(&front) = records.front() else { return (0, false) };
        let end = records.end().unwrap_or(0);
        let len = u64::from(segment);
        if self.spurious > 0 {
            let arrived = len.min(self.spurious);
            self.spurious -= arrived;
            return (arrived, false);
        }
        // Capped: forged duplicate ACKs must not report more than was sent.
        let arrived = len.min(records.in_flight().saturating_sub(self.arrived));
        self.arrived += arrived;
        self.duplicates = self.duplicates.saturating_add(1);
        let lost = if self.is_recovering() {
            front.is(RETRANSMITTED) && now.since(front.at) >= overdue
        } else {
            self.duplicates >= DUPLICATE_THRESHOLD
        };
        if !lost || front.is(LOST) {
            return (arrived, false);
        }
        if self.is_recovering() {
            // Others may have been lost with the retransmission: the missing records are not known any more.
            self.resent_all = false;
            self.move_arrived_to_lost();
        }
        self.recover.get_or_insert(end);
        records.lose_first_counted();
        (arrived, true)
    }

    /// A retransmission timeout: everything that duplicate ACKs reported is discarded.
    pub fn on_timeout(&mut self, records: &Records) {
        let (recover, undone, resent_at) = (records.end(), self.undone, self.resent_at);
        *self = Self { recover, undone, resent_at, ..Self::default() };
    }

    /// Examines the records below `una` before they are removed. `min_rtt` is the minimum round-trip time.
    pub fn before_ack(
        &mut self,
        records: &Records,
        now: Instant,
        una: u64,
        min_rtt: Duration,
    ) -> Option<Covered> {
        let first = *records.front().filter(|first| first.off < una)?;
        let (mut arrived, mut spurious) = (0, 0);
        if self.is_recovering() {
            let covered = records.iter().skip(1).take_while(|record| record.off < una).inspect(|_| step());
            for record in covered.filter(|record| record.is(RETRANSMITTED) && record.in_flight()) {
                // The path keeps the order: records sent before the first one have arrived before it.
                if record.at < first.at {
                    arrived += u64::from(record.len);
                } else {
                    spurious += u64::from(record.len);
                    self.spurious_at = self.spurious_at.max(record.at);
                }
            }
        }
        self.spurious += spurious;
        let early = first.is(RETRANSMITTED) && now.since(first.at) < min_rtt;
        let very_early = early && now.since(first.at) < min_rtt * 3 / 4;
        Some(Covered { first, bytes: una - first.off, arrived, spurious, early, very_early, min_rtt })
    }

    /// The records below `una` were removed. Subtracts from `delivery` the bytes that duplicate ACKs have
    /// reported. Whether the recovery was spurious and its losses were undone.
    pub fn after_ack(
        &mut self,
        records: &mut Records,
        now: Instant,
        una: u64,
        covered: Covered,
        delivery: &mut Delivery,
    ) -> bool {
        let Covered { first, bytes, arrived, spurious, early, very_early, min_rtt } = covered;
        if !self.is_recovering() && self.arrived + self.arrived_of_lost == 0 {
            if !first.is(RETRANSMITTED) {
                self.undone = false;
                // The path keeps the order: spurious retransmissions sent earlier have been answered.
                self.spurious = if first.at > self.spurious_at { 0 } else { self.spurious };
            }
            self.duplicates = 0;
            return false;
        }
        // The first record was missing; the others had arrived, as far as duplicate ACKs reported.
        let others = bytes.saturating_sub(u64::from(first.len));
        let of_lost = self.arrived_of_lost.min(others);
        let counted = (others - of_lost).saturating_sub(spurious).max(arrived).min(self.arrived);
        (self.arrived_of_lost, self.arrived) =
            (self.arrived_of_lost - of_lost, (self.arrived - counted).min(records.in_flight()));
        delivery.bytes = delivery.bytes.saturating_sub(of_lost + counted);
        // The others arrived earlier. The segment that fills the hole gives the round-trip time, unless the
        // ACK may answer its first transmission.
        (delivery.rtt, delivery.sent_at, delivery.skipped) = (None, None, None);
        if !early && !first.is(LOST) {
            (delivery.rtt, delivery.sent_at) = (Some(now.since(first.at)), Some(first.at));
        }
        if records.is_empty() {
            (self.arrived, self.arrived_of_lost) = (0, 0);
        }
        match self.recover {
            Some(recover) if una >= recover => {
                self.end_recovery();
                self.undone = false;
                self.find_next_hole(records, first.at);
            }
            // The segment arrived without having been retransmitted.
            Some(_) if (first.is(LOST) || very_early) && !self.undone => {
                records.undo_losses();
                self.end_recovery();
                self.undone = true;
                return true;
            }
            Some(recover) => {
                // Segments that were sent again are answered after a round trip at the soonest.
                let interval = min_rtt.max(MIN_FLIGHT_INTERVAL);
                let again = self.resent_at.is_none_or(|at| now.since(at) >= interval);
                if self.on_partial_ack(records, (una, recover), first.at, again) {
                    self.resent_at = Some(now);
                }
            }
            None => self.duplicates = 0,
        }
        false
    }

    /// A recovery has ended. Duplicate ACKs of that time indicate another hole if the first record was sent
    /// before the segment that has just arrived, at `arrived_sent_at`.
    fn find_next_hole(&mut self, records: &mut Records, arrived_sent_at: Instant) {
        let Some(&front) = records.front() else { return };
        if self.arrived >= u64::from(DUPLICATE_THRESHOLD) * u64::from(front.len)
            && front.in_flight()
            && front.at < arrived_sent_at
        {
            self.recover = records.end();
            records.lose_first_counted();
        }
    }

    /// The segment that was sent at `arrived_sent_at` has filled a hole, and there is another one at `una`.
    /// Whether the flight up to `recover` was marked lost, which needs `may_resend`.
    fn on_partial_ack(
        &mut self,
        records: &mut Records,
        (una, recover): (u64, u64),
        arrived_sent_at: Instant,
        may_resend: bool,
    ) -> bool {
        // The path keeps the order: a segment sent later is still in flight.
        let overtaken = |record: &Sent| record.in_flight() && record.at < arrived_sent_at;
        let Some(&front) = records.front().filter(|front| overtaken(front)) else { return false };
        let missing = (recover - una).saturating_sub(self.arrived);
        let few = missing <= MAX_SINGLE_REPAIRS * u64::from(front.len);
        if !may_resend || self.single_repairs < MAX_SINGLE_REPAIRS && (self.resent_all || few) {
            self.single_repairs += 1;
            records.lose_first_counted();
            return false;
        }
        (self.resent_all, self.single_repairs) = (true, 0);
        self.move_arrived_to_lost();
        records.count_missing(missing);
        for at in 0..records.first_from(recover) {
            step();
            if records.get(at).is_some_and(overtaken) {
                records.lose(at);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::flow::to_client::rtt::{AckDeadline, RttBounds};
    use crate::accelerator::flow::to_client::scoreboard::Scoreboard;

    const SEGMENT: u32 = 1000;
    const RTT: Duration = Duration::from_millis(40);
    const BOUNDS: RttBounds =
        RttBounds { min: RTT, shortest: Duration::ZERO, longest: Duration::MAX, first_copy: Duration::ZERO };

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    /// Twenty segments from offset 0, one each millisecond.
    fn flight() -> Scoreboard {
        let mut board = Scoreboard::new(false);
        (0..20).for_each(|n| board.on_send(ms(n), 1000 * n, SEGMENT, false, false));
        board
    }
    fn ack(board: &mut Scoreboard, at: u64, segments: u64) -> Delivery {
        let delivery = board.on_ack(ms(at), 1000 * segments, std::iter::empty(), &BOUNDS);
        let none: Option<AckDeadline> = None;
        assert_eq!(
            board.detect_losses(ms(at), (RTT, RTT), SEGMENT, none),
            None,
            "no record is marked lost for its age"
        );
        board.check(1000 * segments, 20_000);
        delivery
    }
    /// `count` duplicate ACKs, one each millisecond; the bytes that they report as arrived.
    fn duplicates(board: &mut Scoreboard, at: u64, count: u64) -> u64 {
        (0..count).map(|n| board.on_bare_duplicate(ms(at + n), SEGMENT, RTT * 2).0).sum()
    }
    fn retransmit(board: &mut Scoreboard, at: u64) -> Vec<u64> {
        std::iter::from_fn(|| {
            let next = board.next_lost()?;
            board.on_retransmit(ms(at), next.len, false);
            Some(next.off / 1000)
        })
        .collect()
    }

    #[test]
    fn three_duplicates_mark_the_first_lost_and_each_reports_one_segment_as_arrived() {
        let mut board = flight();
        assert_eq!(ack(&mut board, 42, 2).rtt, Some(Duration::from_millis(41)));
        assert_eq!((duplicates(&mut board, 43, 2), retransmit(&mut board, 45).len()), (2000, 0));
        assert_eq!((duplicates(&mut board, 45, 1), retransmit(&mut board, 45)), (1000, vec![2]));
        assert_eq!(board.in_flight(), 15_000);
        assert_eq!((duplicates(&mut board, 46, 14), board.in_flight()), (14_000, 1000), "all but the hole");
        let delivery = ack(&mut board, 86, 20);
        assert_eq!((delivery.bytes, delivery.rtt), (1000, Some(Duration::from_millis(41))));
        assert!(!board.is_recovering() && board.in_flight() == 0);
    }

    #[test]
    fn few_holes_are_repaired_one_each_round_trip() {
        let mut board = flight();
        duplicates(&mut board, 41, 18);
        assert_eq!(retransmit(&mut board, 43), [0]);
        assert_eq!((ack(&mut board, 83, 10).bytes, retransmit(&mut board, 83)), (1000, vec![10]));
        assert_eq!(ack(&mut board, 123, 20).bytes, 1000);
    }

    #[test]
    fn with_many_holes_everything_is_sent_again_and_counted_once() {
        let mut board = flight();
        // Every other segment is missing: ten have arrived, reported by ten duplicate ACKs.
        let reported = duplicates(&mut board, 41, 10);
        retransmit(&mut board, 43);
        let mut bytes = reported + ack(&mut board, 83, 2).bytes;
        let mut lost = Delivery::default();
        board.take_losses(&mut lost);
        assert_eq!(lost.lost, 1000 + 9000, "the missing segments, and no more");
        assert_eq!(retransmit(&mut board, 84), (2..20).collect::<Vec<_>>());
        // The ACK of each hole covers the next segment as well, whose retransmission is answered by a
        // duplicate ACK.
        for hole in (2..20).step_by(2) {
            bytes += ack(&mut board, 124 + hole, hole + 2).bytes;
            if hole < 18 {
                assert_eq!(duplicates(&mut board, 125 + hole, 1), 1000, "spurious, but it was in flight");
                assert_eq!(retransmit(&mut board, 125 + hole), [0; 0]);
            }
        }
        assert_eq!(bytes, 20_000);
        assert!(!board.is_recovering());
    }

    #[test]
    fn a_lost_retransmission_is_sent_again_when_its_ack_is_overdue() {
        let mut board = flight();
        duplicates(&mut board, 41, 10);
        assert_eq!(retransmit(&mut board, 43), [0]);
        duplicates(&mut board, 60, 5);
        assert_eq!(retransmit(&mut board, 70), [0; 0]);
        duplicates(&mut board, 124, 1);
        assert_eq!(retransmit(&mut board, 124), [0]);
    }

    #[test]
    fn a_segment_that_arrives_without_retransmission_undoes_the_recovery() {
        let mut board = flight();
        duplicates(&mut board, 41, 3);
        ack(&mut board, 44, 4);
        assert!(!board.is_recovering() && retransmit(&mut board, 44).is_empty());
        // The same if the ACK comes sooner than the retransmission can be answered.
        ack(&mut board, 45, 5);
        duplicates(&mut board, 46, 3);
        assert_eq!(retransmit(&mut board, 48), [5]);
        ack(&mut board, 50, 7);
        assert_eq!(retransmit(&mut board, 50), [0; 0]);
        // Not twice in a row: the path may have become shorter.
        duplicates(&mut board, 51, 3);
        assert_eq!(retransmit(&mut board, 53), [7]);
        ack(&mut board, 55, 8);
        assert_eq!(retransmit(&mut board, 55), (8..20).collect::<Vec<_>>());
    }

    #[test]
    fn forged_duplicate_acks_report_no_more_than_was_sent() {
        let mut board = flight();
        assert_eq!((duplicates(&mut board, 41, 1000), board.in_flight()), (19_000, 0));
        ack(&mut board, 1100, 20);
        assert_eq!(duplicates(&mut board, 1101, 1000), 0);
    }

    #[test]
    fn after_a_timeout_the_first_ack_marks_the_rest_lost() {
        let mut board = flight();
        board.on_timeout();
        board.lose_first(false);
        assert_eq!(retransmit(&mut board, 300), [0]);
        ack(&mut board, 340, 1);
        assert_eq!(retransmit(&mut board, 340), (1..20).collect::<Vec<_>>());
    }
}
