//! NR blocks as they are on the air, for captures.

use crate::duplex::Direction;
use crate::slot::{Slot, SlotClock};

/// Milliseconds of a frame (TS 38.211 §4.3.1).
const FRAME_MS: u64 = 10;
/// Number of frames until their numbers repeat (TS 38.211 §4.3.1).
const FRAMES: u64 = 1024;
// Values of Wireshark's format "MAC-NR over UDP" (packet-mac-nr.h).
const RADIO_FDD: u8 = 1;
const RADIO_TDD: u8 = 2;
const UPLINK: u8 = 0;
const DOWNLINK: u8 = 1;
const C_RNTI: u8 = 3;
const TAG_PAYLOAD: u8 = 1;
const TAG_RNTI: u8 = 2;
const TAG_STATION: u8 = 3;
const TAG_PROCESS: u8 = 6;
const TAG_SLOT: u8 = 7;

/// A transport block in its first transmission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedBlock {
    /// The station at one end.
    pub station: usize,
    /// Its direction.
    pub direction: Direction,
    /// The slot of the transmission.
    pub slot: Slot,
    /// The HARQ process.
    pub process: usize,
    /// The MAC PDU.
    pub bytes: Vec<u8>,
}

impl CapturedBlock {
    /// The payload of a UDP datagram that Wireshark's heuristic `mac_nr_udp` dissects.
    pub fn mac_nr_over_udp(&self, clock: SlotClock, tdd: bool) -> Vec<u8> {
        let per_frame = FRAME_MS << clock.numerology().mu();
        let station = (self.station + 1) as u16;
        let direction = if self.direction == Direction::Up { UPLINK } else { DOWNLINK };
        let mut out = b"mac-nr".to_vec();
        out.extend([if tdd { RADIO_TDD } else { RADIO_FDD }, direction, C_RNTI]);
        for tag in [TAG_RNTI, TAG_STATION] {
            out.push(tag);
            out.extend(station.to_be_bytes());
        }
        out.extend([TAG_PROCESS, self.process as u8, TAG_SLOT]);
        out.extend(((self.slot.0 / per_frame % FRAMES) as u16).to_be_bytes());
        out.extend(((self.slot.0 % per_frame) as u16).to_be_bytes());
        out.push(TAG_PAYLOAD);
        out.extend(&self.bytes);
        out
    }
}
