//! What an operator does with the machine: stop it, look at it, recover after a crash.

use super::stats::AcceleratorStats;
use super::{Accelerator, FlowRecord, FlowSnapshot, Side, Transmission};
use paceline_net::{Duration, Instant, Node, Output, Packet, Port};

impl Accelerator {
    /// Resets both ends of a connection.
    pub(super) fn reset(&mut self, slot: u32) {
        let Some(record) = self.flows.get(slot).map(|flow| flow.record()) else { return };
        self.recover([record]);
        self.remove(slot);
    }

    /// Stops without harm: nothing more is acknowledged early and no connection is taken in; each goes on end to
    /// end when all that it is owed is delivered. After `limit`, those that are still owed something are reset.
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.draining = Some(now + limit);
        for slot in 0..self.flows.slots() {
            self.settle(now, slot);
        }
    }

    /// Ends at once: connections that are owed nothing go on end to end, the others are reset at both ends.
    pub fn abort(&mut self, now: Instant) {
        self.draining.get_or_insert(now);
        for slot in 0..self.flows.slots() {
            if self.flows.get(slot).is_some_and(|flow| flow.is_quiet()) {
                self.stats.flows_detached += 1;
                self.remove(slot);
            } else {
                self.reset(slot);
            }
        }
    }

    /// What a journal has to hold of the connections that are exposed.
    pub fn journal(&self) -> impl Iterator<Item = FlowRecord> + '_ {
        self.flows.iter().filter(|(_, _, flow)| flow.exposure() > 0).map(|(_, _, flow)| flow.record())
    }

    /// After a crash, resets both ends of the connections of a journal. Those that were not exposed need nothing:
    /// they go on as connections whose start was not seen.
    pub fn recover(&mut self, journal: impl IntoIterator<Item = FlowRecord>) {
        for record in journal {
            for (side, packet) in record.resets() {
                self.out.push_back(Transmission { side, packet, segment: 0 });
            }
            self.stats.flows_reset += 1;
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
        self.flows.iter().map(|(_, _, flow)| flow.exposure()).sum()
    }
    /// Bytes held in all, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// All connections being accelerated.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.flows.iter().filter_map(|(_, key, flow)| {
            let control = &self.devices.get(flow.device)?.control;
            Some(FlowSnapshot {
                key: *key,
                exposure: flow.exposure(),
                held: flow.store.cost(),
                in_flight: flow.board.in_flight(),
                delivered: flow.una - 1,
                srtt: flow.rtt.srtt(),
                rate: control.rate(),
                window: control.window(),
            })
        })
    }

    /// Panics if an invariant of any connection does not hold. Debug builds look by themselves at each packet.
    pub fn invariants(&self) {
        for (_, _, flow) in self.flows.iter() {
            flow.check_state(&self.config);
            flow.check_depth();
        }
        assert_eq!(self.held, self.flows.iter().map(|(_, _, flow)| flow.charged_held).sum::<u64>());
        for (id, _, device) in self.devices.iter() {
            let own = || self.flows.iter().filter(|(_, _, flow)| flow.device == id);
            assert_eq!(device.flows, own().count());
            assert_eq!(device.in_flight, own().map(|(_, _, flow)| flow.charged_in_flight).sum::<u64>());
        }
    }
}

/// Port 0 is the side of the servers, port 1 that of the mobile devices. Packets that were absorbed end here as at an
/// endpoint, without an output.
impl Node for Accelerator {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let side = if from == Side::Server.port() { Side::Server } else { Side::Mobile };
        self.input(now, side, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        Accelerator::handle_timeout(self, now);
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        let Transmission { side, packet, .. } = self.poll_transmit(now)?;
        Some(Output::Transmit(side.port(), packet))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timer()
    }
}
