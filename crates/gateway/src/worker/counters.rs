//! Counters of a worker beside those of its accelerators.

use crate::control_plane::requests::Lateness;
use crate::counter::Counter;
use paceline_pep::accelerator::Side;

/// Frames, turns and losses of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub frames_in: u64,
    pub frames_out: u64,
    /// Bytes of frames, by side.
    pub bytes_in: [u64; 2],
    /// Connections left to the kernel.
    pub left_to_kernel: u64,
    /// Times that a connection's upload was left to the kernel.
    pub uploads_offloaded: u64,
    /// Frames that could not be parsed and were forwarded unchanged.
    pub unreadable: u64,
    /// Frames in a tunnel.
    pub tunnelled: u64,
    /// Frames lost because the socket's buffers were full.
    pub lost_in: u64,
    /// Frames lost because the send queue was full, or refused by the device.
    pub lost_out: u64,
    /// Acknowledgments sent towards servers.
    pub acks_out: u64,
    /// Refusals of frames by an interface's queue. The frames were kept.
    pub refused: u64,
    pub turns: u64,
    /// How late the worker woke from its pauses.
    pub lateness: Lateness,
    /// Pauses of the worker that were long enough for the kernel to forward packets past it.
    pub absences: u64,
}

impl Counters {
    /// The counters with their values.
    pub fn values(&self) -> [(Counter, u64); 15] {
        [
            (Counter::FramesIn, self.frames_in),
            (Counter::FramesOut, self.frames_out),
            (Counter::FrameBytesIn, self.bytes_in.iter().sum()),
            (Counter::FrameBytesFromServers, self.bytes_in[Side::Server as usize]),
            (Counter::FrameBytesFromDevices, self.bytes_in[Side::Mobile as usize]),
            (Counter::FramesUnreadable, self.unreadable),
            (Counter::FramesTunnelled, self.tunnelled),
            (Counter::FramesLostIn, self.lost_in),
            (Counter::FramesLostOut, self.lost_out),
            (Counter::AcksOut, self.acks_out),
            (Counter::FramesRefused, self.refused),
            (Counter::ConnectionsLeftAlone, self.left_to_kernel),
            (Counter::UploadsLeftAlone, self.uploads_offloaded),
            (Counter::Turns, self.turns),
            (Counter::Absences, self.absences),
        ]
    }
}
