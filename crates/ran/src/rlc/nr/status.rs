//! STATUS PDUs of AM (TS 38.322 §6.2.2.5).

use super::headers::{SnLength, subheader};
use super::ranges::END;

/// Bytes of a STATUS PDU without NACKs, at both lengths of sequence numbers (TS 38.322 §6.2.2.5).
pub const FIXED_BYTES: u32 = 3;
/// Bytes of SOstart and SOend of one NACK (TS 38.322 §6.2.2.5).
const SO_BYTES: u32 = 4;
/// Bytes of a NACK range (TS 38.322 §6.2.2.5).
const RANGE_BYTES: u32 = 1;

/// Missing bytes: from byte `from` of SDU `first` to byte `to`, exclusive, of the last of `count` SDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nack {
    /// NACK_SN.
    pub first: u64,
    /// The NACK range; 1 if the NACK has none.
    pub count: u8,
    /// SOstart in the first SDU.
    pub from: u32,
    /// One more than SOend in the last SDU, or [`END`].
    pub to: u32,
}

impl Nack {
    /// Length in bytes.
    pub const fn len(self, sn: SnLength) -> u32 {
        let base = match sn {
            SnLength::Short => 2,
            SnLength::Long => 3,
        };
        let segments = if self.from > 0 || self.to < END { SO_BYTES } else { 0 };
        base + segments + if self.count > 1 { RANGE_BYTES } else { 0 }
    }
    /// Number of the last SDU.
    pub const fn last(self) -> u64 {
        self.first + self.count as u64 - 1
    }
    /// The missing bytes of each SDU: its number, and its bytes `from..to`.
    pub fn parts(self) -> impl Iterator<Item = (u64, u32, u32)> {
        (self.first..=self.last()).map(move |sdu| {
            let from = if sdu == self.first { self.from } else { 0 };
            (sdu, from, if sdu == self.last() { self.to } else { END })
        })
    }
}

/// Joins missing byte ranges `(SDU, from, to)` in ascending order to NACKs.
pub fn join(missing: impl Iterator<Item = (u64, u32, u32)>) -> impl Iterator<Item = Nack> {
    let mut missing = missing.peekable();
    std::iter::from_fn(move || {
        let (first, from, to) = missing.next()?;
        let mut nack = Nack { first, count: 1, from, to };
        while nack.to == END && nack.count < u8::MAX {
            let Some((_, _, to)) = missing.next_if(|(sdu, from, _)| *sdu == nack.last() + 1 && *from == 0)
            else {
                break;
            };
            nack.count += 1;
            nack.to = to;
        }
        Some(nack)
    })
}

/// A STATUS PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// ACK_SN: SDUs below it that no NACK names are received.
    pub ack_sn: u64,
    /// NACKs in ascending order.
    pub nacks: Vec<Nack>,
    /// Length in bytes, without the MAC sub-header.
    pub len: u32,
}

impl Status {
    /// Bytes in the transport block, with the MAC sub-header.
    pub const fn bytes(&self) -> u32 {
        self.len + subheader(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_of_contiguous_sdus_are_one_nack() {
        let missing = [(3, 0, END), (4, 0, END), (5, 0, 20), (5, 40, END), (6, 0, END), (9, 0, END)];
        let nacks: Vec<_> = join(missing.into_iter()).collect();
        let nack = |first, count, from, to| Nack { first, count, from, to };
        assert_eq!(nacks, [nack(3, 3, 0, 20), nack(5, 2, 40, END), nack(9, 1, 0, END)]);
        assert_eq!(nacks.iter().flat_map(|nack| nack.parts()).collect::<Vec<_>>(), missing);
        let lengths = |sn| nacks.iter().map(|nack| nack.len(sn)).collect::<Vec<_>>();
        assert_eq!(lengths(SnLength::Short), [2 + 1 + 4, 2 + 1 + 4, 2]);
        assert_eq!(lengths(SnLength::Long), [3 + 1 + 4, 3 + 1 + 4, 3]);
    }

    #[test]
    fn a_nack_range_has_at_most_255_sdus() {
        let nacks: Vec<_> = join((0..600).map(|sdu| (sdu, 0, END))).collect();
        assert_eq!(
            nacks.iter().map(|nack| (nack.first, nack.count)).collect::<Vec<_>>(),
            [(0, 255), (255, 255), (510, 90)]
        );
    }
}
