//! Plays a script against an endpoint in virtual time.
//!
//! After each event the endpoint is polled for all its output, so that a check applies to the state after
//! every segment that may leave has left. Timers that are due at the time of an arrival are handled first.

use crate::script::check::Observed;
use crate::script::parser::{Action, Call, Line, Script};
use crate::script::report::{self, Failure, Traced, time};
use crate::script::segment::{self, Base, Pattern, Want};
use paceline_net::{Bytes, Duration, Event, FlowKey, Instant, Node, Output, Packet, Port, TcpFlags};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;

/// Timers at one time after which a script fails.
const SPIN: u32 = 1000;

/// The time by which a segment of a script that is not strict may leave before its line. Equals the tolerance
/// of packetdrill (run_packet.c).
pub const LOOSE: Duration = Duration::from_millis(4);

struct Run<'a> {
    script: &'a Script,
    endpoint: Endpoint,
    key: FlowKey,
    now: Instant,
    /// The time from which the first line counts.
    start: Instant,
    /// Segments that left and that no line has expected yet.
    pending: VecDeque<(Instant, Packet)>,
    trace: Vec<Traced>,
    completed: u64,
    timed_out: u64,
    /// Bytes that the application has written and read.
    written: u64,
    read: u64,
}

/// Plays the script; the error is the report.
pub fn run(script: &Script) -> Result<(), String> {
    let setup = &script.setup;
    let endpoint = match setup.active {
        true => Endpoint::connect(setup.config.clone(), setup.source),
        false => Endpoint::listen(setup.config.clone(), setup.source),
    };
    let key = endpoint.flow_key();
    let mut run = Run {
        script,
        endpoint,
        key,
        now: Instant::ZERO,
        start: Instant::ZERO,
        pending: VecDeque::new(),
        trace: Vec::new(),
        completed: 0,
        timed_out: 0,
        written: 0,
        read: 0,
    };
    let mut at = None;
    let mut play = || -> Result<(), Failure> {
        run.drain()?;
        if let Some(rtt) = setup.established {
            run.open(rtt)?;
        }
        let mut last = run.now;
        for line in &script.lines {
            at = Some(line);
            last = run.play(line, last)?;
        }
        run.refuse_pending(Instant::MAX)
    };
    let played = play();
    played.map_err(|failure| report::write(script, at, &failure, (run.start, &run.trace), &run.observed()))
}

impl Run<'_> {
    fn base(&self, arrives: bool) -> Base {
        let (own, peer) = (self.script.setup.config.isn, self.script.setup.peer.isn);
        if arrives { Base { sender: peer, receiver: own } } else { Base { sender: own, receiver: peer } }
    }
    fn observed(&self) -> Observed {
        Observed {
            snapshot: self.endpoint.snapshot(),
            stats: *self.endpoint.stats(),
            completed: self.completed,
            timed_out: self.timed_out,
            segment: u64::from(self.script.setup.config.segment_size),
        }
    }
    fn note(&mut self, arrives: bool, packet: &Packet) {
        let segment = segment::write(packet, self.base(arrives));
        self.trace.push(Traced { at: self.now, arrives, segment });
    }
    /// Collects the segments that leave now, and checks the invariants.
    fn drain(&mut self) -> Result<(), Failure> {
        while let Some(output) = self.endpoint.poll_output(self.now) {
            match output {
                Output::Transmit(_, packet) => {
                    self.note(false, &packet);
                    self.pending.push_back((self.now, packet));
                    if self.pending.len() > 10_000 {
                        return Err(failure("an end of the output", "10000 segments at one time"));
                    }
                }
                Output::Event(event) => match *event {
                    Event::TransferComplete(_) => self.completed += 1,
                    Event::ConnectionTimedOut(_) => self.timed_out += 1,
                    Event::ServingCell(_) => panic!("an endpoint has no cell"),
                },
                Output::Drop(..) => return Err(failure("no drop", "an endpoint dropped a packet")),
            }
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at < self.now) {
            return Err(failure("a timer now or later", "a timer in the past"));
        }
        if self.endpoint.snapshot().cwnd == Bytes::ZERO {
            return Err(failure("a congestion window", "none"));
        }
        Ok(())
    }
    /// Handles the timers up to `end`; with `stop`, until a segment leaves.
    fn advance(&mut self, end: Instant, stop: bool) -> Result<(), Failure> {
        let mut spins = 0;
        while !stop || self.pending.is_empty() {
            let Some(next) = self.endpoint.poll_timeout().filter(|next| *next <= end) else {
                self.now = self.now.max(end);
                return Ok(());
            };
            spins = if next == self.now { spins + 1 } else { 0 };
            if spins > SPIN {
                return Err(failure("time to go on", "a timer that asks for the same time again and again"));
            }
            self.now = next;
            self.endpoint.handle_timeout(next);
            self.drain()?;
        }
        Ok(())
    }
    fn refuse_pending(&self, before: Instant) -> Result<(), Failure> {
        let strict = self.script.setup.strict;
        let pending = self.pending.front().filter(|(at, _)| strict && *at < before);
        let Some((at, packet)) = pending else { return Ok(()) };
        let got = segment::write(packet, self.base(false));
        Err(failure("nothing before this", &format!("{got}, at {}", time(*at, self.start))))
    }
    fn inject(&mut self, pattern: &Pattern) -> Result<(), Failure> {
        let packet = pattern.packet(self.key.reversed(), self.base(true), self.script.setup.peer.window);
        self.note(true, &packet);
        self.endpoint.handle_packet(self.now, Port(0), packet);
        self.drain()
    }
    /// Takes the next segment that leaves in `[from, to]`.
    fn take(&mut self, (from, to): (Instant, Instant), wanted: &str) -> Result<(Instant, Packet), Failure> {
        let wanted = match from == to {
            true => format!("{wanted}, at {}", time(from, self.start)),
            false => format!("{wanted}, from {} to {}", time(from, self.start), time(to, self.start)),
        };
        self.advance(to, true)?;
        let Some((at, packet)) = self.pending.pop_front() else {
            let next = self.endpoint.poll_timeout();
            let next =
                next.map_or("no timer runs".into(), |at| format!("next timer {}", time(at, self.start)));
            return Err(failure(&wanted, &format!("nothing; {next}")));
        };
        let early = if self.script.setup.strict { Duration::ZERO } else { LOOSE };
        if at + early < from || at > to {
            let got = segment::write(&packet, self.base(false));
            return Err(failure(&wanted, &format!("{got}, at {}", time(at, self.start))));
        }
        Ok((at, packet))
    }
    /// Plays one line; returns the time from which the next one counts.
    fn play(&mut self, line: &Line, last: Instant) -> Result<Instant, Failure> {
        let (from, to) = (last + line.after.0, last + line.after.1);
        match &line.action {
            Action::Inject(patterns) => {
                for pattern in patterns {
                    self.advance(from, false)?;
                    self.refuse_pending(Instant::MAX)?;
                    self.inject(pattern)?;
                }
                Ok(from)
            }
            Action::Expect(patterns) => {
                let mut reached = last;
                for pattern in patterns {
                    let shown =
                        segment::write(&pattern.packet(self.key, self.base(false), 0), self.base(false));
                    let shown = match pattern.window {
                        None => shown.replace(" win 0", ""),
                        Some(_) => shown,
                    };
                    let (at, packet) = self.take((from, to), &shown)?;
                    if !pattern.fits(&packet, self.base(false)) {
                        return Err(failure(&shown, &segment::write(&packet, self.base(false))));
                    }
                    reached = at;
                }
                Ok(reached)
            }
            Action::Quiet(span) => {
                let end = from + *span;
                self.advance(end, false)?;
                self.refuse_pending(Instant::MAX)?;
                Ok(end)
            }
            Action::Call(call) => {
                self.advance(from, false)?;
                self.refuse_pending(Instant::MAX)?;
                match *call {
                    Call::Write(bytes) => {
                        self.written += bytes;
                        self.endpoint.write_to(from, self.written, false);
                    }
                    Call::Read(bytes) => {
                        self.read = (self.read + bytes).min(self.endpoint.readable());
                        self.endpoint.read_to(from, self.read);
                    }
                    Call::Close => self.endpoint.write_to(from, self.written, true),
                }
                self.drain()?;
                Ok(from)
            }
            Action::Check(checks) => {
                self.advance(from, false)?;
                self.refuse_pending(from)?;
                let observed = self.observed();
                for check in checks {
                    if let Some(got) = check.failure(&observed) {
                        return Err(failure(&check.text, &got));
                    }
                }
                Ok(from)
            }
        }
    }
    /// Opens the connection before the first line. The lines expect the segments that the endpoint then
    /// sends.
    fn open(&mut self, rtt: Duration) -> Result<(), Failure> {
        let peer = &self.script.setup.peer;
        let syn = Pattern {
            flags: TcpFlags::SYN,
            window: Some(peer.window),
            mss: peer.mss.map_or(Want::Absent, Want::Is),
            scale: peer.scale.map_or(Want::Absent, Want::Is),
            sack_permitted: if peer.sack { Want::Is(()) } else { Want::Absent },
            ..Pattern::default()
        };
        let offered = peer.timestamps;
        let stamp = |syn: Pattern, val: u32, ecr: u32| match offered {
            Some(_) => Pattern { timestamps: Want::Is((Some(val), Some(ecr))), ..syn },
            None => syn,
        };
        let at = self.script.setup.config.start_at;
        let first = offered.unwrap_or(0);
        if self.script.setup.active {
            let (_, sent) = self.take((at, at), "a SYN")?;
            let echo = sent.tcp_header().and_then(|tcp| tcp.options.timestamps).map_or(0, |ts| ts.val);
            self.advance(at + rtt, false)?;
            let flags = TcpFlags::SYN.with(TcpFlags::ACK);
            self.inject(&stamp(Pattern { flags, ack: Some(1), ..syn }, first, echo))?;
        } else {
            self.inject(&stamp(syn, first, 0))?;
            let (_, sent) = self.take((self.now, self.now), "a SYN-ACK")?;
            let echo = sent.tcp_header().and_then(|tcp| tcp.options.timestamps).map_or(0, |ts| ts.val);
            self.advance(self.now + rtt, false)?;
            let ack = Pattern { flags: TcpFlags::ACK, seq: 1, ack: Some(1), ..Pattern::default() };
            let later = first.wrapping_add(rtt.as_millis() as u32);
            self.inject(&stamp(ack, later, echo))?;
        }
        self.start = self.now;
        Ok(())
    }
}

fn failure(expected: &str, got: &str) -> Failure {
    Failure { expected: expected.to_owned(), got: got.to_owned() }
}
