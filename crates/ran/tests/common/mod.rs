//! Cells and packets for the tests.
#![allow(dead_code)] // each test file uses a part of it

use paceline_net::{
    Bytes, DropReason, DropTail, Duration, Instant, Node, Output, Packet, SeqNumber, TcpFlags, TcpHeader,
};
use paceline_ran::lte::tdd::AckMode;
use paceline_ran::{
    AccessConfig, CORE, Cell, CellConfig, Duplex, Fading, Numerology, Policy, RandomAccessConfig, Rat,
    RlcConfig, Slot, SlotClock, SlotSpan, StationConfig, StationLink, station_port,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));

pub fn address(station: usize) -> IpAddr {
    Ipv4Addr::new(198, 18, 1 + (station / 250) as u8, (station % 250) as u8).into()
}

pub fn packet(src: IpAddr, dst: IpAddr, payload_len: u32) -> Packet {
    let tcp =
        TcpHeader { src_port: 1, dst_port: 2, flags: TcpFlags::ACK, payload_len, ..TcpHeader::default() };
    Packet::tcp(src, dst, tcp)
}

/// Lets stations start without a connection, and reserves PRBs for the PRACH.
pub fn with_initial_access(config: &mut CellConfig) {
    config.random_access.connected_at_start = false;
    config.random_access.prach_reserved = true;
}

/// The start of an LTE slot.
pub fn start(slot: Slot) -> Instant {
    SlotClock::new(Numerology::LTE).start(slot)
}

/// A 20 MHz cell.
pub fn config() -> CellConfig {
    CellConfig {
        rat: Rat::Lte,
        numerology: Numerology::LTE,
        duplex: Duplex::Fdd,
        ack_mode: AckMode::Multiplexing,
        radio: None,
        downlink_prb: 100,
        uplink_prb: 100,
        pucch_prb: 4,
        scheduler: Policy::RoundRobin,
        uplink_scheduler: Policy::RoundRobin,
        downlink_grants: 10,
        uplink_grants: 10,
        max_harq_tx: 4,
        max_uplink_mcs: 20,
        t_reordering: SlotSpan(50),
        rlc: RlcConfig::Um,
        discard_timer: None,
        outer_loop: false,
        decode_delay: SlotSpan(2),
        cqi_period: SlotSpan(5),
        cqi_delay: SlotSpan(6),
        downlink_lead: Duration::ZERO,
        downlink_buffer: Bytes(1 << 20),
        access: AccessConfig {
            sr_period: SlotSpan(10),
            sr_prohibit: SlotSpan(0),
            dsr_trans_max: 64,
            sr_detection: 1.0,
            periodic_bsr: SlotSpan(5),
            retx_bsr: SlotSpan(320),
            sr_grant: 80,
            proactive: None,
        },
        random_access: RandomAccessConfig {
            connected_at_start: true,
            prach_reserved: false,
            prach_index: 3,
            preambles: 52,
            max_preambles: 10,
            response_window: SlotSpan(10),
            responses: 3,
            backoff: SlotSpan(20),
            contention_timer: SlotSpan(48),
            max_msg3_tx: 4,
            setup: SlotSpan(50),
            cell_selection: SlotSpan(50),
            reestablishment: SlotSpan(25),
        },
    }
}

pub fn station(index: usize, downlink_sinr_db: f64, uplink_sinr_db: f64, sigma_db: f64) -> StationConfig {
    StationConfig {
        addresses: vec![address(index)],
        link: StationLink::Stated {
            downlink_sinr_db,
            uplink_sinr_db,
            fading: Fading { sigma_db, coherence_slots: 20.0 },
        },
        processing: Duration::ZERO,
        uplink_buffer: Box::new(DropTail::new(Bytes(1 << 20))),
    }
}

/// Runs the cell up to `until` and returns its outputs with their times.
pub fn drain(cell: &mut Cell, until: Instant) -> Vec<(Instant, Output)> {
    let mut out = Vec::new();
    while let Some(at) = cell.poll_timeout().filter(|at| *at <= until) {
        cell.handle_timeout(at);
        while let Some(output) = cell.poll_output(at) {
            out.push((at, output));
        }
    }
    out
}

/// Keeps both buffers of every station full for a second; returns the delivered bytes per station: (down,
/// up).
pub fn saturate(cell: &mut Cell) -> Vec<(u64, u64)> {
    let stations = cell.stations();
    for ms in 0..1000 {
        let now = Instant::from_millis(ms);
        for index in 0..stations {
            while cell.downlink_queue(index) < Bytes(200_000) {
                cell.handle_packet(now, CORE, packet(SERVER, address(index), 1400));
            }
            while cell.uplink_buffer(index).bytes() < Bytes(100_000) {
                cell.handle_packet(now, station_port(index), packet(address(index), SERVER, 1400));
            }
        }
        drain(cell, now);
        while cell.poll_output(now).is_some() {}
    }
    (0..stations).map(|i| (cell.downlink(i).bytes_out, cell.uplink(i).bytes_out)).collect()
}

/// Checks that every packet was delivered, dropped for a counted reason, or is held, per station and
/// direction.
/// Packets by the number that stands as their TCP sequence number: each may leave or be dropped once, and the
/// packets of a station and direction leave in the order of their numbers.
#[derive(Default)]
pub struct Ledger {
    next: u32,
    ended: BTreeSet<u32>,
    last: BTreeMap<(IpAddr, IpAddr), u32>,
    pub dropped: BTreeMap<DropReason, u64>,
}

impl Ledger {
    pub fn packet(&mut self, src: IpAddr, dst: IpAddr, payload_len: u32) -> Packet {
        self.next += 1;
        let seq = SeqNumber(self.next);
        let tcp = TcpHeader { seq, flags: TcpFlags::ACK, payload_len, ..TcpHeader::default() };
        Packet::tcp(src, dst, tcp)
    }
    pub fn check(&mut self, outputs: Vec<(Instant, Output)>, seed: u64) {
        let number = |packet: &Packet| packet.tcp_header().expect("a TCP packet").seq.0;
        for (_, output) in outputs {
            match output {
                Output::Transmit(_, packet) => {
                    let number = number(&packet);
                    assert!(self.ended.insert(number), "seed {seed}: packet {number} ends twice");
                    let last = self.last.entry((packet.ip.src, packet.ip.dst)).or_default();
                    assert!(number > *last, "seed {seed}: packet {number} leaves after {last}");
                    *last = number;
                }
                Output::Drop(packet, reason) => {
                    let number = number(&packet);
                    assert!(self.ended.insert(number), "seed {seed}: packet {number} ends twice");
                    *self.dropped.entry(reason).or_default() += 1;
                }
                Output::Event(event) => panic!("seed {seed}: {event:?}"),
            }
        }
    }
}

pub fn assert_conserved(cell: &Cell, seed: u64) {
    for index in 0..cell.stations() {
        let held = cell.held(index);
        for (stats, held) in [(cell.downlink(index), held.0), (cell.uplink(index), held.1)] {
            let out = stats.packets_out + stats.dropped.total();
            assert_eq!(stats.packets_in, out + held, "seed {seed}, station {index}: {stats:?}");
        }
    }
}
