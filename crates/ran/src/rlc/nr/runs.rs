//! Runs of SDUs: the data of one bearer in a transport block.
//!
//! RLC of NR does not concatenate (TS 38.322 §5.2): each SDU or segment is a PDU with its own RLC header and
//! MAC sub-header. Contiguous PDUs need not be stored one by one, since headers follow from sizes. A run is a
//! range of bytes of the stream of SDUs, and is of constant size for any number of SDUs.

use super::headers::{Headers, LONG_SUBHEADER_BYTES, SHORT_SUBHEADER_BYTES, longest_pdu, subheader};
use super::ranges::END;
use std::collections::VecDeque;

/// The SDUs above RLC that have not been sent: PDCP with its buffer. An SDU has at least 2 bytes.
pub trait SduSource<T> {
    /// Takes the next SDU and its length in bytes as RLC sends it, with the PDCP header.
    fn pull(&mut self) -> Option<(T, u32)>;
    /// Whether no SDU waits.
    fn is_empty(&self) -> bool;
}

/// An SDU in AM: the transmitting side keeps it after its delivery, until a STATUS PDU confirms it.
pub trait Sdu {
    /// The SDU as it is delivered; what remains need only have its number and length.
    fn take(&mut self) -> Self;
}

impl<T: Copy> Sdu for T {
    fn take(&mut self) -> Self {
        *self
    }
}

impl<T> SduSource<T> for VecDeque<(T, u32)> {
    fn pull(&mut self) -> Option<(T, u32)> {
        self.pop_front()
    }
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

/// A byte in the stream of SDUs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
    /// Number of the SDU since establishment. In AM its lowest bits are the sequence number.
    pub sdu: u64,
    /// Number of the byte in the SDU.
    pub byte: u32,
}

/// The bytes of the stream from `from` to `to`, exclusive: the end of the first SDU (or all of it), complete
/// SDUs, and the begin of the last one if `to.byte` is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SduRun {
    /// The first byte.
    pub from: Position,
    /// The byte after the last one.
    pub to: Position,
}

impl SduRun {
    /// The PDUs of the run: number of the SDU, and its bytes `from..to` with [`END`] for its last byte.
    pub fn pdus(self) -> impl Iterator<Item = (u64, u32, u32)> {
        let last = self.to.sdu + u64::from(self.to.byte > 0 && self.from < self.to);
        (self.from.sdu..last).map(move |sdu| {
            let from = if sdu == self.from.sdu { self.from.byte } else { 0 };
            (sdu, from, if sdu == self.to.sdu { self.to.byte } else { END })
        })
    }
    /// Number of complete SDUs: those with both their first and their last byte in the run.
    pub fn complete(self) -> u64 {
        (self.to.sdu - self.from.sdu).saturating_sub(u64::from(self.from.byte > 0))
    }
}

/// Fills bytes of a transport block with PDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filler {
    headers: Headers,
    room: u32,
}

impl Filler {
    /// An empty part of `room` bytes, MAC sub-headers included.
    pub const fn new(headers: Headers, room: u32) -> Self {
        Self { headers, room }
    }
    /// Bytes that are left.
    pub const fn room(&self) -> u32 {
        self.room
    }
    /// Whether at least one byte of an SDU fits that has not been sent.
    pub const fn fits_new(&self) -> bool {
        self.room > SHORT_SUBHEADER_BYTES + self.headers.first
    }
    /// Adds a PDU with the bytes `from..to` of an SDU of `sdu_bytes`, or with as many of the first of them as
    /// fit. Returns the number of bytes of the SDU that were added, zero if none fits.
    pub fn place(&mut self, from: u32, to: u32, sdu_bytes: u32) -> u32 {
        let unsegmented = self.headers.of(from, to, sdu_bytes) + (to - from);
        if unsegmented + subheader(unsegmented) <= self.room {
            self.room -= unsegmented + subheader(unsegmented);
            return to - from;
        }
        let header = if from > 0 { self.headers.later } else { self.headers.first };
        let data = longest_pdu(self.room).saturating_sub(header).min(to - from);
        if data > 0 {
            self.room -= header + data + subheader(header + data);
        }
        data
    }
    /// Adds contiguous new data: SDU `at.sdu` of `sdu_bytes` from byte `at.byte` if that is not zero, then
    /// the SDUs whose lengths `next` returns. Calls `placed` with the data bytes of each PDU. Returns the
    /// run, and the length of its last SDU. The bytes used are those of a construction PDU by PDU.
    pub fn fill(
        &mut self,
        at: Position,
        mut sdu_bytes: u32,
        mut next: impl FnMut() -> Option<u32>,
        mut placed: impl FnMut(u32),
    ) -> (SduRun, u32) {
        let mut to = at;
        loop {
            if to.byte == 0 {
                if !self.fits_new() {
                    break;
                }
                let Some(bytes) = next() else { break };
                sdu_bytes = bytes;
            }
            let data = self.place(to.byte, sdu_bytes, sdu_bytes);
            if data == 0 {
                break;
            }
            placed(data);
            to.byte += data;
            if to.byte < sdu_bytes {
                break;
            }
            to = Position { sdu: to.sdu + 1, byte: 0 };
        }
        (SduRun { from: at, to }, sdu_bytes)
    }
}

/// Bytes of a transport block that `sdus` SDUs with `data` bytes in all need in one run: a bound from above,
/// used to size grants.
pub fn block_bytes_for(headers: Headers, data: u64, sdus: u64) -> u64 {
    data + sdus.max(1) * u64::from(headers.later.max(headers.complete) + LONG_SUBHEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::headers::SnLength;
    use super::*;
    use paceline_net::rng::Stream;

    const MODES: [Headers; 4] = [
        Headers::um(SnLength::Short),
        Headers::um(SnLength::Long),
        Headers::am(SnLength::Short),
        Headers::am(SnLength::Long),
    ];

    /// Builds the PDUs of a grant one by one, trying every length of a segment: (SDU, from, to), bytes used.
    fn pdu_by_pdu(
        headers: Headers,
        sizes: &[u32],
        mut at: Position,
        room: u32,
    ) -> (Vec<(u64, u32, u32)>, u32) {
        let (mut pdus, mut used) = (Vec::new(), 0);
        while let Some(&size) = sizes.get(at.sdu as usize) {
            let fits = |to: &u32| {
                let header = match (at.byte, *to == size) {
                    (0, true) => headers.complete,
                    (0, false) => headers.first,
                    _ => headers.later,
                };
                let len = header + to - at.byte;
                used + len + if len < 256 { 2 } else { 3 } <= room
            };
            let Some(to) = (at.byte + 1..=size).rev().find(fits) else { break };
            let header = headers.of(at.byte, to, size);
            let len = header + to - at.byte;
            used += len + if len < 256 { 2 } else { 3 };
            pdus.push((at.sdu, at.byte, if to == size { END } else { to }));
            if to < size {
                break;
            }
            at = Position { sdu: at.sdu + 1, byte: 0 };
        }
        (pdus, used)
    }

    #[test]
    fn a_run_uses_the_bytes_of_a_construction_pdu_by_pdu() {
        for seed in 0..400 {
            println!("seed {seed}");
            let mut random = Stream::new(seed, "runs");
            let headers = MODES[random.below(4) as usize];
            let longest = [10, 300, 1500][random.below(3) as usize];
            let sizes: Vec<u32> = (0..40).map(|_| 2 + random.below(longest) as u32).collect();
            let (mut at, mut bytes, mut pulled) = (Position::default(), 0, 0);
            while at.sdu < 40 {
                let largest = [12, 270, 5000][random.below(3) as usize];
                let room = random.below(largest) as u32;
                let expected = pdu_by_pdu(headers, &sizes, at, room);
                let mut filler = Filler::new(headers, room);
                let next = || {
                    pulled += 1;
                    sizes.get(pulled - 1).copied()
                };
                let (run, last) = filler.fill(at, bytes, next, |_| ());
                assert_eq!((run.pdus().collect::<Vec<_>>(), room - filler.room()), expected, "room {room}");
                (at, bytes) = (run.to, last);
            }
        }
    }

    #[test]
    fn a_run_names_its_pdus() {
        let run =
            |a, b, c, d| SduRun { from: Position { sdu: a, byte: b }, to: Position { sdu: c, byte: d } };
        let pdus = |run: SduRun| run.pdus().collect::<Vec<_>>();
        assert_eq!(pdus(run(7, 30, 9, 12)), [(7, 30, END), (8, 0, END), (9, 0, 12)]);
        assert_eq!(pdus(run(7, 30, 7, 50)), [(7, 30, 50)], "a segment from the middle of one SDU");
        assert_eq!(pdus(run(7, 0, 8, 0)), [(7, 0, END)]);
        assert_eq!(pdus(run(7, 0, 7, 0)), []);
        let runs = [run(7, 30, 9, 12), run(7, 30, 7, 50), run(7, 0, 10, 4), run(7, 5, 8, 0)];
        assert_eq!(runs.map(SduRun::complete), [1, 0, 3, 0]);
    }

    #[test]
    fn a_grant_too_small_for_a_byte_takes_no_sdu() {
        for headers in MODES {
            let mut filler = Filler::new(headers, 2 + headers.first);
            let (run, _) = filler.fill(Position::default(), 0, || panic!("no SDU is taken"), |_| ());
            assert_eq!(run.from, run.to);
        }
    }

    #[test]
    fn the_bound_of_a_block_covers_every_run() {
        for headers in MODES {
            let mut filler = Filler::new(headers, 100_000);
            let mut sizes = [1450; 9].into_iter();
            let (run, _) = filler.fill(Position { sdu: 3, byte: 1400 }, 1450, || sizes.next(), |_| ());
            assert_eq!(run.to, Position { sdu: 13, byte: 0 });
            assert!(u64::from(100_000 - filler.room()) <= block_bytes_for(headers, 50 + 9 * 1450, 10));
        }
    }
}
