//! The state of a connection once the peer's SYN has arrived: sender and receiver, and the segments between
//! them.
//!
//! Data segments carry no SACK blocks: with data in both directions, blocks leave in ACKs of their own.

use super::handshake::{Agreed, window_of};
use super::keepalive::{Expiry, KeepaliveTimer};
use crate::cc::{CongestionControl, Ecn};
use crate::config::{EndpointConfig, Source};
use crate::ecn::{CE, EcnState};
use crate::receiver::{Arrival, Receiver};
use crate::sender::{AckInfo, Sender};
use crate::stats::Stats;
use crate::timestamps::timestamp;
use paceline_net::{Duration, Instant, SeqNumber, TcpFlags, TcpHeader, Timestamps};

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub agreed: Agreed,
    pub sender: Sender,
    pub receiver: Receiver,
    /// The peer closed first.
    passive_close: bool,
    keepalive: Option<KeepaliveTimer>,
}

impl Connection {
    /// The connection that the peer's SYN `tcp` opens.
    pub fn new(config: &EndpointConfig, source: Source, agreed: Agreed, tcp: &TcpHeader) -> Self {
        let mut config = config.clone();
        if !agreed.sack {
            config.sack_compression = None;
        }
        let mut sender = Sender::new(&config, source, agreed.mss, agreed.sack);
        sender.set_window(tcp.seq, window_of(tcp, 0, true));
        sender.ecn = EcnState::new(agreed.ecn, sender.control().ecn());
        let mut receiver = Receiver::new(&config, tcp.seq, agreed.own_shift);
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| agreed.timestamps) {
            receiver.record_timestamp(tcp.seq, 1, timestamps.val);
        }
        let keepalive = config.keepalive.map(KeepaliveTimer::new);
        Self { agreed, sender, receiver, passive_close: false, keepalive }
    }
    /// The segment `tcp` completes the handshake, which took `rtt` if the SYN was sent once.
    pub fn on_established(&mut self, now: Instant, rtt: Option<Duration>, tcp: &TcpHeader) {
        self.restart_keepalive(now);
        let echo = tcp.options.timestamps.filter(|_| self.agreed.timestamps).map(|stamp| stamp.ecr);
        self.sender.on_established(now, rtt, echo);
    }
    fn restart_keepalive(&mut self, now: Instant) {
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.on_segment(now);
        }
    }
    pub fn acknowledge_now(&mut self) {
        self.receiver.acknowledge_now();
    }
    /// Payload bytes of a full segment of the peer.
    pub fn peer_segment_size(&self) -> u32 {
        self.receiver.segment_size()
    }
    /// Processes a segment; returns whether it was acceptable. `ecn` is the codepoint of its IP header.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, tcp: &TcpHeader, ecn: u8, stats: &mut Stats) -> bool {
        let has_data = tcp.payload_len > 0 || tcp.flags.contains(TcpFlags::FIN);
        let clock = timestamp(now);
        if self.receiver.is_beyond(tcp.seq) {
            self.receiver.acknowledge_now(); // RFC 9293 §3.10.7.4: an unacceptable segment is dropped
            return false;
        }
        self.restart_keepalive(now);
        let timestamps = tcp.options.timestamps.filter(|_| self.agreed.timestamps);
        if let Some(timestamps) = timestamps
            && self.receiver.is_old_duplicate(timestamps.val)
        {
            if has_data {
                self.receiver.acknowledge_now();
            }
            return false;
        }
        let echo = timestamps.map(|timestamps| timestamps.ecr).filter(|echo| *echo != 0);
        let info = AckInfo {
            seq: tcp.seq,
            ack: tcp.ack,
            window: window_of(tcp, self.agreed.peer_shift, false),
            sack: &tcp.options.sack,
            echo,
            has_data,
            ece: tcp.flags.contains(TcpFlags::ECE),
        };
        if !self.sender.on_ack(now, &info, clock, stats) {
            self.receiver.acknowledge_now();
            return false;
        }
        // After the judgement of the acknowledgment: a forged segment must not move TS.Recent, from which on
        // true segments would be old (Linux `tcp_ack`).
        if let Some(timestamps) = timestamps {
            let len = tcp.payload_len + u32::from(tcp.flags.contains(TcpFlags::FIN));
            self.receiver.record_timestamp(tcp.seq, len, timestamps.val);
        }
        if has_data {
            if let Some(echo) = echo.filter(|echo| clock.wrapping_sub(*echo) < u32::MAX / 2) {
                self.receiver.on_echo(echo, clock.wrapping_sub(echo));
            }
            self.on_data(now, tcp, ecn, stats);
        } else if self.receiver.is_probe(tcp.seq) {
            self.receiver.acknowledge_now();
        }
        true
    }
    fn on_data(&mut self, now: Instant, tcp: &TcpHeader, ecn: u8, stats: &mut Stats) {
        if tcp.payload_len > 0 {
            stats.ce_received += u64::from(ecn == CE);
            let cwr = tcp.flags.contains(TcpFlags::CWR);
            let effect = self.sender.ecn.on_data(ecn, cwr);
            self.receiver.on_mark(effect);
            if cwr && self.agreed.ecn {
                self.receiver.acknowledge_now(); // the sender's window may be small
            }
        }
        let fin = tcp.flags.contains(TcpFlags::FIN);
        let arrival = Arrival { seq: tcp.seq, payload: tcp.payload_len, fin };
        let times = self.receiver.times(self.sender.rtt().srtt(), self.sender.rtt().rto());
        match self.receiver.on_arrival(now, arrival, &times) {
            Some(arrived) => {
                stats.bytes_received += arrived;
                if arrived > 0 {
                    stats.received_at = now;
                }
            }
            None => stats.duplicate_segments_received += 1,
        }
        stats.acks_compressed = self.receiver.merged_acks();
        stats.bytes_read = self.receiver.read();
        self.sender.writer.on_readable(now, self.receiver.readable());
        if self.receiver.closed() {
            self.passive_close |= !self.sender.fin_sent();
            self.sender.close();
        }
    }
    /// Whether the connection no longer exists: the side that closed second needs no TIME-WAIT (RFC 9293
    /// §3.10.7.4, LAST-ACK).
    pub fn is_deleted(&self) -> bool {
        self.passive_close && self.is_over()
    }
    /// Whether both sides have closed and both FINs are acknowledged.
    fn is_over(&self) -> bool {
        self.sender.fin_acked() && self.receiver.closed()
    }
    pub fn state_name(&self) -> &'static str {
        match (self.sender.fin_sent(), self.sender.fin_acked(), self.receiver.closed()) {
            (false, _, false) => "established",
            (false, _, true) => "close-wait",
            (true, false, false) => "fin-wait-1",
            (true, true, false) => "fin-wait-2",
            (true, false, true) if self.passive_close => "last-ack",
            (true, false, true) => "closing",
            (true, true, true) if self.passive_close => "closed",
            (true, true, true) => "time-wait",
        }
    }
}

/// Segments to transmit.
impl Connection {
    /// Completes a header with acknowledgment, window, timestamps and blocks; the segment then counts as
    /// sent.
    fn stamp(&mut self, now: Instant, mut header: TcpHeader, with_blocks: bool) -> TcpHeader {
        header.ack = self.receiver.seq_next();
        header.window = self.receiver.advertise();
        if self.sender.ecn.sends_echo() {
            header.flags = header.flags.with(TcpFlags::ECE);
        }
        if self.agreed.timestamps {
            header.options.timestamps = Some(Timestamps { val: timestamp(now), ecr: self.receiver.echo() });
        }
        if with_blocks && self.agreed.sack {
            header.options.sack = self.receiver.blocks(if self.agreed.timestamps { 3 } else { 4 });
        }
        self.receiver.on_ack_sent();
        header
    }
    /// Whether a side without data has no segment to send now. Checked first, since most segments that arrive
    /// cause no answer.
    pub fn has_nothing_to_send(&self, now: Instant) -> bool {
        self.sender.only_acknowledges()
            && self.receiver.deadline().is_none_or(|at| at > now)
            && self.keepalive.is_none_or(|keepalive| !keepalive.is_probe_due())
    }
    /// The ACK of the segments before a change of the ECN mark (RFC 8257 §3.2).
    pub fn poll_ecn_ack(&mut self, now: Instant, base: &TcpHeader) -> Option<TcpHeader> {
        let (ack, echo) = self.receiver.take_ecn_ack()?;
        let flags = if echo { base.flags.with(TcpFlags::ECE) } else { base.flags };
        let mut header = TcpHeader { seq: self.sender.seq_next(), ack, flags, ..*base };
        header.window = self.receiver.advertise();
        if self.agreed.timestamps {
            header.options.timestamps = Some(Timestamps { val: timestamp(now), ecr: self.receiver.echo() });
        }
        Some(header)
    }
    /// Whether an ACK with SACK blocks is due.
    pub fn is_sack_due(&self, now: Instant) -> bool {
        self.receiver.has_blocks() && self.receiver.is_ack_due(now)
    }
    /// The next segment with data or FIN, and its ECN codepoint.
    pub fn poll_data(
        &mut self,
        now: Instant,
        base: &TcpHeader,
        stats: &mut Stats,
    ) -> Option<(TcpHeader, u8)> {
        let segment = self.sender.poll_segment(now, timestamp(now), stats)?;
        let mut flags = TcpFlags::ACK;
        if segment.push && segment.payload > 0 {
            flags = flags.with(TcpFlags::PSH);
        }
        if segment.fin {
            flags = flags.with(TcpFlags::FIN);
        }
        if segment.cwr {
            flags = flags.with(TcpFlags::CWR);
        }
        self.receiver.on_data_sent(now);
        let header = TcpHeader { seq: segment.seq, flags, payload_len: segment.payload, ..*base };
        Some((self.stamp(now, header, false), segment.ecn))
    }
    /// A zero-window or keep-alive probe: a segment below the window, which the peer must answer.
    pub fn poll_probe(&mut self, now: Instant, base: &TcpHeader) -> Option<TcpHeader> {
        let keepalive = self.keepalive.as_mut().is_some_and(|keepalive| keepalive.take_probe());
        if !self.sender.take_window_probe() && !keepalive {
            return None;
        }
        let seq = SeqNumber(self.sender.seq_una().0.wrapping_sub(1));
        Some(self.stamp(now, TcpHeader { seq, ..*base }, true))
    }
    /// A pure ACK, if one is due.
    pub fn poll_ack(&mut self, now: Instant, base: &TcpHeader) -> Option<TcpHeader> {
        if !self.receiver.is_ack_due(now) {
            return None;
        }
        let seq = self.sender.seq_next();
        Some(self.stamp(now, TcpHeader { seq, ..*base }, true))
    }
    /// The ECN codepoint of a pure ACK.
    pub fn ack_codepoint(&self) -> u8 {
        // DCTCP marks all its segments ECN-capable; RFC 3168 §6.1.4 forbids it for the others.
        if self.sender.control().ecn() == Ecn::None { 0 } else { self.sender.ecn.codepoint(false) }
    }
}

/// Timers.
impl Connection {
    /// Handles expired timers; false if the connection is over because the peer does not answer.
    pub fn on_timer(&mut self, now: Instant, stats: &mut Stats) -> bool {
        self.sender.on_timer(now, stats);
        let times = self.receiver.times(self.sender.rtt().srtt(), self.sender.rtt().rto());
        self.receiver.on_timer(now, &times);
        stats.bytes_read = self.receiver.read();
        let idle = self.sender.is_idle();
        if self.is_over() {
            self.keepalive = None;
        }
        match self.keepalive.as_mut().map_or(Expiry::None, |keepalive| keepalive.on_timer(now, idle)) {
            Expiry::None => {}
            Expiry::Probe => stats.keepalive_probes_sent += 1,
            Expiry::Unreachable => return false,
        }
        !self.sender.has_given_up()
    }
    /// The time of the next timer, or of the next segment.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let keepalive = self.keepalive.filter(|_| !self.is_over()).map(|keepalive| keepalive.deadline());
        Instant::earliest([self.sender.deadline(now), self.receiver.deadline(), keepalive])
    }
}
