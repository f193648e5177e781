//! One side of one TCP connection as a [`Node`] (RFC 9293 §3.10): handshake, segments in and out, timers, close.
//!
//! Data segments carry no SACK blocks: with data on both sides, blocks travel in acknowledgments of their own.
//! Left out: sending resets, simultaneous open, the end of TIME-WAIT (it lasts).

use crate::cc::CongestionControl;
use crate::config::{EndpointConfig, Snapshot, Source, Stats};
use crate::handshake::{Agreed, SynTimer, syn_options, syn_window, window_of};
use crate::receiver::{Arrival, Receiver};
use crate::rtt::INITIAL_RTO;
use crate::sender::{AckInfo, Sender};
use paceline_net::{
    Bytes, Event, FlowKey, Instant, Node, Output, Packet, Port, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
    Timestamps, Transport,
};

/// The network.
const NETWORK: Port = Port(0);

/// Progress of the opening; what follows it is told by sender and receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// An active opener before its start.
    Waiting,
    Listen,
    SynSent,
    SynReceived,
    Open,
    /// Reset by the peer.
    Reset,
}

/// What exists once the peer's SYN is known.
#[derive(Clone, Debug)]
struct Connection {
    agreed: Agreed,
    sender: Sender,
    receiver: Receiver,
    /// The peer closed first.
    passive_close: bool,
}

/// One side of one connection. [`Port`] 0 is the network.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    source: Source,
    key: FlowKey,
    state: State,
    syn: SynTimer,
    connection: Option<Connection>,
    stats: Stats,
    announced: bool,
    /// Time of the last call: pacing needs it to tell whether a wait is over.
    last_now: Instant,
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
        Self {
            config,
            source,
            key,
            state,
            syn: SynTimer::default(),
            connection: None,
            stats: Stats::default(),
            announced: false,
            last_now: Instant::ZERO,
        }
    }
    /// Addresses and ports in the direction from this side to the peer.
    pub fn flow_key(&self) -> FlowKey {
        self.key
    }
    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// The state now.
    pub fn snapshot(&self) -> Snapshot {
        let Some(Connection { sender, .. }) = &self.connection else {
            return Snapshot {
                cwnd: Bytes(u64::from(self.config.initial_window) * u64::from(self.config.segment_size)),
                ssthresh: Bytes(u64::MAX),
                in_flight: Bytes::ZERO,
                srtt: None,
                min_rtt: None,
                rto: INITIAL_RTO,
                state: self.state_name(),
                established: false,
            };
        };
        let state = self.state_name();
        Snapshot {
            cwnd: Bytes(sender.cwnd()),
            ssthresh: sender.control().ssthresh(),
            in_flight: Bytes(sender.in_flight()),
            srtt: sender.rtt().srtt(),
            min_rtt: sender.rtt().min_rtt(),
            rto: sender.rtt().rto(),
            state,
            established: self.state == State::Open && !matches!(state, "time-wait" | "closed"),
        }
    }
    fn state_name(&self) -> &'static str {
        match (self.state, &self.connection) {
            (State::Waiting | State::Reset, _) => "closed",
            (State::Listen, _) => "listen",
            (State::SynSent, _) => "syn-sent",
            (State::SynReceived, _) | (State::Open, None) => "syn-received",
            (State::Open, Some(connection)) => connection.state_name(),
        }
    }
    /// The timestamp clock: milliseconds. It begins at 1, since some hosts take an echo of 0 for none.
    fn clock(now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(1)
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
    fn transmit(&self, header: TcpHeader) -> Output {
        Output::Transmit(NETWORK, Packet::tcp(self.key.src, self.key.dst, header))
    }

    fn open_connection(&mut self, tcp: &TcpHeader) {
        let agreed = Agreed::new(&self.config, &tcp.options);
        let mut sender = Sender::new(&self.config, self.source, agreed.mss, agreed.sack);
        sender.set_window(tcp.seq, window_of(tcp, 0, true));
        let mut receiver = Receiver::new(&self.config, tcp.seq, agreed.own_shift);
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| agreed.timestamps) {
            receiver.on_timestamp(tcp.seq, timestamps.val);
        }
        self.connection = Some(Connection { agreed, sender, receiver, passive_close: false });
    }
    fn establish(&mut self, now: Instant) {
        self.state = State::Open;
        let rtt = self.syn.on_answer(now);
        if let (Some(rtt), Some(connection)) = (rtt, &mut self.connection) {
            connection.sender.on_handshake_rtt(rtt);
        }
    }
    /// Whether the segment was of use.
    fn on_segment(&mut self, now: Instant, tcp: &TcpHeader) -> bool {
        let has = |flag| tcp.flags.contains(flag);
        match self.state {
            State::Waiting | State::Reset => false,
            State::Listen => {
                let opens = has(TcpFlags::SYN) && !tcp.flags.intersects(TcpFlags::ACK.with(TcpFlags::RST));
                if opens {
                    self.open_connection(tcp);
                    self.state = State::SynReceived;
                    self.syn.due = true;
                }
                opens
            }
            State::SynSent => {
                if !has(TcpFlags::ACK) || tcp.ack != self.config.isn + 1 {
                    return false;
                }
                if has(TcpFlags::RST) {
                    self.state = State::Reset;
                } else if has(TcpFlags::SYN) {
                    self.open_connection(tcp);
                    self.establish(now);
                    if let Some(connection) = &mut self.connection {
                        connection.receiver.acknowledge_now();
                    }
                }
                tcp.flags.intersects(TcpFlags::RST.with(TcpFlags::SYN))
            }
            State::SynReceived | State::Open => self.on_synchronised(now, tcp),
        }
    }
    fn on_synchronised(&mut self, now: Instant, tcp: &TcpHeader) -> bool {
        let has = |flag| tcp.flags.contains(flag);
        let opening = self.state == State::SynReceived;
        let Some(connection) = &mut self.connection else { return false };
        if has(TcpFlags::RST) {
            let valid = tcp.seq == connection.receiver.seq_next();
            if valid {
                self.state = State::Reset;
            }
            return valid;
        }
        if has(TcpFlags::SYN) {
            // The peer did not get the answer to its SYN.
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
                return false;
            }
            let window = window_of(tcp, connection.agreed.peer_shift, false);
            connection.sender.set_window(tcp.seq, window);
            self.establish(now);
        }
        let Some(connection) = &mut self.connection else { return false };
        connection.on_segment(now, tcp, &mut self.stats)
    }
}

impl Connection {
    fn on_segment(&mut self, now: Instant, tcp: &TcpHeader, stats: &mut Stats) -> bool {
        let has_data = tcp.payload_len > 0 || tcp.flags.contains(TcpFlags::FIN);
        let clock = Endpoint::clock(now);
        let timestamps = tcp.options.timestamps.filter(|_| self.agreed.timestamps);
        if let Some(timestamps) = timestamps
            && !self.receiver.on_timestamp(tcp.seq, timestamps.val)
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
        };
        if !self.sender.on_ack(now, &info, clock, stats) {
            self.receiver.acknowledge_now();
            return false;
        }
        if has_data {
            let fin = tcp.flags.contains(TcpFlags::FIN);
            if let Some(ms) = echo.map(|echo| clock.wrapping_sub(echo)).filter(|ms| *ms < u32::MAX / 2) {
                self.receiver.on_rtt(ms);
            }
            let arrival = Arrival { seq: tcp.seq, payload: tcp.payload_len, fin };
            match self.receiver.on_arrival(now, arrival) {
                Some(read) => stats.bytes_received += read,
                None => stats.duplicate_segments_received += 1,
            }
            if self.receiver.closed() {
                self.passive_close |= !self.sender.fin_sent();
                self.sender.close();
            }
        } else if self.receiver.is_probe(tcp.seq) {
            self.receiver.acknowledge_now();
        }
        true
    }
    fn state_name(&self) -> &'static str {
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
    /// Completes a header with acknowledgment, window and timestamps; it is then taken as sent.
    fn stamp(&mut self, now: Instant, mut header: TcpHeader, with_blocks: bool) -> TcpHeader {
        header.ack = self.receiver.seq_next();
        header.window = self.receiver.advertise();
        if self.agreed.timestamps {
            header.options.timestamps =
                Some(Timestamps { val: Endpoint::clock(now), ecr: self.receiver.echo() });
        }
        if with_blocks && self.agreed.sack {
            header.options.sack = self.receiver.blocks(if self.agreed.timestamps { 3 } else { 4 });
        }
        self.receiver.on_ack_sent();
        header
    }
}

impl Endpoint {
    fn poll_syn(&mut self, now: Instant) -> Option<Output> {
        if self.state == State::Waiting && now >= self.config.start_at {
            self.state = State::SynSent;
            self.syn.due = true;
        }
        if !self.syn.due {
            return None;
        }
        self.syn.on_sent(now);
        let agreed = self.connection.as_ref().map(|connection| &connection.agreed);
        let (ack, flags, echo) = match &self.connection {
            Some(connection) => (
                connection.receiver.seq_next(),
                TcpFlags::SYN.with(TcpFlags::ACK),
                connection.receiver.echo(),
            ),
            None => (SeqNumber(0), TcpFlags::SYN, 0),
        };
        let timestamps = Timestamps { val: Self::clock(now), ecr: echo };
        let options = syn_options(&self.config, agreed, timestamps);
        let header = self.header(self.config.isn, ack, flags);
        Some(self.transmit(TcpHeader { window: syn_window(&self.config), options, ..header }))
    }
    fn poll_data(&mut self, now: Instant) -> Option<Output> {
        let base = self.header(SeqNumber(0), SeqNumber(0), TcpFlags::ACK);
        let connection = self.connection.as_mut()?;
        // Blocks must not wait behind data that cannot carry them.
        if !(connection.receiver.has_blocks() && connection.receiver.owes(now))
            && let Some(segment) = connection.sender.poll_segment(now, Self::clock(now), &mut self.stats)
        {
            let mut flags = TcpFlags::ACK;
            if segment.push && segment.payload > 0 {
                flags = flags.with(TcpFlags::PSH);
            }
            if segment.fin {
                flags = flags.with(TcpFlags::FIN);
            }
            let header = TcpHeader { seq: segment.seq, flags, payload_len: segment.payload, ..base };
            let header = connection.stamp(now, header, false);
            return Some(self.transmit(header));
        }
        let probe = connection.sender.poll_probe();
        if !probe && !connection.receiver.owes(now) {
            return None;
        }
        let seq = match probe {
            // A probe repeats the byte before the window: it must be answered.
            true => SeqNumber(connection.sender.seq_una().0.wrapping_sub(1)),
            false => connection.sender.seq_next(),
        };
        self.stats.pure_acks_sent += u64::from(!probe);
        let header = connection.stamp(now, TcpHeader { seq, ..base }, true);
        Some(self.transmit(header))
    }
}

impl Node for Endpoint {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        self.last_now = now;
        let addressed = packet.flow_key() == Some(self.key.reversed());
        let useful = match &packet.transport {
            Transport::Tcp(tcp) if addressed => self.on_segment(now, tcp),
            _ => false,
        };
        if useful {
            self.stats.segments_received += 1;
        } else {
            self.stats.ignored += 1;
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.last_now = now;
        self.syn.on_timer(now);
        if let Some(connection) = self.connection.as_mut().filter(|_| self.state == State::Open) {
            connection.sender.on_timer(now, &mut self.stats);
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        self.last_now = now;
        if let Some(output) = self.poll_syn(now) {
            return Some(output);
        }
        if self.state != State::Open {
            return None;
        }
        if !self.announced
            && matches!(self.source, Source::File(_))
            && self.connection.as_ref().is_some_and(|connection| connection.sender.complete())
        {
            self.announced = true;
            return Some(Output::Event(Event::TransferComplete(self.key.into())));
        }
        self.poll_data(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let start = (self.state == State::Waiting).then_some(self.config.start_at);
        let connection = self.connection.as_ref().filter(|_| self.state == State::Open);
        let sender = connection.and_then(|connection| connection.sender.deadline(self.last_now));
        let receiver = connection.and_then(|connection| connection.receiver.deadline());
        let next = [start, self.syn.deadline(), sender, receiver].into_iter().flatten().min();
        next.map(|at| at.max(self.last_now))
    }
}
