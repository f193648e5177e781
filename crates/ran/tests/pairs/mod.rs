//! Pairs of stations for tests, and random traffic between them.
#![allow(dead_code, reason = "a test uses a part of it")]

use paceline_net::{
    Bytes, Duration, Instant, Node, Output, Packet, Port, SeqNumber, Stream, TcpFlags, TcpHeader,
};
use paceline_ran::radio::{Heights, PathLossModel};
use paceline_ran::sidelink::{
    Carrier, FlowDirection, LinkBudget, Motion, PairConfig, PathKind, Selection, Sidelink, SidelinkConfig,
    TrailingBsr,
};
use paceline_ran::{AmConfig, CORE, Fate, RlcConfig, Slot, SlotSpan, station_port};
use std::net::IpAddr;

pub const AM: AmConfig = AmConfig {
    t_poll_retransmit: SlotSpan(40),
    poll_pdu: Some(16),
    poll_byte: None,
    max_retx_threshold: 8,
    t_status_prohibit: SlotSpan(10),
};

pub fn budget() -> LinkBudget {
    LinkBudget {
        carrier_ghz: 2.0,
        model: PathLossModel::UmaM2135,
        heights: Heights { bs_m: 25.0, ut_m: 1.5 },
        enb_power_dbm: 40.0,
        ue_power_dbm: 20.0,
        enb_gain_dbi: 18.0,
        cable_loss_db: 2.0,
        enb_noise_figure_db: 5.0,
        ue_noise_figure_db: 7.0,
        cqi_margin_db: 10.0,
    }
}
pub fn config() -> SidelinkConfig {
    SidelinkConfig {
        carrier: Carrier::lte(50),
        rlc: RlcConfig::Um,
        t_reordering: SlotSpan(40),
        buffer: Bytes(1 << 20),
        rac_timeout: SlotSpan(10),
        trailing_bsr: TrailingBsr::Backlog,
        max_harq_tx: 4,
        selection: Selection::Fixed,
        fate: Fate::Drop,
        interrupt_harq: false,
        budget: budget(),
        reuse_threshold_dbm: None,
    }
}
pub fn address(pair: usize, station: bool) -> IpAddr {
    format!("198.18.{}.{}", if station { 128 } else { 64 }, pair + 1).parse().unwrap()
}
pub fn pair(index: usize, to_station: PathKind, to_peer: PathKind) -> PairConfig {
    let motion = Motion {
        radius_m: 20.0,
        angle_rad: index as f64,
        start_m: 20.0,
        end_m: 20.0,
        speed_mps: 0.0,
        returns: false,
        waypoints: Vec::new(),
    };
    let addresses = vec![address(index, true)];
    PairConfig { addresses, peer: true, filters: [None, None], to_station, to_peer, motion }
}
pub fn node(config: SidelinkConfig, routes: &[(PathKind, PathKind)]) -> Sidelink {
    let pairs = routes.iter().enumerate().map(|(index, (a, b))| pair(index, *a, *b)).collect();
    let mut node = Sidelink::new(config, pairs, 1);
    node.record_messages();
    node
}
pub fn packet(pair: usize, direction: FlowDirection, payload: u32, number: u32) -> Packet {
    let ends = [address(pair, false), address(pair, true)];
    let (src, dst) = match direction {
        FlowDirection::ToStation => (ends[0], ends[1]),
        FlowDirection::ToPeer => (ends[1], ends[0]),
    };
    let tcp = TcpHeader {
        flags: TcpFlags::ACK,
        payload_len: payload,
        seq: SeqNumber(number),
        ..TcpHeader::default()
    };
    Packet::tcp(src, dst, tcp)
}
pub fn port(pair: usize, direction: FlowDirection) -> Port {
    if direction == FlowDirection::ToStation { CORE } else { station_port(pair) }
}

/// Sends a segment to the station, which answers at once; returns the time of the answer at the peer, ms.
pub fn round_trip(node: &mut Sidelink, payload: u32) -> Vec<f64> {
    node.handle_packet(Instant::ZERO, CORE, packet(0, FlowDirection::ToStation, payload, 0));
    let mut arrivals = Vec::new();
    while let Some(at) = node.poll_timeout().filter(|at| *at < Instant::from_millis(500)) {
        node.handle_timeout(at);
        while let Some(output) = node.poll_output(at) {
            let Output::Transmit(to, _) = output else { panic!("{output:?}") };
            arrivals.push(at.as_secs_f64() * 1e3);
            if to != CORE {
                node.handle_packet(at, to, packet(0, FlowDirection::ToPeer, 0, 0));
            }
        }
    }
    arrivals
}

/// Random traffic in both directions of several pairs with switches; every packet is delivered once and in
/// order, or dropped. Returns the number of drops. Both directions of a pair begin on the same path.
pub fn swarm(config: SidelinkConfig, seed: u64, pairs: usize) -> u64 {
    let mut draws = Stream::new(seed, "test");
    let paths = [PathKind::Direct, PathKind::Infrastructure];
    let routes: Vec<_> = (0..pairs)
        .map(|_| {
            let path = paths[draws.below(2) as usize];
            (path, path)
        })
        .collect();
    let mut node = node(config, &routes);
    conserve(&mut node, seed, pairs, &mut draws)
}
pub fn conserve(node: &mut Sidelink, seed: u64, pairs: usize, draws: &mut Stream) -> u64 {
    let (mut next, mut last) = (vec![[0u32; 2]; pairs], vec![[None; 2]; pairs]);
    let (mut sent, mut delivered, mut dropped) = (0u64, 0u64, 0u64);
    let mut now = Instant::ZERO;
    let end = Instant::from_millis(3000);
    while now < Instant::from_millis(6000) {
        for (index, next) in next.iter_mut().enumerate() {
            for direction in FlowDirection::BOTH {
                if now < end && draws.below(24) == 0 {
                    for _ in 0..draws.below(12) {
                        let number = &mut next[direction as usize];
                        let payload = [0, 536, 1400][draws.below(3) as usize];
                        let packet = packet(index, direction, payload, *number);
                        *number += 1;
                        sent += 1;
                        node.handle_packet(now, port(index, direction), packet);
                    }
                }
            }
        }
        now += Duration::from_micros(700);
        node.handle_timeout(now);
        while let Some(output) = node.poll_output(now) {
            match output {
                Output::Transmit(_, packet) => {
                    delivered += 1;
                    let to_station = (0..pairs).find(|index| address(*index, true) == packet.ip.dst);
                    let index = to_station
                        .or_else(|| (0..pairs).find(|index| address(*index, false) == packet.ip.dst))
                        .unwrap();
                    let number = packet.tcp_header().unwrap().seq.0;
                    let last = &mut last[index][usize::from(to_station.is_none())];
                    assert!(last.is_none_or(|last| last < number), "seed {seed}: {number} after {last:?}");
                    *last = Some(number);
                }
                Output::Drop(..) => dropped += 1,
                Output::Event(_) => {}
            }
        }
    }
    let held: u64 = (0..pairs).flat_map(|p| FlowDirection::BOTH.map(|d| node.held(p, d))).sum();
    assert_eq!((sent, held), (delivered + dropped, 0), "seed {seed}: sent, held");
    let counted: u64 =
        (0..pairs).flat_map(|p| FlowDirection::BOTH.map(|d| node.counters(p, d)[0].dropped.total())).sum();
    assert_eq!(counted, dropped);
    dropped
}

pub fn scripted(seed: u64) -> Selection {
    let mut draws = Stream::new(seed, "switches");
    let mut slots: Vec<Slot> = (0..20).map(|_| Slot(draws.below(3000))).collect();
    slots.sort_unstable();
    slots.dedup();
    Selection::Scripted(slots)
}
