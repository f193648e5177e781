//! Whether the path to the client swallows what is as long as segments are and does not say so (RFC 4821, section 7.7; RFC
//! 8899, section 4.3): a hop with a smaller MTU whose packet-too-big messages are lost. A server can find out by its own
//! timeouts, but of what was acknowledged early it never misses anything: it has to be found out here.
//!
//! After some timeouts in a row only a piece of the first segment is sent. An outage may end with it as well: it is a
//! black hole if a piece helps twice and nothing longer was delivered in between. Then all segments are cut, and those of the
//! device's next connections.
//!
//! Left out: probing whether the path has become wider. A connection keeps its segments; what is known of a device ends with its
//! last connection, or after ten minutes.

/// Lengths of a piece: RFC 4821's base, and Linux's floor for IPv4 without headers.
const PIECES: [u32; 2] = [1024, 512];
/// Timeouts in a row after which a piece is sent; and after which the shorter one is.
const PATIENCE: u8 = 3;
const LONG_PATIENCE: u8 = 5;

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Unsuspected,
    Tried,
    Helped,
    TriedAgain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct BlackHole {
    /// Since the client last acknowledged more.
    timeouts: u8,
    stage: Stage,
    /// Which piece was tried last.
    piece: u8,
}

impl BlackHole {
    pub fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }
    fn has_helped(&self) -> bool {
        matches!(self.stage, Stage::Helped | Stage::TriedAgain)
    }
    /// What is to be sent of the first segment, which is so long.
    pub fn probe_len(&self, len: u32) -> u32 {
        let due = if self.has_helped() { self.timeouts > 0 } else { self.timeouts >= PATIENCE };
        let shorter = usize::from(self.timeouts >= LONG_PATIENCE);
        let from = if self.has_helped() { shorter.max(self.piece.into()) } else { shorter };
        PIECES[from..].iter().copied().find(|piece| due && *piece < len).unwrap_or(len)
    }
    /// No more than so much of it is sent.
    pub fn on_probe(&mut self, len: u32) {
        self.piece = PIECES.iter().take_while(|piece| **piece > len).count() as u8;
        self.stage = if self.has_helped() { Stage::TriedAgain } else { Stage::Tried };
    }
    /// The client got segments, the longest of which is so long; the first one among them, if it `advances`. Returns the
    /// length that segments must not exceed once that is known.
    pub fn on_delivery(&mut self, longest: u32, advances: bool) -> Option<u32> {
        let piece = PIECES[usize::from(self.piece)];
        if longest > piece {
            *self = Self::default();
        }
        if advances {
            self.timeouts = 0;
            match self.stage {
                Stage::Tried => self.stage = Stage::Helped,
                Stage::TriedAgain => {
                    *self = Self::default();
                    return Some(piece);
                }
                Stage::Unsuspected | Stage::Helped => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeouts(hole: &mut BlackHole, count: u8) -> u32 {
        (0..count).for_each(|_| hole.on_timeout());
        let len = hole.probe_len(1448);
        if len < 1448 {
            hole.on_probe(len);
        }
        len
    }

    #[test]
    fn it_is_one_if_a_piece_helps_twice() {
        let mut hole = BlackHole::default();
        assert_eq!((timeouts(&mut hole, 2), timeouts(&mut hole, 1)), (1448, 1024));
        assert_eq!(hole.on_delivery(1024, true), None);
        assert_eq!(hole.on_delivery(424, true), None, "the rest of that segment");
        assert_eq!((hole.probe_len(1448), timeouts(&mut hole, 1)), (1448, 1024), "sooner now");
        assert_eq!(hole.on_delivery(1024, true), Some(1024));
        assert_eq!(timeouts(&mut hole, 2), 1448, "it begins anew");
    }

    #[test]
    fn a_shorter_piece_follows_and_short_segments_are_left_alone() {
        let mut hole = BlackHole::default();
        assert_eq!((timeouts(&mut hole, 4), timeouts(&mut hole, 1)), (1024, 512));
        assert_eq!((hole.probe_len(1000), hole.probe_len(500)), (512, 500));
        assert_eq!(hole.on_delivery(512, true), None);
        assert_eq!(timeouts(&mut hole, 1), 512, "what has helped");
        assert_eq!(hole.on_delivery(512, true), Some(512));
    }

    #[test]
    fn an_outage_is_none() {
        let mut hole = BlackHole::default();
        for _ in 0..10 {
            assert_eq!(timeouts(&mut hole, 3), 1024);
            assert_eq!(hole.on_delivery(1024, true), None);
            assert_eq!(hole.on_delivery(1448, false), None, "longer ones arrive again");
            assert_eq!(hole.on_delivery(1448, true), None);
        }
    }
}
