//! The decision on a segment in the policed direction. The rules have the numbers of docs/police.md.

use super::flow::{Flow, Phase, distance, elapsed, seen};
use super::limiter::{Limiter, UNKNOWN_RTT_GAP_NS};
use super::reason::Reason;
use super::segment::{Segment, marks};
use super::{Mode, Policy};
use paceline_net::TcpFlags;

/// Rule 15: smallest number of kept ACKs in a round trip and in a window. Chosen: the rule's better value.
const ACKS_PER_RTT: u64 = 4;
/// Rule 16: segments that are acknowledged before anything is dropped, at the beginning and after a sign of
/// loss.
const SEGMENTS_BEFORE_DROPS: u32 = 64;
/// Rule 15: a kept ACK acknowledges at most one segment for as many acknowledged since the beginning or the
/// last sign of loss, so that slow start and a path that loses packets keep their ACKs. Chosen: of 64, 256,
/// 512 and 1024 by the grid of scripts/measure/police/grid.py; docs/police.md has the figures.
const SEGMENTS_PER_GAP: u32 = 512;
/// Rule 16: a gap of this length in ns makes a connection sparse, until this many ACKs came without one.
/// Chosen: with so few ACKs there is nothing to gain.
const SPARSE_GAP_NS: u64 = 100_000_000;
const SPARSE_RUN: u32 = 16;
/// Rule 22: mean number of segments acknowledged by an incoming ACK that shows another filter or a receiver's
/// offload. Chosen: twice as many as with delayed ACKs.
const THINNED_SEGMENTS: u32 = 4;
/// Rule 22: weight of one ACK in that mean, as a negative power of two. Chosen: as in the ACK filter.
const MEAN_SHIFT: u32 = 3;
/// Rule 2: data that has passed and is not acknowledged, in segments, so that a later ACK is certain. A
/// receiver acknowledges at least every second full-sized segment (RFC 5681 4.2).
const CERTAIN_SEGMENTS: u32 = 2;

/// Decides on a segment in the policed direction at `now` ns, and records it. A packet without a TCP header
/// needs no decision: it passes.
pub fn judge(flow: &mut Flow, limiter: &mut Limiter, policy: &Policy, now: u64, segment: &Segment) -> Reason {
    let is_ack = segment.is_pure_ack();
    if policy.mode == Mode::Published {
        if !is_ack {
            return Reason::NotAck;
        }
        let dropped = limiter.is_over(&policy.limit, now, segment.len, flow.kept_at, flow.rtt());
        if dropped {
            limiter.on_drop(&policy.limit);
        } else {
            flow.kept_at = now;
        }
        return if dropped { Reason::Dropped } else { Reason::WithinLimit };
    }
    let protected = if is_ack { protection(flow, policy, now, segment) } else { None };
    let reason = if !is_ack {
        Reason::NotAck
    } else if !limiter.is_over(&policy.limit, now, segment.len, flow.kept_at, flow.rtt()) {
        Reason::WithinLimit
    } else if let Some(reason) = protected {
        reason
    } else {
        limiter.on_drop(&policy.limit);
        Reason::Dropped
    };
    record(flow, now, segment, is_ack, reason == Reason::Dropped);
    reason
}

/// The rule that protects a pure ACK, if any.
fn protection(flow: &Flow, policy: &Policy, now: u64, ack: &Segment) -> Option<Reason> {
    headers(ack).or_else(|| state(flow, now, ack)).or_else(|| floors(flow, policy, now, ack))
}

/// Rules 5 to 8, 12 and 14: what the packet itself shows.
fn headers(ack: &Segment) -> Option<Reason> {
    if ack.marks & marks::SPECIAL != 0 {
        return Some(Reason::NotPlainIp);
    }
    if ack.marks & marks::SACK != 0 {
        return Some(Reason::Sack);
    }
    if ack.marks & marks::OPTIONS != 0 {
        return Some(Reason::Options);
    }
    if ack.marks & marks::IP_ECN != 0 {
        return Some(Reason::IpEcn);
    }
    if ack.flags & (TcpFlags::ECE.0 | TcpFlags::CWR.0) != 0 {
        return Some(Reason::EcnEcho);
    }
    if ack.flags != TcpFlags::ACK.0 {
        return Some(Reason::Options); // URG, PSH, AE or a reserved bit
    }
    None
}

/// Rules 9, 10, 12, 13, 16, 19 and 22: what the connection's past shows.
fn state(flow: &Flow, now: u64, ack: &Segment) -> Option<Reason> {
    match flow.phase {
        Phase::Open => {}
        Phase::Barred => return Some(Reason::Handshake),
        Phase::Closing => return Some(Reason::Closing),
        _ => return Some(Reason::MidStream),
    }
    if flow.seen & seen::ACK == 0 {
        return Some(Reason::FirstSegments);
    }
    let advance = distance(ack.ack, flow.ack);
    if advance < 0 {
        return Some(Reason::OldAck);
    }
    if advance == 0 {
        return Some(if ack.window == flow.window { Reason::Duplicate } else { Reason::Window });
    }
    if ack.window == 0 || flow.window == 0 || right_edge_retreats(flow, ack, advance) {
        return Some(Reason::Window);
    }
    if ack.seq != flow.snd_nxt {
        return Some(Reason::Probe);
    }
    if flow.in_recovery != 0 {
        return Some(Reason::FirstAdvance);
    }
    if now < flow.off_until {
        return Some(Reason::Recovery);
    }
    if flow.acked < SEGMENTS_BEFORE_DROPS * flow.segment.min(65_535) {
        return Some(Reason::FirstSegments);
    }
    if flow.run < SPARSE_RUN || now.wrapping_sub(flow.ack_at) > SPARSE_GAP_NS {
        return Some(Reason::Sparse);
    }
    if flow.mean_advance > THINNED_SEGMENTS * flow.segment.min(65_535) {
        return Some(Reason::ThinnedUpstream);
    }
    None
}

/// Rule 13: whether the right edge of the window moves back.
fn right_edge_retreats(flow: &Flow, ack: &Segment, advance: i32) -> bool {
    let before = u64::from(flow.window) << flow.shift;
    let after = (u64::from(ack.window) << flow.shift) + u64::from(advance as u32);
    after < before
}

/// Rules 2 and 15: a later ACK is certain, and the gap to the last kept one stays small in bytes, in shares
/// of the window, and in time.
fn floors(flow: &Flow, policy: &Policy, now: u64, ack: &Segment) -> Option<Reason> {
    let segment = flow.segment.clamp(1, 65_535);
    let passed = distance(flow.data_end, ack.ack); // data between here and the receiver
    if passed < 0 || flow.seen & seen::DATA == 0 {
        return Some(Reason::MayBeLast); // acknowledges data that was not seen
    }
    let unacknowledged = distance(flow.data_end, flow.kept_ack).max(0) as u32;
    let window = flow.window_bytes.max(unacknowledged);
    // Data between the sender and here: the sender's window less what has passed since the last kept ACK, and
    // not beyond the right edge of which that ACK told the sender.
    let allowed = distance(flow.kept_edge, flow.data_end).max(0) as u32;
    let coming = (window - unacknowledged).min(allowed);
    // A sender that marks the end of its data by PSH has more if the last data had none.
    let goes_on = flow.pushed == 0 && flow.seen & (seen::PUSH | seen::MISSED) == seen::PUSH;
    let is_certain = passed as u32 >= CERTAIN_SEGMENTS * segment
        || (goes_on && coming >= window / 2 && coming >= 2 * CERTAIN_SEGMENTS * segment);
    if !is_certain {
        return Some(Reason::MayBeLast);
    }
    let newly_acked = distance(ack.ack, flow.kept_ack);
    let max_bytes = policy.max_segments.saturating_mul(segment);
    let max_bytes = max_bytes.min(window / ACKS_PER_RTT as u32).min(flow.acked / SEGMENTS_PER_GAP);
    if newly_acked < 0 || newly_acked as u32 > max_bytes {
        return Some(Reason::SegmentFloor);
    }
    let rtt = flow.rtt();
    let max_gap = match rtt {
        _ if flow.in_slow_start() => SLOW_START_GAP_NS,
        0 => UNKNOWN_RTT_GAP_NS,
        rtt => (rtt / ACKS_PER_RTT).max(MIN_GAP_NS),
    };
    if now.wrapping_sub(flow.kept_at) > max_gap {
        return Some(Reason::TimeFloor);
    }
    None
}

/// Rule 15: gaps shorter than this need no floor in time. Chosen: on paths of less than 4 ms the floors in
/// bytes and in shares of the window are the stricter ones.
const MIN_GAP_NS: u64 = 1_000_000;
/// Rule 15: the floor in time during slow start. HyStart ends slow start by a train of ACKs, whose gaps are
/// at most 2 ms in Linux (`hystart_ack_delta_us`). Chosen: a quarter, for ACKs that come in steps of a
/// millisecond.
const SLOW_START_GAP_NS: u64 = 500_000;

/// Records a segment of the policed direction.
fn record(flow: &mut Flow, now: u64, segment: &Segment, is_ack: bool, dropped: bool) {
    if segment.has(TcpFlags::SYN) {
        flow.on_syn(now, segment, Phase::SynPoliced);
        return;
    }
    if segment.flags & (TcpFlags::FIN.0 | TcpFlags::RST.0) != 0 {
        flow.close();
    }
    if !segment.has(TcpFlags::ACK) {
        return;
    }
    if flow.phase == Phase::SynAck {
        if flow.receiver_rtt == 0 {
            flow.receiver_rtt = elapsed(now, flow.syn_ack_at);
        }
        if flow.sender_rtt != 0 {
            flow.phase = Phase::Open;
        }
    }
    if segment.payload > 0 {
        let end = segment.seq.wrapping_add(segment.payload);
        if distance(end, flow.snd_nxt) > 0 {
            flow.snd_nxt = end;
        }
    }
    on_acknowledgment(flow, now, segment, is_ack);
    if !dropped {
        flow.on_kept(now, segment);
    }
}

fn on_acknowledgment(flow: &mut Flow, now: u64, segment: &Segment, is_ack: bool) {
    let gap = now.wrapping_sub(flow.ack_at);
    flow.run = if flow.ack_at == 0 || gap > SPARSE_GAP_NS { 0 } else { flow.run.saturating_add(1) };
    flow.ack_at = now;
    let advance = distance(segment.ack, flow.ack);
    if flow.seen & seen::ACK != 0 && advance > 0 {
        flow.acked = flow.acked.saturating_add(advance as u32);
        flow.in_recovery = 0;
        flow.count_round(now, advance as u32);
        if is_ack {
            flow.mean_advance =
                flow.mean_advance - (flow.mean_advance >> MEAN_SHIFT) + ((advance as u32) >> MEAN_SHIFT);
        }
    }
    let duplicate = is_ack && flow.seen & seen::ACK != 0 && advance == 0 && segment.window == flow.window;
    if duplicate || segment.marks & marks::SACK != 0 {
        flow.in_recovery = 1;
        flow.recover(now);
    }
    if segment.flags & TcpFlags::ECE.0 != 0 {
        flow.recover(now);
    }
    if flow.seen & seen::ACK == 0 || advance >= 0 {
        flow.ack = segment.ack;
        flow.window = segment.window;
    }
    flow.seen |= seen::ACK;
}
