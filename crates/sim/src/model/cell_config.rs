//! Converts a scenario's tables to the configuration of a cell: times with units become TTIs, bandwidths
//! become PRBs.

use crate::address;
use crate::scenario::{self, DeploymentModel, RlcMode, Scenario, Stations};
use paceline_net::{Bytes, Stream};
use paceline_pep::{AckFilter, AckFilterConfig};
use paceline_ran::radio::{DeploymentConfig, Load, PowerControl, Profile};
use paceline_ran::{
    AccessConfig, AmConfig, Cell, CellConfig, Fading, HeadroomConfig, Policy, RadioConfig,
    RandomAccessConfig, RlcConfig, StationConfig, StationLink, resource_blocks,
};

/// The cell of a scenario; `groups` has the `[[station]]` table of each station.
pub(crate) fn cell(scenario: &Scenario, groups: &[&Stations], seed: u64) -> Cell {
    let stations = groups.iter().enumerate().map(|(index, group)| {
        let mut place = Stream::new(seed, &format!("station{index}/place"));
        let (v4, v6) = address::station(index);
        let filter = AckFilterConfig {
            scheme: scenario.ack_filter.scheme,
            limit: scenario.cell.uplink_buffer,
            segment: scenario.tcp.segment_size,
            header: scenario.ack_filter.header,
        };
        StationConfig {
            addresses: vec![v4.into(), v6.into()],
            link: match &scenario.deployment {
                Some(_) => StationLink::Placed,
                None => stated_link(group, &mut place),
            },
            uplink_buffer: Box::new(AckFilter::new(filter)),
        }
    });
    let radio = scenario.deployment.as_ref().map(|deployment| radio_config(deployment, &scenario.cell));
    Cell::new(CellConfig { radio, ..cell_config(&scenario.cell) }, stations.collect(), seed)
}

fn stated_link(group: &Stations, place: &mut Stream) -> StationLink {
    StationLink::Stated {
        downlink_sinr_db: group.downlink_sinr.draw(place),
        uplink_sinr_db: group.uplink_sinr.draw(place),
        fading: Fading { sigma_db: group.fading.0, coherence_tti: group.coherence.as_nanos() as f64 / 1e6 },
    }
}

fn radio_config(deployment: &scenario::Deployment, cell: &scenario::Cell) -> RadioConfig {
    let base = match deployment.model {
        DeploymentModel::Case1 => DeploymentConfig::case1(),
        DeploymentModel::Case3 => DeploymentConfig::case3(),
        DeploymentModel::UmaM2135 => DeploymentConfig::uma_m2135(),
        DeploymentModel::UmiM2135 => DeploymentConfig::umi_m2135(),
        DeploymentModel::Uma38901 => DeploymentConfig::uma_38901(),
        DeploymentModel::Umi38901 => DeploymentConfig::umi_38901(),
    };
    let prb = resource_blocks(cell.bandwidth.0 / 1000).expect("the scenario's bandwidths were checked");
    let mut config = base.with_resource_blocks(u32::from(prb));
    config.sites = deployment.sites as usize;
    config.wrap_around = deployment.wrap_around;
    let power_control = PowerControl {
        pcmax_dbm: config.ue_power_dbm,
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
        headroom: HeadroomConfig {
            periodic: Some(deployment.periodic_phr_timer.as_millis()).filter(|timer| *timer > 0),
            prohibit: deployment.prohibit_phr_timer.as_millis(),
            path_loss_change_db: Some(f64::from(deployment.path_loss_change_db)).filter(|db| *db > 0.0),
        },
    }
}

fn policy(scheduler: scenario::Scheduler) -> Policy {
    match scheduler {
        scenario::Scheduler::RoundRobin => Policy::RoundRobin,
        scenario::Scheduler::ProportionalFair => Policy::ProportionalFair,
        scenario::Scheduler::MaxCi => Policy::MaxCi,
    }
}

fn cell_config(cell: &scenario::Cell) -> CellConfig {
    let prb = |hertz: paceline_net::units::Hertz| {
        resource_blocks(hertz.0 / 1000).expect("the scenario's bandwidths were checked")
    };
    CellConfig {
        radio: None,
        outer_loop: cell.outer_loop,
        downlink_prb: prb(cell.bandwidth),
        uplink_prb: prb(cell.uplink_bandwidth.unwrap_or(cell.bandwidth)),
        pucch_prb: cell.pucch_prb,
        scheduler: policy(cell.scheduler),
        uplink_scheduler: policy(cell.uplink_scheduler.unwrap_or(cell.scheduler)),
        downlink_grants: cell.downlink_grants,
        uplink_grants: cell.uplink_grants,
        max_harq_tx: cell.max_harq_tx,
        max_uplink_mcs: if cell.uplink_64qam { 28 } else { 20 },
        t_reordering: cell.t_reordering.as_millis(),
        rlc: rlc_config(cell),
        discard_timer: cell.discard_timer,
        decode_delay: cell.decode_delay.as_millis(),
        cqi_period: cell.cqi_period.as_millis(),
        cqi_delay: cell.cqi_delay.as_millis(),
        downlink_buffer: cell.downlink_buffer,
        access: AccessConfig {
            sr_period: cell.sr_period.as_millis(),
            sr_prohibit: cell.sr_prohibit,
            dsr_trans_max: cell.dsr_trans_max,
            sr_detection: cell.sr_detection,
            periodic_bsr: cell.periodic_bsr_timer.as_millis(),
            retx_bsr: cell.retx_bsr_timer.as_millis(),
            sr_grant: cell.sr_grant.0 as u32,
        },
        random_access: RandomAccessConfig {
            initial: cell.initial_access,
            prach_index: cell.prach_config_index,
            preambles: cell.ra_preambles,
            max_preambles: cell.preamble_trans_max,
            response_window: cell.ra_response_window.as_millis(),
            responses: cell.ra_responses,
            backoff: cell.backoff_indicator.as_millis(),
            contention_timer: cell.contention_resolution_timer.as_millis(),
            max_msg3_tx: cell.max_harq_msg3_tx,
            setup: cell.connection_setup.as_millis(),
            cell_selection: cell.cell_selection.as_millis(),
            reestablishment: cell.reestablishment_signalling.as_millis(),
        },
    }
}

fn rlc_config(cell: &scenario::Cell) -> RlcConfig {
    match cell.rlc {
        RlcMode::Um => RlcConfig::Um,
        RlcMode::Am => RlcConfig::Am(AmConfig {
            t_poll_retransmit: cell.t_poll_retransmit.as_millis(),
            poll_pdu: (cell.poll_pdu > 0).then_some(cell.poll_pdu),
            poll_byte: (cell.poll_byte > Bytes::ZERO).then_some(cell.poll_byte.0),
            max_retx_threshold: cell.max_retx_threshold,
            t_status_prohibit: cell.t_status_prohibit.as_millis(),
        }),
    }
}
