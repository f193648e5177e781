//! Movement and measurements of the stations. Every 10 ms they move and their links are monitored; event A3
//! has a period of its own. A cell whose stations move does not sleep longer than that.

use super::super::config::Handover;
use super::super::enb::Cell;
use super::link_monitor::LinkMonitorConfig;
use super::measurement::EventA3;
use super::moving::{Mover, Moving, Trigger};
use super::record::HandoverCause;
use crate::radio::{Point, Route};
use crate::slot::{Slot, SlotSpan};
use paceline_net::Duration;

/// Time between positions and between samples of radio link monitoring (TS 36.133 §7.6.2.3).
const TICK: Duration = Duration::from_millis(10);

impl Cell {
    /// From now on a station moves along a route, whose first place it had at time 0.
    pub fn move_along(&mut self, station: usize, route: Route) {
        self.moving().stations[station].route = Some(route);
    }
    /// From now on event A3 hands over the stations of the deployment.
    pub fn hand_over_by(&mut self, event: EventA3, how: Handover) {
        self.moving().trigger = Trigger::EventA3(event, how);
    }
    /// In each of these slots, ascending, every station is handed over to the strongest other cell.
    pub fn hand_over_at(&mut self, slots: Vec<Slot>, how: Handover) {
        self.moving().trigger = Trigger::Scripted(slots, 0, how);
    }
    /// From now on the links of the stations of the deployment are monitored.
    pub fn monitor_links(&mut self, config: LinkMonitorConfig) {
        self.moving().monitor = Some(config);
    }
    fn moving(&mut self) -> &mut Moving {
        let (tick, stations) = (self.clock.span(TICK), self.stations.len());
        self.next_slot.get_or_insert(self.earliest_slot);
        self.records_failures = true;
        self.moving.get_or_insert_with(|| {
            let stations = (0..stations).map(|_| Mover::default()).collect();
            Box::new(Moving { tick, trigger: Trigger::None, monitor: None, stations })
        })
    }

    /// Moves and measures the stations if it is time, and hands over those for which it is due.
    pub(in crate::cell) fn move_stations(&mut self, slot: Slot) {
        let Some(mut moving) = self.moving.take() else { return };
        let ticks = slot.within(moving.tick) == SlotSpan(0);
        for (index, mover) in moving.stations.iter_mut().enumerate() {
            if ticks {
                self.move_one(slot, index, mover);
                self.monitor_one(slot, index, mover, moving.monitor.as_ref());
            }
            if let Trigger::EventA3(event, how) = &moving.trigger {
                self.measure_one(slot, index, mover, (event, *how));
            }
        }
        if let Trigger::Scripted(slots, done, how) = &mut moving.trigger
            && slots.get(*done).is_some_and(|at| *at <= slot)
        {
            *done += 1;
            (0..self.stations.len()).for_each(|index| self.hand_over_to_other(slot, index, *how));
        }
        self.moving = Some(moving);
    }
    fn move_one(&mut self, slot: Slot, index: usize, mover: &mut Mover) {
        let cell = self.stations[index].cell;
        if mover.cell != cell || !self.stations[index].connected() {
            mover.cell = cell;
            mover.prepared = None;
            mover.measurements.on_cell_changed();
            mover.monitor.reset();
        }
        if let Some(route) = &mover.route {
            let to = route.position(self.clock.start(slot).as_secs_f64());
            if self.place(index).is_some_and(|(at, _): (Point, f64)| at != to) {
                self.move_station(index, to);
            }
        }
    }
    fn monitor_one(
        &mut self,
        slot: Slot,
        index: usize,
        mover: &mut Mover,
        config: Option<&LinkMonitorConfig>,
    ) {
        let (Some(config), true) = (config, self.stations[index].connected()) else { return };
        let (Some(placed), Some(network)) = (self.stations[index].radio.placed_mut(), &mut self.network)
        else {
            return;
        };
        let sinr_db = network.mean_sinr_db(placed, slot);
        if mover.monitor.sample(slot, config, sinr_db) {
            self.stations[index].downlink.mac.stats.radio_link_failures += 1;
            self.fail_link(slot, index);
        }
    }
    fn measure_one(
        &mut self,
        slot: Slot,
        index: usize,
        mover: &mut Mover,
        (event, how): (&EventA3, Handover),
    ) {
        let station = &self.stations[index];
        if slot.within(event.period) == SlotSpan(0)
            && let (Some(placed), Some(network)) = (station.radio.placed(), &self.network)
        {
            let rsrp_db = network.served_gains_db(placed);
            let triggered = mover.measurements.sample(slot, event, station.cell, rsrp_db);
            if let Some(to) = triggered.filter(|_| station.connected() && mover.prepared.is_none()) {
                mover.prepared = Some((to, slot + event.preparation));
            }
        }
        if let Some((to, _)) = mover.prepared.filter(|(_, at)| *at <= slot) {
            mover.prepared = None;
            let cause = HandoverCause::EventA3;
            if self.hand_over_for(cause, self.clock.start(slot), index, to, how) {
                mover.measurements.on_cell_changed();
            }
        }
    }
    fn hand_over_to_other(&mut self, slot: Slot, index: usize, how: Handover) {
        let station = &self.stations[index];
        let (Some(placed), Some(network)) = (station.radio.placed(), &self.network) else { return };
        if let Some(to) = network.strongest_but(placed, station.cell) {
            self.hand_over_for(HandoverCause::Scripted, self.clock.start(slot), index, to, how);
        }
    }
}
