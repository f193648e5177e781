//! ACKs thinned out below TCP, as modems and Wi-Fi drivers do it to save airtime: pure ACKs are held, a newer one
//! replaces an older one, and the newest leaves after some segments of progress or some time. TCP does not know of
//! it: its delayed-ACK state, timestamps and duplicate ACKs are as without it. Unless duplicates are held as well,
//! they and ACKs with SACK blocks pass at once, after what was held.

use crate::options::StretchAck;
use paceline_net::{Instant, SeqNumber, TcpFlags, TcpHeader};

/// The ACK that is held, if any.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    rule: Option<StretchAck>,
    held: Option<(TcpHeader, Instant)>,
    /// Newest ACK that TCP sent, and the one that last left.
    newest: SeqNumber,
    left: Option<SeqNumber>,
    /// An ACK that waits for a held one to leave before it.
    next: Option<TcpHeader>,
}

impl Stretch {
    pub fn new(rule: Option<StretchAck>) -> Self {
        Self { rule, held: None, newest: SeqNumber(0), left: None, next: None }
    }
    /// TCP sends a pure ACK; `full` is the peer's full segment. Returns what leaves at once, and whether an ACK was
    /// merged.
    pub fn send(&mut self, now: Instant, ack: TcpHeader, full: u32) -> (Option<TcpHeader>, bool) {
        let Some(rule) = self.rule else { return (Some(ack), false) };
        let duplicate =
            self.left.is_none_or(|left| self.newest.max(left) >= ack.ack) || !ack.options.sack.is_empty();
        let marked = ack.flags.contains(TcpFlags::ECE);
        self.newest = ack.ack;
        if self.left.is_none() || marked || (duplicate && !rule.hold_duplicates) {
            let held = self.held.take();
            if let Some((before, _)) = held {
                self.next = Some(ack);
                return (Some(self.leave(before)), false);
            }
            return (Some(self.leave(ack)), false);
        }
        let merged = self.held.is_some();
        let progress = self.left.map_or(0, |left| i64::from(ack.ack.distance(left)));
        if progress >= i64::from(rule.segments) * i64::from(full.max(1)) {
            self.held = None;
            return (Some(self.leave(ack)), merged);
        }
        let until = self.held.map_or(now + rule.timeout, |(_, until)| until);
        self.held = Some((ack, until));
        (None, merged)
    }
    /// What has waited long enough, or for another one only.
    pub fn poll(&mut self, now: Instant) -> Option<TcpHeader> {
        if self.next.is_none() && self.held.is_none() {
            return None; // mostly: nothing large is moved
        }
        if let Some(next) = self.next.take() {
            return Some(self.leave(next));
        }
        let (ack, _) = self.held.take_if(|(_, until)| *until <= now)?;
        Some(self.leave(ack))
    }
    /// A segment with data leaves: what is held is older than its acknowledgment.
    pub fn supersede(&mut self, ack: SeqNumber) -> bool {
        self.newest = self.newest.max(ack);
        self.left = Some(self.left.map_or(ack, |left| left.max(ack)));
        self.held.take().is_some()
    }
    pub fn deadline(&self) -> Option<Instant> {
        if self.next.is_some() { Some(Instant::ZERO) } else { self.held.map(|(_, until)| until) }
    }
    fn leave(&mut self, ack: TcpHeader) -> TcpHeader {
        self.left = Some(ack.ack);
        ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Duration;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn ack(number: u32) -> TcpHeader {
        TcpHeader { ack: SeqNumber(number), flags: TcpFlags::ACK, ..TcpHeader::default() }
    }
    fn stretch(hold_duplicates: bool) -> Stretch {
        let rule = StretchAck { segments: 4, timeout: Duration::from_millis(5), hold_duplicates };
        let mut stretch = Stretch::new(Some(rule));
        assert!(stretch.send(MS(0), ack(1000), 1000).0.is_some(), "the first one leaves");
        stretch
    }

    #[test]
    fn the_newest_leaves_after_four_segments_or_five_milliseconds() {
        let mut stretch = stretch(false);
        assert_eq!(stretch.send(MS(1), ack(3000), 1000), (None, false));
        assert_eq!(stretch.send(MS(2), ack(5000), 1000), (Some(ack(5000)), true));
        assert_eq!(stretch.send(MS(3), ack(7000), 1000), (None, false));
        assert_eq!((stretch.deadline(), stretch.poll(MS(7))), (Some(MS(8)), None));
        assert_eq!((stretch.poll(MS(8)), stretch.deadline()), (Some(ack(7000)), None));
    }

    #[test]
    fn duplicates_leave_at_once_behind_what_was_held_or_are_merged() {
        let mut prompt = stretch(false);
        prompt.send(MS(1), ack(2000), 1000);
        assert_eq!(prompt.send(MS(1), ack(2000), 1000).0, Some(ack(2000)));
        assert_eq!((prompt.poll(MS(1)), prompt.poll(MS(1))), (Some(ack(2000)), None));
        let mut merging = stretch(true);
        merging.send(MS(1), ack(2000), 1000);
        for _ in 0..5 {
            assert_eq!(merging.send(MS(1), ack(2000), 1000), (None, true));
        }
        assert_eq!((merging.poll(MS(6)), merging.poll(MS(9))), (Some(ack(2000)), None));
    }

    #[test]
    fn an_echo_of_congestion_is_never_held_and_data_take_the_place_of_acks() {
        let mut stretch = stretch(true);
        let marked = TcpHeader { flags: TcpFlags::ACK.with(TcpFlags::ECE), ..ack(2000) };
        assert_eq!(stretch.send(MS(1), marked, 1000).0, Some(marked));
        stretch.send(MS(1), ack(3000), 1000);
        assert!(stretch.supersede(SeqNumber(3000)));
        assert_eq!((stretch.poll(MS(9)), stretch.deadline()), (None, None));
    }
}
