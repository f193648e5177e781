//! What a worker counts beside its machines.

use super::requests::Lateness;
use paceline_pep::accelerator::Side;

/// What a worker counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub frames_in: u64,
    pub frames_out: u64,
    /// By side.
    pub bytes_in: [u64; 2],
    /// Connections left to the kernel.
    pub left_alone: u64,
    /// Times that a connection's upload was left to the kernel.
    pub resting: u64,
    /// Frames that no buffer had room for, ahead of the worker and behind it.
    pub lost_in: u64,
    pub lost_out: u64,
    pub turns: u64,
    pub lateness: Lateness,
    /// Times that the worker was away for so long that packets may have passed it.
    pub absences: u64,
}

impl Counters {
    /// All of them by name.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("frames-in", self.frames_in),
            ("frames-out", self.frames_out),
            ("frame-bytes-in", self.bytes_in.iter().sum()),
            ("frame-bytes-from-servers", self.bytes_in[Side::Server as usize]),
            ("frame-bytes-from-devices", self.bytes_in[Side::Mobile as usize]),
            ("frames-lost-in", self.lost_in),
            ("frames-lost-out", self.lost_out),
            ("connections-left-alone", self.left_alone),
            ("uploads-left-alone", self.resting),
            ("turns", self.turns),
            ("absences", self.absences),
        ]
    }
}
