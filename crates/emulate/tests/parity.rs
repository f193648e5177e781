//! The contract: one recorded packet sequence, once through the engine as the simulator runs it, once through
//! the live loop with a test clock and test devices, gives identical output.

use paceline_emulate::realtime::Realtime;
use paceline_linux::clock::Clock;
use paceline_linux::network::device::Device;
use paceline_net::{Duration, Instant, Node, Output, Packet, Port, Stream};
use paceline_sim::address;
use paceline_sim::model::{HOST_SIDE, real_station};
use paceline_sim::{Model, Scenario, scenario};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// A packet, where it enters, and when.
type Arrival = (Instant, Port, Packet);

const SCENARIO: &str = r#"
[cell]
bandwidth = "5 MHz"
[ack_filter]
scheme = "hybrid(6)"
[[station]]
downlink_sinr = "14 dB"
uplink_sinr = "0 dB"
fading = "3 dB"
[[station]]
count = 3
downlink_sinr = "12 dB"
uplink_sinr = "-2 dB"
"#;

const END: Instant = Instant::from_millis(2500);

fn scenario() -> Scenario {
    scenario::load("parity.toml", SCENARIO, &[]).unwrap()
}

/// Runs a model's timers up to `now`, each at its own time, and hands every output to `sink`.
fn run_timers(model: &mut Model, now: Instant, sink: &mut dyn FnMut(Instant, Output)) {
    while let Some(at) = model.engine.poll_timeout().filter(|at| *at <= now) {
        model.engine.handle_timeout(at);
        drain(model, at, sink);
    }
}

fn drain(model: &mut Model, now: Instant, sink: &mut dyn FnMut(Instant, Output)) {
    while let Some(output) = model.engine.poll_output(now) {
        sink(now, output);
    }
}

/// Records what a download by station 0 sends into the cell, from both sides: TCP endpoints stand outside.
fn record() -> Vec<Arrival> {
    let mut model = Model::new(&scenario(), 7, &[0]);
    let server = SocketAddr::new(address::HOST.0.into(), 80);
    let station = SocketAddr::new(address::station(0).0.into(), 40_000);
    let mut server_end = Endpoint::listen(EndpointConfig::new(server, station), Source::Bulk);
    let mut station_end = Endpoint::connect(EndpointConfig::new(station, server), Source::Nothing);
    let mut arrivals = Vec::new();
    let mut now = Instant::ZERO;
    while now < END {
        let mut from_cell = Vec::new();
        run_timers(&mut model, now, &mut |_, output| from_cell.push(output));
        for output in from_cell {
            match output {
                Output::Transmit(HOST_SIDE, packet) => server_end.handle_packet(now, Port(0), packet),
                Output::Transmit(_, packet) => station_end.handle_packet(now, Port(0), packet),
                _ => {}
            }
        }
        for (end, port) in [(&mut server_end, HOST_SIDE), (&mut station_end, real_station(0))] {
            if end.poll_timeout().is_some_and(|at| at <= now) {
                end.handle_timeout(now);
            }
            while let Some(output) = end.poll_output(now) {
                if let Output::Transmit(_, packet) = output {
                    arrivals.push((now, port, packet.clone()));
                    model.engine.handle_packet(now, port, packet);
                }
            }
        }
        // An odd step, so that arrivals do not fall on TTI boundaries alone.
        now += Duration::from_nanos(137_731);
    }
    arrivals
}

fn through_the_simulator(arrivals: &[Arrival]) -> Vec<(Port, Packet)> {
    let mut model = Model::new(&scenario(), 7, &[0]);
    let mut sent = Vec::new();
    let mut sink = |_: Instant, output: Output| {
        if let Output::Transmit(port, packet) = output {
            sent.push((port, packet));
        }
    };
    for (at, port, packet) in arrivals {
        run_timers(&mut model, *at, &mut sink);
        model.engine.handle_packet(*at, *port, packet.clone());
        drain(&mut model, *at, &mut sink);
    }
    run_timers(&mut model, END, &mut sink);
    sent
}

/// The state that the test clock and the test devices share.
#[derive(Default)]
struct World {
    now: Cell<Instant>,
    arrivals: RefCell<VecDeque<Arrival>>,
    sent: RefCell<Vec<(Port, Packet)>>,
}

/// Wakes up late by a random time, as a busy machine does, but sees every packet when it comes.
struct TestClock {
    world: Rc<World>,
    jitter: Stream,
}

impl Clock for TestClock {
    fn now(&mut self) -> Instant {
        self.world.now.get()
    }
    fn wait(&mut self, _readable: &[BorrowedFd<'_>], until: Instant) -> io::Result<()> {
        let late = until + Duration::from_nanos(self.jitter.below(3_000_000));
        let next = self.world.arrivals.borrow().front().map_or(late, |(at, _, _)| late.min(*at));
        self.world.now.set(next.max(self.world.now.get()));
        Ok(())
    }
}

struct TestDevice {
    port: Port,
    world: Rc<World>,
}

impl Device for TestDevice {
    fn receive(&mut self, burst: &mut Vec<Packet>) -> io::Result<()> {
        let mut arrivals = self.world.arrivals.borrow_mut();
        while let Some((_, _, packet)) =
            arrivals.pop_front_if(|(at, port, _)| *at <= self.world.now.get() && *port == self.port)
        {
            burst.push(packet);
        }
        Ok(())
    }
    fn transmit(&mut self, packet: &Packet) -> io::Result<()> {
        self.world.sent.borrow_mut().push((self.port, packet.clone()));
        Ok(())
    }
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn through_the_live_loop(arrivals: &[Arrival]) -> (Vec<(Port, Packet)>, Duration) {
    let world = Rc::new(World::default());
    world.arrivals.borrow_mut().extend(arrivals.iter().cloned());
    let device = |port| (port, TestDevice { port, world: Rc::clone(&world) });
    let devices = vec![device(HOST_SIDE), device(real_station(0))];
    let clock = TestClock { world: Rc::clone(&world), jitter: Stream::new(3, "jitter") };
    let model = Model::new(&scenario(), 7, &[0]);
    let mut realtime = Realtime::new(model.engine, clock, devices);
    while world.now.get() < END {
        realtime.turn().unwrap();
    }
    (world.sent.take(), realtime.lateness().max())
}

#[test]
fn the_simulator_and_the_live_loop_give_identical_output() {
    let arrivals = record();
    assert!(arrivals.len() > 500, "{} packets recorded", arrivals.len());
    let simulated = through_the_simulator(&arrivals);
    let (mut live, lateness) = through_the_live_loop(&arrivals);
    assert!(lateness > Duration::from_millis(1), "the test clock was late");
    assert!(simulated.len() > 500, "{} packets came out", simulated.len());
    // The live loop may have run a few timers beyond the end.
    assert!(live.len() >= simulated.len());
    live.truncate(simulated.len());
    for (index, (a, b)) in simulated.iter().zip(&live).enumerate() {
        assert_eq!(a, b, "output {index}");
    }
}
