//! Openings: handshakes (RFC 9293, section 3.5; RFC 7323; RFC 2018; RFC 3168; RFC 9768), and connections that
//! have had no data from their server.
//!
//! Nothing is answered or altered. The options of both SYNs decide whether a connection may be accelerated,
//! and how. The table is bounded and forgets the oldest opening first, so that a SYN flood costs limited
//! memory; a connection whose handshake was forgotten passes untouched.

use crate::accelerator::Side;
use crate::accelerator::flow::connection::{Handshake, Negotiated};
use crate::accelerator::flow::paws::Epoch;
use crate::accelerator::flow::upload::Upload;
use crate::accelerator::machine::index::{Keyed, Table};
use crate::accelerator::stats::BypassReason;
use paceline_net::{
    Duration, FlowKey, ForeignOptions, Instant, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
};
use std::collections::VecDeque;

/// Segment size without an MSS option, in bytes (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Least payload of an accelerated connection's segments, in bytes. Chosen: smaller segments cost a record
/// and a packet for every few bytes. Such a connection passes, and its server applies its own limit (Linux:
/// `net.ipv4.tcp_min_snd_mss`, 48).
const MIN_SEGMENT: u32 = 64;

/// One side's SYN.
#[derive(Clone, Copy, Debug)]
struct Syn {
    isn: SeqNumber,
    options: TcpOptions,
    flags: TcpFlags,
    /// The SYN answers the other side's SYN, and with this acknowledgment number.
    answer: bool,
    ack: SeqNumber,
}

impl Syn {
    /// Adds the options of an earlier transmission. A retransmitted SYN may offer less (RFC 3168, section
    /// 6.1.1.1; RFC 9768, section 3.1.4) while the answer to the earlier one is in flight. An answer agrees
    /// to offered options only.
    fn merge(self, before: &Self) -> Self {
        let (own, old) = (self.options, before.options);
        let options = TcpOptions {
            mss: own.mss.or(old.mss),
            window_scale: own.window_scale.or(old.window_scale),
            sack_permitted: own.sack_permitted || old.sack_permitted,
            timestamps: own.timestamps.or(old.timestamps),
            other: own.other.with(old.other),
            ..own
        };
        Self { options, flags: self.flags.with(before.flags), ..self }
    }
}

/// A connection that has had a SYN, and no data from its server.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Opening {
    key: FlowKey,
    /// By [`Side`]: the server's, the client's.
    syns: [Option<Syn>; 2],
    /// The client has acknowledged the server's SYN.
    client_acked: bool,
    /// Right edge of the client's largest window, as an offset from the server's initial sequence number.
    client_edge: u64,
    /// When the server's SYN passed, and the time until the client's answer.
    syn_at: Option<Instant>,
    rtt: Option<Duration>,
    /// When the client's SYN passed, and the time until the server's answer.
    client_syn_at: Option<Instant>,
    server_rtt: Option<Duration>,
    /// When the server's timestamp was recorded.
    server_epoch: Epoch,
    pub upload: Upload,
    /// The client goes on, and no SYN of the server has passed: its packets go another way.
    one_sided: bool,
    serial: u64,
}

impl Keyed for Opening {
    type Key = FlowKey;
    fn key(&self) -> FlowKey {
        self.key
    }
}

impl Opening {
    fn new(key: FlowKey, serial: u64) -> Self {
        Self {
            key,
            syns: [None; 2],
            client_acked: false,
            client_edge: 0,
            syn_at: None,
            rtt: None,
            client_syn_at: None,
            server_rtt: None,
            server_epoch: Epoch::default(),
            upload: Upload::default(),
            one_sided: false,
            serial,
        }
    }

    /// A SYN passes. `Err`: the connection is bypassed for this reason.
    fn on_syn(
        &mut self,
        now: Instant,
        side: Side,
        packet: &Packet,
        tcp: &TcpHeader,
    ) -> Result<(), BypassReason> {
        check(packet, tcp)?;
        let before = self.syns[side as usize];
        let answer = tcp.flags.contains(TcpFlags::ACK);
        let syn = Syn { isn: tcp.seq, options: tcp.options, flags: tcp.flags, answer, ack: tcp.ack };
        if self.syns[side.other() as usize].is_some_and(|other| other.answer == answer) && !answer {
            return Err(BypassReason::SimultaneousOpen);
        }
        let offer = before.filter(|before| !before.answer && !answer);
        self.syns[side as usize] = Some(offer.map_or(syn, |before| syn.merge(&before)));
        if side == Side::Mobile {
            self.client_syn_at = before.is_none().then_some(now);
            self.upload.on_syn(now, packet, tcp);
            // The window of a SYN is never scaled.
            self.client_edge = self.client_edge.max(1 + u64::from(tcp.window));
            if answer {
                self.on_answer(now);
            }
        } else {
            // After a retransmission the answer gives no round-trip time (Karn's algorithm, RFC 6298, section
            // 3).
            self.syn_at = before.is_none().then_some(now);
            self.server_epoch = Epoch::at(now);
            if answer {
                self.upload.record_server_ack(tcp);
                self.server_rtt = self.server_rtt.or(self.client_syn_at.map(|at| now.since(at)));
            }
        }
        Ok(())
    }

    /// The client acknowledged the server's SYN.
    fn on_answer(&mut self, now: Instant) {
        self.client_acked = true;
        self.rtt = self.rtt.or(self.syn_at.map(|at| now.since(at)));
    }

    /// A segment of the client, without a SYN of the server before it. Whether it is the first one.
    fn note_one_sided(&mut self, tcp: &TcpHeader) -> bool {
        let is_answer = tcp.flags.contains(TcpFlags::ACK) && !tcp.flags.contains(TcpFlags::RST);
        is_answer
            && self.syns[Side::Server as usize].is_none()
            && !std::mem::replace(&mut self.one_sided, true)
    }
    /// A segment without SYN from the mobile side.
    fn on_client(&mut self, now: Instant, packet: &Packet, tcp: &TcpHeader) {
        let [Some(server), Some(client)] = self.syns else { return };
        // The server has sent nothing but its SYN.
        let plausible = tcp.ack == server.isn + 1 && self.upload.accepts_seq(tcp.seq);
        if !plausible && self.upload.note_offloaded_fin(tcp) {
            return;
        }
        if !tcp.flags.contains(TcpFlags::ACK) || tcp.flags.contains(TcpFlags::RST) || !plausible {
            return;
        }
        self.upload.on_client(now, packet, tcp);
        self.on_answer(now);
        let shift = server.options.window_scale.and(client.options.window_scale).unwrap_or(0).min(14);
        self.client_edge = self.client_edge.max(1 + (u64::from(tcp.window) << shift));
    }

    /// A segment without SYN and without data from the server side.
    fn on_server(&mut self, tcp: &TcpHeader) {
        if !tcp.flags.contains(TcpFlags::ACK) || !self.upload.accepts_ack(tcp.ack) {
            return;
        }
        self.upload.record_server_ack(tcp);
        // An upload over a long path has more in flight than the largest window without scaling.
        if let [Some(server), Some(client)] = &self.syns {
            self.upload.note_window(u32::from(tcp.window) << negotiate(server, client).server_shift);
        }
    }

    /// The result of the handshake. `Err`: the connection is bypassed for this reason.
    pub fn handshake(&self) -> Result<Handshake, BypassReason> {
        let [Some(server), Some(client)] = self.syns else { return Err(BypassReason::OneSided) };
        let fast_open = server.options.other.with(client.options.other).intersects(ForeignOptions::FAST_OPEN);
        if !(server.answer || client.answer) || !(self.client_acked || fast_open) {
            return Err(BypassReason::OneSided);
        }
        let negotiated = negotiate(&server, &client);
        let segment = segment_size(&server, &client, negotiated.timestamps);
        if segment < MIN_SEGMENT {
            return Err(BypassReason::SmallSegments);
        }
        Ok(Handshake {
            negotiated,
            segment,
            server_epoch: self.server_epoch,
            server_isn: server.isn,
            client_edge: self.client_edge,
            complete: self.client_acked,
            rtt: self.rtt,
            server_rtt: self.server_rtt,
            server_timestamp: server.options.timestamps.map_or(0, |timestamps| timestamps.val),
        })
    }
    /// Whether the two SYNs answer each other and belong to another connection than the one with this initial
    /// sequence number of the server.
    pub fn replaces(&self, server_isn: SeqNumber) -> bool {
        let answers = |syn: &Syn, other: &Syn| syn.answer && syn.ack == other.isn + 1;
        matches!(&self.syns, [Some(server), Some(client)]
            if server.isn != server_isn && (answers(server, client) || answers(client, server)))
    }
    /// Whether the client has acknowledged the server's SYN.
    pub fn is_confirmed(&self) -> bool {
        self.client_acked
    }
}

fn negotiate(server: &Syn, client: &Syn) -> Negotiated {
    let scaled = server.options.window_scale.zip(client.options.window_scale);
    // RFC 7323, section 2.3: a larger shift counts as 14.
    let (server_shift, client_shift) = scaled.map_or((0, 0), |(s, c)| (s.min(14), c.min(14)));
    let timestamps = server.options.timestamps.is_some() && client.options.timestamps.is_some();
    let (offer, answer) = if server.answer { (client, server) } else { (server, client) };
    let (ece, cwr) = (TcpFlags::ECE, TcpFlags::CWR);
    let ecn =
        offer.flags.contains(ece.with(cwr)) && answer.flags.contains(ece) && !answer.flags.contains(cwr);
    let sack = server.options.sack_permitted && client.options.sack_permitted;
    Negotiated { client_shift, server_shift, timestamps, sack, ecn }
}

/// Payload bytes of a full segment to the client.
fn segment_size(server: &Syn, client: &Syn, timestamps: bool) -> u32 {
    let mss = client.options.mss.unwrap_or(DEFAULT_MSS);
    // The client's frames may be longer than the path allows. The server would send no more than its own MSS.
    let mss = u32::from(server.options.mss.map_or(mss, |own| own.min(mss)));
    mss.saturating_sub(if timestamps { 12 } else { 0 })
}

/// Whether a SYN allows acceleration. `Err`: the connection is bypassed for this reason.
fn check(packet: &Packet, tcp: &TcpHeader) -> Result<(), BypassReason> {
    let foreign = tcp.options.other;
    let signed = ForeignOptions::MD5.with(ForeignOptions::AUTHENTICATION);
    // An offer of accurate ECN is examined when it is answered.
    let known =
        signed.with(ForeignOptions::MPTCP).with(ForeignOptions::FAST_OPEN).with(ForeignOptions::ACCURATE_ECN);
    let unknown = foreign.without(known).any();
    if packet.ip.special {
        Err(BypassReason::SpecialIp)
    } else if foreign.intersects(ForeignOptions::MPTCP) {
        Err(BypassReason::Mptcp)
    } else if foreign.intersects(signed) {
        Err(BypassReason::Signed)
    } else if unknown {
        Err(BypassReason::UnknownOption)
    } else if accepts_accurate_ecn(tcp) {
        Err(BypassReason::AccurateEcn)
    } else {
        Ok(())
    }
}

/// Whether a SYN-ACK accepts accurate ECN (RFC 9768, section 3.1.2), offered by any transmission of the SYN.
/// The flags AE, CWR, ECE decline an offer if none is set, ECE alone, ECE and AE (the nonce bit), or all.
fn accepts_accurate_ecn(tcp: &TcpHeader) -> bool {
    let bits = (tcp.flags.0 & (TcpFlags::AE.0 | TcpFlags::CWR.0 | TcpFlags::ECE.0)) >> 6;
    let accepts = ![0b000, 0b001, 0b101, 0b111].contains(&bits);
    tcp.flags.contains(TcpFlags::ACK)
        && (accepts || tcp.options.other.intersects(ForeignOptions::ACCURATE_ECN))
}

/// All openings, keyed in the direction from server to mobile.
#[derive(Debug)]
pub(in crate::accelerator) struct Openings {
    table: Table<Opening>,
    /// Slots in the order of the first SYN; entries may be stale.
    order: VecDeque<(u64, u32)>,
    limit: usize,
    serial: u64,
}

impl Openings {
    pub fn new(limit: usize, seed: u64) -> Self {
        Self { table: Table::new(seed), order: VecDeque::new(), limit, serial: 0 }
    }
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    pub fn len(&self) -> usize {
        self.table.len()
    }
    /// A SYN passes. `Ok`: the number of openings forgotten for it. `Err`: the connection is bypassed for
    /// this reason.
    pub fn on_syn(
        &mut self,
        now: Instant,
        key: FlowKey,
        side: Side,
        packet: &Packet,
        tcp: &TcpHeader,
    ) -> Result<u64, BypassReason> {
        let mut forgotten = 0;
        let repeats = |opening: &Opening| {
            let known = opening.syns[side as usize].map(|syn| syn.isn);
            known == Some(tcp.seq)
                || known.is_none() && tcp.flags.contains(TcpFlags::ACK)
                || known.is_none() && opening.syns[side.other() as usize].is_some_and(|syn| !syn.answer)
        };
        let slot = match self.table.find(&key) {
            Some(slot) if self.table.get(slot).is_some_and(repeats) => slot,
            Some(slot) => {
                // A new initial sequence number is a new connection.
                self.table.remove(slot);
                self.insert(key)
            }
            None => {
                while self.table.len() >= self.limit || self.order.len() >= 2 * self.limit {
                    forgotten += u64::from(self.forget_oldest());
                }
                self.insert(key)
            }
        };
        let opening = self.table.get_mut(slot).expect("it was found or inserted");
        match opening.on_syn(now, side, packet, tcp) {
            Ok(()) => Ok(forgotten),
            Err(reason) => {
                self.table.remove(slot);
                Err(reason)
            }
        }
    }
    fn insert(&mut self, key: FlowKey) -> u32 {
        self.serial += 1;
        let slot = self.table.insert(Opening::new(key, self.serial));
        self.order.push_back((self.serial, slot));
        slot
    }
    fn forget_oldest(&mut self) -> bool {
        let Some((serial, slot)) = self.order.pop_front() else { return false };
        let current = self.table.get(slot).is_some_and(|opening| opening.serial == serial);
        current && self.table.remove(slot).is_some()
    }
    /// A segment without SYN from the mobile side. Whether it shows that the server's packets do not pass
    /// here.
    pub fn on_client(&mut self, now: Instant, key: &FlowKey, packet: &Packet, tcp: &TcpHeader) -> bool {
        let Some(opening) = self.table.find(key).and_then(|slot| self.table.get_mut(slot)) else {
            return false;
        };
        opening.on_client(now, packet, tcp);
        opening.note_one_sided(tcp)
    }
    /// A segment without SYN from the server side that carries no data.
    pub fn on_server(&mut self, key: &FlowKey, tcp: &TcpHeader) {
        if let Some(slot) = self.table.find(key)
            && let Some(opening) = self.table.get_mut(slot)
        {
            opening.on_server(tcp);
        }
    }
    /// Removes the opening of `key`.
    pub fn take(&mut self, key: &FlowKey) -> Option<Opening> {
        let slot = self.table.find(key)?;
        self.table.remove(slot)
    }
    pub fn holds(&self, key: &FlowKey) -> bool {
        self.table.holds(key)
    }
    /// The upload of a connection whose handshake is complete.
    pub fn upload(&mut self, key: &FlowKey) -> Option<&mut Upload> {
        let slot = self.table.find(key)?;
        self.table.get_mut(slot).filter(|opening| opening.client_acked).map(|opening| &mut opening.upload)
    }
    pub fn get(&mut self, key: &FlowKey) -> Option<&Opening> {
        let slot = self.table.find(key)?;
        self.table.get(slot)
    }
}
