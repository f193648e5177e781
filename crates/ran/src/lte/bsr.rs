//! Buffer size levels of the buffer status report (TS 36.321 Table 6.1.3.1-1).

use crate::csv::Reader;

/// Upper bound in bytes of each index; index 63 means more than 150,000 bytes.
static UPPER: [u32; 64] = read();

/// The index that reports a buffer of `bytes`.
pub fn index_of(bytes: u64) -> u8 {
    UPPER.partition_point(|upper| u64::from(*upper) < bytes).min(63) as u8
}

/// Bytes that a scheduler assumes for an index: its upper bound; for index 63, the bound of index 62.
pub fn assumed_bytes(index: u8) -> u32 {
    UPPER[usize::from(index.min(62))]
}

const fn read() -> [u32; 64] {
    let mut upper = [0; 64];
    let mut line = Reader::new(include_bytes!("../../data/lte_bsr.csv"));
    let mut index = 0;
    while index < 64 {
        assert!(line.integer() as usize == index, "rows of lte_bsr.csv are in order");
        upper[index] = if index == 63 { u32::MAX } else { line.skip(2).integer() };
        line = line.next_line();
        index += 1;
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_holds_at_its_bounds() {
        for line in include_str!("../../data/lte_bsr.csv").lines().skip(3) {
            let fields: Vec<&str> = line.split(',').collect();
            let index: u8 = fields[0].parse().unwrap();
            if let Ok(lower) = fields[1].parse::<u64>() {
                assert_eq!(index_of(lower + 1), index, "{line}");
                assert_ne!(index_of(lower), index, "{line}");
            }
            if let Ok(upper) = fields[2].parse::<u64>() {
                assert_eq!(index_of(upper), index, "{line}");
                assert_eq!(u64::from(assumed_bytes(index)), upper);
            }
        }
        assert_eq!(index_of(u64::MAX), 63);
        assert_eq!(assumed_bytes(63), 150_000);
        // Entries that differ in some public implementations (see the data file).
        assert_eq!([16, 40, 41, 45, 59].map(assumed_bytes), [107, 4677, 5476, 10_287, 93_479]);
    }
}
