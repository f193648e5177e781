//! A station that changes its serving cell: conservation at handovers.

use crate::common::*;
use paceline_net::{DropReason, Instant, Node, Output, Packet, SeqNumber, TcpHeader};
use paceline_ran::radio::{DeploymentConfig, Load, Point, PowerControl};
use paceline_ran::{
    AmConfig, CORE, Cell, CellConfig, EventA3, Fate, Handover, HeadroomConfig, RadioConfig, RlcConfig,
    SlotSpan, StationConfig, StationLink, station_port,
};
use std::collections::BTreeSet;

/// Packets in each direction. Chosen: two seconds at one packet per 2 ms.
const PACKETS: u32 = 1000;

/// Seven sites, all of them served, with RLC AM or UM.
fn seven_sites(rlc: RlcConfig) -> CellConfig {
    let deployment = DeploymentConfig { sites: 7, wrap_around: false, ..DeploymentConfig::case1() };
    let power_control =
        PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -85.0, alpha: 0.8, delta_mcs: false };
    let radio = RadioConfig {
        deployment,
        served_sites: 7,
        neighbours: Load::Quiet,
        fading: None,
        speed_kmh: 100.0,
        power_control,
        tpc_target_db: None,
        blockage: None,
        headroom: HeadroomConfig { periodic: None, prohibit: SlotSpan(0), path_loss_change_db: None },
    };
    CellConfig { radio: Some(radio), downlink_prb: 50, uplink_prb: 50, rlc, ..config() }
}

fn am() -> RlcConfig {
    RlcConfig::Am(AmConfig {
        t_poll_retransmit: SlotSpan(60),
        poll_pdu: Some(8),
        poll_byte: None,
        max_retx_threshold: 32,
        t_status_prohibit: SlotSpan(10),
    })
}

/// The end of the packets of both directions, and the number of handovers.
struct Driven {
    delivered: [Vec<u32>; 2],
    dropped: [BTreeSet<u32>; 2],
    handovers: u64,
    cells: BTreeSet<usize>,
    interruption: SlotSpan,
}

/// Drives a station through the sites; every 100 ms it is handed over to the strongest cell.
fn drive(rlc: RlcConfig, how: Handover, event: Option<EventA3>, seed: u64) -> Driven {
    let station = StationConfig { link: StationLink::Placed, ..station(0, 0.0, 0.0, 0.0) };
    let mut cell = Cell::new(seven_sites(rlc), vec![station], seed);
    event.into_iter().for_each(|event| cell.hand_over_by(event, how));
    let (mut delivered, mut dropped, mut cells) =
        ([vec![], vec![]], [BTreeSet::new(), BTreeSet::new()], BTreeSet::new());
    for ms in 0..4 * u64::from(PACKETS) {
        let now = Instant::from_millis(ms);
        if ms % 100 == 0 {
            // A fast drive, 1 km in 2 s, so that a short test crosses several cells.
            cell.move_station(0, Point { x: 0.5 * ms.min(2000) as f64 - 500.0, y: 60.0 });
            if event.is_none() {
                let strongest = cell.strongest_cell(0).unwrap();
                let left = cell.hand_over(now, 0, strongest, how);
                if left && how.fate == Fate::Duplicate {
                    assert!(cell.connected(0) && cell.serving(0) != strongest);
                } else if left {
                    assert!(!cell.connected(0) && cell.serving(0) == strongest);
                }
            }
            cells.insert(cell.serving(0));
        }
        if ms % 2 == 0 && ms / 2 < u64::from(PACKETS) {
            let numbered = |src, dst| {
                let packet = packet(src, dst, 1400);
                let tcp = TcpHeader { seq: SeqNumber((ms / 2) as u32), ..*packet.tcp_header().unwrap() };
                Packet::tcp(src, dst, tcp)
            };
            cell.handle_packet(now, CORE, numbered(SERVER, address(0)));
            cell.handle_packet(now, station_port(0), numbered(address(0), SERVER));
        }
        let mut outputs = drain(&mut cell, now);
        while let Some(output) = cell.poll_output(now) {
            outputs.push((now, output));
        }
        for (_, output) in outputs {
            match output {
                Output::Transmit(port, packet) => {
                    delivered[usize::from(port == CORE)].push(packet.tcp_header().unwrap().seq.0);
                }
                Output::Drop(packet, reason) => {
                    assert!(reason == DropReason::PathSwitch || how.fate == Fate::Drop, "{reason:?}");
                    let uplink = usize::from(packet.ip.dst == SERVER);
                    assert!(dropped[uplink].insert(packet.tcp_header().unwrap().seq.0), "dropped twice");
                }
                _ => {}
            }
        }
    }
    assert_eq!(cell.held(0), (0, 0), "seed {seed}");
    let access = cell.access(0);
    Driven { delivered, dropped, handovers: access.handovers, cells, interruption: access.handover_slots }
}

const BREAK: Handover =
    Handover { interruption: SlotSpan(20), fate: Fate::Drop, keep_harq: false, forwarding: None };

#[test]
fn a_station_that_drives_through_seven_sites_loses_nothing_where_the_source_forwards() {
    for (seed, status_report) in [(0, false), (0, true), (1, true), (2, false)] {
        println!("seed {seed}");
        let run = drive(am(), Handover { fate: Fate::Forward { status_report }, ..BREAK }, None, seed);
        assert!(run.handovers >= 3 && run.cells.len() >= 3, "{} handovers, {:?}", run.handovers, run.cells);
        for direction in run.delivered {
            assert!(direction.into_iter().eq(0..PACKETS), "each once and in order");
        }
        let mean = run.interruption.0 as f64 / run.handovers as f64;
        assert!((20.0..100.0).contains(&mean), "interruption and random access last {mean} ms");
    }
}

#[test]
fn a_handover_that_keeps_the_source_interrupts_nothing() {
    for seed in 0..3 {
        println!("seed {seed}");
        let how =
            Handover { interruption: SlotSpan(0), fate: Fate::Duplicate, keep_harq: true, forwarding: None };
        let run = drive(am(), how, None, seed);
        assert!(run.handovers >= 3 && run.cells.len() >= 3, "{} handovers, {:?}", run.handovers, run.cells);
        for direction in run.delivered {
            assert!(direction.into_iter().eq(0..PACKETS), "each once and in order");
        }
        assert_eq!(run.interruption, SlotSpan(0));
    }
}

#[test]
fn a_drop_at_handovers_ends_every_packet_once_and_keeps_the_order() {
    for (rlc, seed, keep_harq) in
        [(am(), 0, false), (RlcConfig::Um, 1, false), (RlcConfig::Um, 2, true), (am(), 2, true)]
    {
        println!("seed {seed}");
        let run = drive(rlc, Handover { keep_harq, ..BREAK }, None, seed);
        assert!(run.handovers >= 3 && run.dropped.iter().any(|dropped| !dropped.is_empty()));
        for (delivered, dropped) in run.delivered.iter().zip(&run.dropped) {
            assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]), "once and in order");
            assert_eq!(delivered.len() + dropped.len(), PACKETS as usize);
            assert!(delivered.iter().all(|number| !dropped.contains(number)));
        }
    }
}

#[test]
fn event_a3_hands_a_station_over_on_its_way() {
    // Short times, since the drive is several times as fast as a train.
    let event = EventA3 {
        offset_db: 2.0,
        hysteresis_db: 0.0,
        time_to_trigger: SlotSpan(40),
        filter_coefficient: 1,
        period: SlotSpan(20),
        preparation: SlotSpan(0),
    };
    for (seed, fate) in
        [(0, Fate::Duplicate), (1, Fate::Forward { status_report: true }), (2, Fate::Duplicate)]
    {
        println!("seed {seed}");
        let run = drive(am(), Handover { fate, ..BREAK }, Some(event), seed);
        assert!(run.handovers >= 2 && run.cells.len() >= 2, "{} handovers, {:?}", run.handovers, run.cells);
        for direction in run.delivered {
            assert!(direction.into_iter().eq(0..PACKETS), "each once and in order");
        }
    }
}
