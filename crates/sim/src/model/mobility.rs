//! Sets up the movement of stations and their handovers.

use crate::scenario::{self, HandoverFate, HandoverTrigger, Place, Stations};
use paceline_ran::radio::{Point, Route};
use paceline_ran::{Cell, EventA3, Fate, ForwardingConfig, Handover, LinkMonitorConfig, Slot, SlotClock};

/// The place as the deployment's point.
pub(super) fn point(place: &Place) -> Point {
    Point { x: place.x_m, y: place.y_m }
}

/// Moves the stations that have a way, and hands stations over as the scenario says.
pub(super) fn set_up(cell: &mut Cell, cells: &scenario::Cells, groups: &[&Stations]) {
    let Some(deployment) = &cells.deployment else { return };
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.path.len() > 1) {
        let places = group.path.iter().map(point).collect();
        let speed_mps = deployment.speed_kmh / 3.6;
        cell.move_along(index, Route { places, speed_mps, returns: group.path_returns });
    }
    let Some(table) = &cells.handover else { return };
    let (clock, how) = (cell.clock(), handover(table, cell.clock()));
    match table.trigger {
        HandoverTrigger::EventA3 => cell.hand_over_by(event_a3(table, clock), how),
        HandoverTrigger::Scripted => {
            let slots = table.times.iter().map(|at| Slot(clock.span(*at).0)).collect();
            cell.hand_over_at(slots, how);
        }
        HandoverTrigger::None => {}
    }
    cell.monitor_links(LinkMonitorConfig {
        q_out_db: table.q_out.0,
        q_in_db: table.q_in.0,
        n310: table.n310,
        n311: table.n311,
        t310: clock.span(table.t310),
    });
}

fn event_a3(table: &scenario::Handover, clock: SlotClock) -> EventA3 {
    EventA3 {
        offset_db: table.a3_offset.0,
        hysteresis_db: table.hysteresis.0,
        time_to_trigger: clock.span(table.time_to_trigger),
        filter_coefficient: table.filter_coefficient,
        period: clock.span(table.measurement_period),
        preparation: clock.span(table.preparation),
    }
}

fn handover(table: &scenario::Handover, clock: SlotClock) -> Handover {
    Handover {
        interruption: clock.span(table.interruption),
        fate: match table.fate {
            HandoverFate::Drop => Fate::Drop,
            HandoverFate::Forward => Fate::Forward { status_report: table.status_report },
            HandoverFate::Duplicate => Fate::Duplicate,
        },
        keep_harq: table.keep_harq,
        forwarding: Some(ForwardingConfig {
            delay: table.forward_delay,
            path_switch: table.path_switch,
            end_marker: table.end_marker,
        }),
    }
}
