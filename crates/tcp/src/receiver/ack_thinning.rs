//! Thinning of ACKs below TCP, as modems and Wi-Fi drivers do to save airtime: a pure ACK is held, a newer
//! one replaces it, and the newest leaves after some segments of progress or some time, as a stretch ACK (RFC
//! 2525 §2.13).
//!
//! TCP is not aware of it: delayed-ACK state, timestamps and duplicate ACKs are as without it. Unless
//! duplicates are held as well, they and ACKs with SACK blocks pass at once, after the held ACK.

use crate::options::StretchAck;
use paceline_net::{Instant, SeqNumber, TcpFlags, TcpHeader};

/// The state of ACK thinning: the ACK that is held, if any.
#[derive(Clone, Debug)]
pub(crate) struct AckThinning {
    rule: Option<StretchAck>,
    /// The held ACK and the time at which it leaves.
    held: Option<(TcpHeader, Instant)>,
    /// Acknowledgment numbers of the newest ACK of TCP, and of the last one that left.
    newest: SeqNumber,
    last_left: Option<SeqNumber>,
    /// An ACK that leaves after the held one.
    next: Option<TcpHeader>,
}

impl AckThinning {
    pub fn new(rule: Option<StretchAck>) -> Self {
        Self { rule, held: None, newest: SeqNumber(0), last_left: None, next: None }
    }
    /// TCP sends a pure ACK; `segment_size` is the payload of the peer's full segments. Returns the ACK that
    /// leaves at once, and whether an older one was merged with it.
    pub fn send(&mut self, now: Instant, ack: TcpHeader, segment_size: u32) -> (Option<TcpHeader>, bool) {
        let Some(rule) = self.rule else { return (Some(ack), false) };
        let duplicate = self.last_left.is_none_or(|left| self.newest.max(left) >= ack.ack)
            || !ack.options.sack.is_empty();
        let marked = ack.flags.contains(TcpFlags::ECE);
        self.newest = ack.ack;
        if self.last_left.is_none() || marked || (duplicate && !rule.hold_duplicates) {
            let held = self.held.take();
            if let Some((before, _)) = held {
                self.next = Some(ack);
                return (Some(self.leave(before)), false);
            }
            return (Some(self.leave(ack)), false);
        }
        let merged = self.held.is_some();
        let progress = self.last_left.map_or(0, |left| i64::from(ack.ack.distance(left)));
        if progress >= i64::from(rule.segments) * i64::from(segment_size.max(1)) {
            self.held = None;
            return (Some(self.leave(ack)), merged);
        }
        let until = self.held.map_or(now + rule.timeout, |(_, until)| until);
        self.held = Some((ack, until));
        (None, merged)
    }
    /// The ACK that leaves now.
    pub fn poll(&mut self, now: Instant) -> Option<TcpHeader> {
        if self.next.is_none() && self.held.is_none() {
            return None; // the usual case, without a copy
        }
        if let Some(next) = self.next.take() {
            return Some(self.leave(next));
        }
        let (ack, _) = self.held.take_if(|(_, until)| *until <= now)?;
        Some(self.leave(ack))
    }
    /// A segment with the acknowledgment number `ack` leaves: discards a held ACK, and returns whether there
    /// was one.
    pub fn supersede(&mut self, ack: SeqNumber) -> bool {
        self.newest = self.newest.max(ack);
        self.last_left = Some(self.last_left.map_or(ack, |left| left.max(ack)));
        self.held.take().is_some()
    }
    pub fn deadline(&self) -> Option<Instant> {
        if self.next.is_some() { Some(Instant::ZERO) } else { self.held.map(|(_, until)| until) }
    }
    fn leave(&mut self, ack: TcpHeader) -> TcpHeader {
        self.last_left = Some(ack.ack);
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
    fn thinning(hold_duplicates: bool) -> AckThinning {
        let rule = StretchAck { segments: 4, timeout: Duration::from_millis(5), hold_duplicates };
        let mut thinning = AckThinning::new(Some(rule));
        assert!(thinning.send(MS(0), ack(1000), 1000).0.is_some(), "the first ACK leaves");
        thinning
    }

    #[test]
    fn the_newest_ack_leaves_after_four_segments_or_five_milliseconds() {
        let mut thinning = thinning(false);
        assert_eq!(thinning.send(MS(1), ack(3000), 1000), (None, false));
        assert_eq!(thinning.send(MS(2), ack(5000), 1000), (Some(ack(5000)), true));
        assert_eq!(thinning.send(MS(3), ack(7000), 1000), (None, false));
        assert_eq!((thinning.deadline(), thinning.poll(MS(7))), (Some(MS(8)), None));
        assert_eq!((thinning.poll(MS(8)), thinning.deadline()), (Some(ack(7000)), None));
    }

    #[test]
    fn duplicates_leave_at_once_after_the_held_ack_or_are_merged() {
        let mut prompt = thinning(false);
        prompt.send(MS(1), ack(2000), 1000);
        assert_eq!(prompt.send(MS(1), ack(2000), 1000).0, Some(ack(2000)));
        assert_eq!((prompt.poll(MS(1)), prompt.poll(MS(1))), (Some(ack(2000)), None));
        let mut merging = thinning(true);
        merging.send(MS(1), ack(2000), 1000);
        for _ in 0..5 {
            assert_eq!(merging.send(MS(1), ack(2000), 1000), (None, true));
        }
        assert_eq!((merging.poll(MS(6)), merging.poll(MS(9))), (Some(ack(2000)), None));
    }

    #[test]
    fn an_ecn_echo_is_never_held_and_data_supersedes_a_held_ack() {
        let mut thinning = thinning(true);
        let marked = TcpHeader { flags: TcpFlags::ACK.with(TcpFlags::ECE), ..ack(2000) };
        assert_eq!(thinning.send(MS(1), marked, 1000).0, Some(marked));
        thinning.send(MS(1), ack(3000), 1000);
        assert!(thinning.supersede(SeqNumber(3000)));
        assert_eq!((thinning.poll(MS(9)), thinning.deadline()), (None, None));
    }
}
