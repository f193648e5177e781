//! A worker's sockets on one interface, and the queue of frames that leave there.

use super::counters::Counters;
use crate::gateway::datapath::frame::Outgoing;
use crate::gateway::datapath::socket::{BATCH, PacketSocket};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Frames that wait for a full device; from here on the engine is not asked for more. Chosen: 5 ms of full
/// frames at 10 Gb/s.
const MAX_SEND_QUEUE_FRAMES: usize = 4096;

/// An interface as a worker sees it.
pub struct Port {
    /// The socket on which frames arrive.
    pub socket: PacketSocket,
    /// The socket by which frames leave, if it is another one (routed mode).
    exit: Option<PacketSocket>,
    send_queue: VecDeque<Outgoing>,
}

impl Port {
    /// A port with an empty send queue. `exit` is the socket by which frames leave, if it is another one.
    pub fn new(socket: PacketSocket, exit: Option<PacketSocket>) -> Self {
        Self { socket, exit, send_queue: VecDeque::new() }
    }
    /// The socket by which frames leave.
    pub fn exit(&self) -> &PacketSocket {
        self.exit.as_ref().unwrap_or(&self.socket)
    }
    /// Whether frames wait to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.send_queue.is_empty()
    }
    /// Whether the engine has to keep its packets for now.
    pub fn is_full(&self) -> bool {
        self.send_queue.len() >= MAX_SEND_QUEUE_FRAMES
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
    /// Sends queued frames until the queue is empty or the socket full.
    pub fn send(&mut self, counters: &mut Counters) {
        let Self { socket, exit, send_queue } = self;
        let socket = exit.as_ref().unwrap_or(socket);
        while !send_queue.is_empty() {
            let mut parts: Vec<IoSlice<'_>> = Vec::with_capacity(4 * BATCH);
            let mut ends = [0; BATCH];
            for (frame, end) in send_queue.iter().zip(&mut ends) {
                frame.add_parts(&mut parts);
                *end = parts.len();
            }
            let starts = std::iter::once(0).chain(ends);
            let ranges = starts.zip(ends).take(send_queue.len());
            let frames: Vec<&[IoSlice<'_>]> = ranges.map(|(from, until)| &parts[from..until]).collect();
            match socket.send(&frames) {
                Ok(0) => return,
                Ok(sent) => {
                    counters.frames_out += sent as u64;
                    send_queue.drain(..sent);
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
