//! What an operator does with the machine: stop it, change it, look at it, recover after a crash.

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::stats::AcceleratorStats;
use crate::accelerator::{
    Accelerator, AcceleratorConfig, DeviceSnapshot, FlowRecord, FlowSnapshot, Side, Transmission,
};
use paceline_net::{Duration, FlowKey, Instant, Node, Output, Packet, Port};

/// While being stopped, between two looks at idle connections.
const LOOK: Duration = Duration::from_millis(250);
/// Time in which what went past is acknowledged or sent again.
const ABSENCE: Duration = Duration::from_secs(30);

impl Accelerator {
    /// Ends our part in a connection: it goes on end to end if nothing is owed, since its server has all that is held; else
    /// both ends are reset.
    pub(in crate::accelerator) fn give_up(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get(slot) else { return };
        if flow.exposure() == 0 && flow.reset.is_none() {
            return self.let_go(now, slot);
        }
        let record = flow.record();
        self.recover([record]);
        self.remove(slot);
    }

    /// Stops without harm: nothing more is acknowledged early and no connection is taken in; each goes on end to
    /// end when all that it is owed is delivered. After `limit`, those that are still owed something are reset.
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.draining = Some(now + limit);
        self.settle_all(now);
    }

    /// Takes connections in again after [`Accelerator::drain`]. Packets may have gone past meanwhile: connections whose
    /// handshake was seen before count as those that were not seen to begin.
    pub fn resume(&mut self) {
        self.draining = None;
        self.look_at = Instant::MAX;
        self.openings = Openings::new(self.config.max_openings, self.config.seed);
    }

    /// Lets connections go that may.
    pub(in crate::accelerator) fn settle_all(&mut self, now: Instant) {
        self.look_at = now + LOOK;
        for slot in 0..self.flows.slots() {
            self.settle(now, slot);
        }
    }

    /// Other parameters from now on. What was promised is kept: buffers that shrink do so as connections move on.
    /// Devices that are known keep their rate control; the key of the hash tables stays.
    pub fn set_config(&mut self, config: AcceleratorConfig) {
        let config = AcceleratorConfig { seed: self.config.seed, ..config }.clamped();
        self.widest.exposure = self.widest.exposure.max(config.exposure);
        self.widest.flow_buffer = self.widest.flow_buffer.max(config.flow_buffer);
        self.openings.set_limit(config.max_openings);
        self.config = config;
    }

    /// Ends at once: connections of exposure 0 go on end to end, since their servers have all that is held; the others
    /// are reset at both ends.
    pub fn abort(&mut self, now: Instant) {
        self.draining.get_or_insert(now);
        for slot in 0..self.flows.slots() {
            self.give_up(now, slot);
        }
    }

    /// What a journal has to hold of the connections that are exposed.
    pub fn journal(&self) -> impl Iterator<Item = FlowRecord> + '_ {
        self.flows.iter().filter(|(_, flow)| flow.exposure() > 0).map(|(_, flow)| flow.record())
    }

    /// From now on, [`Accelerator::journal_changes`] and [`Accelerator::journal_sweep`] tell what to keep.
    pub fn keep_journal(&mut self) {
        self.exposed.journaled = true;
    }
    /// What a journal has to be told before anything that was polled leaves: by slot, numbers that have changed, or
    /// nothing for a connection that is no more. Slots are below [`AcceleratorConfig::max_flows`] and are used again.
    pub fn journal_changes(&mut self, write: impl FnMut(u32, Option<FlowRecord>)) {
        self.exposed.changes(&mut self.flows, write);
    }
    /// What it is told at leisure, of up to `count` connections: how far they have come, and which are no longer
    /// exposed.
    pub fn journal_sweep(&mut self, count: usize, write: impl FnMut(u32, Option<FlowRecord>)) {
        self.exposed.sweep(count, &mut self.flows, write);
    }

    /// After a crash, resets both ends of the connections of a journal. Those that were not exposed need nothing:
    /// they go on as connections whose start was not seen.
    pub fn recover(&mut self, journal: impl IntoIterator<Item = FlowRecord>) {
        for record in journal {
            for (side, packet) in record.resets() {
                self.out.push_back(Transmission::whole(side, packet));
            }
            self.stats.flows_reset += 1;
        }
    }

    /// The driver was away, and packets may have passed without being shown here: for a while it is believed that clients
    /// have bytes of their servers that never came here. Such connections go on end to end.
    pub fn on_absence(&mut self, now: Instant) {
        self.absent_until = now + ABSENCE;
    }

    /// Whether a connection (key from server to mobile) does nothing but upload, so that it may rest.
    pub fn may_rest(&mut self, key: &FlowKey) -> bool {
        self.draining.is_none()
            && match self.flows.find(key).and_then(|slot| self.flows.get(slot)) {
                Some(flow) => flow.may_rest(),
                None => self.openings.uplink(key).is_some_and(|uplink| uplink.may_rest()),
            }
    }
    /// Lets a connection rest if it may: from now on its client's segments without SYN, FIN or RST and its server's without
    /// those and without data may go past; all others must come here. Whether it rests.
    pub fn rest(&mut self, key: &FlowKey) -> bool {
        let may = self.may_rest(key);
        if let Some(flow) = self.flows.find(key).and_then(|slot| self.flows.get_mut(slot)) {
            flow.uplink.resting |= may;
        } else if let Some(uplink) = self.openings.uplink(key) {
            uplink.resting |= may;
        }
        may
    }
    /// Whether a connection rests. Its server's next data end that.
    pub fn is_resting(&mut self, key: &FlowKey) -> bool {
        match self.flows.find(key).and_then(|slot| self.flows.get(slot)) {
            Some(flow) => flow.uplink.resting,
            None => self.openings.uplink(key).is_some_and(|uplink| uplink.resting),
        }
    }

    /// While overloaded, no connection is taken in.
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.overloaded = overloaded;
    }

    /// What was done.
    pub fn stats(&self) -> &AcceleratorStats {
        &self.stats
    }
    /// Whether a connection (key from server to mobile) is accelerated, or may be when its server sends.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.flows.holds(key) || self.openings.holds(key)
    }
    /// Connections being accelerated.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }
    /// Handshakes and connections without data that are remembered.
    pub fn opening_count(&self) -> usize {
        self.openings.len()
    }
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.exposed.total
    }
    /// Bytes held in all, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// All connections being accelerated.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.flows.iter().filter_map(|(_, flow)| self.snapshot(flow))
    }
    /// Connections from a slot on, and the slot from which to go on if there may be more.
    pub fn flows_from(&self, from: u32, count: u32) -> (Vec<FlowSnapshot>, Option<u32>) {
        let some = self.flows.range(from, count).filter_map(|flow| self.snapshot(flow));
        (some.collect(), self.flows.after(from, count))
    }
    fn snapshot(&self, flow: &Flow) -> Option<FlowSnapshot> {
        let control = &self.devices.get(flow.device)?.control;
        Some(FlowSnapshot {
            key: flow.key,
            exposure: flow.exposure(),
            held: flow.held(),
            in_flight: flow.board.in_flight(),
            delivered: flow.una - 1,
            srtt: flow.rtt.srtt(),
            min_rtt: flow.rtt.min(),
            rate: control.rate(),
            window: control.window(),
        })
    }
    /// Devices with connections, likewise.
    pub fn devices_from(&self, from: u32, count: u32) -> (Vec<DeviceSnapshot>, Option<u32>) {
        let some = self.devices.range(from, count).map(|device| DeviceSnapshot {
            address: device.address,
            flows: device.flows,
            held: device.held,
            in_flight: device.in_flight,
            delivered: device.delivered(),
            rate: device.control.rate(),
        });
        (some.collect(), self.devices.after(from, count))
    }

    /// Panics if an invariant of any connection does not hold. Debug builds look by themselves at each packet.
    pub fn invariants(&self) {
        for (_, flow) in self.flows.iter() {
            flow.check_state(&self.widest);
            flow.check_depth();
        }
        assert_eq!(self.exposed.total, self.flows.iter().map(|(_, flow)| flow.exposure()).sum::<u64>());
        assert_eq!(self.held, self.flows.iter().map(|(_, flow)| flow.charged_held).sum::<u64>());
        for (id, device) in self.devices.iter() {
            let own = || self.flows.iter().filter(|(_, flow)| flow.device == id);
            assert_eq!(device.flows, own().count());
            assert_eq!(device.exposure, own().map(|(_, flow)| flow.exposure()).sum::<u64>());
            assert_eq!(device.in_flight, own().map(|(_, flow)| flow.charged_in_flight).sum::<u64>());
        }
    }
}

/// Port 0 is the side of the servers, port 1 that of the mobile devices. Packets that were absorbed end here as at an
/// endpoint, without an output. Not with [`AcceleratorConfig::gather`].
impl Node for Accelerator {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let side = if from == Side::Server.port() { Side::Server } else { Side::Mobile };
        self.input(now, side, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        Accelerator::handle_timeout(self, now);
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        let Transmission { side, packet, body, .. } = self.poll_transmit(now)?;
        debug_assert!(body.is_empty(), "a node's packets are whole");
        Some(Output::Transmit(side.port(), packet))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timer()
    }
}
