//! Recovery from losses where the client has no SACK (RFC 6582): it says what it lacks first, and with each duplicate that
//! one more segment has left the path. What it holds above a hole it cannot say, so that nothing there is lost for having
//! been overtaken, as it would be with SACK.
//!
//! An answer to a repetition that ends below what was on its way (a partial acknowledgment) tells of the next hole. One hole
//! a round trip would take for ever where many are left: duplicates have told how much arrived, and where more than a few
//! segments are missing, everything up to there is sent again, once. If a segment arrives of which no repetition was sent,
//! nothing had been lost.

use crate::accelerator::flow::to_client::scoreboard::{Delivery, Scoreboard};
use crate::accelerator::flow::to_client::sent::{LOST, RESENT, Sent};
use paceline_net::{Duration, Instant};

/// Duplicates that stand for a loss (RFC 5681).
const DUPLICATES: u8 = 3;
/// So many segments are repaired one a round trip.
const FEW: u64 = 3;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct NewReno {
    /// In a recovery: its end, below which an acknowledgment tells of the next hole.
    recover: Option<u64>,
    /// All of it was sent again.
    all: bool,
    /// Holes repaired by themselves since.
    alone: u64,
    duplicates: u8,
    /// It was believed that nothing had been lost. Not twice in a row: the path may have become shorter.
    believed: bool,
    /// Bytes that duplicates told of, of what counts as on its way: the client holds them above a hole.
    told: u64,
    /// Those of what has been taken for lost since, because no one knows which they are.
    before: u64,
    /// Repetitions on their way of what has been acknowledged, and when the last was sent: the client will answer each with a
    /// duplicate.
    vain: u64,
    vain_at: Instant,
}

/// What an acknowledgment covers, as it was before.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Cover {
    first: Sent,
    bytes: u64,
    /// Of the others, repetitions that have arrived, and those on their way.
    arrived: u64,
    vain: u64,
    /// The first has arrived sooner than its repetition can have, as far as is known; and much sooner.
    early: bool,
    hasty: bool,
}

impl NewReno {
    /// Bytes that have left the path, though nothing acknowledges them.
    pub fn held(&self) -> u64 {
        self.told
    }
    /// Of what will be sent again, some will have arrived twice.
    fn forget(&mut self) {
        self.before += std::mem::take(&mut self.told);
    }
    fn end(&mut self) {
        (self.recover, self.all, self.alone, self.duplicates) = (None, false, 0, 0);
    }
}

impl Scoreboard {
    /// Of a client that does not say what it holds.
    pub fn without_sack() -> Self {
        Self { newreno: Some(Box::default()), ..Self::default() }
    }

    /// Whether a hole is known, where there is no SACK.
    pub fn is_recovering(&self) -> bool {
        self.newreno.as_ref().is_some_and(|reno| reno.recover.is_some())
    }

    /// A duplicate that says nothing else, for a segment of so many bytes. What is sent again is answered in less than `due`.
    /// Returns what it tells delivered, of what is on its way, and whether the first record is lost.
    pub fn on_bare_duplicate(&mut self, now: Instant, segment: u32, due: Duration) -> (u64, bool) {
        let end = self.sent.back().map_or(0, Sent::end);
        let (Some(reno), Some(front)) = (&mut self.newreno, self.sent.front()) else { return (0, false) };
        let len = u64::from(segment);
        if reno.vain > 0 {
            let told = len.min(reno.vain);
            reno.vain -= told;
            return (told, false);
        }
        // A client that invents duplicates delivers no more by them than it was sent.
        let told = len.min(self.in_flight.saturating_sub(reno.told));
        reno.told += told;
        reno.duplicates = reno.duplicates.saturating_add(1);
        let lost = if reno.recover.is_some() {
            front.is(RESENT) && now.since(front.at) >= due
        } else {
            reno.duplicates >= DUPLICATES
        };
        if !lost || front.is(LOST) {
            return (told, false);
        }
        if reno.recover.is_some() {
            // Others may have been lost with the repetition: what is missing is not known any more.
            reno.all = false;
            reno.forget();
        }
        reno.recover.get_or_insert(end);
        self.losses.on_lost(&self.sent[0]);
        self.lose_first(false);
        (told, true)
    }

    /// A timeout: what was known of the flight is not relied on.
    pub fn on_timeout_without_sack(&mut self) {
        let end = self.sent.back().map(Sent::end);
        if let Some(reno) = &mut self.newreno {
            **reno = NewReno { recover: end, believed: reno.believed, ..NewReno::default() };
        }
    }

    /// What everything below `una` is, before it is forgotten; nothing is answered in less than `least`.
    pub(in crate::accelerator) fn cover(&mut self, now: Instant, una: u64, least: Duration) -> Option<Cover> {
        let reno = self.newreno.as_mut()?;
        let first = *self.sent.front().filter(|first| first.off < una)?;
        let (mut arrived, mut vain) = (0, 0);
        if reno.recover.is_some() {
            let covered = self.sent.iter().skip(1).take_while(|record| record.off < una);
            for record in covered.filter(|record| record.is(RESENT) && record.in_flight()) {
                // What was sent before the first has arrived before it.
                if record.at < first.at {
                    arrived += u64::from(record.len);
                } else {
                    vain += u64::from(record.len);
                    reno.vain_at = reno.vain_at.max(record.at);
                }
            }
        }
        reno.vain += vain;
        let early = first.is(RESENT) && now.since(first.at) < least;
        let hasty = early && now.since(first.at) < least * 3 / 4;
        Some(Cover { first, bytes: una - first.off, arrived, vain, early, hasty })
    }

    /// Everything below `una` was acknowledged.
    pub(in crate::accelerator) fn uncover(
        &mut self,
        now: Instant,
        una: u64,
        cover: Cover,
        delivery: &mut Delivery,
    ) {
        let Some(reno) = &mut self.newreno else { return };
        let Cover { first, bytes, arrived, vain, early, hasty } = cover;
        if reno.recover.is_none() && reno.told + reno.before == 0 {
            if !first.is(RESENT) {
                reno.believed = false;
                reno.vain = if first.at > reno.vain_at { 0 } else { reno.vain }; // the path keeps the order
            }
            reno.duplicates = 0;
            return;
        }
        // The first was missing; the others were held, as far as duplicates told.
        let others = bytes.saturating_sub(u64::from(first.len));
        let before = reno.before.min(others);
        let counted = (others - before).saturating_sub(vain).max(arrived).min(reno.told);
        (reno.before, reno.told) = (reno.before - before, (reno.told - counted).min(self.in_flight));
        delivery.bytes = delivery.bytes.saturating_sub(before + counted);
        // The others came earlier. What fills a hole tells the round trip, unless it may have been the first transmission.
        (delivery.rtt, delivery.sent_at, delivery.skipped) = (None, None, None);
        if !early && !first.is(LOST) {
            (delivery.rtt, delivery.sent_at) = (Some(now.since(first.at)), Some(first.at));
        }
        if self.sent.is_empty() {
            (reno.told, reno.before) = (0, 0);
        }
        match reno.recover {
            Some(recover) if una >= recover => {
                reno.end();
                reno.believed = false;
                self.look_further(first.at);
            }
            // It arrived without having been sent again.
            Some(_) if (first.is(LOST) || hasty) && !reno.believed => self.nothing_was_lost(una),
            Some(recover) => self.on_partial(una, recover, first.at),
            None => reno.duplicates = 0,
        }
    }

    /// A recovery has ended. What duplicates told of meanwhile tells of another hole, if what it lacks was sent before what
    /// has arrived.
    fn look_further(&mut self, arrived: Instant) {
        let end = self.sent.back().map_or(0, Sent::end);
        let (Some(reno), Some(front)) = (&mut self.newreno, self.sent.front()) else { return };
        if reno.told >= u64::from(DUPLICATES) * u64::from(front.len)
            && front.in_flight()
            && front.at < arrived
        {
            reno.recover = Some(end);
            self.losses.on_lost(front);
            self.lose_first(false);
        }
    }

    /// What was sent at `arrived` has filled a hole, and there is another one at `una`.
    fn on_partial(&mut self, una: u64, recover: u64, arrived: Instant) {
        let Some(reno) = &mut self.newreno else { return };
        // The path keeps the order: what was sent later is on its way.
        let overtaken = |record: &Sent| record.in_flight() && record.at < arrived;
        let Some(front) = self.sent.front().filter(|front| overtaken(front)) else { return };
        let missing = (recover - una).saturating_sub(reno.told);
        if reno.alone < FEW && (reno.all || missing <= FEW * u64::from(front.len)) {
            reno.alone += 1;
            self.losses.on_lost(front);
            self.lose_first(false);
            return;
        }
        (reno.all, reno.alone) = (true, 0);
        reno.forget();
        self.losses.on_missing(missing);
        for at in 0..self.sent.partition_point(|record| record.off < recover) {
            if overtaken(&self.sent[at]) {
                self.lose(at);
            }
        }
    }

    /// What was taken for lost and was not sent again yet is on its way.
    fn nothing_was_lost(&mut self, una: u64) {
        for record in self.sent.iter_mut().filter(|record| record.is(LOST)) {
            record.state &= !LOST;
            self.in_flight += u64::from(record.len);
        }
        self.lost.clear();
        self.judged = una;
        if let Some(reno) = &mut self.newreno {
            reno.end();
            reno.believed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::flow::to_client::sent::{Answers, Patience};

    const SEGMENT: u32 = 1000;
    const RTT: Duration = Duration::from_millis(40);
    const ANSWERS: Answers =
        Answers { least: RTT, shortest: Duration::ZERO, longest: Duration::MAX, usual: Duration::ZERO };

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    /// Twenty segments from offset 0, one each millisecond.
    fn flight() -> Scoreboard {
        let mut board = Scoreboard::without_sack();
        (0..20).for_each(|n| board.on_send(ms(n), 1000 * n, SEGMENT, false, false));
        board
    }
    fn ack(board: &mut Scoreboard, at: u64, segments: u64) -> Delivery {
        let delivery = board.on_ack(ms(at), 1000 * segments, std::iter::empty(), &ANSWERS);
        let none: Option<Patience> = None;
        assert_eq!(
            board.detect(ms(at), (RTT, RTT), SEGMENT, none),
            None,
            "nothing there is judged by its time"
        );
        board.check(1000 * segments, 20_000);
        delivery
    }
    /// So many duplicates, one each millisecond; how many bytes they told of.
    fn duplicates(board: &mut Scoreboard, at: u64, count: u64) -> u64 {
        (0..count).map(|n| board.on_bare_duplicate(ms(at + n), SEGMENT, RTT * 2).0).sum()
    }
    fn repeated(board: &mut Scoreboard, at: u64) -> Vec<u64> {
        std::iter::from_fn(|| {
            let repeat = board.next_lost()?;
            board.on_repeat(ms(at), repeat.len, false);
            Some(repeat.off / 1000)
        })
        .collect()
    }

    #[test]
    fn three_duplicates_lose_the_first_and_each_says_that_something_has_left_the_path() {
        let mut board = flight();
        assert_eq!(ack(&mut board, 42, 2).rtt, Some(Duration::from_millis(41)));
        assert_eq!((duplicates(&mut board, 43, 2), repeated(&mut board, 45).len()), (2000, 0));
        assert_eq!((duplicates(&mut board, 45, 1), repeated(&mut board, 45)), (1000, vec![2]));
        assert_eq!(board.in_flight(), 15_000);
        assert_eq!((duplicates(&mut board, 46, 14), board.in_flight()), (14_000, 1000), "all but the hole");
        let delivery = ack(&mut board, 86, 20);
        assert_eq!((delivery.bytes, delivery.rtt), (1000, Some(Duration::from_millis(41))));
        assert!(!board.is_recovering() && board.in_flight() == 0);
    }

    #[test]
    fn few_holes_are_filled_one_a_round_trip() {
        let mut board = flight();
        duplicates(&mut board, 41, 18);
        assert_eq!(repeated(&mut board, 43), [0]);
        assert_eq!((ack(&mut board, 83, 10).bytes, repeated(&mut board, 83)), (1000, vec![10]));
        assert_eq!(ack(&mut board, 123, 20).bytes, 1000);
    }

    #[test]
    fn where_many_are_missing_all_is_sent_again_and_counts_once() {
        let mut board = flight();
        // Every other one: ten have arrived, which nine duplicates tell of.
        let told = duplicates(&mut board, 41, 10);
        repeated(&mut board, 43);
        let mut bytes = told + ack(&mut board, 83, 2).bytes;
        let mut lost = Delivery::default();
        board.take_lost(&mut lost);
        assert_eq!(lost.lost, 1000 + 9000, "what is missing, and no more");
        assert_eq!(repeated(&mut board, 84), (2..20).collect::<Vec<_>>());
        // Each repetition of a hole acknowledges the next as well, whose repetition is answered by a duplicate.
        for hole in (2..20).step_by(2) {
            bytes += ack(&mut board, 124 + hole, hole + 2).bytes;
            if hole < 18 {
                assert_eq!(
                    duplicates(&mut board, 125 + hole, 1),
                    1000,
                    "in vain, but it had room on the path"
                );
                assert_eq!(repeated(&mut board, 125 + hole), [0; 0]);
            }
        }
        assert_eq!(bytes, 20_000);
        assert!(!board.is_recovering());
    }

    #[test]
    fn a_repetition_that_is_lost_is_sent_again_when_its_answer_is_overdue() {
        let mut board = flight();
        duplicates(&mut board, 41, 10);
        assert_eq!(repeated(&mut board, 43), [0]);
        duplicates(&mut board, 60, 5);
        assert_eq!(repeated(&mut board, 70), [0; 0]);
        duplicates(&mut board, 124, 1);
        assert_eq!(repeated(&mut board, 124), [0]);
    }

    #[test]
    fn what_arrives_without_a_repetition_was_late() {
        let mut board = flight();
        duplicates(&mut board, 41, 3);
        ack(&mut board, 44, 4);
        assert!(!board.is_recovering() && repeated(&mut board, 44).is_empty());
        // Nor was anything lost if the answer comes before that of the repetition can.
        ack(&mut board, 45, 5);
        duplicates(&mut board, 46, 3);
        assert_eq!(repeated(&mut board, 48), [5]);
        ack(&mut board, 50, 7);
        assert_eq!(repeated(&mut board, 50), [0; 0]);
        // Not believed twice in a row: the path may have become shorter.
        duplicates(&mut board, 51, 3);
        assert_eq!(repeated(&mut board, 53), [7]);
        ack(&mut board, 55, 8);
        assert_eq!(repeated(&mut board, 55), (8..20).collect::<Vec<_>>());
    }

    #[test]
    fn invented_duplicates_deliver_no_more_than_was_sent() {
        let mut board = flight();
        assert_eq!((duplicates(&mut board, 41, 1000), board.in_flight()), (19_000, 0));
        ack(&mut board, 1100, 20);
        assert_eq!(duplicates(&mut board, 1101, 1000), 0);
    }

    #[test]
    fn after_a_timeout_an_answer_to_it_loses_the_rest() {
        let mut board = flight();
        board.on_timeout_without_sack();
        board.lose_first(false);
        assert_eq!(repeated(&mut board, 300), [0]);
        ack(&mut board, 340, 1);
        assert_eq!(repeated(&mut board, 340), (1..20).collect::<Vec<_>>());
    }
}
