//! The safety rules that compare two ACKs, or judge the headers of one: functions without state. The numbers
//! are those of docs/ack-filter.md.

use super::stats::KeepReason;
use paceline_net::{Duration, Instant, Packet, TcpFlags, TcpHeader};

/// Rule 15: segments that one kept ACK may newly acknowledge. Chosen: the rule's value, which bounds the
/// bursts of a sender that sends per ACK.
pub(super) const MAX_SEGMENTS: u64 = 8;
/// Rule 15: smallest number of kept ACKs in a round trip. Chosen: the rule's better value; its minimum of 2
/// leaves no margin for losses.
const ACKS_PER_RTT: u64 = 4;
/// Rule 15: longest gap between kept ACKs where the round-trip time is unknown. Chosen: the rule's value.
const MAX_GAP_UNKNOWN_RTT: Duration = Duration::from_millis(10);

/// The kept segment ahead of the ACK that is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub tcp: TcpHeader,
    pub arrived: Instant,
}

/// Limits of rule 15 and window scale (rule 13) of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes that one kept ACK may newly acknowledge.
    pub max_bytes: u64,
    /// Longest time between the arrivals of two kept ACKs.
    pub max_gap: Duration,
    pub shift: u8,
}

/// Rule 15: longest gap between kept ACKs.
pub(super) fn max_gap(rtt: Option<Duration>) -> Duration {
    rtt.map_or(MAX_GAP_UNKNOWN_RTT, |rtt| rtt / ACKS_PER_RTT)
}

/// Rules 5, 8 and 14: a plain datagram with consistent lengths and known options, without ECN bits in the IP
/// header.
pub(super) fn check_headers(packet: &Packet, tcp: &TcpHeader) -> Result<(), KeepReason> {
    let header = packet.ip.plain_len() + 20;
    // The padding of the options is the sender's choice; the data offset allows 40 bytes at most (RFC 9293
    // 3.1).
    if packet.ip.special || packet.len < header + min_options_len(tcp) || packet.len > header + 40 {
        return Err(KeepReason::NotPlainIp);
    }
    let options = &tcp.options;
    if options.other.any()
        || options.mss.is_some()
        || options.window_scale.is_some()
        || options.sack_permitted
    {
        return Err(KeepReason::Options);
    }
    if packet.ip.ecn() != 0 {
        return Err(KeepReason::IpEcn);
    }
    Ok(())
}

fn min_options_len(tcp: &TcpHeader) -> u32 {
    let timestamps = if tcp.options.timestamps.is_some() { 10 } else { 0 };
    let sack = if tcp.options.sack.is_empty() { 0 } else { 2 + 8 * tcp.options.sack.len() as u32 };
    timestamps + sack
}

/// Rules 8 and 14 at the handshake: whether the offers of a SYN or SYN-ACK allow filtering its connection.
///
/// Only one direction is seen, so an offer counts as accepted. Of the flags AE, CWR and ECE, a SYN may carry
/// none or the two of classic ECN (RFC 3168), a SYN-ACK none or ECE. All else is accurate ECN (RFC 9768,
/// table 2) or unknown.
pub(super) fn may_filter_after(syn: &TcpHeader) -> bool {
    let ecn = TcpFlags::ECE.with(TcpFlags::CWR);
    let allowed = [
        TcpFlags::SYN,
        TcpFlags::SYN.with(ecn),
        TcpFlags::SYN.with(TcpFlags::ACK),
        TcpFlags::SYN.with(TcpFlags::ACK).with(TcpFlags::ECE),
    ];
    allowed.contains(&syn.flags) && !syn.options.other.any()
}

/// Whether `new`, queued behind `old`, supersedes it: rules 9 to 11 and 13 to 15. `kept_before`: the kept
/// segment ahead of `old`.
pub(super) fn supersedes(
    kept_before: &Kept,
    old: (&Packet, &TcpHeader),
    new: (&Packet, &TcpHeader),
    now: Instant,
    limits: Limits,
) -> Result<(), KeepReason> {
    let ((old_packet, old), (new_packet, new)) = (old, new);
    if old_packet.ip.traffic_class != new_packet.ip.traffic_class {
        return Err(KeepReason::Separated); // packets of another class may be dropped or delayed further on
    }
    if old.ack >= new.ack {
        return Err(KeepReason::OldAck);
    }
    if old.seq > new.seq {
        return Err(KeepReason::Probe);
    }
    if !are_timestamps_in_order(old, new) {
        return Err(KeepReason::Timestamps);
    }
    if does_right_edge_retreat(old, new, limits.shift) {
        return Err(KeepReason::Window);
    }
    let echo = |tcp: &TcpHeader| tcp.flags.0 & TcpFlags::ECE.with(TcpFlags::CWR).0;
    if echo(old) != echo(new) || echo(old) != echo(&kept_before.tcp) {
        return Err(KeepReason::EcnEcho);
    }
    let newly_acked = new.ack.distance(kept_before.tcp.ack);
    if newly_acked < 0 || i64::from(newly_acked) > i64::try_from(limits.max_bytes).unwrap_or(i64::MAX) {
        return Err(KeepReason::SegmentFloor);
    }
    if now.since(kept_before.arrived) > limits.max_gap {
        return Err(KeepReason::TimeFloor);
    }
    Ok(())
}

/// Rule 11: both ACKs or neither carry timestamps, and those of `old` are not later (RFC 7323).
fn are_timestamps_in_order(old: &TcpHeader, new: &TcpHeader) -> bool {
    let in_order = |old: u32, new: u32| new.wrapping_sub(old) as i32 >= 0;
    match (old.options.timestamps, new.options.timestamps) {
        (None, None) => true,
        (Some(old), Some(new)) => in_order(old.val, new.val) && in_order(old.ecr, new.ecr),
        _ => false,
    }
}

/// Rule 13: whether the right edge of the window moves back from `old` to `new`. The scale is the one that
/// was offered. If the other end refused it, the true scale is smaller, and a shrinking window takes back
/// less.
fn does_right_edge_retreat(old: &TcpHeader, new: &TcpHeader, shift: u8) -> bool {
    let growth = i64::from(new.window) - i64::from(old.window);
    i64::from(new.ack.distance(old.ack)) + (growth << shift) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::SeqNumber;

    /// A pure ACK; the kept ACK ahead of it acknowledged 0.
    fn packet(seq: u32, ack: u32) -> Packet {
        let tcp = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags: TcpFlags::ACK,
            window: 10,
            options: Default::default(),
            payload_len: 0,
        };
        Packet::tcp([198, 18, 0, 2].into(), [198, 18, 0, 1].into(), tcp)
    }

    fn verdict(old: &Packet, new: &Packet) -> Result<(), KeepReason> {
        let kept_before = Kept { tcp: *packet(0, 0).tcp_header().unwrap(), arrived: Instant::ZERO };
        let limits = Limits { max_bytes: 100, max_gap: max_gap(None), shift: 0 };
        let (old, new) = ((old, old.tcp_header().unwrap()), (new, new.tcp_header().unwrap()));
        supersedes(&kept_before, old, new, Instant::from_millis(10), limits)
    }

    /// The checks of an arrival imply the same; the comparison does not rely on them.
    // keeps: ack-filter.10
    #[test]
    fn sequence_and_acknowledgment_numbers_must_not_run_backwards() {
        assert_eq!(verdict(&packet(0, 50), &packet(0, 100)), Ok(()));
        assert_eq!(verdict(&packet(0, 50), &packet(0, 101)), Err(KeepReason::SegmentFloor));
        assert_eq!(verdict(&packet(0, 50), &packet(0, 50)), Err(KeepReason::OldAck));
        assert_eq!(verdict(&packet(0, 51), &packet(0, 50)), Err(KeepReason::OldAck));
        assert_eq!(verdict(&packet(1, 50), &packet(0, 60)), Err(KeepReason::Probe));
    }

    // keeps: ack-filter.15
    #[test]
    fn the_longest_gap_is_a_quarter_of_the_round_trip_and_10_ms_if_that_is_unknown() {
        assert_eq!(max_gap(None), Duration::from_millis(10));
        assert_eq!(max_gap(Some(Duration::from_millis(400))), Duration::from_millis(100));
        assert_eq!(max_gap(Some(Duration::from_millis(20))), Duration::from_millis(5));
    }
}
