//! The cause for which a station has no service.

use crate::counters::Counters;

/// The radio's cause for which a station with these counters got no payload acknowledged; none if it got some
/// or if the radio has no cause. `run` has the counters since the start of the run.
pub(super) fn cause_of_none(c: &Counters, run: &Counters) -> Option<&'static str> {
    if c.downloaded + c.uploaded > 0 {
        return None;
    }
    // A station without grants for its data still sends Msg3s, which are blocks too.
    let uplink = c.uplink_slots_without_mcs > c.uplink_blocks;
    let downlink = c.downlink_slots_without_mcs > c.downlink_blocks;
    // After dsr-TransMax scheduling requests the station has no connection any more, and so awaits no grant.
    let unconnected = c.contention_resolutions == 0 && c.preambles > 0;
    match () {
        () if uplink || unconnected && run.uplink_slots_without_mcs > 0 => Some(
            "no uplink grant: the uplink's SINR is too low for MCS 0, with all HARQ transmissions combined",
        ),
        () if downlink => Some("no downlink block: the downlink's SINR is too low for CQI 1"),
        () if unconnected => Some("no random access succeeded"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_direction_without_blocks_is_the_cause() {
        let cause = |c: &Counters| cause_of_none(c, c);
        let weak =
            Counters { uplink_slots_without_mcs: 5, downlink_slots_without_mcs: 5, ..Counters::default() };
        assert!(cause(&weak).unwrap().contains("uplink's SINR"));
        let with_msg3 = Counters { uplink_blocks: 2, preambles: 1, ..weak.clone() };
        assert!(cause(&with_msg3).unwrap().contains("uplink's SINR"));
        let connected = Counters { contention_resolutions: 1, ..with_msg3 };
        assert!(cause(&connected).unwrap().contains("uplink's SINR"), "Msg3s alone are no service");
        let weak = Counters { uplink_blocks: 20, contention_resolutions: 1, ..weak };
        assert!(cause(&weak).unwrap().contains("downlink's SINR"));
        assert_eq!(cause(&Counters { downloaded: 1, ..weak.clone() }), None);
        let lost = Counters { preambles: 10, ..Counters::default() };
        assert_eq!(cause(&lost), Some("no random access succeeded"));
        assert!(
            cause_of_none(&lost, &weak).unwrap().contains("uplink's SINR"),
            "the connection was lost before"
        );
        assert_eq!(cause(&Counters::default()), None);
    }
}
