//! A worker's sockets on one interface, and the queue of frames that leave there.

use super::counters::Counters;
use super::waiting::{Sent, Waiting};
use crate::datapath::frame::Outgoing;
use crate::datapath::socket::{BATCH, PacketSocket};
use paceline_net::Instant;
use paceline_pep::accelerator::Side;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::IpAddr;

/// Frames that wait for a full device; from here on the engine is not asked for more. Chosen: 5 ms of full
/// frames at 10 Gb/s.
const MAX_SEND_QUEUE_FRAMES: usize = 4096;

/// An interface as a worker sees it.
pub struct Port {
    side: Side,
    /// The socket on which frames arrive.
    pub socket: PacketSocket,
    /// The socket by which frames leave, if it is another one (routed mode).
    exit: Option<PacketSocket>,
    send_queue: VecDeque<Outgoing>,
    waiting: Waiting,
}

impl Port {
    /// A port with an empty send queue. `exit` is the socket by which frames leave, if it is another one.
    pub fn new(side: Side, socket: PacketSocket, exit: Option<PacketSocket>) -> Self {
        Self { side, socket, exit, send_queue: VecDeque::new(), waiting: Waiting::default() }
    }
    /// The socket by which frames leave.
    pub fn exit(&self) -> &PacketSocket {
        self.exit.as_ref().unwrap_or(&self.socket)
    }
    /// Takes another socket. Frames for the interface of the former one, which is gone, are discarded.
    pub fn replace(&mut self, socket: PacketSocket, counters: &mut Counters) {
        self.discard(counters);
        self.socket = socket;
    }
    /// Whether the socket by which frames leave has lost its interface, and is another one than that on which
    /// they arrive.
    pub fn has_lost_exit(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| !exit.has_interface())
    }
    /// Whether frames wait for room in the socket.
    pub fn is_blocked(&self) -> bool {
        !self.send_queue.is_empty()
    }
    /// Whether frames wait to be sent.
    pub fn has_unsent(&self) -> bool {
        self.is_blocked() || !self.waiting.is_empty()
    }
    /// Whether the engine has to keep its packets for now.
    pub fn is_full(&self) -> bool {
        self.send_queue.len() >= MAX_SEND_QUEUE_FRAMES
    }
    /// When [`Self::retry`] is to be called.
    pub fn next_retry(&self) -> Option<Instant> {
        self.waiting.next_at()
    }
    /// The devices whose frames the interface's queue has refused, and until when they wait.
    pub fn waiting_devices(&self) -> impl Iterator<Item = (IpAddr, Instant)> + '_ {
        self.waiting.devices()
    }
    /// Queues a frame. Forwarded frames find room for some time after the queue is full for the engine; then
    /// they are lost.
    pub fn queue(&mut self, frame: Outgoing, counters: &mut Counters) {
        if self.send_queue.len() < 2 * MAX_SEND_QUEUE_FRAMES {
            self.send_queue.push_back(frame);
        } else {
            counters.lost_out += 1;
        }
    }
    /// Discards all frames.
    pub fn discard(&mut self, counters: &mut Counters) {
        counters.lost_out += self.send_queue.len() as u64 + self.waiting.clear();
        self.send_queue.clear();
    }
    /// Tries frames again that the interface's queue has refused.
    pub fn retry(&mut self, now: Instant, counters: &mut Counters) {
        if self.waiting.next_at().is_none_or(|at| at > now) {
            return;
        }
        let Self { socket, exit, waiting, .. } = self;
        let socket = exit.as_ref().unwrap_or(socket);
        let mut failed = 0;
        let [sent, refused, lost] = waiting.retry(now, |frames| match send(socket, frames) {
            Ok(sent) => Sent::Some(sent),
            Err(error) if PacketSocket::is_refused(&error) => Sent::Refused,
            Err(_) => {
                failed += 1;
                Sent::Some(1) // the frame is lost
            }
        });
        counters.frames_out += sent - failed;
        counters.refused += refused;
        counters.lost_out += lost + failed;
    }
    /// Sends queued frames until the queue is empty or the socket full.
    pub fn send(&mut self, now: Instant, counters: &mut Counters) {
        let Self { side, socket, exit, send_queue, waiting } = self;
        let socket = exit.as_ref().unwrap_or(socket);
        let keep = |waiting: &mut Waiting, counters: &mut Counters, frame: Outgoing| {
            counters.lost_out += u64::from(!waiting.keep(now, frame.device(*side), frame));
        };
        if !waiting.is_empty() {
            // A device's frames stay in order.
            for frame in std::mem::take(send_queue) {
                if waiting.holds(frame.device(*side)) {
                    keep(waiting, counters, frame);
                } else {
                    send_queue.push_back(frame);
                }
            }
        }
        while !send_queue.is_empty() {
            match send(socket, send_queue) {
                Ok(0) => return,
                Ok(sent) => {
                    waiting.on_sent();
                    counters.frames_out += sent as u64;
                    let acks = send_queue.drain(..sent).filter(Outgoing::is_ack).count();
                    counters.acks_out += if *side == Side::Server { acks as u64 } else { 0 };
                }
                Err(error) if PacketSocket::is_refused(&error) => {
                    counters.refused += 1;
                    let device = send_queue.front().and_then(|frame| frame.device(*side));
                    for frame in std::mem::take(send_queue) {
                        if frame.device(*side) == device {
                            keep(waiting, counters, frame);
                        } else {
                            send_queue.push_back(frame);
                        }
                    }
                }
                // The device refuses the first frame, which is longer than the MTU, or the device is down.
                Err(_) => {
                    counters.lost_out += 1;
                    send_queue.pop_front();
                }
            }
        }
    }
}

/// Sends the first frames of a queue.
fn send(socket: &PacketSocket, queue: &VecDeque<Outgoing>) -> io::Result<usize> {
    let mut parts: Vec<IoSlice<'_>> = Vec::with_capacity(4 * BATCH);
    let mut ends = [0; BATCH];
    for (frame, end) in queue.iter().zip(&mut ends) {
        frame.add_parts(&mut parts);
        *end = parts.len();
    }
    let starts = std::iter::once(0).chain(ends);
    let ranges = starts.zip(ends).take(queue.len());
    let frames: Vec<&[IoSlice<'_>]> = ranges.map(|(from, until)| &parts[from..until]).collect();
    socket.send(&frames)
}
