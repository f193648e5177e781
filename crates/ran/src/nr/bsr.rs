//! Buffer size levels of the buffer status reports: TS 38.321 Tables 6.1.3.1-1 (5 bits) and 6.1.3.1-2 (8
//! bits).

use crate::csv::Reader;

/// Size of the buffer size field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSizeField {
    /// 5 bits, of short and short truncated reports.
    Short,
    /// 8 bits, of long and long truncated reports.
    Long,
}

/// Upper bound in bytes of each index of 5 bits; the last has none.
static SHORT: [u32; 32] = read(b"short");
/// Upper bound in bytes of each index of 8 bits but the reserved 255; the last has none.
static LONG: [u32; 255] = read(b"long");

impl BufferSizeField {
    /// The index that reports a buffer of `bytes`.
    pub fn index_of(self, bytes: u64) -> u8 {
        let upper = self.upper();
        upper.partition_point(|upper| u64::from(*upper) < bytes).min(upper.len() - 1) as u8
    }
    /// Bytes that a scheduler assumes for an index: its upper bound. The last index has none: the scheduler
    /// assumes the largest bound of 8 bits, grants until a later report corrects it, and so is not limited to
    /// the 150,000 bytes of 5 bits in each report.
    pub fn assumed_bytes(self, index: u8) -> u32 {
        let upper = self.upper();
        upper[..upper.len() - 1].get(usize::from(index)).copied().unwrap_or(LONG[LONG.len() - 2])
    }
    fn upper(self) -> &'static [u32] {
        match self {
            Self::Short => &SHORT,
            Self::Long => &LONG,
        }
    }
}

const fn read<const COUNT: usize>(prefix: &[u8]) -> [u32; COUNT] {
    let mut upper = [0; COUNT];
    let mut line = Reader::new(include_bytes!("../../data/nr_bsr.csv"));
    let mut index = 0;
    while index < COUNT {
        if line.starts_with(prefix) {
            assert!(line.skip(1).integer() as usize == index, "rows of nr_bsr.csv are in order");
            upper[index] = if index + 1 == COUNT { u32::MAX } else { line.skip(3).integer() };
            index += 1;
        }
        line = line.next_line();
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::BufferSizeField::{Long, Short};

    #[test]
    fn every_row_holds_at_its_bounds() {
        let mut count = 0;
        for line in include_str!("../../data/nr_bsr.csv").lines().skip(2) {
            let fields: Vec<&str> = line.split(',').collect();
            let field = if fields[0] == "short_5bit" { Short } else { Long };
            let index: u8 = fields[1].parse().unwrap();
            if let Ok(lower) = fields[2].parse::<u64>() {
                assert_eq!(field.index_of(lower + 1), index, "{line}");
                assert_eq!(field.index_of(lower), index - 1, "{line}");
            }
            if let Ok(upper) = fields[3].parse::<u64>() {
                assert_eq!(field.index_of(upper), index, "{line}");
                assert_eq!(u64::from(field.assumed_bytes(index)), upper);
            }
            count += 1;
        }
        assert_eq!(count, 32 + 255);
    }

    /// The first four sizes are those of 5G-LENA's unit test.
    #[test]
    fn reports_of_known_sizes_hold() {
        for (bytes, short, long) in [
            (12, 2, 3),
            (400, 13, 59),
            (5400, 20, 101),
            (150_000, 30, 153),
            (500_000, 31, 173),
            (81_338_369, 31, 254),
            (u64::MAX, 31, 254),
            (0, 0, 0),
        ] {
            assert_eq!((Short.index_of(bytes), Long.index_of(bytes)), (short, long), "{bytes}");
        }
        assert_eq!([30, 31].map(|index| Short.assumed_bytes(index)), [150_000, 81_338_368]);
        assert_eq!(Long.assumed_bytes(254), 81_338_368);
    }
}
