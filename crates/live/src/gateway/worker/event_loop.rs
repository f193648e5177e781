//! One thread: an accelerator, its sockets on both interfaces, and the loop between them.
//!
//! A turn takes in what has arrived, lets the accelerator act on it, and sends what comes of it. While there is much
//! traffic, packets are gathered between turns; otherwise the worker sleeps until a packet or a timer comes.

use super::batching::Batching;
use super::counters::Counters;
use super::engine::{Engine, Fate};
use crate::clock;
use crate::emulate::prefer_this_thread;
use crate::gateway::control_plane::requests::{Snapshot, WorkerRequest};
use crate::gateway::counter::Counter;
use crate::gateway::crash_recovery::journal::Writer;
use crate::gateway::datapath::frame::{self, Arrival, Link, Outgoing};
use crate::gateway::datapath::slot::Slot;
use crate::gateway::datapath::socket::{BATCH, PacketSocket};
use crate::gateway::datapath::steering::{HEARTBEAT_TIMEOUT, Heartbeat, KernelPart};
use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_net::{Duration, FlowKey, Instant, Packet};
use paceline_pep::accelerator::Side;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};

/// At the end full sockets are waited for as long.
const LAST_WAIT: Duration = Duration::from_millis(50);
/// Between two stamps of the pulse.
const STAMP: Duration = Duration::from_millis(5);
/// After so long without a stamp the kernel may have let packets pass; shorter than that takes, to be sure.
const ABSENCE: Duration = Duration::from_nanos(HEARTBEAT_TIMEOUT.as_nanos() / 4 * 3);
/// Longest sleep, and while somebody asks one question after the other: what is asked wakes nobody.
const MAX_WAIT: Duration = Duration::from_millis(10);
const ASKED_WAIT: Duration = Duration::from_micros(500);
/// Since the last question.
const ASKING: Duration = Duration::from_millis(50);
/// Batches taken in a turn from each side: bounds the time away from the other.
const BATCHES: usize = 4;
/// Packets that wait for a full device; more are lost, as on a full line.
const MAX_WAITING: usize = 4096;
/// Between two looks at whether packets were lost because the worker is too slow.
const LOOK: Duration = Duration::from_millis(100);
/// Between two looks at connections that the journal has, and how many are looked at.
const SWEEP: Duration = Duration::from_millis(10);
const SWEPT: usize = 1024;
/// For so long after that no connection is taken in.
const RELIEF: Duration = Duration::from_secs(1);

/// An interface, as a worker sees it.
struct Port {
    socket: PacketSocket,
    /// Where packets leave, if elsewhere.
    exit: Option<PacketSocket>,
    waiting: VecDeque<Outgoing>,
}

impl Port {
    fn exit(&self) -> &PacketSocket {
        self.exit.as_ref().unwrap_or(&self.socket)
    }
}

/// One thread's part of the gateway.
pub struct Worker {
    engine: Engine,
    /// By side.
    ports: [Port; 2],
    heartbeat: Heartbeat,
    batching: Batching,
    requests: Receiver<WorkerRequest>,
    /// Where exposed connections are written down, if anybody reads it.
    journal: Option<Writer>,
    swept_at: Instant,
    slots: Vec<Slot>,
    /// What is in them, while it is handled.
    arrivals: Vec<Arrival>,
    /// Connections that only upload, and whether more may have come of them than was taken in.
    uploads: Vec<FlowKey>,
    behind: bool,
    counters: Counters,
    stamped_at: Instant,
    looked_at: Instant,
    overloaded_until: Instant,
    draining_until: Option<Instant>,
    /// The kernel is to have everything for the time being.
    aside: bool,
    asked_at: Instant,
    /// Connections that had been detached and reset when draining began.
    before_end: (u64, u64),
}

impl Worker {
    /// A worker that has not started, with its sockets by side, and those by which packets leave if they are others.
    pub fn new(
        mut engine: Engine,
        (sockets, exits): ([PacketSocket; 2], [Option<PacketSocket>; 2]),
        heartbeat: Heartbeat,
        tick: Duration,
        (requests, journal): (Receiver<WorkerRequest>, Option<Writer>),
    ) -> Self {
        if journal.is_some() {
            engine.keep_journal();
        }
        let mut exits = exits.into_iter();
        let port = |socket| Port { socket, exit: exits.next().flatten(), waiting: VecDeque::new() };
        Self {
            engine,
            ports: sockets.map(port),
            heartbeat,
            batching: Batching::new(tick),
            requests,
            journal,
            swept_at: Instant::ZERO,
            slots: (0..BATCH).map(|_| Slot::new()).collect(),
            arrivals: Vec::with_capacity(BATCH),
            uploads: Vec::new(),
            behind: false,
            counters: Counters::default(),
            stamped_at: Instant::ZERO,
            looked_at: Instant::ZERO,
            overloaded_until: Instant::ZERO,
            draining_until: None,
            aside: false,
            asked_at: Instant::ZERO,
            before_end: (0, 0),
        }
    }

    /// Works until it is drained. On an error the kernel forwards at once.
    pub fn run(mut self) -> anyhow::Result<Snapshot> {
        // Its packets come from the kernel's network threads: if it kept them from running, it would have to wait itself.
        prefer_this_thread();
        loop {
            let (now, before) = (clock::now(), self.counters.bytes_in);
            self.stamp(now)?;
            let taken = self.turn(now)?;
            let bytes: u64 =
                self.counters.bytes_in.iter().zip(before).map(|(all, before)| all - before).sum();
            if self.take_up_requests(now) {
                return self.end();
            }
            if let Some(pause) = self.batching.on_turn(now, taken, bytes) {
                let due = now + pause;
                clock::sleep_until(due);
                self.counters.lateness.record(clock::now().since(due).as_nanos());
            } else {
                self.wait(now)?;
            }
        }
    }

    /// Takes in, acts, sends; how many packets came.
    fn turn(&mut self, now: Instant) -> anyhow::Result<usize> {
        self.counters.turns += 1;
        let taken = self.receive(now, Side::Server)? + self.receive(now, Side::Mobile)?;
        self.engine.handle_timeout(now);
        self.transmit(now);
        self.write_journal(now);
        for side in [Side::Server, Side::Mobile] {
            self.send(side);
        }
        self.let_uploads_go();
        Ok(taken)
    }

    /// Leaves uploads to the kernel, of which everything that came here has been sent: it would be overtaken.
    fn let_uploads_go(&mut self) {
        let behind = self.behind || !self.ports[Side::Server as usize].waiting.is_empty();
        for key in self.uploads.drain(..) {
            if !behind && self.engine.rest(&key) {
                self.counters.resting += 1;
                self.heartbeat.leave_to_kernel(&key, KernelPart::Upload);
            }
        }
    }

    fn receive(&mut self, now: Instant, side: Side) -> anyhow::Result<usize> {
        let mut slots = std::mem::take(&mut self.slots);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut total = 0;
        for _ in 0..BATCHES {
            let received = match self.ports[side as usize].socket.receive(&mut slots) {
                Ok(received) => received,
                Err(error) => return Err(error).context("cannot receive from an interface"),
            };
            for slot in &mut slots[..received] {
                self.counters.bytes_in[side as usize] += slot.len() as u64;
                arrivals.push(frame::read(slot));
            }
            self.engine.expect(side, &arrivals);
            for arrival in arrivals.drain(..) {
                match arrival {
                    Arrival::Datagram(link, packet) => self.on_datagram(now, side, link, packet),
                    Arrival::Unread(link, unread) => {
                        let link = self.engine.leaving(link);
                        self.queue(side.other(), Outgoing::unread(link, unread));
                    }
                    Arrival::Ignored => {}
                }
            }
            total += received;
            self.behind = received == slots.len();
            if !self.behind {
                break;
            }
        }
        (self.slots, self.arrivals) = (slots, arrivals);
        self.counters.frames_in += total as u64;
        Ok(total)
    }

    fn on_datagram(&mut self, now: Instant, side: Side, link: Link, packet: Packet) {
        match self.engine.take(now, side, link, packet) {
            Fate::Taken => {}
            Fate::LeaveAlone(key) => {
                self.counters.left_alone += 1;
                self.heartbeat.leave_to_kernel(&key, KernelPart::Whole);
            }
            Fate::Uploads(key) if self.uploads.last() == Some(&key) => {}
            Fate::Uploads(key) => self.uploads.push(key),
            Fate::TakenBack(key) => self.heartbeat.take_back(&key),
            Fate::Passes(frame) => self.queue(side.other(), frame),
            Fate::PassesAlone(key, frame) => {
                self.heartbeat.leave_to_kernel(&key, KernelPart::Whole);
                self.queue(side.other(), frame);
            }
        }
    }

    /// What a server is told is in the journal before it leaves.
    fn write_journal(&mut self, now: Instant) {
        let Some(journal) = &mut self.journal else { return };
        let sweep = now.since(self.swept_at) >= SWEEP;
        if sweep {
            self.swept_at = now;
        }
        self.engine.write_journal(journal, if sweep { SWEPT } else { 0 });
    }

    /// Asks for what is to be sent, unless the devices are full.
    fn transmit(&mut self, now: Instant) {
        while !self.is_full()
            && let Some((side, frame)) = self.engine.poll(now)
        {
            self.queue(side, frame);
        }
    }
    fn is_full(&self) -> bool {
        self.ports.iter().any(|port| port.waiting.len() >= MAX_WAITING)
    }

    fn queue(&mut self, side: Side, frame: Outgoing) {
        let waiting = &mut self.ports[side as usize].waiting;
        if waiting.len() < 2 * MAX_WAITING {
            waiting.push_back(frame);
        } else {
            self.counters.lost_out += 1;
        }
    }

    /// Sends what waits, as long as the device takes it.
    fn send(&mut self, side: Side) {
        let Port { socket, exit, waiting } = &mut self.ports[side as usize];
        let socket = exit.as_ref().unwrap_or(socket);
        while !waiting.is_empty() {
            let mut parts: Vec<IoSlice<'_>> = Vec::with_capacity(4 * BATCH);
            let mut ends = [0; BATCH];
            for (frame, end) in waiting.iter().zip(&mut ends) {
                frame.add_parts(&mut parts);
                *end = parts.len();
            }
            let starts = std::iter::once(0).chain(ends);
            let ranges = starts.zip(ends).take(waiting.len());
            let frames: Vec<&[IoSlice<'_>]> = ranges.map(|(from, until)| &parts[from..until]).collect();
            match socket.send(&frames) {
                Ok(0) => return,
                Ok(sent) => {
                    self.counters.frames_out += sent as u64;
                    waiting.drain(..sent);
                }
                // The device refuses the first, such as one that is too long, or is down: it is lost, as on a line.
                Err(_) => {
                    self.counters.lost_out += 1;
                    waiting.pop_front();
                }
            }
        }
    }

    /// Tells the kernel that this worker is well.
    fn stamp(&mut self, now: Instant) -> anyhow::Result<()> {
        if now.since(self.looked_at) >= LOOK {
            self.looked_at = now;
            let mut lost = 0;
            for port in &mut self.ports {
                lost += u64::from(port.socket.drops().context("cannot read a socket's counters")?);
                if !port.socket.has_interface() || !port.exit().has_interface() {
                    bail!("an interface is gone");
                }
            }
            self.counters.lost_in += lost;
            if lost > 0 {
                self.overloaded_until = now + RELIEF;
            }
            self.engine.set_overloaded(self.overloaded_until > now);
        }
        if now.since(self.stamped_at) >= ABSENCE && self.stamped_at > Instant::ZERO {
            self.counters.absences += 1;
            self.engine.on_absence(now);
        }
        if now.since(self.stamped_at) >= STAMP {
            self.stamped_at = now;
            let closed = self.overloaded_until > now || self.draining_until.is_some() || self.aside;
            let away = self.aside && self.engine.flow_count() == 0;
            if away {
                self.engine.release();
            }
            self.heartbeat.beat(if away { 0 } else { now.as_nanos() }, closed)?;
        }
        Ok(())
    }

    /// Whether this worker is to end.
    fn take_up_requests(&mut self, now: Instant) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(WorkerRequest::Abort) => return true,
                Ok(request) => {
                    self.asked_at = now;
                    self.take_up(now, request);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
        self.draining_until.is_some_and(|until| self.engine.flow_count() == 0 || until <= now)
    }

    /// Who asked may be gone.
    fn take_up(&mut self, now: Instant, request: WorkerRequest) {
        match request {
            // Who asks again may shorten it.
            WorkerRequest::Drain(limit) if self.draining_until.is_some() => {
                self.draining_until = self.draining_until.min(Some(now + limit));
            }
            WorkerRequest::Drain(limit) => {
                self.draining_until = Some(now + limit);
                self.before_end = self.engine.let_go();
                // At the limit it is this thread that ends, so that what is exposed is in the journal.
                self.engine.drain(now, limit + STAMP * 20);
            }
            WorkerRequest::Aside(limit) if self.draining_until.is_none() => {
                self.aside = limit.is_some();
                match limit {
                    Some(limit) => {
                        self.engine.release();
                        self.engine.drain(now, limit);
                    }
                    None => self.engine.resume(),
                }
            }
            WorkerRequest::Aside(_) | WorkerRequest::Abort => {}
            WorkerRequest::Snapshot(answer) => drop(answer.send(self.snapshot())),
            WorkerRequest::Flows(from, answer) => drop(answer.send(self.engine.flows(from))),
            WorkerRequest::Devices(from, answer) => drop(answer.send(self.engine.devices(from))),
            WorkerRequest::Knows(key, answer) => drop(answer.send(self.engine.knows(&key))),
            WorkerRequest::Configure(config) => {
                self.batching.set_tick(config.tick);
                self.engine.configure(&config);
            }
            WorkerRequest::HoldOut(holdout) => self.engine.set_holdout(holdout),
            WorkerRequest::Capture(tap) => {
                self.engine.taps.sweep(now);
                self.engine.taps.add(tap);
            }
        }
    }

    /// Gives everything to the kernel, and passes on what was already taken.
    fn end(mut self) -> anyhow::Result<Snapshot> {
        // The kernel's packets would overtake what waits for the line.
        self.engine.release();
        let passed_on = self.turn(clock::now());
        self.heartbeat.beat(0, true)?;
        passed_on?;
        let now = clock::now();
        if self.draining_until.is_none() {
            self.before_end = self.engine.let_go();
            self.draining_until = Some(now);
        }
        // A reset from here misses a client that has received since it last spoke: what was exposed is left to the
        // guardian as well.
        let mut journal = self.journal.take();
        if let Some(journal) = &mut journal {
            self.engine.write_journal(journal, usize::MAX);
        }
        self.engine.abort(now);
        loop {
            self.engine.release();
            let taken = self.turn(clock::now())?;
            let waits = self.ports.iter().any(|port| !port.waiting.is_empty());
            if taken == 0 && !(waits && clock::now().since(now) < LAST_WAIT) {
                break;
            }
        }
        self.journal = journal;
        Ok(self.snapshot())
    }

    fn wait(&mut self, now: Instant) -> anyhow::Result<()> {
        // What is full has to be sent first.
        let timer = self.engine.next_timer().filter(|_| !self.is_full()).unwrap_or(Instant::MAX);
        let most = if now.since(self.asked_at) < ASKING { ASKED_WAIT } else { MAX_WAIT };
        let until = timer.min(now + most);
        let arrivals = self.ports.iter().map(|port| PollFd::new(port.socket.as_fd(), PollFlags::POLLIN));
        let full = self.ports.iter().filter(|port| !port.waiting.is_empty());
        let room = full.map(|port| PollFd::new(port.exit().as_fd(), PollFlags::POLLOUT));
        let mut fds: Vec<PollFd<'_>> = arrivals.chain(room).collect();
        let wait = until.since(clock::now());
        if wait == Duration::ZERO {
            return Ok(());
        }
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(wait.as_nanos()));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(io::Error::from(error)).context("cannot wait for packets"),
        }
        let failed = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| events.contains(PollFlags::POLLERR));
        for (port, _) in self.ports.iter().zip(fds).filter(|(_, fd)| failed(fd)) {
            port.socket.clear_error().context("cannot read a socket's error")?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let (now, before) = (self.engine.let_go(), self.before_end);
        let ending = u64::from(self.draining_until.is_some());
        let (detached, reset) = (ending * (now.0 - before.0), ending * (now.1 - before.1));
        let mut counters = self.engine.counters();
        counters.extend(self.counters.values());
        counters.extend([
            (Counter::JournalWrites, self.journal.as_ref().map_or(0, Writer::writes)),
            (Counter::FlowsDetachedAtEnd, detached),
            (Counter::FlowsResetAtEnd, reset),
        ]);
        let mut snapshot = Snapshot { counters, lateness: self.counters.lateness, ..Snapshot::default() };
        self.engine.tell(&mut snapshot);
        snapshot
    }
}
