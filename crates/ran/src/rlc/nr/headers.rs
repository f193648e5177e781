//! Sizes of RLC headers (TS 38.322 §6.2.2) and of MAC sub-headers (TS 38.321 §6.1.2).

/// Largest MAC SDU in bytes whose length fits the L field of 8 bits (TS 38.321 §6.2.1).
const MAX_SHORT_LENGTH: u32 = 255;
/// MAC sub-header with an L field of 8 bits, in bytes (TS 38.321 §6.1.2).
pub const SHORT_SUBHEADER_BYTES: u32 = 2;
/// MAC sub-header with an L field of 16 bits, in bytes (TS 38.321 §6.1.2).
pub const LONG_SUBHEADER_BYTES: u32 = 3;

/// Bytes of the MAC sub-header of an RLC PDU of `len` bytes.
pub const fn subheader(len: u32) -> u32 {
    if len <= MAX_SHORT_LENGTH { SHORT_SUBHEADER_BYTES } else { LONG_SUBHEADER_BYTES }
}

/// Length in bytes of the longest RLC PDU that `room` bytes of a transport block hold with its sub-header.
pub const fn longest_pdu(room: u32) -> u32 {
    let short = room.saturating_sub(SHORT_SUBHEADER_BYTES);
    if short <= MAX_SHORT_LENGTH {
        short
    } else if room - LONG_SUBHEADER_BYTES > MAX_SHORT_LENGTH {
        room - LONG_SUBHEADER_BYTES
    } else {
        MAX_SHORT_LENGTH
    }
}

/// The length of sequence numbers (`sn-FieldLength` of TS 38.331).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnLength {
    /// 6 bits in UM, 12 in AM.
    Short,
    /// 12 bits in UM, 18 in AM.
    Long,
}

impl SnLength {
    /// Bits of a sequence number in UM (TS 38.322 §6.2.3.3).
    pub const fn um_bits(self) -> u32 {
        match self {
            Self::Short => 6,
            Self::Long => 12,
        }
    }
    /// Bits of a sequence number in AM (TS 38.322 §6.2.3.3).
    pub const fn am_bits(self) -> u32 {
        match self {
            Self::Short => 12,
            Self::Long => 18,
        }
    }
    /// UM_Window_Size: 32 or 2048 (TS 38.322 §7.2).
    pub const fn um_window(self) -> u64 {
        1 << (self.um_bits() - 1)
    }
    /// AM_Window_Size: 2048 or 131072 (TS 38.322 §7.2).
    pub const fn am_window(self) -> u64 {
        1 << (self.am_bits() - 1)
    }
}

/// Bytes of the header of a data PDU, by its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// With a complete SDU.
    pub complete: u32,
    /// With the first segment of an SDU.
    pub first: u32,
    /// With another segment: a segment offset of 2 bytes is added.
    pub later: u32,
}

impl Headers {
    /// Headers of UM (TS 38.322 §6.2.2.3): a complete SDU has no sequence number.
    pub const fn um(sn: SnLength) -> Self {
        match sn {
            SnLength::Short => Self { complete: 1, first: 1, later: 3 },
            SnLength::Long => Self { complete: 1, first: 2, later: 4 },
        }
    }
    /// Headers of AM (TS 38.322 §6.2.2.4).
    pub const fn am(sn: SnLength) -> Self {
        match sn {
            SnLength::Short => Self { complete: 2, first: 2, later: 4 },
            SnLength::Long => Self { complete: 3, first: 3, later: 5 },
        }
    }
    /// Header of a PDU with the bytes `from..to` of an SDU of `sdu_bytes`.
    pub const fn of(self, from: u32, to: u32, sdu_bytes: u32) -> u32 {
        if from > 0 {
            self.later
        } else if to < sdu_bytes {
            self.first
        } else {
            self.complete
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subheader_has_a_length_of_eight_bits_up_to_255_bytes() {
        assert_eq!([1, 255, 256, 9000].map(subheader), [2, 2, 3, 3]);
        let rooms = [0, 2, 3, 257, 258, 259, 1500];
        assert_eq!(rooms.map(longest_pdu), [0, 0, 1, 255, 255, 256, 1497]);
    }

    #[test]
    fn windows_are_half_of_the_number_space() {
        assert_eq!([SnLength::Short, SnLength::Long].map(SnLength::um_window), [32, 2048]);
        assert_eq!([SnLength::Short, SnLength::Long].map(SnLength::am_window), [2048, 131_072]);
    }

    #[test]
    fn a_segment_offset_follows_all_but_the_first_byte() {
        let um = Headers::um(SnLength::Long);
        assert_eq!(
            [um.of(0, 100, 100), um.of(0, 60, 100), um.of(60, 100, 100), um.of(60, 70, 100)],
            [1, 2, 4, 4]
        );
        let am = Headers::am(SnLength::Short);
        assert_eq!([am.of(0, 100, 100), am.of(0, 60, 100), am.of(60, 100, 100)], [2, 2, 4]);
        let am = Headers::am(SnLength::Long);
        assert_eq!([am.of(0, 100, 100), am.of(0, 60, 100), am.of(60, 100, 100)], [3, 3, 5]);
    }
}
