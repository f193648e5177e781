//! The rules of the safe scheme that compare ACKs or look at one alone: pure functions, in the order of the rules.

use super::stats::KeepReason;
use paceline_net::{Duration, Instant, Packet, TcpFlags, TcpHeader};

/// Rule 15: one kept ACK acknowledges at most so many segments more than the one before.
pub(super) const MAX_SEGMENTS: u64 = 8;
/// Rule 15: kept ACKs in a round trip, at the least.
const ACKS_PER_RTT: u64 = 4;
/// Rule 15: the longest gap between kept ACKs, for want of a round-trip time. A known one only makes it shorter:
/// that of the handshake is the time without a queue, and says nothing of the sender's pacing later on.
const MAX_GAP: Duration = Duration::from_millis(10);

/// What the rules need to know of the kept ACK ahead of the one that is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub tcp: TcpHeader,
    pub arrived: Instant,
}

/// The limits of rule 15 and the scale of rule 13 for one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub max_bytes: u64,
    pub max_gap: Duration,
    pub shift: u8,
}

/// Rule 15's longest gap.
pub(super) fn max_gap(rtt: Option<Duration>) -> Duration {
    rtt.map_or(MAX_GAP, |rtt| MAX_GAP.min(rtt / ACKS_PER_RTT))
}

/// Rules 5, 8 and 14: a plain datagram whose lengths agree, known options, no ECN bits in the IP header.
pub(super) fn plain(packet: &Packet, tcp: &TcpHeader) -> Result<(), KeepReason> {
    let header = packet.ip.plain_len() + 20;
    // Padding of the options is up to the sender; 40 bytes are all that the data offset can say.
    if packet.ip.special || packet.len < header + least_options(tcp) || packet.len > header + 40 {
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

fn least_options(tcp: &TcpHeader) -> u32 {
    let timestamps = if tcp.options.timestamps.is_some() { 10 } else { 0 };
    let sack = if tcp.options.sack.is_empty() { 0 } else { 2 + 8 * tcp.options.sack.len() as u32 };
    timestamps + sack
}

/// Rules 8 and 14 at the handshake: what a SYN must not offer for its connection to be filtered.
///
/// Only one direction is seen, so an offer counts as accepted. Of the flags AE, CWR, ECE, a SYN may carry none or
/// the two of classic ECN, a SYN-ACK none or ECE: all else is accurate ECN (RFC 9768, table 2) or unknown.
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

/// Whether `old` is superfluous once `new` is queued behind it, given the ACK `before` it that is kept.
pub(super) fn supersedes(
    before: &Kept,
    old: (&Packet, &TcpHeader),
    new: (&Packet, &TcpHeader),
    now: Instant,
    limits: Limits,
) -> Result<(), KeepReason> {
    let ((old_packet, old), (new_packet, new)) = (old, new);
    if old_packet.ip.traffic_class != new_packet.ip.traffic_class {
        return Err(KeepReason::Separated); // another class may meet another fate further on
    }
    if old.ack >= new.ack {
        return Err(KeepReason::OldAck);
    }
    if old.seq > new.seq {
        return Err(KeepReason::Probe);
    }
    if !timestamps_in_order(old, new) {
        return Err(KeepReason::Timestamps);
    }
    if window_retreats(old, new, limits.shift) {
        return Err(KeepReason::Window);
    }
    let echo = |tcp: &TcpHeader| tcp.flags.0 & TcpFlags::ECE.with(TcpFlags::CWR).0;
    if echo(old) != echo(new) || echo(old) != echo(&before.tcp) {
        return Err(KeepReason::EcnEcho);
    }
    let newly_acked = new.ack.distance(before.tcp.ack);
    if newly_acked < 0 || i64::from(newly_acked) > i64::try_from(limits.max_bytes).unwrap_or(i64::MAX) {
        return Err(KeepReason::SegmentFloor);
    }
    if now.since(before.arrived) > limits.max_gap {
        return Err(KeepReason::TimeFloor);
    }
    Ok(())
}

/// Rule 11.
fn timestamps_in_order(old: &TcpHeader, new: &TcpHeader) -> bool {
    let in_order = |old: u32, new: u32| new.wrapping_sub(old) as i32 >= 0;
    match (old.options.timestamps, new.options.timestamps) {
        (None, None) => true,
        (Some(old), Some(new)) => in_order(old.val, new.val) && in_order(old.ecr, new.ecr),
        _ => false,
    }
}

/// Rule 13: whether the right edge of `old` lies beyond that of `new`. The scale is the one that was offered; were
/// it refused, a smaller one would apply, by which a shrinking window takes back less.
fn window_retreats(old: &TcpHeader, new: &TcpHeader, shift: u8) -> bool {
    let growth = i64::from(new.window) - i64::from(old.window);
    i64::from(new.ack.distance(old.ack)) + (growth << shift) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::SeqNumber;

    /// An ACK of `ack` at `seq`, ahead of which 0 was acknowledged.
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
        let before = Kept { tcp: *packet(0, 0).tcp_header().unwrap(), arrived: Instant::ZERO };
        let limits = Limits { max_bytes: 100, max_gap: max_gap(None), shift: 0 };
        let (old, new) = ((old, old.tcp_header().unwrap()), (new, new.tcp_header().unwrap()));
        supersedes(&before, old, new, Instant::from_millis(10), limits)
    }

    /// The arrival's own checks make sure of these as well; the comparison does not rely on it.
    #[test]
    fn numbers_run_forward() {
        assert_eq!(verdict(&packet(0, 50), &packet(0, 100)), Ok(()));
        assert_eq!(verdict(&packet(0, 50), &packet(0, 101)), Err(KeepReason::SegmentFloor));
        assert_eq!(verdict(&packet(0, 50), &packet(0, 50)), Err(KeepReason::OldAck));
        assert_eq!(verdict(&packet(0, 51), &packet(0, 50)), Err(KeepReason::OldAck));
        assert_eq!(verdict(&packet(1, 50), &packet(0, 60)), Err(KeepReason::Probe));
    }

    #[test]
    fn the_gap_is_a_quarter_of_a_short_round_trip() {
        assert_eq!(max_gap(None), Duration::from_millis(10));
        assert_eq!(max_gap(Some(Duration::from_millis(400))), Duration::from_millis(10));
        assert_eq!(max_gap(Some(Duration::from_millis(20))), Duration::from_millis(5));
    }
}
