//! Converts a scenario's tables to the configuration of a cell: times with units become slots, bandwidths
//! become PRBs.

use super::mobility;
use crate::address;
use crate::scenario::{self, BlockageModel, CellPlan, Held, RlcMode, Scenario, Stations};
use paceline_net::{Bytes, Stream};
use paceline_pep::{AckFilter, AckFilterConfig};
use paceline_ran::radio::blockage::{Hold, Surroundings};
use paceline_ran::radio::power_control::{MIN_POWER_DBM, nr_min_power_dbm};
use paceline_ran::radio::{Load, PowerControl, Profile};
use paceline_ran::rlc_nr::{self, SnLength};
use paceline_ran::{
    AccessConfig, AmConfig, BlockageConfig, Cell, CellConfig, Fading, HeadroomConfig, Policy, RadioConfig,
    RandomAccessConfig, RlcConfig, SlotClock, SlotSpan, StationConfig, StationLink,
};

/// The cells of a scenario; `groups` has the `[[station]]` table of each station.
pub(crate) fn cell(scenario: &Scenario, cells: &scenario::Cells, groups: &[&Stations], seed: u64) -> Cell {
    let plan = cells.cell.plan();
    let clock = SlotClock::new(plan.numerology);
    let stations = groups.iter().enumerate().map(|(index, group)| {
        let mut place = Stream::new(seed, &format!("station{index}/place"));
        let (v4, v6) = address::station(index);
        let filter = AckFilterConfig {
            scheme: cells.ack_filter.scheme,
            limit: cells.cell.uplink_buffer,
            segment: scenario.tcp_of(group).segment_size,
            header: cells.ack_filter.header,
        };
        StationConfig {
            addresses: vec![v4.into(), v6.into()],
            link: match &cells.deployment {
                Some(_) => match group.path.first() {
                    Some(place) => StationLink::PlacedAt(mobility::point(place)),
                    None => StationLink::Placed,
                },
                None => stated_link(group, clock, &mut place),
            },
            processing: group.processing,
            uplink_buffer: Box::new(AckFilter::new(filter)),
        }
    });
    let radio = cells.deployment.as_ref().map(|deployment| radio_config(deployment, &plan));
    let config = CellConfig { radio, ..cell_config(&cells.cell, plan) };
    let mut cell = Cell::new(config, stations.collect(), seed);
    mobility::set_up(&mut cell, cells, groups);
    cell
}

fn stated_link(group: &Stations, clock: SlotClock, place: &mut Stream) -> StationLink {
    StationLink::Stated {
        downlink_sinr_db: group.downlink_sinr.draw(place),
        uplink_sinr_db: group.uplink_sinr.draw(place),
        fading: Fading {
            sigma_db: group.fading.0,
            coherence_slots: group.coherence.as_nanos() as f64 / clock.numerology().slot_ns() as f64,
        },
    }
}

fn radio_config(deployment: &scenario::Deployment, plan: &CellPlan) -> RadioConfig {
    let clock = SlotClock::new(plan.numerology);
    let mut config =
        deployment.model.parameters().with_carrier(u32::from(plan.downlink_prb), plan.numerology);
    config.carrier_ghz = deployment.carrier_ghz.unwrap_or(config.carrier_ghz);
    config.enb_power_dbm = deployment.cell_power_dbm.unwrap_or(config.enb_power_dbm);
    config.sites = deployment.sites as usize;
    config.wrap_around = deployment.wrap_around;
    let power_control = PowerControl {
        pcmax_dbm: deployment.station_power_dbm.unwrap_or(config.ue_power_dbm),
        min_dbm: plan.range.map_or(MIN_POWER_DBM, |range| nr_min_power_dbm(range, plan.uplink_mhz)),
        p0_dbm: deployment.p0_dbm,
        alpha: deployment.alpha,
        delta_mcs: false,
    };
    RadioConfig {
        deployment: config,
        served_sites: deployment.served_sites as usize,
        neighbours: match deployment.neighbour_load {
            load if load <= 0.0 => Load::Quiet,
            load if load >= 1.0 => Load::Full,
            load => Load::Share(load),
        },
        fading: Profile::named(deployment.fading.name()),
        speed_kmh: deployment.speed_kmh,
        power_control,
        tpc_target_db: deployment.tpc_target.map(|target| target.0),
        blockage: blockage_config(deployment),
        headroom: HeadroomConfig {
            periodic: Some(clock.span(deployment.periodic_phr_timer)).filter(|timer| *timer > SlotSpan(0)),
            prohibit: clock.span(deployment.prohibit_phr_timer),
            path_loss_change_db: Some(f64::from(deployment.path_loss_change_db)).filter(|db| *db > 0.0),
        },
    }
}

fn blockage_config(deployment: &scenario::Deployment) -> Option<BlockageConfig> {
    let blocker_speed_m_s = deployment.blocker_speed_kmh / 3.6;
    let surroundings = match deployment.blockage {
        BlockageModel::None => return None,
        BlockageModel::Indoor => Surroundings::indoor(blocker_speed_m_s),
        BlockageModel::Outdoor => Surroundings::outdoor(blocker_speed_m_s),
    };
    let hold = match deployment.held {
        Held::Free => Hold::Free,
        Held::Portrait => Hold::Portrait,
        Held::Landscape => Hold::Landscape,
    };
    Some(BlockageConfig { surroundings, hold })
}

fn policy(scheduler: scenario::Scheduler) -> Policy {
    match scheduler {
        scenario::Scheduler::RoundRobin => Policy::RoundRobin,
        scenario::Scheduler::ProportionalFair => Policy::ProportionalFair,
        scenario::Scheduler::MaxCi => Policy::MaxCi,
    }
}

fn cell_config(cell: &scenario::Cell, plan: CellPlan) -> CellConfig {
    let clock = SlotClock::new(plan.numerology);
    let lead = cell.lead();
    CellConfig {
        downlink_lead: clock.duration(SlotSpan(u64::from(lead.slots))) + lead.radio,
        rat: plan.rat,
        numerology: plan.numerology,
        duplex: plan.duplex,
        ack_mode: plan.ack_mode,
        radio: None,
        outer_loop: cell.outer_loop,
        downlink_prb: plan.downlink_prb,
        uplink_prb: plan.uplink_prb,
        pucch_prb: plan.pucch_prb,
        scheduler: policy(cell.scheduler),
        uplink_scheduler: policy(cell.uplink_scheduler.unwrap_or(cell.scheduler)),
        downlink_grants: cell.downlink_grants,
        uplink_grants: cell.uplink_grants,
        max_harq_tx: cell.max_harq_tx,
        max_uplink_mcs: plan.max_uplink_mcs,
        t_reordering: clock.span(cell.t_reordering),
        rlc: rlc_config(cell, clock),
        discard_timer: cell.discard_timer,
        decode_delay: clock.span(cell.decode_delay),
        cqi_period: clock.span(cell.cqi_period),
        cqi_delay: clock.span(cell.cqi_delay),
        downlink_buffer: cell.downlink_buffer,
        access: AccessConfig {
            sr_period: clock.span(cell.sr_period),
            sr_prohibit: sr_prohibit(cell, clock),
            dsr_trans_max: cell.dsr_trans_max,
            sr_detection: cell.sr_detection,
            periodic_bsr: clock.span(cell.periodic_bsr_timer),
            retx_bsr: clock.span(cell.retx_bsr_timer),
            sr_grant: cell.sr_grant.0 as u32,
            proactive: cell.proactive_grant.as_ref().map(|grant| grant.in_slots(clock)),
        },
        random_access: RandomAccessConfig {
            connected_at_start: !cell.initial_access,
            prach_reserved: cell.initial_access,
            prach_index: cell.prach_config_index,
            preambles: cell.ra_preambles,
            max_preambles: cell.preamble_trans_max,
            response_window: clock.span(cell.ra_response_window),
            responses: cell.ra_responses,
            backoff: clock.span(cell.backoff_indicator),
            contention_timer: clock.span(cell.contention_resolution_timer),
            max_msg3_tx: cell.max_harq_msg3_tx,
            setup: clock.span(cell.connection_setup),
            cell_selection: clock.span(cell.cell_selection),
            reestablishment: clock.span(cell.reestablishment_signalling),
        },
    }
}

/// sr-ProhibitTimer in slots.
fn sr_prohibit(cell: &scenario::Cell, clock: SlotClock) -> SlotSpan {
    match cell.nr.as_ref().and_then(|nr| nr.sr_prohibit_timer) {
        Some(timer) => clock.span(timer),
        None => clock.span(cell.sr_period) * cell.sr_prohibit,
    }
}

pub(super) fn rlc_config(cell: &scenario::Cell, clock: SlotClock) -> RlcConfig {
    if let Some(nr) = &cell.nr {
        return nr_rlc_config(cell, nr, clock);
    }
    match cell.rlc {
        RlcMode::Um => RlcConfig::Um,
        RlcMode::Am => RlcConfig::Am(AmConfig {
            t_poll_retransmit: clock.span(cell.t_poll_retransmit),
            poll_pdu: (cell.poll_pdu > 0).then_some(cell.poll_pdu),
            poll_byte: (cell.poll_byte > Bytes::ZERO).then_some(cell.poll_byte.0),
            max_retx_threshold: cell.max_retx_threshold,
            t_status_prohibit: clock.span(cell.t_status_prohibit),
        }),
    }
}

fn nr_rlc_config(cell: &scenario::Cell, nr: &scenario::Nr, clock: SlotClock) -> RlcConfig {
    let length = |bits: u8, short: u8| if bits == short { SnLength::Short } else { SnLength::Long };
    let t_reassembly = clock.span(nr.t_reassembly);
    match cell.rlc {
        RlcMode::Um => RlcConfig::NrUm(rlc_nr::UmConfig { sn: length(nr.rlc_um_sn, 6), t_reassembly }),
        RlcMode::Am => RlcConfig::NrAm(rlc_nr::AmConfig {
            sn: length(nr.rlc_am_sn, 12),
            t_poll_retransmit: clock.span(cell.t_poll_retransmit),
            poll_pdu: (cell.poll_pdu > 0).then_some(cell.poll_pdu),
            poll_byte: (cell.poll_byte > Bytes::ZERO).then_some(cell.poll_byte.0),
            max_retx_threshold: cell.max_retx_threshold,
            t_reassembly,
            t_status_prohibit: clock.span(cell.t_status_prohibit),
        }),
    }
}
