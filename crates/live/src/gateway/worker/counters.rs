//! What a worker counts beside its machines.

use crate::gateway::control_plane::requests::Lateness;
use crate::gateway::counter::Counter;
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
    /// The counters with their values.
    pub fn values(&self) -> [(Counter, u64); 11] {
        [
            (Counter::FramesIn, self.frames_in),
            (Counter::FramesOut, self.frames_out),
            (Counter::FrameBytesIn, self.bytes_in.iter().sum()),
            (Counter::FrameBytesFromServers, self.bytes_in[Side::Server as usize]),
            (Counter::FrameBytesFromDevices, self.bytes_in[Side::Mobile as usize]),
            (Counter::FramesLostIn, self.lost_in),
            (Counter::FramesLostOut, self.lost_out),
            (Counter::ConnectionsLeftAlone, self.left_alone),
            (Counter::UploadsLeftAlone, self.resting),
            (Counter::Turns, self.turns),
            (Counter::Absences, self.absences),
        ]
    }
}
