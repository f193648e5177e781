//! Converts the table `[sidelink]` to the configuration of pairs of stations.

use super::cell_config;
use crate::address;
use crate::scenario::{
    self, Direction, Movement, Scenario, SidelinkFate, SidelinkPath, SidelinkSelection, Stations,
    TrailingReport,
};
use paceline_net::units::Hertz;
use paceline_net::{Duration, SduQueue, Stream};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};
use paceline_ran::radio::{Heights, PathLossModel, Point};
use paceline_ran::sidelink::{
    Carrier, LinkBudget, Motion, PairConfig, PathKind, ResourcePool, Selection, Sidelink, SidelinkConfig,
    TrailingBsr,
};
use paceline_ran::{Fate, Slot, SlotClock};

/// Antenna heights in m of eNB and stations in the urban macro (TR 36.814 Table A.2.1.1-2).
const HEIGHTS: Heights = Heights { bs_m: 25.0, ut_m: 1.5 };

/// The pairs and ordinary stations of a scenario; `groups` has the `[[station]]` table of each station.
pub(super) fn sidelink(
    scenario: &Scenario,
    table: &scenario::Pairs,
    groups: &[&Stations],
    seed: u64,
) -> Sidelink {
    let scenario::Pairs { sidelink: table, carrier, ack_filter } = table;
    let pair = |(index, group): (usize, &&Stations)| {
        let mut place = Stream::new(seed, &format!("station{index}/place"));
        let (v4, v6) = address::station(index);
        let paths = [path(table.data), path(table.acks)];
        let [data, acks] = paths;
        let (to_station, to_peer) =
            if group.direction == Direction::Upload { (acks, data) } else { (data, acks) };
        // The basic scheme discards nothing: a plain buffer is the same.
        let filtered = ack_filter.scheme != Scheme::Basic;
        let filter = AckFilterConfig {
            scheme: ack_filter.scheme,
            limit: table.buffer,
            segment: scenario.tcp_of(group).segment_size,
            header: ack_filter.header,
        };
        let filters =
            [(); 2].map(|()| filtered.then(|| Box::new(AckFilter::new(filter)) as Box<dyn SduQueue + Send>));
        let motion = motion(table, std::f64::consts::TAU * place.uniform());
        PairConfig {
            addresses: vec![v4.into(), v6.into()],
            peer: group.peer,
            filters,
            to_station,
            to_peer,
            motion: if group.peer { motion } else { alone(motion) },
        }
    };
    let pairs = groups.iter().enumerate().map(pair).collect();
    Sidelink::new(config(table, carrier.as_ref()), pairs, seed)
}

/// An ordinary station stands still at the pairs' distance from the eNB.
fn alone(motion: Motion) -> Motion {
    Motion { speed_mps: 0.0, waypoints: Vec::new(), ..motion }
}

fn path(path: SidelinkPath) -> PathKind {
    match path {
        SidelinkPath::Direct => PathKind::Direct,
        SidelinkPath::Infrastructure => PathKind::Infrastructure,
    }
}

fn motion(table: &scenario::Sidelink, angle_rad: f64) -> Motion {
    let moves = matches!(table.movement, Movement::Line | Movement::BackAndForth);
    let point = |place: &scenario::Waypoint| Point { x: place.x_m, y: place.y_m };
    Motion {
        radius_m: table.enb_distance_m,
        angle_rad,
        start_m: table.distance_m,
        end_m: if moves { table.far_distance_m } else { table.distance_m },
        speed_mps: table.speed_mps,
        returns: table.movement == Movement::BackAndForth,
        waypoints: table.waypoints.iter().map(point).collect(),
    }
}

/// `nr` has the carrier of NR.
fn config(table: &scenario::Sidelink, nr: Option<&scenario::Cell>) -> SidelinkConfig {
    let carrier = nr.map_or_else(|| Carrier::lte(table.resource_blocks), |cell| nr_carrier(cell, table));
    let clock = SlotClock::new(carrier.numerology);
    let cell = scenario::Cell { rlc: table.rlc, ..nr.cloned().unwrap_or_default() };
    let slot = |at: &Duration| Slot(clock.span(*at).0);
    SidelinkConfig {
        carrier,
        rlc: cell_config::rlc_config(&cell, clock),
        t_reordering: clock.span(cell.t_reordering),
        buffer: table.buffer,
        rac_timeout: clock.span(table.rac_timeout),
        trailing_bsr: match table.trailing_bsr {
            TrailingReport::Backlog => TrailingBsr::Backlog,
            TrailingReport::Always => TrailingBsr::Always,
            TrailingReport::Never => TrailingBsr::Never,
        },
        max_harq_tx: table.max_harq_tx,
        selection: match table.selection {
            SidelinkSelection::Fixed => Selection::Fixed,
            SidelinkSelection::BestCqi => Selection::BestCqi {
                period: clock.span(table.selection_period),
                hysteresis: table.hysteresis,
            },
            SidelinkSelection::Scripted => Selection::Scripted(table.switch_at.iter().map(slot).collect()),
        },
        fate: match table.fate {
            SidelinkFate::Drop => Fate::Drop,
            SidelinkFate::Forward => Fate::Forward { status_report: false },
            SidelinkFate::Duplicate => Fate::Duplicate,
        },
        interrupt_harq: table.interrupt_harq,
        budget: budget(table, nr.and_then(|cell| cell.frequency)),
        reuse_threshold_dbm: table.reuse_threshold_dbm,
    }
}

/// The carrier of the pairs in NR.
fn nr_carrier(cell: &scenario::Cell, table: &scenario::Sidelink) -> Carrier {
    let plan = cell.plan();
    let clock = SlotClock::new(plan.numerology);
    Carrier {
        rat: plan.rat,
        numerology: plan.numerology,
        duplex: plan.duplex,
        downlink_prb: plan.downlink_prb,
        uplink_prb: plan.uplink_prb,
        pucch_prb: plan.pucch_prb,
        decode_delay: clock.span(cell.decode_delay),
        sr_period: clock.span(cell.sr_period),
        // Chosen: the finest grants, and an answer in every slot.
        pool: ResourcePool {
            subchannel: table.subchannel.unwrap_or(10),
            psfch_period: table.psfch_period.unwrap_or(1),
        },
    }
}

fn budget(table: &scenario::Sidelink, frequency: Option<Hertz>) -> LinkBudget {
    LinkBudget {
        carrier_ghz: frequency.map_or(table.carrier_ghz, |frequency| frequency.0 as f64 / 1e9),
        model: PathLossModel::UmaM2135,
        heights: HEIGHTS,
        enb_power_dbm: table.enb_power_dbm,
        ue_power_dbm: table.station_power_dbm,
        enb_gain_dbi: table.enb_gain_dbi,
        cable_loss_db: table.cable_loss_db,
        enb_noise_figure_db: table.enb_noise_figure_db,
        ue_noise_figure_db: table.station_noise_figure_db,
        cqi_margin_db: table.cqi_margin_db,
    }
}
