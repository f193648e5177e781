//! Detection of MTU black holes on the way to the client (RFC 4821, section 7.7; RFC 8899, section 4.3): a
//! hop drops long packets and its packet-too-big messages are lost. The server cannot detect it, since the
//! lost data was acknowledged early.
//!
//! After several timeouts in a row a short probe is sent: the first bytes of the first segment. An outage may
//! end at the same time, so the path is a black hole only if a probe is delivered twice and nothing longer in
//! between. Then all segments are shortened, those of the device's next connections as well. Left out: probes
//! for a larger MTU. A connection keeps its segment size; a device's limit expires after ten minutes or with
//! its last connection.

/// Payload lengths of a probe, in bytes: the base of RFC 4821, section 7.2, and Linux's least path MTU for
/// IPv4 (552) without headers.
const PROBE_BYTES: [u32; 2] = [1024, 512];
/// Timeouts in a row after which the longer probe is sent. Chosen: fewer are common in outages.
const TIMEOUTS_BEFORE_PROBE: u8 = 3;
/// The same after a probe was delivered. Chosen: the first timeout repeats the segment at its full length.
/// Had nothing longer been sent in between, two delivered probes would prove nothing.
const TIMEOUTS_BEFORE_SECOND_PROBE: u8 = 2;
/// Timeouts in a row after which the shorter probe is sent. Chosen: the longer one has had two attempts.
const TIMEOUTS_BEFORE_SHORT_PROBE: u8 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Unsuspected,
    /// A probe was sent.
    Probed,
    /// The probe was delivered.
    Delivered,
    /// A second probe was sent.
    ProbedAgain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct BlackHole {
    /// Timeouts since an ACK advanced.
    timeouts: u8,
    stage: Stage,
    /// Index of the last probe's length in [`PROBE_BYTES`].
    probe: u8,
}

impl BlackHole {
    pub fn on_timeout(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }
    fn is_probe_delivered(&self) -> bool {
        matches!(self.stage, Stage::Delivered | Stage::ProbedAgain)
    }
    /// Bytes to send of the first segment, which has `len`.
    pub fn probe_len(&self, len: u32) -> u32 {
        let due = if self.is_probe_delivered() {
            self.timeouts >= TIMEOUTS_BEFORE_SECOND_PROBE
        } else {
            self.timeouts >= TIMEOUTS_BEFORE_PROBE
        };
        let shorter = usize::from(self.timeouts >= TIMEOUTS_BEFORE_SHORT_PROBE);
        let from = if self.is_probe_delivered() { shorter.max(self.probe.into()) } else { shorter };
        PROBE_BYTES[from..].iter().copied().find(|probe| due && *probe < len).unwrap_or(len)
    }
    /// A probe of `len` bytes was sent.
    pub fn on_probe(&mut self, len: u32) {
        self.probe = PROBE_BYTES.iter().take_while(|probe| **probe > len).count() as u8;
        self.stage = if self.is_probe_delivered() { Stage::ProbedAgain } else { Stage::Probed };
    }
    /// Segments of up to `longest` bytes were delivered; the first one among them, if the ACK `advances`.
    /// Returns the largest segment when a black hole is detected.
    pub fn on_delivery(&mut self, longest: u32, advances: bool) -> Option<u32> {
        let probe = PROBE_BYTES[usize::from(self.probe)];
        if longest > probe {
            *self = Self::default();
        }
        if advances {
            self.timeouts = 0;
            match self.stage {
                Stage::Probed => self.stage = Stage::Delivered,
                Stage::ProbedAgain => {
                    *self = Self::default();
                    return Some(probe);
                }
                Stage::Unsuspected | Stage::Delivered => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeouts(hole: &mut BlackHole, count: u8) -> u32 {
        (0..count).for_each(|_| hole.on_timeout());
        let len = hole.probe_len(1448);
        if len < 1448 {
            hole.on_probe(len);
        }
        len
    }

    #[test]
    fn two_delivered_probes_are_a_black_hole() {
        let mut hole = BlackHole::default();
        assert_eq!((timeouts(&mut hole, 2), timeouts(&mut hole, 1)), (1448, 1024));
        assert_eq!(hole.on_delivery(1024, true), None);
        assert_eq!(hole.on_delivery(424, true), None, "the remainder of that segment");
        assert_eq!((timeouts(&mut hole, 1), timeouts(&mut hole, 1)), (1448, 1024), "a longer one in between");
        assert_eq!(hole.on_delivery(1024, true), Some(1024));
        assert_eq!(timeouts(&mut hole, 2), 1448, "detection starts again");
    }

    #[test]
    fn a_shorter_probe_follows_and_short_segments_are_not_probed() {
        let mut hole = BlackHole::default();
        assert_eq!((timeouts(&mut hole, 4), timeouts(&mut hole, 1)), (1024, 512));
        assert_eq!((hole.probe_len(1000), hole.probe_len(500)), (512, 500));
        assert_eq!(hole.on_delivery(512, true), None);
        assert_eq!(timeouts(&mut hole, 1), 1448, "a longer one in between");
        assert_eq!(timeouts(&mut hole, 1), 512, "the length that was delivered");
        assert_eq!(hole.on_delivery(512, true), Some(512));
    }

    // keeps: accelerator.mtu
    #[test]
    fn an_outage_is_no_black_hole() {
        let mut hole = BlackHole::default();
        for _ in 0..10 {
            assert_eq!(timeouts(&mut hole, 3), 1024);
            assert_eq!(hole.on_delivery(1024, true), None);
            assert_eq!(hole.on_delivery(1448, false), None, "longer segments are delivered again");
            assert_eq!(hole.on_delivery(1448, true), None);
        }
    }
}
