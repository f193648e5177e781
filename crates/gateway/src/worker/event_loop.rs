//! The thread of a worker: its packet sockets on both interfaces, its [`Engine`], and the loop between them.
//!
//! Each turn receives the frames that have arrived, hands their packets to the engine, runs due timers, and
//! sends the engine's packets. Under load the worker pauses between turns so that a turn handles a batch of
//! packets ([`Batching`]); otherwise it sleeps until a packet or a timer is due. Every 5 ms it writes its
//! heartbeat for the kernel programs.

use super::batching::Batching;
use super::counters::Counters;
use super::engine::{Engine, Fate};
use super::port::Port;
use crate::control_plane::requests::{Snapshot, WorkerRequest};
use crate::counter::Counter;
use crate::crash_recovery::journal::Writer;
use crate::datapath::frame::{self, Arrival, Link, Outgoing};
use crate::datapath::slot::Slot;
use crate::datapath::socket::{BATCH, PacketSocket};
use crate::datapath::steering::{HEARTBEAT_TIMEOUT, Heartbeat, KernelPart};
use crate::service::confinement::{Confined, confine};
use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use paceline_linux::clock;
use paceline_linux::priority::prefer_this_thread;
use paceline_net::{Duration, FlowKey, Instant, Packet};
use paceline_pep::accelerator::Side;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

/// Time for full sockets to drain when the worker ends. Chosen: 4096 full frames take 50 ms at 1 Gb/s.
const FINAL_SEND_TIMEOUT: Duration = Duration::from_millis(50);
/// Time between two heartbeats. Chosen: a sixteenth of the heartbeat's timeout.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(5);
/// Time without a heartbeat after which the kernel may have forwarded packets past the worker. Derived from
/// the heartbeat's timeout: three quarters of it, to be on the safe side.
const ABSENCE_THRESHOLD: Duration = Duration::from_nanos(HEARTBEAT_TIMEOUT.as_nanos() / 4 * 3);
/// Longest sleep. Chosen: requests of the control plane do not wake a worker, and wait at most for this long.
const MAX_SLEEP: Duration = Duration::from_millis(10);
/// Longest sleep within [`REQUEST_WINDOW`] of a request. Chosen: a list of connections is one request after
/// the other, and takes about this long for each page.
const MAX_SLEEP_AFTER_REQUEST: Duration = Duration::from_micros(500);
/// Time after a request in which another one is likely. Chosen: longer than a client needs between two pages.
const REQUEST_WINDOW: Duration = Duration::from_millis(50);
/// Batches of frames received from one side in a turn. Chosen: bounds the time in which the other side is not
/// served.
const MAX_BATCHES_PER_TURN: usize = 4;
/// Time between two checks of the sockets for lost frames. Chosen: ten times in [`OVERLOAD_HOLD`].
const LOSS_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two sweeps of the journal. Chosen: with [`JOURNAL_SWEEP_SLOTS`], 100,000 connections take a
/// second.
const JOURNAL_SWEEP_INTERVAL: Duration = Duration::from_millis(10);
/// Connections that a sweep of the journal looks at. Chosen: takes much less than a tick.
const JOURNAL_SWEEP_SLOTS: usize = 1024;
/// Time after a lost frame in which the worker takes no new connections. Chosen: long enough for the load to
/// fall.
const OVERLOAD_HOLD: Duration = Duration::from_secs(1);

/// A worker.
pub struct Worker {
    engine: Engine,
    /// By side.
    ports: [Port; 2],
    heartbeat: Heartbeat,
    batching: Batching,
    requests: Receiver<WorkerRequest>,
    /// The journal of connections with exposure; None without a guardian.
    journal: Option<Writer>,
    /// A guardian is there, so that data may be acknowledged early.
    guarded: bool,
    swept_at: Instant,
    slots: Vec<Slot>,
    /// The parsed frames of a batch; kept for its capacity.
    arrivals: Vec<Arrival>,
    /// Connections whose uploads may be left to the kernel at the end of the turn.
    uploads: Vec<FlowKey>,
    /// The last batch was full: more frames may have arrived than were received.
    receive_backlog: bool,
    counters: Counters,
    heartbeat_at: Instant,
    losses_checked_at: Instant,
    overloaded_until: Instant,
    draining_until: Option<Instant>,
    /// The kernel is to forward everything for the time being.
    paused: bool,
    /// A port of the bridge does not forward: frames are discarded, as the bridge does.
    halted: Arc<AtomicBool>,
    was_halted: bool,
    requested_at: Instant,
    /// Time of the last turn in nanoseconds, for the watchdog.
    turned_at: Arc<AtomicU64>,
    /// Numbers of connections detached and reset before draining began.
    released_before_end: (u64, u64),
}

impl Worker {
    /// A worker that has not started. `sockets` and `exits` are by side; an exit is the socket by which
    /// frames leave, if it is another one.
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
        engine.allow_early_acks(false);
        let mut exits = exits.into_iter();
        let mut sides = [Side::Server, Side::Mobile].into_iter();
        let port = |socket| {
            let side = sides.next().unwrap_or(Side::Mobile);
            Port::new(side, socket, exits.next().flatten())
        };
        Self {
            engine,
            ports: sockets.map(port),
            heartbeat,
            batching: Batching::new(tick),
            requests,
            journal,
            guarded: false,
            swept_at: Instant::ZERO,
            slots: (0..BATCH).map(|_| Slot::new()).collect(),
            arrivals: Vec::with_capacity(BATCH),
            uploads: Vec::new(),
            receive_backlog: false,
            counters: Counters::default(),
            heartbeat_at: Instant::ZERO,
            losses_checked_at: Instant::ZERO,
            overloaded_until: Instant::ZERO,
            draining_until: None,
            paused: false,
            halted: Arc::default(),
            was_halted: false,
            requested_at: Instant::ZERO,
            turned_at: Arc::new(AtomicU64::new(clock::now().as_nanos())),
            released_before_end: (0, 0),
        }
    }

    /// Frames are discarded while this is true.
    pub fn halt_by(&mut self, halted: Arc<AtomicBool>) {
        self.halted = halted;
    }
    /// The time of the worker's last turn, in nanoseconds of [`clock::now`].
    pub fn turned_at(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.turned_at)
    }

    /// Runs until the worker is drained or aborted. On an error the worker ends, and the kernel forwards at
    /// once.
    pub fn run(mut self) -> anyhow::Result<Snapshot> {
        // A real-time worker does not keep the kernel's network threads from running for long: it sleeps
        // without the packets that they bring.
        prefer_this_thread();
        // Packets of strangers are parsed without any privilege.
        confine(Confined::Worker)?;
        loop {
            let (now, before) = (clock::now(), self.counters.bytes_in);
            self.turned_at.store(now.as_nanos(), Ordering::Relaxed);
            self.update_heartbeat(now)?;
            let taken = self.turn(now)?;
            let bytes: u64 =
                self.counters.bytes_in.iter().zip(before).map(|(all, before)| all - before).sum();
            if self.handle_requests(now) {
                return self.end();
            }
            if let Some(pause) = self.batching.on_turn(now, taken, bytes) {
                let due = now + pause;
                clock::sleep_until(due);
                self.counters.lateness.record(clock::now().since(due).as_nanos());
            } else {
                self.sleep(now)?;
            }
        }
    }

    /// Receives, processes and sends packets. Returns the number of received frames.
    fn turn(&mut self, now: Instant) -> anyhow::Result<usize> {
        self.counters.turns += 1;
        self.look_for_guardian();
        let halted = self.halted.load(Ordering::Relaxed);
        if std::mem::replace(&mut self.was_halted, halted) && !halted {
            self.engine.on_absence(now);
        }
        let taken = self.receive(now, Side::Server)? + self.receive(now, Side::Mobile)?;
        self.engine.handle_timeout(now);
        for port in self.ports.iter_mut().filter(|_| !halted) {
            port.retry(now, &mut self.counters);
        }
        self.hold_devices(now);
        self.transmit(now);
        self.write_journal(now);
        for port in &mut self.ports {
            if self.halted.load(Ordering::Relaxed) {
                port.discard(&mut self.counters);
            }
            port.send(now, &mut self.counters);
        }
        self.offload_uploads();
        Ok(taken)
    }

    /// Lets devices wait whose frames wait, so that their packets stay in the engine.
    fn hold_devices(&mut self, now: Instant) {
        for (device, until) in self.ports[Side::Mobile as usize].waiting_devices() {
            self.engine.hold_device(device, until.max(now));
        }
    }

    /// Leaves uploads to the kernel, unless packets of theirs may still be here: the kernel's would overtake
    /// them.
    fn offload_uploads(&mut self) {
        let backlog = self.receive_backlog || self.ports[Side::Server as usize].has_unsent();
        for key in self.uploads.drain(..) {
            if !backlog && self.engine.offload_upload(&key) {
                self.counters.uploads_offloaded += 1;
                self.heartbeat.leave_to_kernel(&key, KernelPart::Upload);
            }
        }
    }

    fn receive(&mut self, now: Instant, side: Side) -> anyhow::Result<usize> {
        let mut slots = std::mem::take(&mut self.slots);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut total = 0;
        for _ in 0..MAX_BATCHES_PER_TURN {
            let received = match self.ports[side as usize].socket.receive(&mut slots) {
                Ok(received) => received,
                Err(error) => return Err(error).context("cannot receive from an interface"),
            };
            for slot in &mut slots[..received] {
                self.counters.bytes_in[side as usize] += slot.len() as u64;
                arrivals.push(frame::parse(slot));
            }
            self.engine.prefetch(side, &arrivals);
            for arrival in arrivals.drain(..) {
                match arrival {
                    _ if self.was_halted => {}
                    Arrival::Datagram(link, packet) => self.on_datagram(now, side, link, packet),
                    Arrival::Malformed(link, malformed) => {
                        self.counters.unreadable += 1;
                        let link = self.engine.egress_link(link);
                        self.queue(side.other(), Outgoing::malformed(link, malformed));
                    }
                    Arrival::Copied | Arrival::Truncated => {}
                }
            }
            total += received;
            self.receive_backlog = received == slots.len();
            if !self.receive_backlog {
                break;
            }
        }
        (self.slots, self.arrivals) = (slots, arrivals);
        self.counters.frames_in += total as u64;
        Ok(total)
    }

    fn on_datagram(&mut self, now: Instant, side: Side, link: Link, packet: Packet) {
        self.counters.tunnelled += u64::from(link.tunnel().is_some());
        match self.engine.take(now, side, link, packet) {
            Fate::Handled => {}
            Fate::LeaveToKernel(key) => {
                self.counters.left_to_kernel += 1;
                self.heartbeat.leave_to_kernel(&key, KernelPart::Whole);
            }
            Fate::OffloadUpload(key) if self.uploads.last() == Some(&key) => {}
            Fate::OffloadUpload(key) => self.uploads.push(key),
            Fate::TakeBack(key) => self.heartbeat.take_back(&key),
            Fate::Forward(frame) => self.queue(side.other(), frame),
            Fate::ForwardAndLeave(key, frame) => {
                self.heartbeat.leave_to_kernel(&key, KernelPart::Whole);
                self.queue(side.other(), frame);
            }
        }
    }

    /// Nothing is acknowledged early while nobody would read the journal after a crash.
    fn look_for_guardian(&mut self) {
        let Some(journal) = &self.journal else { return };
        let guarded = journal.is_guarded();
        if guarded != self.guarded {
            self.guarded = guarded;
            self.engine.allow_early_acks(guarded);
        }
    }

    /// Brings the journal up to date before the acknowledgments leave that make connections exposed.
    fn write_journal(&mut self, now: Instant) {
        let Some(journal) = &mut self.journal else { return };
        let sweep = now.since(self.swept_at) >= JOURNAL_SWEEP_INTERVAL;
        if sweep {
            self.swept_at = now;
        }
        self.engine.write_journal(journal, if sweep { JOURNAL_SWEEP_SLOTS } else { 0 });
    }

    /// Moves packets from the engine to the send queues, unless one is full.
    fn transmit(&mut self, now: Instant) {
        while !self.is_send_queue_full()
            && let Some((side, frame)) = self.engine.poll_transmit(now)
        {
            self.queue(side, frame);
        }
    }
    fn is_send_queue_full(&self) -> bool {
        self.ports.iter().any(Port::is_full)
    }

    fn queue(&mut self, side: Side, frame: Outgoing) {
        self.ports[side as usize].queue(frame, &mut self.counters);
    }

    /// Checks for lost frames and absences, and writes the heartbeat, each when it is due.
    fn update_heartbeat(&mut self, now: Instant) -> anyhow::Result<()> {
        if now.since(self.losses_checked_at) >= LOSS_CHECK_INTERVAL {
            self.losses_checked_at = now;
            let mut lost = 0;
            for port in &mut self.ports {
                lost += u64::from(port.socket.drops().context("cannot read a socket's counters")?);
                // The gateway waits for an interface; the pair of routed mode is its own.
                if port.has_lost_exit() {
                    bail!("an interface is gone");
                }
            }
            self.counters.lost_in += lost;
            if lost > 0 {
                self.overloaded_until = now + OVERLOAD_HOLD;
            }
            self.engine.set_overloaded(self.overloaded_until > now);
        }
        if now.since(self.heartbeat_at) >= ABSENCE_THRESHOLD && self.heartbeat_at > Instant::ZERO {
            self.counters.absences += 1;
            self.engine.on_absence(now);
        }
        if now.since(self.heartbeat_at) >= HEARTBEAT_INTERVAL {
            self.heartbeat_at = now;
            let takes_no_new = self.overloaded_until > now || self.draining_until.is_some() || self.paused;
            let away = self.paused && self.engine.flow_count() == 0;
            if away {
                self.engine.release();
            }
            self.heartbeat.beat(if away { 0 } else { now.as_nanos() }, takes_no_new)?;
        }
        Ok(())
    }

    /// Handles the requests of the control plane. Returns whether the worker has to end.
    fn handle_requests(&mut self, now: Instant) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(WorkerRequest::Abort) => return true,
                Ok(request) => {
                    self.requested_at = now;
                    self.handle_request(now, request);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
        self.draining_until.is_some_and(|until| self.engine.flow_count() == 0 || until <= now)
    }

    fn handle_request(&mut self, now: Instant, request: WorkerRequest) {
        match request {
            // A second request may shorten the time.
            WorkerRequest::Drain(limit) if self.draining_until.is_some() => {
                self.draining_until = self.draining_until.min(Some(now + limit));
            }
            WorkerRequest::Drain(limit) => {
                self.draining_until = Some(now + limit);
                self.released_before_end = self.engine.released_flows();
                // The worker ends at the limit, so that connections with exposure are in the journal; the
                // engine's own limit, which resets them, is later.
                self.engine.drain(now, limit + HEARTBEAT_INTERVAL * 20);
            }
            WorkerRequest::Pause(limit) if self.draining_until.is_none() => {
                self.paused = limit.is_some();
                match limit {
                    Some(limit) => {
                        self.engine.release();
                        self.engine.drain(now, limit);
                    }
                    None => self.engine.resume(),
                }
            }
            WorkerRequest::Pause(_) | WorkerRequest::Abort => {}
            // The requester may have disconnected.
            WorkerRequest::Snapshot(answer) => drop(answer.send(self.snapshot())),
            WorkerRequest::Flows(from, answer) => drop(answer.send(self.engine.flows(from))),
            WorkerRequest::Devices(from, answer) => drop(answer.send(self.engine.devices(from))),
            WorkerRequest::Knows(key, answer) => drop(answer.send(self.engine.knows(&key))),
            WorkerRequest::Configure(config) => {
                self.batching.set_tick(config.tick);
                self.engine.configure(&config);
            }
            WorkerRequest::Clamp(clamp) => self.engine.set_clamp(clamp),
            WorkerRequest::HoldOut(holdout) => self.engine.set_holdout(holdout),
            WorkerRequest::Capture(tap) => {
                self.engine.taps.sweep(now);
                self.engine.taps.add(tap);
            }
            WorkerRequest::Attach(side, socket, answer) => {
                self.ports[side as usize].replace(socket, &mut self.counters);
                self.engine.on_absence(now);
                let _ = answer.send(()); // the requester may have disconnected
            }
        }
    }

    /// Leaves everything to the kernel, resets connections with exposure, and sends the packets that are
    /// still here.
    fn end(mut self) -> anyhow::Result<Snapshot> {
        // The uplink queue is emptied first: the kernel's packets would overtake its packets.
        self.engine.release();
        let passed_on = self.turn(clock::now());
        self.heartbeat.beat(0, true)?;
        passed_on?;
        let now = clock::now();
        if self.draining_until.is_none() {
            self.released_before_end = self.engine.released_flows();
            self.draining_until = Some(now);
        }
        // A client that has received data since its last packet does not accept a reset from here.
        // Connections with exposure stay in the journal, so that the guardian resets them too.
        let mut journal = self.journal.take();
        if let Some(journal) = &mut journal {
            self.engine.write_journal(journal, usize::MAX);
        }
        self.engine.abort(now);
        loop {
            self.engine.release();
            let taken = self.turn(clock::now())?;
            let unsent = self.ports.iter().any(Port::has_unsent);
            if taken == 0 && !(unsent && clock::now().since(now) < FINAL_SEND_TIMEOUT) {
                break;
            }
        }
        self.journal = journal;
        Ok(self.snapshot())
    }

    fn sleep(&mut self, now: Instant) -> anyhow::Result<()> {
        // While a send queue is full, timers wait: their packets would have no room.
        let timer = self.engine.next_timer().filter(|_| !self.is_send_queue_full()).unwrap_or(Instant::MAX);
        let max_sleep =
            if now.since(self.requested_at) < REQUEST_WINDOW { MAX_SLEEP_AFTER_REQUEST } else { MAX_SLEEP };
        let retry = self.ports.iter().filter_map(Port::next_retry).min().unwrap_or(Instant::MAX);
        let until = timer.min(retry).min(now + max_sleep);
        let arrivals = self.ports.iter().map(|port| PollFd::new(port.socket.as_fd(), PollFlags::POLLIN));
        let full = self.ports.iter().filter(|port| port.is_blocked());
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
        let (now, before) = (self.engine.released_flows(), self.released_before_end);
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
        self.engine.add_to(&mut snapshot);
        snapshot
    }
}
