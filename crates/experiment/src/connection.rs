//! One connection at the interface towards the devices: its transfers to the device, from headers alone.
//!
//! A transfer begins with the device's request: its first new data after a pause; without any, with the SYN
//! or the server's first data. The end is the device's acknowledgment of the last byte, and is known when all
//! is acknowledged and nobody has sent data for [`PAUSE`], or the connection ends. So requests that follow
//! each other within the pause are one transfer. The pause is a constant: a rule by round-trip times would
//! divide the traffic of the two arms differently.
//!
//! Data below the highest sequence number are repeated, unless they fill a hole that was left before: data
//! that arrive out of order are no retransmission.

use super::sums::Measured;
use paceline_net::{Duration, Instant};
use std::net::IpAddr;

/// Silence after which a transfer is over. Chosen: longer than round trips and most answers of servers,
/// shorter than most pauses of people.
pub const PAUSE: Duration = Duration::from_secs(1);
/// A transfer whose data are not acknowledged for this long is not finished. Chosen: as long as a person
/// waits at most.
pub const STALLED: Duration = Duration::from_secs(60);
/// Holes in the sequence numbers that are remembered. Chosen: packets out of order are few; with more, the
/// oldest is forgotten, and its data count as repeated.
const MAX_HOLES: usize = 16;

/// A TCP segment at the interface towards the devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Whether the device sent it.
    pub from_device: bool,
    /// Sequence number of the first byte of payload, or of the SYN.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Bytes of payload.
    pub payload: u32,
    /// The SYN flag.
    pub syn: bool,
    /// The FIN flag.
    pub fin: bool,
    /// The RST flag.
    pub rst: bool,
}

/// A transfer that goes on.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    began_at: Instant,
    /// Time of the acknowledgment of the last byte so far.
    acked_at: Instant,
    acked: u64,
    sent: u64,
    repeated: u64,
    uploaded: u64,
    /// The first byte of a segment whose acknowledgment is timed, and the time that it was sent.
    timed: Option<(u32, Instant)>,
    rtt_sum: Duration,
    rtts: u32,
}

/// A connection whose SYN was seen.
#[derive(Clone, Debug)]
pub struct Connection {
    device: IpAddr,
    syn: u32,
    opened_at: Instant,
    /// Whether no transfer has begun yet.
    fresh: bool,
    /// Sequence number behind the server's data; None before the server's SYN.
    server_end: Option<u32>,
    /// The device's acknowledgment of them.
    acked: u32,
    /// Ranges below `server_end` that were not seen.
    holes: Vec<(u32, u32)>,
    /// Sequence number behind the device's data.
    device_end: u32,
    /// The device's last new data that no server's data have followed: when they began, and their bytes.
    request: Option<(Instant, u64)>,
    /// Time of the last new data of the device.
    asked_at: Instant,
    /// Time of the last data of either end, or of their acknowledgment.
    active_at: Instant,
    transfer: Option<Transfer>,
}

/// `a - b` of sequence numbers (RFC 9293, section 3.4).
fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

impl Connection {
    /// The connection that a device opens with a SYN.
    pub fn new(now: Instant, device: IpAddr, segment: &Segment) -> Self {
        Self {
            device,
            syn: segment.seq,
            opened_at: now,
            fresh: true,
            server_end: None,
            acked: 0,
            holes: Vec::new(),
            device_end: segment.seq.wrapping_add(1),
            request: None,
            asked_at: now,
            active_at: now,
            transfer: None,
        }
    }
    /// Whether a SYN opens this connection, and no later one with the same addresses and ports.
    pub fn is_opened_by(&self, segment: &Segment) -> bool {
        self.syn == segment.seq
    }
    /// Whether all data of the server are acknowledged.
    fn is_all_acked(&self) -> bool {
        self.server_end.is_none_or(|end| ahead(end, self.acked) <= 0)
    }

    /// Handles a segment. Returns a transfer that it ends.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment) -> Option<Measured> {
        let ended = if segment.payload > 0 { self.end_after_pause(now) } else { None };
        if segment.from_device {
            self.on_device(now, segment);
        } else {
            self.on_server(now, segment);
        }
        ended
    }
    fn on_device(&mut self, now: Instant, segment: &Segment) {
        let end = segment.seq.wrapping_add(segment.payload);
        let new = ahead(end, self.device_end);
        if segment.payload > 0 && new > 0 {
            self.device_end = end;
            match (&mut self.transfer, &mut self.request) {
                (Some(transfer), _) => transfer.uploaded += new as u64,
                // A request after a pause is another one: the server never answered the first.
                (None, Some((_, bytes))) if now.since(self.asked_at) < PAUSE => *bytes += new as u64,
                (None, request) => *request = Some((now, new as u64)),
            }
            (self.asked_at, self.active_at) = (now, now);
        }
        if let Some(ack) = segment.ack {
            self.on_ack(now, ack);
        }
    }
    fn on_ack(&mut self, now: Instant, ack: u32) {
        let Some(end) = self.server_end else { return };
        // The acknowledgment of a FIN is one ahead of the data.
        let ack = if ahead(ack, end) > 0 { end } else { ack };
        let new = ahead(ack, self.acked);
        if new <= 0 {
            return;
        }
        self.acked = ack;
        self.holes.retain(|(_, until)| ahead(*until, ack) > 0);
        self.active_at = now;
        let Some(transfer) = &mut self.transfer else { return };
        transfer.acked += new as u64;
        transfer.acked_at = now;
        if let Some((first, at)) = transfer.timed
            && ahead(ack, first) > 0
        {
            transfer.rtt_sum += now.since(at);
            transfer.rtts += 1;
            transfer.timed = None;
        }
    }
    fn on_server(&mut self, now: Instant, segment: &Segment) {
        if segment.syn {
            let first = segment.seq.wrapping_add(1);
            if self.server_end.is_none() {
                (self.server_end, self.acked) = (Some(first), first);
            }
            return;
        }
        let Some(known) = self.server_end.filter(|_| segment.payload > 0) else { return };
        self.active_at = now;
        let repeated = self.note_data(known, segment.seq, segment.payload);
        let transfer = self.transfer.get_or_insert_with(|| {
            let unasked = if self.fresh { self.opened_at } else { now };
            let began = self.request.map_or(unasked, |(at, _)| at);
            Transfer {
                began_at: began,
                acked_at: began,
                acked: 0,
                sent: 0,
                repeated: 0,
                uploaded: self.request.map_or(0, |(_, bytes)| bytes),
                timed: None,
                rtt_sum: Duration::ZERO,
                rtts: 0,
            }
        });
        (self.request, self.fresh) = (None, false);
        transfer.sent += u64::from(segment.payload);
        transfer.repeated += repeated;
        // Acknowledgments of data that were sent twice say nothing about the time (Karn).
        if repeated > 0 {
            transfer.timed = None;
        } else if transfer.timed.is_none() && self.holes.is_empty() {
            transfer.timed = Some((segment.seq, now));
        }
    }
    /// Takes note of data of the server. Returns how many of their bytes had been sent before.
    fn note_data(&mut self, known: u32, seq: u32, payload: u32) -> u64 {
        let end = seq.wrapping_add(payload);
        if ahead(seq, known) > 0 {
            if self.holes.len() == MAX_HOLES {
                self.holes.remove(0);
            }
            self.holes.push((known, seq));
        }
        if ahead(end, known) > 0 {
            self.server_end = Some(end);
        }
        let old_end = if ahead(end, known) > 0 { known } else { end };
        let mut old = ahead(old_end, seq).max(0) as u64;
        let mut holes = Vec::with_capacity(self.holes.len());
        for (from, until) in self.holes.drain(..) {
            let first = if ahead(seq, from) > 0 { seq } else { from };
            let last = if ahead(end, until) < 0 { end } else { until };
            let filled = ahead(last, first);
            if filled <= 0 {
                holes.push((from, until));
                continue;
            }
            old = old.saturating_sub(filled as u64);
            holes.extend([(from, first), (last, until)].into_iter().filter(|(a, b)| ahead(*b, *a) > 0));
        }
        self.holes = holes;
        old
    }

    /// Ends a transfer that is complete, after a pause.
    fn end_after_pause(&mut self, now: Instant) -> Option<Measured> {
        (self.is_all_acked() && now.since(self.active_at) >= PAUSE).then(|| self.end(true)).flatten()
    }
    /// Ends a transfer that is complete, after a pause, or that makes no progress.
    pub fn check(&mut self, now: Instant) -> Option<Measured> {
        let stalled = !self.is_all_acked() && now.since(self.active_at) >= STALLED;
        if stalled { self.end(false) } else { self.end_after_pause(now) }
    }
    /// Whether nothing was seen for so long that the connection may be forgotten after `idle`.
    pub fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        now.since(self.active_at) >= idle
    }
    /// Ends the transfer because the connection does.
    pub fn close(&mut self) -> Option<Measured> {
        self.end(self.is_all_acked())
    }
    fn end(&mut self, finished: bool) -> Option<Measured> {
        let transfer = self.transfer.take()?;
        self.request = None;
        // A connection that uploads has answers that end with the upload.
        (transfer.uploaded <= transfer.acked.max(transfer.sent)).then(|| Measured {
            device: self.device,
            bytes: transfer.acked,
            time: transfer.acked_at.since(transfer.began_at),
            rtt: (transfer.rtts > 0).then(|| transfer.rtt_sum / u64::from(transfer.rtts)),
            sent: transfer.sent,
            repeated: transfer.repeated,
            finished,
            opened_at: self.opened_at,
            began_at: transfer.began_at,
        })
    }
}
