//! The sending side of a connection: the accelerator in the server's place, towards the client.
//!
//! `send` chooses the next segment within the rate control's room (`path`), the client's `window` and the
//! `overshoot` past it; `emit` makes the packet, `path_mtu` and `black_hole` limit its size. `acks` takes the
//! client's ACKs to the `scoreboard`, which finds lost segments, and to the estimates (`rtt`). `timers` has
//! when tail probes, retransmission timeouts and window probes are due, `recovery` the reactions.

pub(in crate::accelerator) mod acks;
mod black_hole;
mod emit;
pub(in crate::accelerator) mod overshoot;
pub(in crate::accelerator) mod path;
mod path_mtu;
mod recovery;
pub(in crate::accelerator) mod rtt;
mod sack_check;
mod sacked;
pub(in crate::accelerator) mod scoreboard;
mod send;
mod timers;
mod window;

use crate::accelerator::flow::connection::{Connection, Handshake};
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::to_client::black_hole::BlackHole;
use crate::accelerator::flow::to_client::overshoot::{Overshoot, narrow};
use crate::accelerator::flow::to_client::path_mtu::segment_of;
use crate::accelerator::flow::to_client::rtt::Rtt;
use crate::accelerator::flow::to_client::sack_check::SackCheck;
use crate::accelerator::flow::to_client::scoreboard::Scoreboard;
use crate::accelerator::flow::to_client::timers::Timers;
use crate::accelerator::flow::to_client::window::ClientWindow;
use paceline_net::{Duration, Instant, SeqNumber};
use std::hint::black_box;

/// The result of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) enum SendOutcome {
    /// A packet was sent that counts for so many bytes.
    Sent { bytes: u64 },
    /// The rate control's window is full.
    NoRoom,
    /// There is nothing that may be sent.
    Nothing,
}

#[derive(Debug)]
pub(in crate::accelerator) struct ToClient {
    /// End of the data that the client has acknowledged (SND.UNA).
    una: u64,
    /// End of the data that was sent (SND.NXT).
    nxt: u64,
    window: ClientWindow,
    /// Payload bytes of a full segment.
    segment: u32,
    /// Bytes in flight beyond which more does not raise the throughput: the bound of the overshoot.
    useful_window: u32,
    /// The device's radio fades: it loses segments during outages (see `rate::losses::fading`).
    fading: bool,
    scoreboard: Scoreboard,
    sack_check: SackCheck,
    rtt: Rtt,
    overshoot: Overshoot,
    black_hole: BlackHole,
    /// Duplicate ACKs in a row.
    duplicates: u8,
    /// The next data segment carries CWR, the answer to the client's ECE.
    cwr_due: bool,
    /// End of the flight in which the client's ECE was last answered.
    cwr_until: u64,
    /// One segment may be sent regardless of rate and window.
    send_now: bool,
    timers: Timers,
    /// Ambiguous ACKs since the last round-trip sample: they may answer either copy of a segment.
    ambiguous_acks: u8,
    /// When to detect losses again; [`Instant::MAX`] for never.
    reorder_at: Instant,
    /// Age of the data that was sent last for the first time, in microseconds.
    age_us: u32,
    /// When discarded SACKed data is sent again; [`Instant::MAX`] for none. And when that was done last.
    reneging_at: Instant,
    reneged_at: Instant,
}

impl ToClient {
    /// `client_seq` is the client's next sequence number.
    pub fn new(now: Instant, handshake: &Handshake, client_seq: SeqNumber) -> Self {
        let first = 1;
        let size = handshake.client_edge - first;
        Self {
            una: first,
            nxt: first,
            window: ClientWindow::new(handshake.client_edge, size, client_seq),
            segment: handshake.segment,
            useful_window: 0,
            fading: false,
            scoreboard: Scoreboard::new(handshake.negotiated.sack),
            sack_check: SackCheck::default(),
            rtt: Rtt::new(handshake.rtt),
            overshoot: Overshoot::new(size),
            black_hole: BlackHole::default(),
            duplicates: 0,
            cwr_due: false,
            cwr_until: 0,
            send_now: false,
            timers: Timers::new(now),
            ambiguous_acks: 0,
            reorder_at: Instant::MAX,
            age_us: 0,
            reneging_at: Instant::MAX,
            reneged_at: Instant::ZERO,
        }
    }
    /// Reads each cache line that packets need.
    pub fn prefetch(&self) {
        black_box((self.rtt, self.overshoot, self.una, self.timers));
        self.scoreboard.prefetch();
    }

    /// End of the data that the client has acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }
    /// End of the data that was sent.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    pub fn window(&self) -> &ClientWindow {
        &self.window
    }
    /// Payload bytes of a full segment.
    pub fn segment(&self) -> u32 {
        self.segment
    }
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }
    /// Whether losses are detected by the client's SACK blocks.
    pub fn uses_sack(&self) -> bool {
        self.scoreboard.uses_sack()
    }
    pub fn is_fading(&self) -> bool {
        self.fading
    }
    pub fn set_path(&mut self, fading: bool, useful_window: u64) {
        (self.fading, self.useful_window) = (fading, narrow(useful_window));
    }
    /// Age of the data that was sent last for the first time: how long it was stored.
    pub fn age(&self) -> Duration {
        Duration::from_micros(u64::from(self.age_us))
    }
    /// Whether the client has not acknowledged everything that was sent.
    pub fn has_outstanding(&self) -> bool {
        !self.scoreboard.is_empty()
    }
    pub fn has_lost(&self) -> bool {
        self.scoreboard.has_lost()
    }
    /// Whether the client is sent probes only.
    pub fn is_unresponsive(&self) -> bool {
        self.timers.is_unresponsive()
    }
    /// Bytes beyond a hole that the client has: those that it has SACKed, or that its duplicate ACKs report.
    pub fn arrived_bytes(&self) -> u64 {
        self.scoreboard.arrived_bytes()
    }
    /// Bytes that occupy the path to the device. The segments of an unresponsive client left the radio long
    /// ago: they must not keep the device's other connections from sending.
    pub fn in_flight(&self) -> u64 {
        if self.is_unresponsive() { 0 } else { self.scoreboard.in_flight() }
    }
    /// Bytes sent and not acknowledged or lost, of an unresponsive client as well.
    pub fn sent_in_flight(&self) -> u64 {
        self.scoreboard.in_flight()
    }
    /// Bytes in flight, two segments at least: a client with delayed ACKs acknowledges two segments at once.
    pub fn flight_allowance(&self) -> u64 {
        self.scoreboard.in_flight().max(u64::from(2 * self.segment))
    }
    /// Whether the unsent data before `stream_end` exceeds twice the data in flight, and the client accepts
    /// data.
    pub fn is_backlogged(&self, stream_end: u64) -> bool {
        let unsent = stream_end.saturating_sub(self.nxt);
        unsent > 2 * self.flight_allowance() && !self.window.is_closed() && !self.is_unresponsive()
    }
    /// Whether the client's ECE is still to be answered.
    pub fn has_reply_due(&self) -> bool {
        self.cwr_due
    }
    /// Whether a segment is to be sent regardless of rate and window.
    pub fn has_send_now(&self) -> bool {
        self.send_now
    }
    /// Whether an ACK of the client is overdue by [`crate::accelerator::AcceleratorConfig::silence`]. None is
    /// while the timeout is backed off and the client has answered the last probe.
    pub fn is_ack_overdue(&self, cx: &Context<'_>) -> bool {
        let is_owed = || !self.rtt.is_backed_off() || self.timers.is_probed();
        self.has_outstanding() && self.timers.silence(cx.now) > cx.config.silence && is_owed()
    }
    /// Whether a probe was sent since the client's last segment.
    pub fn awaits_probe_response(&self) -> bool {
        self.timers.awaits_probe_response()
    }
    /// Continues sending at `off` if that is further; returns the offset from which sending continues.
    pub fn skip_to(&mut self, off: u64) -> u64 {
        self.nxt = self.nxt.max(off);
        self.nxt
    }
    /// A router reports that a packet with sequence number `seq` exceeds `mtu` bytes. The report is accepted
    /// only if the number is outstanding. Whether segments have become shorter.
    pub fn on_packet_too_big(&mut self, connection: &Connection, seq: SeqNumber, mtu: u32) -> bool {
        let una = self.una;
        let quoted = connection.offset(seq, una).is_some_and(|off| una <= off && off < self.nxt);
        let segment = segment_of(connection, mtu);
        if !quoted || segment >= self.segment {
            return false;
        }
        self.shorten(segment);
        true
    }
    /// Limits the payload of new segments. Another connection of the device has found the path MTU.
    pub fn limit_segment(&mut self, segment: u32) {
        self.segment = self.segment.min(segment);
    }
    /// Limits the payload of segments; longer ones in flight are lost.
    fn shorten(&mut self, segment: u32) {
        self.segment = segment;
        self.scoreboard.lose_larger(segment);
    }
    /// Panics if an invariant of the scoreboard does not hold.
    pub fn check(&self) {
        self.scoreboard.check(self.una, self.nxt);
    }
}
