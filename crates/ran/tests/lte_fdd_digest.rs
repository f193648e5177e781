//! Digests of LTE FDD cells: a change that only restructures the cell leaves every output, its time and every
//! counter as they were.
//!
//! Traffic comes from seeded sources without feedback, so that no change outside this crate moves a digest. A
//! change that is meant to alter the cell's behaviour records the new values and states the reason.

use crate::common::*;
use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, SeqNumber, Stream, TcpHeader};
use paceline_ran::radio::{DeploymentConfig, Load, PowerControl, Profile};
use paceline_ran::{
    AmConfig, CORE, Cell, CellConfig, HeadroomConfig, LinkStats, Policy, RadioConfig, RlcConfig, SlotSpan,
    StationConfig, StationLink, station_port,
};
use std::net::IpAddr;

/// Duration of a run in ms. Chosen: several random accesses, fades and timer expiries fit in it.
const RUN_MS: u64 = 1500;

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
struct Digest(u64);

impl Digest {
    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn add_output(&mut self, at: Instant, output: &Output) {
        self.add(at.as_nanos());
        let packet = match output {
            Output::Transmit(port, packet) => {
                self.add(u64::from(port.0));
                packet
            }
            Output::Drop(packet, reason) => {
                format!("{reason:?}").bytes().for_each(|byte| self.add(u64::from(byte)));
                packet
            }
            Output::Event(_) => return,
        };
        self.add(u64::from(packet.tcp_header().map_or(0, |tcp| tcp.seq.0)));
        self.add(u64::from(packet.len));
    }
    fn add_link(&mut self, link: &LinkStats) {
        let counters = [
            link.packets_in,
            link.packets_out,
            link.bytes_out,
            link.dropped.total(),
            link.transport_blocks,
            link.transport_block_bytes,
            link.padding_bytes,
            link.harq_retransmissions,
            link.transport_blocks_lost,
            link.prbs,
            link.mcs_index_sum,
            link.rlc_retransmissions,
            link.status_pdus,
            link.grant_wait_ns,
            link.harq_wait_slots.0,
            link.radio_link_failures,
        ];
        counters.into_iter().for_each(|counter| self.add(counter));
    }
    fn add_cell(&mut self, cell: &Cell) {
        self.add(cell.active_slots());
        for station in 0..cell.stations() {
            self.add_link(cell.downlink(station));
            self.add_link(cell.uplink(station));
            let access = cell.access(station);
            let counters = [
                access.scheduling_requests,
                access.scheduling_request_failures,
                access.request_waits,
                access.request_wait_ns,
                access.random_accesses,
                access.contention_resolutions,
                access.contention_resolution_slots.0,
                access.preambles,
                access.preamble_collisions,
                access.random_access_failures,
                access.reestablishments,
                access.reestablishment_slots.0,
                access.grants,
                access.power_limited_grants,
                access.prb_limited_grants,
                access.headroom_reports,
                access.headroom_index_sum,
                cell.held(station).0,
                cell.held(station).1,
                cell.power_correction_db(station).map_or(0, f64::to_bits),
            ];
            counters.into_iter().for_each(|counter| self.add(counter));
        }
    }
}

fn numbered(src: IpAddr, dst: IpAddr, number: u32, payload_len: u32) -> Packet {
    let tcp =
        TcpHeader { src_port: 1, dst_port: 2, seq: SeqNumber(number), payload_len, ..TcpHeader::default() };
    Packet::tcp(src, dst, tcp)
}

/// Mean offered load per station in packets per ms, downlink and uplink. Sources pause every other 100 ms, so
/// that stations also start from an empty buffer.
type Traffic = (f64, f64);

/// The counter of the event that a run must contain to be worth a digest.
type Event = fn(&Cell, usize) -> u64;

fn digest(config: CellConfig, stations: Vec<StationConfig>, traffic: Traffic, event: Event) -> String {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let mut source = Stream::new(9, "traffic");
    let mut cell = Cell::new(config, stations, 4);
    let mut number = 0;
    // Arrivals every 250 us, on slot boundaries and between them.
    for quarter in 0..4 * RUN_MS {
        let now = Instant::from_nanos(250_000 * quarter);
        drain(&mut cell, now).iter().for_each(|(at, output)| digest.add_output(*at, output));
        for station in 0..cell.stations() {
            let pauses = (quarter / 400 + station as u64) % 2 == 1;
            for (direction, load) in [(0, traffic.0), (1, traffic.1)] {
                if pauses || !source.chance(load / 4.0) {
                    continue;
                }
                number += 1;
                let payload = if source.chance(0.3) { 0 } else { 100 + source.below(1349) as u32 };
                if direction == 0 {
                    cell.handle_packet(now, CORE, numbered(SERVER, address(station), number, payload));
                } else {
                    let packet = numbered(address(station), SERVER, number, payload);
                    cell.handle_packet(now, station_port(station), packet);
                }
            }
        }
    }
    let end = Instant::from_millis(RUN_MS + 300);
    drain(&mut cell, end).iter().for_each(|(at, output)| digest.add_output(*at, output));
    let events: u64 = (0..cell.stations()).map(|station| event(&cell, station)).sum();
    assert!(events >= 10, "{events} events in the run");
    assert_conserved(&cell, 4);
    digest.add_cell(&cell);
    format!("{:016x}", digest.0)
}

fn stated(count: usize, down_db: f64, up_db: f64, sigma_db: f64) -> Vec<StationConfig> {
    (0..count).map(|i| station(i, down_db + i as f64, up_db + 0.5 * i as f64, sigma_db)).collect()
}
fn placed(count: usize) -> Vec<StationConfig> {
    (0..count).map(|i| StationConfig { link: StationLink::Placed, ..station(i, 0.0, 0.0, 0.0) }).collect()
}

fn deployed(neighbours: Load, fading: Option<&str>, tpc_target_db: Option<f64>) -> CellConfig {
    let deployment = DeploymentConfig { sites: 7, wrap_around: false, ..DeploymentConfig::case1() };
    let radio = RadioConfig {
        deployment,
        served_sites: 1,
        neighbours,
        fading: fading.and_then(Profile::named),
        speed_kmh: 3.0,
        power_control: PowerControl {
            pcmax_dbm: 23.0,
            min_dbm: -40.0,
            p0_dbm: -95.0,
            alpha: 0.8,
            delta_mcs: false,
        },
        tpc_target_db,
        blockage: None,
        headroom: HeadroomConfig {
            periodic: Some(SlotSpan(100)),
            prohibit: SlotSpan(20),
            path_loss_change_db: Some(3.0),
        },
    };
    CellConfig { radio: Some(radio), downlink_prb: 50, uplink_prb: 50, ..config() }
}

fn am() -> RlcConfig {
    RlcConfig::Am(AmConfig {
        t_poll_retransmit: SlotSpan(45),
        poll_pdu: Some(16),
        poll_byte: Some(25_000),
        max_retx_threshold: 4,
        t_status_prohibit: SlotSpan(10),
    })
}

#[test]
fn unacknowledged_mode_with_both_directions_loaded() {
    let config = CellConfig { outer_loop: true, ..config() };
    let digest = digest(config, stated(5, 8.0, 4.0, 3.0), (6.0, 3.0), |cell, station| {
        cell.downlink(station).harq_retransmissions
    });
    assert_eq!(digest, "487b53e4868da509");
}

#[test]
fn acknowledged_mode_with_block_errors() {
    let config = CellConfig { rlc: am(), max_harq_tx: 2, ..config() };
    let digest = digest(config, stated(5, 5.0, 3.0, 4.0), (4.0, 2.0), |cell, station| {
        cell.uplink(station).rlc_retransmissions
    });
    assert_eq!(digest, "b0f368640b27889e");
}

#[test]
fn weak_radio_with_link_failures_and_random_access() {
    let config = CellConfig {
        rlc: am(),
        max_harq_tx: 1,
        discard_timer: Some(Duration::from_millis(150)),
        downlink_prb: 25,
        uplink_prb: 25,
        ..config()
    };
    let digest = digest(config, stated(6, -5.0, -5.0, 4.0), (1.0, 0.5), |cell, station| {
        cell.access(station).reestablishments
    });
    assert_eq!(digest, "92267a187d67d213");
}

#[test]
fn rare_and_lost_scheduling_requests() {
    let mut config = CellConfig { scheduler: Policy::ProportionalFair, ..config() };
    (config.access.sr_period, config.access.sr_prohibit) = (SlotSpan(40), SlotSpan(40));
    (config.access.sr_detection, config.access.dsr_trans_max) = (0.3, 4);
    let digest = digest(config, stated(8, 12.0, 6.0, 2.0), (0.3, 0.3), |cell, station| {
        cell.access(station).random_accesses
    });
    assert_eq!(digest, "3fcac3d887b43650");
}

#[test]
fn initial_random_access_of_many_stations() {
    let mut config = CellConfig { uplink_grants: 3, downlink_grants: 3, ..config() };
    with_initial_access(&mut config);
    (config.random_access.preambles, config.random_access.prach_index) = (4, 6);
    let digest = digest(config, stated(40, 4.0, 2.0, 2.0), (0.1, 0.1), |cell, station| {
        cell.access(station).preamble_collisions
    });
    assert_eq!(digest, "78520c3872f1fa5d");
}

#[test]
fn three_cells_with_fading_and_power_control() {
    let config = CellConfig {
        scheduler: Policy::ProportionalFair,
        uplink_scheduler: Policy::ProportionalFair,
        ..deployed(Load::Share(0.4), Some("EPA"), Some(10.0))
    };
    let digest =
        digest(config, placed(12), (3.0, 1.5), |cell, station| cell.access(station).power_limited_grants);
    assert_eq!(digest, "9a13c68bae35721a");
}

#[test]
fn three_cells_with_full_neighbours() {
    let config = CellConfig { rlc: am(), outer_loop: true, ..deployed(Load::Full, Some("ETU"), None) };
    let digest = digest(config, placed(9), (1.5, 1.0), |cell, station| cell.uplink(station).status_pdus);
    assert_eq!(digest, "eab2c08304b6ce8e");
}

#[test]
fn three_cells_with_random_access_and_unequal_bandwidths() {
    let mut config = CellConfig { uplink_prb: 15, pucch_prb: 2, ..deployed(Load::Quiet, None, Some(15.0)) };
    with_initial_access(&mut config);
    config.random_access.prach_index = 12;
    config.scheduler = Policy::MaxCi;
    let digest =
        digest(config, placed(15), (1.0, 0.5), |cell, station| cell.access(station).contention_resolutions);
    assert_eq!(digest, "6eea05937ca1097a");
}

#[test]
fn narrow_carriers_with_small_buffers() {
    for (prb, expected) in [(6, "463cf0f3391d1fcb"), (15, "07493291791000db"), (75, "ad797b349e0d9ebb")] {
        let config = CellConfig {
            downlink_prb: prb,
            uplink_prb: prb,
            pucch_prb: 0,
            uplink_scheduler: Policy::MaxCi,
            downlink_buffer: Bytes(40_000),
            max_uplink_mcs: 28,
            cqi_period: SlotSpan(20),
            cqi_delay: SlotSpan(8),
            ..config()
        };
        let digest = digest(config, stated(4, 14.0, 16.0, 3.0), (2.0, 2.0), |cell, station| {
            cell.uplink(station).harq_retransmissions
        });
        assert_eq!(digest, expected, "{prb} PRBs");
    }
}
