//! Steps of loops over stored pieces and sent records. A peer chooses how many of them there are, so that a
//! test counts the steps of each packet; outside tests nothing is counted.

#[cfg(test)]
std::thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One step of a loop.
pub(in crate::accelerator) fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// Steps of this thread since the last call.
#[cfg(test)]
pub(in crate::accelerator) fn take() -> u64 {
    STEPS.replace(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerator::flow::from_server::store::{Mark, Piece, Store};
    use crate::accelerator::flow::to_client::rtt::RttBounds;
    use crate::accelerator::flow::to_client::scoreboard::Scoreboard;
    use paceline_net::{Duration, Instant, Payload, Stream};

    /// Pieces and records of a connection with a window of some megabytes and tiny segments.
    const COUNT: u64 = 20_000;
    const SEGMENT: u64 = 64;
    const RTT: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(40));
    const BOUNDS: RttBounds = RttBounds {
        min: RTT.0,
        shortest: Duration::ZERO,
        longest: Duration::MAX,
        first_copy: Duration::ZERO,
    };

    fn shuffled(seed: u64, mut all: Vec<u64>) -> Vec<u64> {
        let mut stream = Stream::new(seed, "work");
        (1..all.len()).rev().for_each(|at| all.swap(at, stream.below(at as u64 + 1) as usize));
        all
    }

    /// CVE-2018-5390: a server sends single bytes at every second offset, in any order, again and again, and
    /// then segments that span many of them.
    #[test]
    fn a_segment_of_the_server_takes_few_steps_however_many_gaps_there_are() {
        let ascending: Vec<u64> = (1..COUNT).map(|n| 2 * n).collect();
        let descending = ascending.iter().rev().copied().collect();
        for offs in [ascending.clone(), descending, shuffled(1, ascending)] {
            let mut store = Store::new(0);
            let mut insert = |off: u64, len: u64| {
                take();
                let bytes: Box<[u8]> = (off..off + len).map(|off| off as u8).collect();
                let mark = Mark::default();
                let (len, at, datagram) =
                    (len as u32, Instant::ZERO, Piece::datagram(Payload::Datagram(bytes)));
                let packet = Piece { off, len, skip: 0, timestamp: 0, at, mark, datagram };
                store.insert(packet, (off, off + u64::from(len)));
                let ranges = store.beyond().map_or(0, |ranges| ranges.iter().rev().take(4).count());
                (take(), ranges)
            };
            for &off in &offs {
                assert!(insert(off, 1).0 <= 4);
            }
            for &off in &offs {
                assert!(insert(off, 1).0 <= 2, "again: compared with the stored byte");
                assert!(insert(off, 1460).0 <= 80, "a bounded number of bytes is compared");
            }
            store.check(0);
        }
    }

    fn board() -> Scoreboard {
        let mut board = Scoreboard::new(true);
        (0..COUNT).for_each(|n| {
            board.on_send(Instant::from_millis(1), 1 + SEGMENT * n, SEGMENT as u32, false, false);
        });
        board
    }
    /// Steps of an ACK.
    fn ack(board: &mut Scoreboard, una: u64, blocks: &[(u64, u64)]) -> u64 {
        take();
        board.on_ack(Instant::from_millis(41), una, blocks.iter().copied(), &BOUNDS);
        board.detect_losses(Instant::from_millis(41), RTT, SEGMENT as u32, None);
        take()
    }

    /// The client SACKs every second segment, in any order, and then repeats all it has said.
    #[test]
    fn an_ack_takes_few_steps_however_many_holes_there_are() {
        let ascending: Vec<u64> = (1..COUNT / 2).map(|n| 1 + SEGMENT * 2 * n).collect();
        let descending = ascending.iter().rev().copied().collect();
        for offs in [ascending.clone(), descending, shuffled(2, ascending)] {
            let mut board = board();
            // Loss detection examines each segment once.
            let all: u64 = offs.iter().map(|&off| ack(&mut board, 1, &[(off, off + SEGMENT)])).sum();
            assert!(all <= 3 * COUNT, "{all}");
            for &off in &offs {
                assert!(ack(&mut board, 1, &[(off, off + SEGMENT)]) <= 1);
            }
            board.check(1, 1 + SEGMENT * COUNT);
        }
    }

    /// A client without SACK that invents ACKs, thousands within a round trip, while segments are sent again
    /// at once. A whole flight is marked lost, or the mark is undone, once in that time.
    #[test]
    fn acks_without_sack_take_few_steps_whatever_the_client_invents() {
        const ACKS: u64 = 4_000;
        for seed in 0..20 {
            let mut stream = Stream::new(seed, "newreno");
            let mut board = Scoreboard::new(false);
            let first = Instant::from_millis(1);
            (0..COUNT).for_each(|n| board.on_send(first, 1 + SEGMENT * n, SEGMENT as u32, false, false));
            let (mut una, mut most) = (1, 0);
            take();
            for n in 0..ACKS {
                let now = Instant::from_nanos(50_000_000 + 1000 * n);
                if stream.chance(0.5) {
                    board.on_bare_duplicate(now, SEGMENT as u32, Duration::from_micros(stream.below(20)));
                } else {
                    una += SEGMENT * stream.below(3);
                    board.on_ack(now, una, std::iter::empty(), &BOUNDS);
                    board.detect_losses(now, RTT, SEGMENT as u32, None);
                }
                for _ in 0..stream.below(4) {
                    let Some(lost) = board.next_lost() else { break };
                    board.on_retransmit(now, lost.len, false);
                }
                if n % 500 == 0 {
                    board.check(una, 1 + SEGMENT * COUNT);
                }
                most += take();
            }
            assert!(most <= 3 * COUNT + 8 * ACKS, "seed {seed}: {most} steps");
        }
    }

    /// Blocks of parts of segments are no more ranges than there are segments.
    #[test]
    fn blocks_within_a_segment_say_nothing() {
        let mut board = board();
        for off in (2..SEGMENT * 100).step_by(2) {
            ack(&mut board, 1, &[(off, off + 1)]);
        }
        assert_eq!((board.arrived_bytes(), board.has_hole()), (0, false));
        ack(&mut board, 1, &[(1 + SEGMENT / 2, 1 + SEGMENT * 5 / 2)]);
        assert_eq!(board.arrived_bytes(), SEGMENT, "the one whole segment");
        board.check(1, 1 + SEGMENT * COUNT);
    }
}
