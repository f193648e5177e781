//! Follows the state of the bridge while the gateway runs, since taken frames do not pass it: the states of
//! both ports (a spanning tree may block one, IEEE 802.1D), and the forwarding database.
//!
//! - While a port does not forward, the kernel program takes nothing, and the workers discard what they have
//!   for the ports, as the bridge does.
//! - Frames for this machine, also for a second address of the bridge (macvlan, VRRP), and frames for a host
//!   behind the port that they came by are left to the bridge.
//!
//! Changes arrive by netlink within a millisecond; everything is read again every few seconds, after changes
//! of links, since some addresses come without a message, and when an interface has come back.

use super::bridge_state::{self, Changes, Event};
use super::ports::Indices;
use crate::datapath::steering::BridgeMaps;
use crate::service::confinement::{Confined, confine};
use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use paceline_linux::clock;
use paceline_net::{Duration, Instant};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Time after which everything is read again. Chosen: a lost message does harm for no longer.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// Least time between two readings. Chosen: bounds the cost of many changes.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(100);

/// An entry of the forwarding database: the port, or None for this machine.
type Entries = BTreeMap<[u8; 6], Option<u32>>;

/// The state as far as it is known.
struct Known {
    ports: [u32; 2],
    /// Bridge and state of each port; None outside of a bridge.
    states: [Option<(u32, bool)>; 2],
    entries: Entries,
}

/// Reads the state, and starts the thread that follows it. The result is true while a port of the bridge does
/// not forward.
pub fn start(ports: Arc<Indices>, maps: BridgeMaps) -> anyhow::Result<Arc<AtomicBool>> {
    let context = "cannot read the state of the bridge";
    let mut changes = Changes::subscribe().context(context)?;
    let mut known = Known { ports: ports.get(), states: [None; 2], entries: Entries::new() };
    known.read(&maps).context(context)?;
    let halted = Arc::new(AtomicBool::new(false));
    known.publish(&maps, &halted);
    let published = Arc::clone(&halted);
    let mut read_at = clock::now();
    let work = move || {
        // Reading the state takes no privilege, and neither does writing to open maps.
        let _ = confine(Confined::Follower);
        let mut stale = false;
        loop {
            let is_away = known.states.contains(&None);
            let wait = if stale || is_away { MIN_READ_INTERVAL } else { READ_INTERVAL };
            let mut fds = [PollFd::new(changes.socket().as_fd(), PollFlags::POLLIN)];
            let wait = PollTimeout::try_from(wait.as_millis() as u32).unwrap_or(PollTimeout::ZERO);
            let _ = poll(&mut fds, wait); // a signal is no matter
            let received = changes.receive(|event| stale |= !known.on_event(&maps, event));
            stale |= received.is_err();
            // An interface has come back.
            stale |= std::mem::replace(&mut known.ports, ports.get()) != ports.get();
            known.publish(&maps, &published);
            let interval = if is_away { MIN_READ_INTERVAL } else { READ_INTERVAL };
            stale |= is_due(clock::now(), read_at, interval);
            if stale && is_due(clock::now(), read_at, MIN_READ_INTERVAL) {
                read_at = clock::now();
                stale = known.read(&maps).is_err();
                known.publish(&maps, &published);
            }
        }
    };
    thread::Builder::new().name("bridge".into()).spawn(work).context("cannot start a thread")?;
    Ok(halted)
}

fn is_due(now: Instant, last: Instant, interval: Duration) -> bool {
    now.since(last) >= interval
}

impl Known {
    /// Reads everything.
    fn read(&mut self, maps: &BridgeMaps) -> anyhow::Result<()> {
        let events = bridge_state::read()?;
        self.states = [None; 2];
        for event in &events {
            self.note_port(event);
        }
        let bridge = self.bridge();
        let mut entries = Entries::new();
        for event in events {
            if let Event::Entry { bridge: own, address, port } = event
                && Some(own) == bridge
            {
                // An address of this machine may be an entry of a port, too.
                let entry = entries.entry(address).or_insert(port);
                *entry = (*entry).and(port);
            }
        }
        for address in self.entries.keys().filter(|address| !entries.contains_key(*address)) {
            maps.remove_station(address);
        }
        for (address, port) in
            entries.iter().filter(|(address, port)| self.entries.get(*address) != Some(*port))
        {
            maps.set_station(address, *port);
        }
        self.entries = entries;
        Ok(())
    }
    /// Takes up a change. False if everything has to be read again.
    fn on_event(&mut self, maps: &BridgeMaps, event: Event) -> bool {
        self.note_port(&event);
        match event {
            Event::Port { interface, .. } => !self.ports.contains(&interface),
            Event::Entry { bridge, address, port } if Some(bridge) == self.bridge() => {
                if self.entries.get(&address) != Some(&None) && self.entries.get(&address) != Some(&port) {
                    self.entries.insert(address, port);
                    maps.set_station(&address, port);
                }
                true
            }
            Event::Gone { bridge, address } if Some(bridge) == self.bridge() => {
                if self.entries.get(&address) == Some(&None) {
                    return false; // another entry may say that it is this machine's
                }
                self.entries.remove(&address);
                maps.remove_station(&address);
                true
            }
            Event::Entry { .. } | Event::Gone { .. } => true,
            Event::Link => false,
        }
    }
    fn note_port(&mut self, event: &Event) {
        if let Event::Port { interface, bridge, forwards } = *event
            && let Some(at) = self.ports.iter().position(|port| *port == interface)
        {
            self.states[at] = Some((bridge, forwards));
        }
    }
    fn bridge(&self) -> Option<u32> {
        self.states.iter().flatten().map(|(bridge, _)| *bridge).next()
    }
    /// Tells the kernel program, then the workers, whether a port does not forward.
    fn publish(&self, maps: &BridgeMaps, halted: &AtomicBool) {
        let halt = self.states.iter().flatten().any(|(_, forwards)| !forwards);
        if halted.load(Ordering::Relaxed) != halt {
            maps.set_halted(halt);
            halted.store(halt, Ordering::Relaxed);
        }
    }
}
