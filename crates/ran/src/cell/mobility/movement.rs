//! Movement and measurements of the stations. Every 10 ms they move and their links are monitored; event A3
//! has a period of its own. A cell whose stations move does not sleep longer than that.

use super::link_monitor::{LinkMonitor, LinkMonitorConfig};
use super::measurement::{EventA3, Measurements};
use crate::air::Network;
use crate::cell::config::{Carrier, Handover};
use crate::cell::station::Station;
use crate::radio::Route;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Duration;

/// Time between positions and between samples of radio link monitoring (TS 36.133 §7.6.2.3).
const TICK: Duration = Duration::from_millis(10);

/// The cause of handovers.
enum Trigger {
    None,
    EventA3(EventA3, Handover),
    /// In these slots, ascending, of which the first ones are done.
    Scripted(Vec<Slot>, usize, Handover),
}

/// State of one station.
#[derive(Default)]
struct Mover {
    route: Option<Route>,
    measurements: Measurements,
    monitor: LinkMonitor,
    /// The target that the source prepares, and the slot of the command.
    prepared: Option<(usize, Slot)>,
    /// The serving cell of the last sample.
    cell: usize,
}

/// Movement and measurements of all stations.
pub(in crate::cell) struct Movement {
    /// Time between positions.
    tick: SlotSpan,
    trigger: Trigger,
    monitor: Option<LinkMonitorConfig>,
    stations: Vec<Mover>,
}

impl Movement {
    /// So many stations, which do not move yet.
    pub fn new(stations: usize, carrier: &Carrier) -> Self {
        let stations = (0..stations).map(|_| Mover::default()).collect();
        Self { tick: carrier.clock.span(TICK), trigger: Trigger::None, monitor: None, stations }
    }
    /// A station moves along a route, whose first place it had at time 0.
    pub fn move_along(&mut self, station: usize, route: Route) {
        self.stations[station].route = Some(route);
    }
    /// Event A3 hands stations over.
    pub fn hand_over_by(&mut self, event: EventA3, how: Handover) {
        self.trigger = Trigger::EventA3(event, how);
    }
    /// Stations are handed over in these slots, ascending.
    pub fn hand_over_at(&mut self, slots: Vec<Slot>, how: Handover) {
        self.trigger = Trigger::Scripted(slots, 0, how);
    }
    /// Links are monitored.
    pub fn monitor_links(&mut self, config: LinkMonitorConfig) {
        self.monitor = Some(config);
    }
    /// The first slot with a sample after this one.
    pub fn next_slot(&self, slot: Slot) -> Slot {
        slot.start_of(self.tick) + self.tick
    }

    /// Moves a station and samples its link, if it is time. Returns whether the link fails.
    pub fn advance(
        &mut self,
        slot: Slot,
        carrier: &Carrier,
        (index, station): (usize, &mut Station),
        network: &mut Option<Network>,
    ) -> bool {
        if slot.within(self.tick) != SlotSpan(0) {
            return false;
        }
        let mover = &mut self.stations[index];
        if mover.cell != station.cell || !station.connected() {
            mover.cell = station.cell;
            mover.prepared = None;
            mover.measurements.on_cell_changed();
            mover.monitor.reset();
        }
        let connected = station.connected();
        let (Some(placed), Some(network)) = (station.radio.placed_mut(), network) else { return false };
        if let Some(route) = &mover.route {
            let to = route.position(carrier.start(slot).as_secs_f64());
            if placed.position() != to {
                network.advance(placed, to);
            }
        }
        let Some(config) = self.monitor.as_ref().filter(|_| connected) else { return false };
        let sinr_db = network.mean_sinr_db(placed, slot);
        let fails = mover.monitor.sample(slot, config, sinr_db);
        station.downlink.mac.stats.radio_link_failures += u64::from(fails);
        fails
    }
    /// Samples event A3 of a station, if it is time. Returns the target of a handover whose command is due.
    pub fn measure(
        &mut self,
        slot: Slot,
        (index, station): (usize, &Station),
        network: Option<&Network>,
    ) -> Option<(usize, Handover)> {
        let (Trigger::EventA3(event, how), mover) = (&self.trigger, &mut self.stations[index]) else {
            return None;
        };
        if slot.within(event.period) == SlotSpan(0)
            && let (Some(placed), Some(network)) = (station.radio.placed(), network)
        {
            let rsrp_db = network.served_gains_db(placed);
            let triggered = mover.measurements.sample(slot, event, station.cell, rsrp_db);
            if let Some(to) = triggered.filter(|_| station.connected() && mover.prepared.is_none()) {
                mover.prepared = Some((to, slot + event.preparation));
            }
        }
        let (to, _) = mover.prepared.take_if(|(_, at)| *at <= slot)?;
        Some((to, *how))
    }
    /// A handover by event A3 has begun.
    pub fn on_handover(&mut self, station: usize) {
        self.stations[station].measurements.on_cell_changed();
    }
    /// The handover of all stations that is due by this slot, once.
    pub fn take_scripted(&mut self, slot: Slot) -> Option<Handover> {
        let Trigger::Scripted(slots, done, how) = &mut self.trigger else { return None };
        slots.get(*done).filter(|at| **at <= slot)?;
        *done += 1;
        Some(*how)
    }
}
