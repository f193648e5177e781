//! The cause for which a station has no service.

use crate::counters::Counters;

/// The radio's cause for which a station with these counters got no payload acknowledged; none if it got some
/// or if the radio has no cause.
pub(super) fn cause_of_none(c: &Counters) -> Option<&'static str> {
    if c.downloaded + c.uploaded > 0 {
        return None;
    }
    // After dsr-TransMax scheduling requests, a station sends Msg3s, which are blocks too.
    let uplink = c.uplink_blocks == 0 || c.contention_resolutions == 0;
    let downlink = c.downlink_blocks == 0;
    match () {
        () if uplink && c.uplink_slots_without_mcs > 0 => {
            Some("no uplink grant: the uplink's SINR is too low for MCS 0")
        }
        () if downlink && c.downlink_slots_without_mcs > 0 => {
            Some("no downlink block: the downlink's SINR is too low for CQI 1")
        }
        () if c.contention_resolutions == 0 && c.preambles > 0 => Some("no random access succeeded"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_direction_without_blocks_is_the_cause() {
        let weak =
            Counters { uplink_slots_without_mcs: 5, downlink_slots_without_mcs: 5, ..Counters::default() };
        assert!(cause_of_none(&weak).unwrap().contains("uplink's SINR"));
        let with_msg3 = Counters { uplink_blocks: 2, preambles: 1, ..weak.clone() };
        assert!(cause_of_none(&with_msg3).unwrap().contains("uplink's SINR"));
        let weak = Counters { uplink_blocks: 2, contention_resolutions: 1, ..weak };
        assert!(cause_of_none(&weak).unwrap().contains("downlink's SINR"));
        assert_eq!(cause_of_none(&Counters { downloaded: 1, ..weak }), None);
        let lost = Counters { preambles: 10, ..Counters::default() };
        assert_eq!(cause_of_none(&lost), Some("no random access succeeded"));
        assert_eq!(cause_of_none(&Counters::default()), None);
    }
}
