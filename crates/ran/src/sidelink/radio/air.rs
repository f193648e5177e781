//! The radio hops of a flow.

use super::super::stats::PathKind;

/// All radio hops of a flow, by definition.
pub(in crate::sidelink) const AIRS: [Air; 3] = [Air::Direct, Air::Up, Air::Down];

/// A radio hop of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sidelink) enum Air {
    /// From the sending station to the receiving one.
    Direct,
    /// From the sending station to the eNB.
    Up,
    /// From the eNB to the receiving station.
    Down,
}

impl Air {
    /// The hop in the other flow of the pair between the same ends.
    pub fn opposite(self) -> Self {
        match self {
            Self::Direct => Self::Direct,
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
    /// The hops of a path, in the order in which packets pass them.
    pub fn of(path: PathKind) -> &'static [Self] {
        match path {
            PathKind::Direct => &[Self::Direct],
            PathKind::Infrastructure => &[Self::Up, Self::Down],
        }
    }
    pub fn path(self) -> PathKind {
        match self {
            Self::Direct => PathKind::Direct,
            Self::Up | Self::Down => PathKind::Infrastructure,
        }
    }
}
