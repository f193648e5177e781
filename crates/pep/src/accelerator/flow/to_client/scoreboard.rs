//! What is on its way to the client: RACK (RFC 8985) over one record a segment.
//!
//! Every record is judged once for its first transmission, in order of its offset, and once for each repetition, in
//! order of time: the work is constant per segment, however many are in flight. What RACK calls lost is sent again
//! from here; a timeout sends the first segment again and leaves the rest to RACK. Clients without SACK have `newreno`.

mod newreno;

use self::newreno::NewReno;
use crate::accelerator::flow::from_server::store::give_back;
use crate::accelerator::flow::to_client::losses::Losses;
use crate::accelerator::flow::to_client::ranges::Ranges;
use crate::accelerator::flow::to_client::sent::{AGAIN, BEYOND, DOUBTED, FIN, LOST, RESENT, SACKED, Sent};
pub(in crate::accelerator) use crate::accelerator::flow::to_client::sent::{
    Answers, Delivery, Patience, Repeat,
};
use paceline_net::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::hint::black_box;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Scoreboard {
    sent: VecDeque<Sent>,
    sacked: Ranges,
    sacked_bytes: u64,
    in_flight: u64,
    losses: Losses,
    /// Where the client has no SACK.
    newreno: Option<Box<NewReno>>,
    /// Offsets of records found lost, the lowest first: what the client waits for; entries may be stale.
    lost: BTreeSet<u64>,
    /// Repetitions by time; entries may be stale.
    resent: VecDeque<(u64, Instant)>,
    /// First transmissions below this offset have been judged.
    judged: u64,
    /// The record delivered that was sent last: when, and its end.
    rack: (Instant, u64),
    rack_rtt: Duration,
    /// When what was delivered had been sent, at the latest.
    newest: Instant,
    /// Highest end delivered: a first transmission below it was overtaken.
    highest: u64,
    /// A repetition was answered sooner than anything ever was, and nothing that was sent once has arrived since: either it
    /// was sent in vain, or the path has become shorter.
    hasty: bool,
    /// When something was last seen to have been sent again in vain.
    vain_at: Instant,
    reordered: bool,
    /// Quarters of the minimum round-trip time by which segments may overtake.
    reorder_quarters: u8,
    widened_until: u64,
    flight_until: u64,
    flights_left: u8,
}

impl Scoreboard {
    /// Reads each of its cache lines.
    pub fn look_at(&self) {
        black_box((
            self.sent.len(),
            self.sacked_bytes,
            self.resent.len(),
            self.rack,
            self.highest,
            self.flight_until,
        ));
    }
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
    /// Bytes sent and neither acknowledged nor known to be lost, nor to have arrived.
    pub fn in_flight(&self) -> u64 {
        self.in_flight - self.newreno.as_ref().map_or(0, |reno| reno.held().min(self.in_flight))
    }
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }
    pub fn is_front_lost(&self) -> bool {
        self.sent.front().is_some_and(|front| front.is(LOST))
    }
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }
    /// Whether a hole is known: something above it arrived.
    pub fn has_hole(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// The end of what is selectively acknowledged, while there is a hole.
    pub fn sacked_end(&self) -> Option<u64> {
        self.sacked.end()
    }

    pub fn on_send(&mut self, now: Instant, off: u64, len: u32, beyond: bool, fin: bool) {
        debug_assert!(self.sent.back().is_none_or(|last| last.end() == off), "new data is sent in order");
        let state = if beyond { BEYOND } else { 0 } | if fin { FIN } else { 0 };
        self.sent.push_back(Sent { off, at: now, len, gap_ms: 0, state });
        self.in_flight += u64::from(len);
    }

    fn find(&self, off: u64) -> Option<usize> {
        let at = self.sent.partition_point(|record| record.end() <= off);
        (at < self.sent.len()).then_some(at)
    }

    /// The client acknowledged everything below `una`, and the blocks.
    pub fn on_ack(
        &mut self,
        now: Instant,
        una: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        answers: &Answers,
    ) -> Delivery {
        let mut delivery = Delivery { highest_before: self.highest, ..Delivery::default() };
        let cover = self.cover(now, una, answers.least);
        while let Some(record) = self.sent.pop_front_if(|record| record.end() <= una) {
            if record.is(SACKED) {
                self.sacked_bytes -= u64::from(record.len);
            } else {
                self.on_delivered(now, record, &mut delivery, answers);
            }
        }
        if let Some(front) = self.sent.front_mut().filter(|front| front.off < una) {
            let part = (una - front.off) as u32;
            front.off = una;
            front.len -= part;
            if front.in_flight() {
                self.in_flight -= u64::from(part);
            }
            if front.is(SACKED) {
                self.sacked_bytes -= u64::from(part);
            } else {
                delivery.bytes += u64::from(part);
            }
        }
        self.sacked.remove_below(una);
        if una > self.flight_until {
            self.flight_until = self.sent.back().map_or(una, Sent::end);
            self.on_flight();
        }
        let end = self.sent.back().map_or(una, Sent::end);
        for (left, right) in blocks {
            let (left, right) = (left.max(una), right.min(end));
            if left < right {
                self.on_block(now, left, right, &mut delivery, answers);
            }
        }
        if delivery.rtt.is_some() && self.highest > delivery.highest_before {
            let beyond = self.highest.saturating_sub(delivery.highest_before.max(una));
            delivery.skipped = Some(beyond.saturating_sub(delivery.bytes));
        }
        if let Some(cover) = cover {
            self.uncover(now, una, cover, &mut delivery);
        }
        give_back(&mut self.sent);
        self.sacked.give_back();
        delivery
    }

    fn on_block(&mut self, now: Instant, left: u64, right: u64, delivery: &mut Delivery, answers: &Answers) {
        let mut new = [(0, 0); 4];
        let mut count = 0;
        let merged = self.sacked.insert(left, right, |from, until| {
            if let Some(slot) = new.get_mut(count) {
                *slot = (from, until);
            } else {
                new[3].1 = until;
            }
            count += 1;
        });
        for &(from, until) in &new[..count.min(4)] {
            let mut at = self.find(from).unwrap_or(self.sent.len());
            while let Some(record) = self.sent.get_mut(at).filter(|record| record.off < until) {
                at += 1;
                if record.is(SACKED) || record.off < merged.0 || record.end() > merged.1 {
                    continue;
                }
                let before = *record;
                record.state = record.state & !LOST | SACKED;
                self.sacked_bytes += u64::from(before.len);
                self.on_delivered(now, before, delivery, answers);
            }
        }
    }

    fn on_delivered(&mut self, now: Instant, record: Sent, delivery: &mut Delivery, answers: &Answers) {
        delivery.bytes += u64::from(record.len);
        delivery.longest = delivery.longest.max(record.len);
        self.newest = self.newest.max(record.at);
        if record.in_flight() {
            self.in_flight -= u64::from(record.len);
        }
        let mut rtt = now.since(record.at);
        if record.is(RESENT) {
            if rtt < answers.least && record.is(AGAIN) {
                // It answers an earlier repetition, sent when it could have been at the latest.
                rtt = answers.least;
            }
            // The acknowledgment of the first transmission, come late (RFC 8985, section 6.2, step 2).
            if rtt < answers.least {
                delivery.in_vain += u64::from(record.len);
                self.hasty = true;
                return;
            }
            // Where copies have come behind what they repeat, the queue is longer than anything tells, and this is the answer to
            // one sent earlier: by the round trip of the last, all that waits between them would be sent again, and so on.
            if rtt < answers.shortest || rtt + record.gap() <= answers.usual || record.at < self.vain_at {
                return;
            }
            if record.is(DOUBTED) || rtt > answers.longest {
                // Which of the two it answers, the next data that was sent once will tell (as RFC 5682 does).
                delivery.doubtful = true;
                return;
            }
        } else {
            self.hasty = false;
            if record.end() < delivery.highest_before {
                self.reordered = true;
                self.reorder_quarters = self.reorder_quarters.max(1);
            }
            if delivery.sent_at.is_none_or(|at| at <= record.at) {
                delivery.rtt = Some(rtt);
                delivery.sent_at = Some(record.at);
            }
        }
        self.highest = self.highest.max(record.end());
        let sent_at = Instant::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
        if (sent_at, record.end()) > self.rack {
            self.rack = (sent_at, record.end());
            self.rack_rtt = rtt;
        }
    }

    /// A duplicate reached the client (DSACK): what was sent again had only been late. Counts once a flight, and is
    /// forgotten when it has not happened for sixteen (RFC 8985, section 6.2, step 4).
    pub fn on_duplicate(&mut self, now: Instant, una: u64) {
        self.reordered = true;
        self.on_vain(now);
        if una >= self.widened_until {
            self.widened_until = self.sent.back().map_or(una, Sent::end);
            self.reorder_quarters = (self.reorder_quarters + 1).min(8);
            self.flights_left = 16;
        }
    }
    /// Something that was sent again came behind what it repeats.
    pub fn on_vain(&mut self, now: Instant) {
        self.vain_at = now;
    }
    /// A flight was acknowledged.
    fn on_flight(&mut self) {
        self.flights_left = self.flights_left.saturating_sub(1);
        if self.flights_left == 0 {
            self.reorder_quarters = 1;
        }
    }

    fn reorder_window(&self, (min_rtt, srtt): (Duration, Duration), segment: u32) -> Duration {
        if !self.reordered && self.sacked_bytes >= 3 * u64::from(segment) {
            return Duration::ZERO;
        }
        // Linux's ceiling: a repair that waits longer costs more than a segment sent in vain.
        (min_rtt * u64::from(self.reorder_quarters.max(1)) / 4).min(srtt / 8)
    }

    /// Tells of what was found lost since the last call.
    pub fn take_lost(&mut self, delivery: &mut Delivery) {
        self.losses.take(delivery);
    }
    /// Judges what was sent before the newest delivery, by the shortest and the smoothed round-trip time, and whatever
    /// else has waited for longer than `patience`, where there is one. Returns when to judge again.
    pub fn detect(
        &mut self,
        now: Instant,
        rtt: (Duration, Duration),
        segment: u32,
        patience: Option<Patience>,
    ) -> Option<Instant> {
        let window = self.reorder_window(rtt, segment);
        let (rack, rack_rtt) = (self.rack, self.rack_rtt);
        let ordered = self.newreno.is_none();
        let overdue = |record: &Sent| -> Result<(), Option<Instant>> {
            let overtaken = ordered && (record.at, record.end()) < rack;
            let at = overtaken.then_some(record.at + rack_rtt + window);
            let late = patience.map(|patience| (record.at + patience.age).max(patience.from));
            match [at, late].into_iter().flatten().min() {
                Some(at) if at <= now => Ok(()),
                at => Err(at),
            }
        };
        let mut again: Option<Instant> = None;
        let mut at = self.find(self.judged).unwrap_or(self.sent.len());
        while let Some(record) = self.sent.get(at) {
            let waits = record.in_flight() && !record.is(RESENT);
            if waits && let Err(later) = overdue(record) {
                again = later;
                break;
            }
            self.judged = record.end();
            if waits {
                self.lose_judged(at);
            }
            at += 1;
        }
        while let Some(&(off, sent_at)) = self.resent.front() {
            if let Some(at) = self.find(off)
                && self.sent[at].at == sent_at
                && self.sent[at].in_flight()
            {
                if let Err(later) = overdue(&self.sent[at]) {
                    again = match (again, later) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    };
                    break;
                }
                self.lose_judged(at);
            }
            self.resent.pop_front();
        }
        give_back(&mut self.resent);
        again
    }

    /// A record on its way is taken for lost.
    fn lose(&mut self, at: usize) {
        let record = &mut self.sent[at];
        record.state |= LOST;
        self.in_flight -= u64::from(record.len);
        self.lost.insert(record.off);
    }
    fn lose_judged(&mut self, at: usize) {
        self.sent[at].state &= !DOUBTED;
        self.losses.on_lost(&self.sent[at]);
        self.lose(at);
    }
    /// Of the records from a place on, those on their way that are like this; whether there were any.
    fn lose_all_like(&mut self, from: usize, like: impl Fn(&Sent) -> bool) -> bool {
        let before = self.in_flight;
        for at in from..self.sent.len() {
            if self.sent[at].in_flight() && like(&self.sent[at]) {
                self.lose(at);
            }
        }
        self.in_flight < before
    }
    /// The first record is taken for lost, whatever was judged: a timeout, or three duplicates without SACK.
    /// `doubted`: it may only be late, and new data will tell.
    pub fn lose_first(&mut self, doubted: bool) {
        if let Some(front) = self.sent.front_mut().filter(|front| front.in_flight()) {
            let again = if front.is(RESENT) { AGAIN } else { 0 };
            front.state |= again | if doubted { DOUBTED } else { 0 };
            self.lose(0);
        }
    }
    /// After a timeout behind such an answer, nothing of the flight had come late, or it would have followed: all of it is
    /// taken for lost; whether it is so.
    pub fn lose_flight(&mut self) -> bool {
        self.hasty && self.lose_all_like(0, |_| true)
    }
    /// Everything sent past the client's edge is taken for lost; whether there was any.
    pub fn lose_beyond(&mut self) -> bool {
        self.lose_all_like(0, |record| record.is(BEYOND))
    }
    /// While the first record is lost, a client takes nothing that begins at its window's edge or past it: what is on its way
    /// there is lost as well.
    pub fn lose_from(&mut self, edge: u64) {
        let doomed = |record: &Sent| record.off >= edge && record.in_flight();
        if self.is_front_lost() && self.sent.back().is_some_and(doomed) {
            self.lose_all_like(self.sent.partition_point(|record| record.off < edge), |_| true);
        }
    }
    /// What does not fit the path any more is taken for lost.
    pub fn lose_larger(&mut self, segment: u32) {
        self.lose_all_like(0, |record| record.len > segment);
    }
    /// Whether the client has thrown away what it had selectively acknowledged (RFC 2018, section 8): it lacks what begins
    /// where it stands. Linux does so when its buffer is full.
    pub fn has_reneged(&self) -> bool {
        self.sent.front().is_some_and(|front| front.is(SACKED))
    }
    /// Everything that is not acknowledged is taken for lost, selective acknowledgments included: the client may have
    /// thrown it away.
    pub fn lose_all(&mut self) {
        self.sacked.clear();
        self.sacked_bytes = 0;
        self.lost.clear();
        self.in_flight = 0;
        for record in &mut self.sent {
            record.state = record.state & !SACKED | LOST;
            self.lost.insert(record.off);
        }
    }

    /// Whether the first record was sent after everything that has arrived: then it is ahead of all that is sent now.
    pub fn is_front_on_its_way(&self) -> bool {
        self.sent.front().is_none_or(|front| front.in_flight() && front.at >= self.newest)
    }
    /// When the first record was sent, if that was past the client's edge and it is on its way.
    pub fn first_beyond_sent_at(&self) -> Option<Instant> {
        self.sent.front().filter(|record| record.is(BEYOND) && record.in_flight()).map(|record| record.at)
    }
    /// The next segment to send again; it stays next until [`Scoreboard::on_repeat`].
    pub fn next_lost(&mut self) -> Option<Repeat> {
        while let Some(&off) = self.lost.first() {
            if let Some(record) = self.find(off).map(|at| self.sent[at]).filter(|record| record.is(LOST)) {
                return Some(Repeat { off: record.off, len: record.len, fin: record.is(FIN) });
            }
            self.lost.pop_first();
        }
        None
    }
    /// The segment of `next_lost` is sent, its first `len` bytes at least: a smaller path MTU splits a record.
    pub fn on_repeat(&mut self, now: Instant, len: u32, beyond: bool) {
        let Some(off) = self.lost.pop_first() else { return };
        let Some(at) = self.find(off) else { return };
        let record = self.sent[at];
        if len < record.len {
            let rest = Sent { off: record.off + u64::from(len), len: record.len - len, ..record };
            self.sent[at].len = len;
            self.sent.insert(at + 1, rest);
            self.lost.insert(rest.off);
        }
        let record = &mut self.sent[at];
        record.send_again(now);
        record.state = record.state & !(LOST | BEYOND) | RESENT | if beyond { BEYOND } else { 0 };
        self.in_flight += u64::from(record.len);
        self.resent.push_back((record.off, now));
    }

    pub fn check(&self, una: u64, nxt: u64) {
        let mut expected = una;
        let (mut in_flight, mut sacked) = (0, 0);
        for record in &self.sent {
            assert!(record.off == expected && record.len > 0, "records have no gaps");
            expected = record.end();
            assert!(!record.is(SACKED) || !record.is(LOST));
            in_flight += if record.in_flight() { u64::from(record.len) } else { 0 };
            sacked += if record.is(SACKED) { u64::from(record.len) } else { 0 };
        }
        assert_eq!(expected, nxt);
        assert_eq!((in_flight, sacked), (self.in_flight, self.sacked_bytes));
        assert!(self.sacked.len() <= self.sent.len() + 1);
        assert!(self.sacked.end().is_none_or(|end| end <= nxt));
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
