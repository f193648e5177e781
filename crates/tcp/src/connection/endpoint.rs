//! One side of one TCP connection as a [`Node`] (RFC 9293 §3.10): handshake, segments in and out, timers,
//! close.
//!
//! Left out: a reset at the end of an unfinished connection, simultaneous open, the end of TIME-WAIT.

use super::established::Connection;
use super::handshake::{Agreed, ECN_SETUP, SynTimer, ecn_agreed, syn_options, syn_window, window_of};
use super::refusal::refusal;
use crate::cc::{CongestionControl, Ecn, Interval, OwnControl, Setting, Variant};
use crate::config::{EndpointConfig, Source};
use crate::limits::{Limit, LimitTimes};
use crate::options::EcnMode;
use crate::receiver::AckThinning;
use crate::stats::{Snapshot, Stats};
use crate::timestamps::timestamp;
use paceline_net::{
    Bytes, Duration, Event, FlowKey, Instant, Node, Output, Packet, Port, SeqNumber, TcpFlags, TcpHeader,
    TcpOptions, Timestamps, Transport,
};

/// The port of the network. By definition of [`Endpoint`], which has no other.
const NETWORK: Port = Port(0);

/// Progress of the opening; sender and receiver have the state after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// An active opener before its start.
    Waiting,
    Listen,
    SynSent,
    SynReceived,
    Open,
    /// Refused or reset by the peer, or given up.
    Over,
}

/// One side of one connection. [`Port`] 0 is the network.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    source: Source,
    key: FlowKey,
    state: State,
    syn: SynTimer,
    /// The reset that answers a segment without a connection.
    reset_due: Option<TcpHeader>,
    connection: Option<Connection>,
    ack_thinning: AckThinning,
    stats: Stats,
    /// [`Event::TransferComplete`] was emitted.
    completion_reported: bool,
    /// [`Event::ConnectionTimedOut`] is to be emitted.
    timeout_pending: bool,
    /// The congestion control requires ECN.
    requires_ecn: bool,
    /// Window and pacing rate that were set before the connection opened.
    setting: Option<Setting>,
    /// The time at which the first SYN was sent or received.
    opened_at: Option<Instant>,
    /// Time of the last call; [`Node::poll_timeout`] compares the pacing deadline with it.
    last_now: Instant,
    /// The last packet received, whose memory the next one to be sent reuses.
    spare: Option<Packet>,
}

/// Whether the congestion control needs ECN, also against the configuration.
fn requires_ecn(config: &EndpointConfig) -> bool {
    config.control(config.segment_size, config.sack).ecn() != Ecn::None
}

impl Endpoint {
    /// A side that opens the connection at `config.start_at`.
    pub fn connect(config: EndpointConfig, source: Source) -> Self {
        Self::new(config, source, State::Waiting)
    }
    /// A side that waits for the SYN of exactly this pair of addresses and ports.
    pub fn listen(config: EndpointConfig, source: Source) -> Self {
        Self::new(config, source, State::Listen)
    }
    fn new(config: EndpointConfig, source: Source, state: State) -> Self {
        let key = FlowKey {
            src: config.local.ip(),
            dst: config.remote.ip(),
            src_port: config.local.port(),
            dst_port: config.remote.port(),
        };
        let requires_ecn = requires_ecn(&config);
        Self {
            ack_thinning: AckThinning::new(config.stretch_ack),
            syn: SynTimer::new(&config, state == State::Waiting),
            reset_due: None,
            config,
            source,
            key,
            state,
            connection: None,
            stats: Stats::default(),
            completion_reported: false,
            timeout_pending: false,
            requires_ecn,
            setting: None,
            opened_at: None,
            last_now: Instant::ZERO,
            spare: None,
        }
    }
    /// Addresses and ports in the direction from this side to the peer.
    pub fn flow_key(&self) -> FlowKey {
        self.key
    }
    /// Largest number of bytes in flight and unsent together.
    pub fn send_buffer(&self) -> Bytes {
        self.config.send_buffer
    }
    /// Whether this side sends a request, and the connection is for the peer's answer.
    pub fn is_requester(&self) -> bool {
        matches!(self.source, Source::Request(_))
    }
    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// The period of the TDD cell on the path, if pacing or clean delays use one and it is known.
    pub fn pacing_period(&self) -> Option<Duration> {
        self.connection.as_ref()?.sender.pacing_period()
    }
    /// The current state.
    pub fn snapshot(&self) -> Snapshot {
        let Some(Connection { sender, .. }) = &self.connection else {
            return Snapshot {
                cwnd: Bytes(u64::from(self.config.initial_window) * u64::from(self.config.segment_size)),
                ssthresh: Bytes(u64::MAX),
                in_flight: Bytes::ZERO,
                peer_window: Bytes::ZERO,
                srtt: None,
                min_rtt: None,
                rto: self.config.initial_rto,
                pacing_rate: None,
                congestion: "slow_start",
                state: self.state_name(),
                established: false,
            };
        };
        let state = self.state_name();
        Snapshot {
            cwnd: Bytes(sender.cwnd()),
            ssthresh: sender.control().ssthresh(),
            in_flight: Bytes(sender.in_flight()),
            peer_window: Bytes(sender.largest_window()),
            srtt: sender.rtt().srtt(),
            min_rtt: sender.rtt().min_rtt(),
            rto: sender.rtt().rto(),
            pacing_rate: sender.pacing_rate(self.last_now),
            congestion: sender.congestion_state(),
            state,
            established: self.state == State::Open && !matches!(state, "time-wait" | "closed"),
        }
    }
    /// Replaces the configured congestion control by [`Variant::External`], for a connection that is not open
    /// yet.
    pub fn control_externally(&mut self) {
        debug_assert!(self.connection.is_none(), "the control of an open connection stays");
        self.config.variant = Variant::External;
        self.requires_ecn = false;
    }
    /// Replaces the configured congestion control by the caller's, for a connection that is not open yet.
    pub fn control_by(&mut self, own: OwnControl) {
        debug_assert!(self.connection.is_none(), "the control of an open connection stays");
        self.config.own_control = Some(own);
        self.requires_ecn = requires_ecn(&self.config);
    }
    /// Sets window and pacing rate of [`Variant::External`], also for the start of a connection that is not
    /// open yet. [`Node::poll_output`] follows.
    pub fn set_external(&mut self, now: Instant, setting: Setting) {
        self.setting = Some(setting);
        self.last_now = now;
        if let Some(connection) = &mut self.connection {
            connection.sender.set_external(now, setting);
        }
    }
    /// The measurements of [`Variant::External`] since the last call; none before the connection opens, and
    /// with another control.
    pub fn take_interval(&mut self) -> Option<Interval> {
        self.connection.as_mut()?.sender.take_interval()
    }
    /// Whether every byte of a finite source was acknowledged, or the connection is over.
    pub fn is_complete(&self) -> bool {
        let complete = |connection: &Connection| connection.sender.is_complete();
        self.state == State::Over || self.source.is_finite() && self.connection.as_ref().is_some_and(complete)
    }
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }
    pub(super) fn connection_mut(&mut self, now: Instant) -> Option<&mut Connection> {
        self.last_now = now;
        self.connection.as_mut().filter(|_| self.state == State::Open)
    }
    /// The lifetime until `now` of a side with data, divided by the reason why it did not send more. Zero for
    /// a side without data or with a request only.
    pub fn limits(&self, now: Instant) -> LimitTimes {
        if self.is_requester() {
            return LimitTimes::default();
        }
        let connection = self.connection.as_ref().filter(|_| self.state != State::SynReceived);
        match (connection, self.opened_at) {
            (Some(connection), _) => connection.sender.limits.times(now),
            (None, Some(at)) if self.source.total() > 0 && self.state != State::Over => {
                LimitTimes::only(Limit::Handshake, now.since(at))
            }
            _ => LimitTimes::default(),
        }
    }
    fn state_name(&self) -> &'static str {
        match (self.state, &self.connection) {
            (State::Waiting | State::Over, _) => "closed",
            (State::Listen, _) => "listen",
            (State::SynSent, _) => "syn-sent",
            (State::SynReceived, _) | (State::Open, None) => "syn-received",
            (State::Open, Some(connection)) => connection.state_name(),
        }
    }
    fn header(&self, seq: SeqNumber, ack: SeqNumber, flags: TcpFlags) -> TcpHeader {
        TcpHeader {
            src_port: self.key.src_port,
            dst_port: self.key.dst_port,
            seq,
            ack,
            flags,
            window: 0,
            options: TcpOptions::default(),
            payload_len: 0,
        }
    }
    fn transmit(&mut self, header: TcpHeader) -> Output {
        self.transmit_marked(header, 0)
    }
    fn transmit_marked(&mut self, header: TcpHeader, ecn: u8) -> Output {
        let (src, dst) = (self.key.src, self.key.dst);
        let mut packet = match self.spare.take() {
            Some(spare) => spare.tcp_in_place_of(src, dst, header),
            None => Packet::tcp(src, dst, header),
        };
        packet.ip.traffic_class |= ecn;
        Output::Transmit(NETWORK, packet)
    }

    fn open_connection(&mut self, tcp: &TcpHeader) {
        let answer = self.state == State::SynSent;
        let own = match self.config.ecn {
            _ if self.requires_ecn => true,
            EcnMode::Off => false,
            EcnMode::Passive => !answer,
            EcnMode::On => true,
        };
        // A retransmitted SYN has no ECN flags, since a middlebox may drop those with flags (RFC 3168
        // §6.1.1.1).
        let own = own && !(answer && self.syn.attempts() > 1);
        let agreed =
            Agreed { ecn: ecn_agreed(own, tcp.flags, answer), ..Agreed::new(&self.config, &tcp.options) };
        let mut config = self.config.clone();
        if self.syn.attempts() > 2 {
            config.initial_window = 1; // RFC 5681 §3.1; Linux tolerates one lost SYN
        }
        let connection = self.connection.insert(Connection::new(&config, self.source, agreed, tcp));
        if let Some(setting) = self.setting {
            connection.sender.set_external(Instant::ZERO, setting);
        }
        if self.source == Source::Relay {
            connection.receiver.read_to(Instant::ZERO, 0);
        }
    }
    /// The segment `tcp` answers the SYN.
    fn establish(&mut self, now: Instant, tcp: &TcpHeader) {
        self.state = State::Open;
        let rtt = self.syn.on_answer(now);
        if let Some(connection) = &mut self.connection {
            connection.on_established(now, rtt, tcp);
            connection.sender.start_limits(self.opened_at.unwrap_or(now));
        }
    }
    /// Answers a segment by a reset, unless it is one. Returns false: the segment is dropped.
    fn refuse(&mut self, tcp: &TcpHeader) -> bool {
        if let Some((seq, ack, flags)) = refusal(tcp) {
            self.reset_due = Some(self.header(seq, ack, flags));
        }
        false
    }
    fn reset(&mut self, now: Instant) {
        self.state = State::Over;
        self.syn.stop();
        self.end_limits(now);
    }
    fn end_limits(&mut self, now: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.sender.limits.end(now);
        }
    }
    /// Processes a segment; returns whether it was acceptable.
    fn on_segment(&mut self, now: Instant, tcp: &TcpHeader, ecn: u8) -> bool {
        let has = |flag| tcp.flags.contains(flag);
        match self.state {
            State::Waiting | State::Over => self.refuse(tcp),
            State::Listen if has(TcpFlags::ACK) => self.refuse(tcp),
            State::Listen => {
                let opens = has(TcpFlags::SYN) && !has(TcpFlags::RST);
                if opens {
                    self.opened_at = Some(now);
                    self.open_connection(tcp);
                    self.state = State::SynReceived;
                    self.syn.due = true;
                }
                opens
            }
            State::SynSent => {
                if !has(TcpFlags::ACK) {
                    return false;
                }
                if tcp.ack != self.config.isn + 1 {
                    return self.refuse(tcp);
                }
                if has(TcpFlags::RST) {
                    self.reset(now);
                } else if has(TcpFlags::SYN) {
                    self.open_connection(tcp);
                    self.establish(now, tcp);
                    if let Some(connection) = &mut self.connection {
                        connection.acknowledge_now();
                    }
                }
                tcp.flags.intersects(TcpFlags::RST.with(TcpFlags::SYN))
            }
            State::SynReceived | State::Open => self.on_synchronised(now, tcp, ecn),
        }
    }
    fn on_synchronised(&mut self, now: Instant, tcp: &TcpHeader, ecn: u8) -> bool {
        let has = |flag| tcp.flags.contains(flag);
        let opening = self.state == State::SynReceived;
        let Some(connection) = &mut self.connection else { return false };
        if connection.is_deleted() {
            return self.refuse(tcp);
        }
        if has(TcpFlags::RST) {
            let valid = tcp.seq == connection.receiver.seq_next();
            if valid {
                self.reset(now);
            } else if connection.receiver.in_window(tcp.seq) {
                // Challenge ACK (RFC 5961 §3.2): a peer without the connection answers it with an exact
                // reset.
                connection.acknowledge_now();
            }
            return valid;
        }
        if has(TcpFlags::SYN) {
            // The answer to the peer's SYN was lost.
            if opening {
                self.syn.due = true;
            } else {
                connection.receiver.acknowledge_now();
            }
            return true;
        }
        if !has(TcpFlags::ACK) {
            return false;
        }
        if opening {
            if tcp.ack != self.config.isn + 1 {
                return self.refuse(tcp);
            }
            let window = window_of(tcp, connection.agreed.peer_shift, false);
            connection.sender.set_window(tcp.seq, window);
            self.establish(now, tcp);
        }
        let Some(connection) = &mut self.connection else { return false };
        connection.on_segment(now, tcp, ecn, &mut self.stats)
    }
}

impl Endpoint {
    fn poll_syn(&mut self, now: Instant) -> Option<Output> {
        if self.state == State::Waiting && now >= self.config.start_at {
            self.state = State::SynSent;
            self.opened_at = Some(now);
            self.syn.due = true;
        }
        if !self.syn.due {
            return None;
        }
        let repeated = self.syn.has_sent();
        self.syn.on_sent(now, self.config.initial_rto);
        let agreed = self.connection.as_ref().map(|connection| &connection.agreed);
        let (ack, flags, echo) = match &self.connection {
            Some(connection) => (
                connection.receiver.seq_next(),
                TcpFlags::SYN.with(TcpFlags::ACK),
                connection.receiver.echo(),
            ),
            None => (SeqNumber(0), TcpFlags::SYN, 0),
        };
        let ecn = match agreed {
            Some(agreed) if agreed.ecn => TcpFlags::ECE,
            None if !repeated && (self.requires_ecn || self.config.ecn == EcnMode::On) => ECN_SETUP,
            _ => TcpFlags::default(),
        };
        let flags = flags.with(ecn);
        let timestamps = Timestamps { val: timestamp(now), ecr: echo };
        let options = syn_options(&self.config, agreed, timestamps);
        let header = self.header(self.config.isn, ack, flags);
        Some(self.transmit(TcpHeader { window: syn_window(&self.config), options, ..header }))
    }
    fn poll_data(&mut self, now: Instant) -> Option<Output> {
        if let Some(ack) = self.ack_thinning.poll(now) {
            return Some(self.transmit(ack));
        }
        if self.connection.as_ref()?.has_nothing_to_send(now) {
            return None;
        }
        let base = self.header(SeqNumber(0), SeqNumber(0), TcpFlags::ACK);
        let connection = self.connection.as_mut()?;
        if let Some(ack) = connection.poll_ecn_ack(now, &base) {
            self.stats.pure_acks_sent += 1;
            return Some(self.transmit_superseding(ack));
        }
        // Data segments carry no SACK blocks, so an ACK with blocks goes first.
        if !connection.is_sack_due(now)
            && let Some((header, ecn)) = connection.poll_data(now, &base, &mut self.stats)
        {
            self.stats.acks_stretched += u64::from(self.ack_thinning.supersede(header.ack));
            return Some(self.transmit_marked(header, ecn));
        }
        if let Some(probe) = connection.poll_probe(now, &base) {
            return Some(self.transmit_superseding(probe));
        }
        let segment_size = connection.peer_segment_size();
        let ack = connection.poll_ack(now, &base)?;
        self.stats.pure_acks_sent += 1;
        let ecn = connection.ack_codepoint();
        let (leaves, merged) = self.ack_thinning.send(now, ack, segment_size);
        self.stats.acks_stretched += u64::from(merged);
        leaves.map(|ack| self.transmit_marked(ack, ecn))
    }
    /// Transmits an ACK at once and discards a held one, whose acknowledgment number is not newer.
    fn transmit_superseding(&mut self, header: TcpHeader) -> Output {
        self.stats.acks_stretched += u64::from(self.ack_thinning.supersede(header.ack));
        self.transmit(header)
    }
    fn give_up(&mut self, now: Instant) {
        self.end_limits(now);
        self.state = State::Over;
        self.timeout_pending = true;
    }
}

impl Node for Endpoint {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        self.last_now = now;
        let addressed = packet.is_against(&self.key);
        let useful = match &packet.transport {
            Transport::Tcp(tcp) if addressed => self.on_segment(now, tcp, packet.ip.ecn()),
            _ => false,
        };
        if useful {
            self.stats.segments_received += 1;
        } else {
            self.stats.ignored += 1;
        }
        self.spare = Some(packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.last_now = now;
        if self.syn.on_timer(now) {
            self.give_up(now);
        }
        if let Some(connection) = self.connection.as_mut().filter(|_| self.state == State::Open)
            && !connection.on_timer(now, &mut self.stats)
        {
            self.give_up(now);
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        self.last_now = now;
        if std::mem::take(&mut self.timeout_pending) {
            return Some(Output::Event(Event::ConnectionTimedOut(self.key).into()));
        }
        // Looked at before it is taken: taking moves a whole header at every call.
        if self.reset_due.is_some()
            && let Some(reset) = self.reset_due.take()
        {
            return Some(self.transmit(reset));
        }
        if let Some(output) = self.poll_syn(now) {
            return Some(output);
        }
        if self.state != State::Open {
            return None;
        }
        if !self.completion_reported
            && self.source.is_finite()
            && self.connection.as_ref().is_some_and(|connection| connection.sender.is_complete())
        {
            self.completion_reported = true;
            return Some(Output::Event(Event::TransferComplete(self.key).into()));
        }
        self.poll_data(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        if self.timeout_pending {
            return Some(self.last_now);
        }
        let syn = self.syn.deadline();
        let next = match &self.connection {
            Some(connection) if self.state == State::Open => {
                let held = self.ack_thinning.deadline();
                Instant::earliest([syn, connection.deadline(self.last_now), held])
            }
            _ if self.state == State::Waiting => Instant::earliest([syn, Some(self.config.start_at)]),
            _ => syn,
        };
        next.map(|at| at.max(self.last_now))
    }
}
