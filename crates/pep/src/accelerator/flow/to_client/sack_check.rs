//! Whether the client's SACK blocks can be used. Both ends agreed on SACK, but a middlebox may remove the
//! blocks, or change sequence numbers and leave the blocks as they are. Without usable blocks the losses of
//! the connection are detected by duplicate ACKs (`scoreboard::newreno`).

use crate::accelerator::flow::connection::Connection;
use paceline_net::TcpHeader;

/// Duplicate ACKs without blocks, or ACKs with impossible ones, that decide (RFC 5681, section 3.2:
/// DupThresh). A single one may be an old duplicate.
const THRESHOLD: u8 = 3;
/// Times that blocks were missed after which they are not used again. Chosen: a middlebox that removes some
/// of them costs a few detections.
const MAX_MISSED: u8 = 3;
/// A block at most this far below the acknowledgment reports a duplicate (RFC 2883), in bytes. Chosen: twice
/// the largest windows in use, and a small part of the number space, where blocks of other numbers lie.
const DUPLICATE_RANGE_BYTES: u64 = 32 << 20;

/// The blocks of an ACK, as offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Blocks {
    /// Blocks within the outstanding data.
    pub ranges: [Option<(u64, u64)>; 4],
    /// The first block reports a duplicate.
    pub has_dsack: bool,
    /// A block is not possible: outside of all data that were sent lately.
    impossible: bool,
}

impl Blocks {
    /// `ack` is the offset that the segment acknowledges; `una..nxt` was outstanding before.
    pub fn new(connection: &Connection, tcp: &TcpHeader, ack: u64, una: u64, nxt: u64) -> Self {
        let mut blocks = Self::default();
        let own = tcp.options.sack.as_slice();
        let offsets = |(left, right): (_, _)| {
            let (left, right) = (connection.offset(left, una)?, connection.offset(right, una)?);
            (left < right && right <= nxt).then_some((left, right))
        };
        for (slot, &block) in blocks.ranges.iter_mut().zip(own) {
            match offsets(block) {
                Some(range) if range.0 > ack => *slot = Some(range),
                // Across the acknowledgment, or too old for a duplicate.
                Some((_, right)) => blocks.impossible |= right > ack || right + DUPLICATE_RANGE_BYTES < una,
                None => blocks.impossible = true,
            }
        }
        let inside =
            |(left, right): &(_, _)| own.get(1).is_some_and(|(from, end)| left >= from && right <= end);
        let reports = |block: &(_, _)| block.1 <= tcp.ack || inside(block);
        blocks.has_dsack = !blocks.impossible && own.first().is_some_and(reports);
        blocks
    }
    pub fn without_ranges(self) -> Self {
        Self { ranges: [None; 4], ..self }
    }
    pub fn has_ranges(&self) -> bool {
        self.ranges.iter().any(Option::is_some)
    }
}

/// The decision on a client's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) enum Change {
    None,
    /// Blocks are not used from now on.
    ToNewReno,
    /// Blocks are used again.
    ToSack,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct SackCheck {
    /// ACKs with impossible blocks, and those that ended inside of data that a block had reported.
    impossible: u8,
    inside: u8,
    /// Duplicate ACKs in a row that should have had a block.
    without: u8,
    /// Times that blocks were missed.
    missed: u8,
    /// Blocks are impossible: they are never used.
    wrong: bool,
}

impl SackCheck {
    /// Whether blocks are ignored.
    pub fn is_wrong(&self) -> bool {
        self.wrong
    }
    /// The blocks of an ACK. `in_use`: losses are detected by SACK.
    pub fn on_blocks(&mut self, blocks: &Blocks, in_use: bool) -> Change {
        if self.wrong {
            return Change::None;
        }
        self.impossible = self.impossible.saturating_add(u8::from(blocks.impossible));
        if self.impossible >= THRESHOLD {
            return self.on_contradiction(in_use);
        }
        if blocks.has_ranges() && !blocks.impossible {
            self.without = 0;
            if !in_use && self.missed < MAX_MISSED {
                return Change::ToSack;
            }
        }
        Change::None
    }
    /// The acknowledgment advanced to a place inside of data that a block had reported. A client acknowledges
    /// all contiguous data that it has, so that either it has discarded data, or the blocks have other
    /// numbers than the segments: higher ones, but not higher than all data.
    pub fn on_ack_inside_block(&mut self, in_use: bool) -> Change {
        self.inside = self.inside.saturating_add(1);
        if self.inside < THRESHOLD { Change::None } else { self.on_contradiction(in_use) }
    }
    /// The client does not have the data that a block reported.
    pub fn on_contradiction(&mut self, in_use: bool) -> Change {
        self.wrong = true;
        if in_use { Change::ToNewReno } else { Change::None }
    }
    /// A duplicate ACK without a block. It should have had one, unless it may answer a retransmission or a
    /// probe (`repeats`).
    pub fn on_bare_duplicate(&mut self, repeats: bool) -> Change {
        self.without = if repeats { 0 } else { self.without.saturating_add(1) };
        if self.without < THRESHOLD {
            return Change::None;
        }
        (self.without, self.missed) = (0, self.missed.saturating_add(1));
        Change::ToNewReno
    }
    /// The acknowledgment advanced.
    pub fn on_progress(&mut self) {
        self.without = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::flow::connection::Negotiated;
    use paceline_net::{FlowKey, SeqNumber, TcpFlags, TcpOptions};

    const ISN: u32 = 0xffff_0000;

    fn blocks(list: &[(u32, u32)]) -> Blocks {
        let address = std::net::IpAddr::from([198, 18, 0, 1]);
        let negotiated =
            Negotiated { client_shift: 0, server_shift: 0, timestamps: false, sack: true, ecn: false };
        let connection = Connection {
            key: FlowKey { src: address, dst: address, src_port: 1, dst_port: 2 },
            server_isn: SeqNumber(ISN),
            negotiated,
            real: true,
        };
        let mut options = TcpOptions::default();
        let seq = |off: u32| SeqNumber(ISN.wrapping_add(off));
        list.iter().for_each(|(left, right)| options.sack.push(seq(*left), seq(*right)));
        let tcp = TcpHeader {
            src_port: 2,
            dst_port: 1,
            seq: SeqNumber(1),
            ack: seq(100_000),
            flags: TcpFlags::ACK,
            window: 1000,
            options,
            payload_len: 0,
        };
        Blocks::new(&connection, &tcp, 100_000, 100_000, 200_000)
    }

    #[test]
    fn possible_blocks_are_ranges_or_duplicates_and_others_are_impossible() {
        let possible = [
            (&[(110_000, 120_000)][..], true, false),
            (&[(90_000, 91_000)], false, true),
            (&[(115_000, 116_000), (110_000, 120_000)], true, true),
            (&[(199_000, 200_000)], true, false),
        ];
        for (list, ranges, dsack) in possible {
            let own = blocks(list);
            assert_eq!((own.has_ranges(), own.has_dsack, own.impossible), (ranges, dsack, false), "{list:?}");
        }
        for shift in [
            1_000_000_000,
            3_000_000_000,
            200_000,
            0u32.wrapping_sub(64 << 20),
            1 << 31,
            0u32.wrapping_sub(15_000),
        ] {
            let own = blocks(&[(110_000u32.wrapping_add(shift), 120_000u32.wrapping_add(shift))]);
            assert_eq!((own.has_ranges(), own.has_dsack, own.impossible), (false, false, true), "{shift}");
        }
        assert!(blocks(&[(120_000, 110_000)]).impossible, "reversed");
    }

    #[test]
    fn three_impossible_blocks_end_the_use_for_good() {
        let mut check = SackCheck::default();
        let wrong = blocks(&[(1_100_000_000, 1_100_001_000)]);
        let changes = [0; 4].map(|_| check.on_blocks(&wrong, true));
        assert_eq!(changes, [Change::None, Change::None, Change::ToNewReno, Change::None]);
        assert!(check.is_wrong());
        assert_eq!(check.on_blocks(&blocks(&[(110_000, 120_000)]), false), Change::None);
    }

    #[test]
    fn bare_duplicates_of_new_data_end_the_use_until_a_block_comes() {
        let mut check = SackCheck::default();
        let bare = |check: &mut SackCheck| check.on_bare_duplicate(false);
        for _ in 0..MAX_MISSED {
            assert_eq!([0; 3].map(|_| bare(&mut check)), [Change::None, Change::None, Change::ToNewReno]);
            let again = check.on_blocks(&blocks(&[(110_000, 120_000)]), false);
            let last = check.missed == MAX_MISSED;
            assert_eq!(again, if last { Change::None } else { Change::ToSack });
        }
        let mut check = SackCheck::default();
        assert!(
            (0..10).all(|_| check.on_bare_duplicate(true) == Change::None),
            "they answer a retransmission"
        );
    }
}
