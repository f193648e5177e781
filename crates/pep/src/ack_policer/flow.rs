//! State of one connection, from both directions: handshake, round trip, data that has passed, and a lower
//! bound of the sender's window.

use super::segment::{Segment, marks};
use paceline_net::TcpFlags;

/// Rule 16: shortest time in ns for which nothing is dropped after a sign of loss. Chosen: more than a round
/// trip in most networks, since the one of the handshake does not contain later queues.
const MIN_RECOVERY_NS: u64 = 100_000_000;

/// Rule 15: a sender is taken to be in slow start until its acknowledged bytes of a round trip have grown by
/// less than a quarter in three round trips in a row. The criterion of BBR's Startup
/// (draft-ietf-ccwg-bbr-05 5.3.1.2), on bytes instead of rates.
const FLAT_ROUNDS: u32 = 3;

/// Progress of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(super) enum Phase {
    /// Nothing, or not both SYNs, was seen.
    #[default]
    Unknown,
    /// A SYN came in the policed direction.
    SynPoliced,
    /// A SYN came in the data direction.
    SynData,
    /// Both SYNs came.
    SynAck,
    Open,
    /// The handshake agreed on something that forbids policing.
    Barred,
    Closing,
}

/// Bits of [`Flow::seen`].
pub(super) mod seen {
    /// An ACK. Chosen: one bit of the set.
    pub const ACK: u8 = 1;
    /// New data. Chosen: one bit of the set.
    pub const DATA: u8 = 2;
    /// Data with PSH: the sender marks where it has no more. Chosen: one bit of the set.
    pub const PUSH: u8 = 4;
    /// A retransmission of data whose ACK was dropped: no later ACK had followed it. Chosen: one bit of the
    /// set.
    pub const MISSED: u8 = 8;
}

/// State of one connection. Times are in ns of one clock that starts above 0; a round trip of 0 is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    pub(super) phase: Phase,
    /// Window scale of the end that sends the ACKs.
    pub(super) shift: u8,
    /// Window of the highest ACK.
    pub(super) window: u16,
    /// 1 from a duplicate ACK or SACK on until the acknowledgment number advances.
    pub(super) in_recovery: u8,
    /// 1 if the last new data carried PSH, or was no whole number of segments: the sender may have no more.
    pub(super) pushed: u8,
    /// 1 while a window sample is under way.
    pub(super) sampling: u8,
    /// A set of [`seen`].
    pub(super) seen: u8,
    /// Highest acknowledgment number, and that of the last kept ACK.
    pub(super) ack: u32,
    pub(super) kept_ack: u32,
    /// Right edge of the receiver's window, and timestamp, of the last kept ACK.
    pub(super) kept_edge: u32,
    pub(super) kept_tsval: u32,
    /// Next sequence number of the end that sends the ACKs.
    pub(super) snd_nxt: u32,
    /// Sequence number behind the last data seen in the data direction.
    pub(super) data_end: u32,
    /// Payload of the largest segment of the data direction.
    pub(super) segment: u32,
    /// Segments without a gap between ACKs, for rule 16.
    pub(super) run: u32,
    /// Mean number of bytes acknowledged by an incoming ACK, for rule 22.
    pub(super) mean_advance: u32,
    /// Bytes acknowledged since the beginning or the last sign of loss, up to 2^32 - 1, for rules 15 and 16.
    pub(super) acked: u32,
    /// Lower bound of the data sender's window in bytes, 0 if unknown; the sample under way; number and
    /// timestamp of the ACK with which it began.
    pub(super) window_bytes: u32,
    pub(super) sample: u32,
    pub(super) sample_ack: u32,
    pub(super) sample_tsval: u32,
    /// Bytes acknowledged in the round trip under way; in the one that last grew; round trips since then.
    pub(super) round_bytes: u32,
    pub(super) grown_bytes: u32,
    pub(super) flat_rounds: u32,
    /// Begin of the round trip under way.
    pub(super) round_at: u64,
    /// Times of the SYN and of the SYN-ACK.
    pub(super) syn_at: u64,
    pub(super) syn_ack_at: u64,
    /// Round trip between here and the data sender, and between here and the end that sends the ACKs.
    pub(super) sender_rtt: u64,
    pub(super) receiver_rtt: u64,
    /// When the last ACK came, and the last kept one.
    pub(super) ack_at: u64,
    pub(super) kept_at: u64,
    /// Rule 16: nothing is dropped until then.
    pub(super) off_until: u64,
}

/// `a - b` of sequence numbers (RFC 9293 3.4).
pub(super) fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

impl Flow {
    /// Round trip of the connection in ns, 0 if unknown.
    pub fn rtt(&self) -> u64 {
        if self.sender_rtt == 0 || self.receiver_rtt == 0 { 0 } else { self.sender_rtt + self.receiver_rtt }
    }

    /// A segment in the data direction at `now`.
    pub fn on_data_direction(&mut self, now: u64, segment: &Segment) {
        if segment.has(TcpFlags::SYN) {
            self.on_syn(now, segment, Phase::SynData);
            return;
        }
        if segment.flags & (TcpFlags::FIN.0 | TcpFlags::RST.0) != 0 {
            self.close();
        }
        if self.phase == Phase::SynAck && self.syn_ack_at != 0 && self.sender_rtt == 0 {
            // The data sender opened the connection; this is its answer to the SYN-ACK.
            self.sender_rtt = elapsed(now, self.syn_ack_at);
            self.phase = Phase::Open;
        }
        if segment.payload == 0 || self.phase != Phase::Open {
            return;
        }
        let end = segment.seq.wrapping_add(segment.payload);
        if distance(end, self.data_end) <= 0 {
            self.on_retransmission(now, end);
            return;
        }
        self.data_end = end;
        self.seen |= seen::DATA;
        self.segment = self.segment.max(segment.segment);
        let push = segment.has(TcpFlags::PSH);
        if push {
            self.seen |= seen::PUSH;
        }
        self.pushed = u8::from(push || !segment.payload.is_multiple_of(self.segment.max(1)));
        self.sample_window(segment);
    }

    fn on_retransmission(&mut self, now: u64, end: u32) {
        if self.seen & seen::ACK != 0 && distance(end, self.ack) <= 0 && distance(end, self.kept_ack) > 0 {
            self.seen |= seen::MISSED;
        }
        self.recover(now);
    }

    /// A SYN in the policed direction (`SynPoliced`) or in the data direction (`SynData`).
    pub(super) fn on_syn(&mut self, now: u64, syn: &Segment, direction: Phase) {
        if !syn.has(TcpFlags::ACK) {
            *self = Self { phase: direction, syn_at: now, ..Self::default() };
        } else {
            let answers = match direction {
                Phase::SynData => self.phase == Phase::SynPoliced,
                _ => self.phase == Phase::SynData,
            };
            if !answers {
                // The other SYN was not seen, or this one is a retransmission: its round trip is ambiguous.
                return;
            }
            let rtt = elapsed(now, self.syn_at);
            match direction {
                Phase::SynData => self.sender_rtt = rtt,
                _ => self.receiver_rtt = rtt,
            }
            self.syn_ack_at = now;
            let accurate_ecn = syn.flags & (TcpFlags::AE.0 | TcpFlags::CWR.0) != 0;
            let barred = accurate_ecn || syn.marks & (marks::FORBIDS | marks::SPECIAL) != 0;
            self.phase = if barred { Phase::Barred } else { Phase::SynAck };
        }
        match direction {
            Phase::SynData => {
                self.data_end = syn.seq.wrapping_add(1);
                if syn.has(TcpFlags::ACK) && syn.marks & marks::SCALE == 0 {
                    self.shift = 0; // windows are scaled if both SYNs have the option (RFC 7323 2.2)
                }
            }
            _ => {
                self.snd_nxt = syn.seq.wrapping_add(1);
                self.shift = syn.shift;
            }
        }
    }

    /// The number that a SYN-ACK in a direction acknowledges, if the SYN of the other one waits for it.
    pub(super) fn awaited_ack(&self, direction: Phase) -> Option<u32> {
        match (self.phase, direction) {
            (Phase::SynPoliced, Phase::SynData) => Some(self.snd_nxt),
            (Phase::SynData, Phase::SynPoliced) => Some(self.data_end),
            _ => None,
        }
    }

    /// The connection is closing or reset.
    pub(super) fn close(&mut self) {
        if self.phase != Phase::Unknown {
            self.phase = Phase::Closing;
        }
    }

    /// Whether the sender may be in its first slow start.
    pub(super) fn in_slow_start(&self) -> bool {
        self.flat_rounds < FLAT_ROUNDS
    }

    /// Counts bytes that an ACK newly acknowledges, by round trips.
    pub(super) fn count_round(&mut self, now: u64, advance: u32) {
        self.round_bytes = self.round_bytes.saturating_add(advance);
        if now.wrapping_sub(self.round_at) < self.rtt() {
            return;
        }
        let grown = self.grown_bytes.saturating_add(self.grown_bytes >> 2);
        if self.round_bytes >= grown {
            self.grown_bytes = self.round_bytes;
            self.flat_rounds = if self.in_slow_start() { 0 } else { self.flat_rounds };
        } else if self.in_slow_start() {
            self.flat_rounds += 1;
        }
        self.round_bytes = 0;
        self.round_at = now;
    }

    /// A sign of loss: nothing is dropped for a round trip, then less than before until many segments were
    /// acknowledged, and the window must be measured anew.
    pub(super) fn recover(&mut self, now: u64) {
        self.flat_rounds = FLAT_ROUNDS;
        self.off_until = now + self.rtt().max(MIN_RECOVERY_NS);
        self.window_bytes = 0;
        self.sampling = 0;
        self.acked = 0;
    }

    /// An ACK was kept. The first one of a tick of its timestamps begins a sample of the sender's window, if
    /// none is under way.
    pub(super) fn on_kept(&mut self, now: u64, kept: &Segment) {
        let is_first = self.kept_at == 0;
        if is_first || distance(kept.ack, self.kept_ack) >= 0 {
            self.kept_ack = kept.ack;
            self.kept_edge = kept.ack.wrapping_add(u32::from(kept.window) << self.shift);
        }
        self.kept_at = now;
        if kept.marks & marks::TIMESTAMPS == 0 {
            return;
        }
        let is_later = is_first || distance(kept.tsval, self.kept_tsval) > 0;
        if self.sampling == 0 && is_later {
            self.sampling = 1;
            self.sample = 0;
            self.sample_ack = kept.ack;
            self.sample_tsval = kept.tsval;
        }
        if is_later {
            self.kept_tsval = kept.tsval;
        }
    }

    /// Data that echoes an earlier timestamp than that of a kept ACK was sent before that ACK arrived (RFC
    /// 7323 4.3): its end less that ACK is no more than the sender's window. The largest such difference is
    /// the sample. The round trip of the handshake would not do, since later ones may be shorter.
    fn sample_window(&mut self, data: &Segment) {
        if self.sampling == 0 {
            return;
        }
        if data.marks & marks::TIMESTAMPS == 0 {
            (self.sampling, self.window_bytes) = (0, 0);
            return;
        }
        if distance(data.tsecr, self.sample_tsval) >= 0 {
            self.window_bytes = self.sample;
            self.sampling = 0;
            return;
        }
        let outstanding = distance(self.data_end, self.sample_ack);
        if outstanding > 0 && outstanding as u32 > self.sample {
            self.sample = outstanding as u32;
        }
    }
}

/// Time since `earlier`, at least 1 ns, so that a measured time is not taken for an unknown one.
pub(super) fn elapsed(now: u64, earlier: u64) -> u64 {
    now.saturating_sub(earlier).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 10_000_000;

    fn flow() -> Flow {
        Flow { phase: Phase::Open, sender_rtt: RTT, receiver_rtt: 1, ..Flow::default() }
    }

    #[test]
    fn slow_start_lasts_while_round_trips_grow_by_a_quarter() {
        let mut flow = flow();
        let mut bytes = 14_480;
        for round in 1..=40 {
            flow.count_round(round * 2 * RTT, bytes);
            assert!(flow.in_slow_start(), "round {round}");
            bytes += bytes / 4 + 1;
        }
        for round in 41..=44 {
            assert!(flow.in_slow_start(), "the last growth and two round trips without, {round}");
            flow.count_round(round * 2 * RTT, bytes);
        }
        assert!(!flow.in_slow_start());
        flow.count_round(45 * 2 * RTT, bytes * 8);
        assert!(!flow.in_slow_start(), "it does not begin again");
    }

    #[test]
    fn a_sign_of_loss_ends_slow_start() {
        let mut flow = flow();
        flow.recover(1);
        assert!(!flow.in_slow_start());
    }

    #[test]
    fn acks_of_one_round_trip_are_one_round() {
        let mut flow = flow();
        flow.count_round(2 * RTT, 14_480);
        for part in 1..10 {
            flow.count_round(2 * RTT + part * RTT / 20, 1448);
        }
        assert_eq!((flow.flat_rounds, flow.round_bytes), (0, 9 * 1448));
    }
}
