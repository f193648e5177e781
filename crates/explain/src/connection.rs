//! A connection as it passes one capture point: handshake, options, both senders and both halves of the round
//! trip.

use crate::halves::Half;
use crate::hop_limits::HopLimits;
use crate::segment::{Options, Segment};
use crate::sender::Sender;
use paceline_net::{Duration, Instant, SeqNumber, TcpFlags};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Index of the client in pairs.
pub const CLIENT: usize = 0;
/// Index of the server in pairs.
pub const SERVER: usize = 1;
/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u32 = 12;
/// Longest time between the copies of a mirrored packet, ns. Chosen: copies of both directions of a port
/// follow each other within its queue; a retransmission takes a round trip, and has another TSval or
/// identification.
const MIRRORED_NS: u64 = 500_000;
/// Segments of each end that are compared. Chosen: a switch mirrors within a few packets.
const COMPARED: usize = 8;

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// FINs of both ends.
    Fin,
    /// A reset.
    Reset,
    /// None in the capture.
    Open,
}

/// The options and the request for ECN of one end's SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Options.
    pub options: Options,
    /// ECN, by ECE in a SYN or SYN-ACK (RFC 3168 §6.1.1).
    pub ecn: bool,
}

/// A connection at one capture point.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Number of the capture point.
    pub point: usize,
    /// Addresses of client and server.
    pub ends: [SocketAddr; 2],
    /// Senders, by end.
    pub senders: [Sender; 2],
    /// Halves of the round trip, towards each end.
    pub halves: [Half; 2],
    /// SYNs, by end.
    pub offers: [Option<Offer>; 2],
    /// Sequence numbers of the SYNs, by end.
    pub first_seqs: [Option<SeqNumber>; 2],
    /// TTLs, by end.
    pub hop_limits: [HopLimits; 2],
    /// Segments without timestamps behind the SYN, by end.
    pub without_timestamps: [u64; 2],
    /// Times of the first SYN, of the first SYN-ACK, and of the ACK of it.
    pub handshake: [Option<Instant>; 3],
    /// Times of the first and the last segment.
    pub span: (Instant, Instant),
    /// Segments of each end, without mirrored ones.
    pub segments: [u64; 2],
    /// Copies of mirrored packets, which were left out.
    pub mirrored: u64,
    /// SYNs that were sent again.
    pub repeated_syns: u64,
    fins: [bool; 2],
    reset: bool,
    /// Times and fingerprints of the last segments, by end.
    recent: [VecDeque<(Instant, u64)>; 2],
}

impl Connection {
    /// A connection with its first segment, which [`Self::on_segment`] then takes. `here`: the end at which
    /// the capture was made, if its maker says.
    pub fn new(point: usize, first: &Segment, here: Option<usize>) -> Self {
        let (is_syn, is_ack) = (first.has(TcpFlags::SYN), first.ack.is_some());
        let by_client = if is_syn { !is_ack } else { first.src.port() >= first.dst.port() };
        let mut halves = [Half::default(), Half::default()];
        if let Some(end) = here {
            halves[end].is_here = true;
        }
        Self {
            point,
            ends: if by_client { [first.src, first.dst] } else { [first.dst, first.src] },
            senders: Default::default(),
            halves,
            offers: [None; 2],
            first_seqs: [None; 2],
            hop_limits: Default::default(),
            without_timestamps: [0; 2],
            handshake: [None; 3],
            span: (first.at, first.at),
            segments: [0; 2],
            mirrored: 0,
            repeated_syns: 0,
            fins: [false; 2],
            reset: false,
            recent: Default::default(),
        }
    }
    /// Whether a SYN opens another connection between the same ends.
    pub fn is_followed_by(&self, segment: &Segment) -> bool {
        segment.has(TcpFlags::SYN) && segment.ack.is_none() && self.first_seqs[CLIENT] != Some(segment.seq)
    }
    /// Whether the capture lacks the handshake.
    pub fn is_mid_stream(&self) -> bool {
        self.offers == [None, None]
    }
    /// Whether the scale of the windows is known: the capture has both SYNs.
    pub fn is_window_known(&self) -> bool {
        self.offers.iter().all(Option::is_some)
    }
    /// Whether both SYNs have an option.
    pub fn has_option(&self, has: impl Fn(&Options) -> bool) -> bool {
        self.offers.iter().all(|offer| offer.is_some_and(|offer| has(&offer.options)))
    }
    /// The end of the connection.
    pub fn closing(&self) -> Closing {
        match (self.reset, self.fins) {
            (true, _) => Closing::Reset,
            (_, [true, true]) => Closing::Fin,
            _ => Closing::Open,
        }
    }
    /// The next segment of the connection. Returns the round trip from the capture point to its sender, if
    /// it acknowledges data that give a sample.
    pub fn on_segment(&mut self, segment: &Segment) -> Option<Duration> {
        let from = usize::from(segment.src != self.ends[CLIENT]);
        let to = 1 - from;
        if self.is_mirrored(segment, from) {
            self.mirrored += 1;
            return None;
        }
        self.segments[from] += 1;
        self.hop_limits[from].add(segment.ttl, segment.has(TcpFlags::SYN));
        self.without_timestamps[from] += u64::from(segment.options.timestamps.is_none());
        self.span.1 = segment.at;
        for (sender, half) in self.senders.iter_mut().zip(&self.halves) {
            sender.advance(segment.at, half);
        }
        if segment.has(TcpFlags::SYN) {
            self.on_syn(segment, from);
        } else if self.handshake[2].is_none() && !segment.has(TcpFlags::RST) {
            self.on_established(segment, from);
        }
        let was_busy = self.senders[from].is_busy();
        let is_new = self.senders[from].on_sent(segment);
        if let Some((val, ecr)) = segment.options.timestamps {
            self.halves[to].on_value(segment.at, val);
            self.halves[from].on_echo(segment.at, ecr, is_new && was_busy);
        }
        let window = self.window(segment, from);
        let half = self.senders[to].on_ack(segment, window, &self.halves[to]);
        if let Some(half) = half {
            self.halves[from].add(half);
        }
        self.fins[from] |= segment.has(TcpFlags::FIN);
        self.reset |= segment.has(TcpFlags::RST);
        if self.closing() != Closing::Open {
            self.senders.iter_mut().for_each(Sender::close);
            self.halves.iter_mut().for_each(Half::close);
            self.recent.iter_mut().for_each(VecDeque::shrink_to_fit);
        }
        half
    }
    fn on_syn(&mut self, segment: &Segment, from: usize) {
        let stage = usize::from(segment.ack.is_some());
        if self.handshake[stage].is_some() {
            self.repeated_syns += 1;
        } else if stage == 1
            && let Some(syn_at) = self.handshake[0].filter(|_| self.repeated_syns == 0)
        {
            self.halves[from].add_handshake(segment.at.since(syn_at));
        }
        self.handshake[stage].get_or_insert(segment.at);
        self.first_seqs[from] = Some(segment.seq);
        // ECE alone answers ECE and CWR (RFC 3168 §6.1.1).
        self.offers[from] = Some(Offer { options: segment.options, ecn: segment.has(TcpFlags::ECE) });
        let offers = self.offers;
        for (end, sender) in self.senders.iter_mut().enumerate() {
            // A sender keeps to the size that the other end announced.
            let mss = offers[1 - end].and_then(|offer| offer.options.mss);
            let both = offers.iter().flatten().all(|offer| offer.options.timestamps.is_some());
            let options = if both { TIMESTAMPS_LEN } else { 0 };
            sender.announced = mss.map(|mss| u32::from(mss).saturating_sub(options).max(1));
        }
    }
    fn on_established(&mut self, segment: &Segment, from: usize) {
        if let Some(syn_ack_at) = self.handshake[1].filter(|_| from == CLIENT && self.repeated_syns == 0) {
            self.halves[CLIENT].add_handshake(segment.at.since(syn_ack_at));
        }
        self.handshake[2] = Some(segment.at);
        self.senders.iter_mut().for_each(Sender::establish);
    }
    /// The advertised window in bytes, if its scale is known.
    fn window(&self, segment: &Segment, from: usize) -> Option<u64> {
        let window = u64::from(segment.window);
        if segment.has(TcpFlags::SYN) {
            return Some(window);
        }
        let [own, other] =
            [self.offers[from]?, self.offers[1 - from]?].map(|offer| offer.options.window_scale);
        // RFC 7323 §2.2: both SYNs have the option, or no window is scaled.
        Some(window << own.filter(|_| other.is_some()).unwrap_or(0))
    }
    fn is_mirrored(&mut self, segment: &Segment, from: usize) -> bool {
        let print = segment.fingerprint();
        let recent = &mut self.recent[from];
        // Duplicate ACKs without an identification may be equal.
        let is_distinct = segment.identification.is_some_and(|id| id != 0) || segment.len > 0;
        let is_near = |at: &Instant| segment.at.since(*at).as_nanos() <= MIRRORED_NS;
        if is_distinct && recent.iter().any(|(at, other)| is_near(at) && *other == print) {
            return true;
        }
        if recent.len() == COMPARED {
            recent.pop_front();
        }
        recent.push_back((segment.at, print));
        false
    }
}
