//! Buffer size fields of buffer status reports (TS 36.321 §6.1.3.1, TS 38.321 §6.1.3.1).

use crate::lte;
use crate::nr::bsr::BufferSizeField;

/// The index of a buffer size, by the table that it refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferReport {
    /// 6 bits, LTE.
    Lte(u8),
    /// 5 bits, the short report of NR.
    NrShort(u8),
    /// 8 bits, the long report of NR.
    NrLong(u8),
}

impl BufferReport {
    /// LTE's report of a buffer of `bytes`.
    pub fn lte(bytes: u64) -> Self {
        Self::Lte(lte::bsr::index_of(bytes))
    }
    /// NR's short report of a buffer of `bytes`.
    pub fn nr_short(bytes: u64) -> Self {
        Self::NrShort(BufferSizeField::Short.index_of(bytes))
    }
    /// NR's long report of a buffer of `bytes`.
    pub fn nr_long(bytes: u64) -> Self {
        Self::NrLong(BufferSizeField::Long.index_of(bytes))
    }
    /// Bytes that a scheduler assumes.
    pub fn assumed_bytes(self) -> u32 {
        match self {
            Self::Lte(index) => lte::bsr::assumed_bytes(index),
            Self::NrShort(index) => BufferSizeField::Short.assumed_bytes(index),
            Self::NrLong(index) => BufferSizeField::Long.assumed_bytes(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_is_read_by_its_own_table() {
        let reports = [BufferReport::lte(5400), BufferReport::nr_short(5400), BufferReport::nr_long(5400)];
        assert_eq!(reports, [BufferReport::Lte(41), BufferReport::NrShort(20), BufferReport::NrLong(101)]);
        assert!(reports.iter().all(|report| (5400..8000).contains(&report.assumed_bytes())), "{reports:?}");
    }
}
