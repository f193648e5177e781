//! Pairs with direct links: the published timeline, routes, switches, conservation of packets.

use paceline_net::{Bytes, Instant, Node, Output, Packet, Port, Stream, TcpFlags, TcpHeader};
use paceline_ran::radio::{Heights, PathLossModel};
use paceline_ran::sidelink::{
    FlowDirection, LinkBudget, MessageKind, Motion, PairConfig, PathKind, Selection, Sidelink,
    SidelinkConfig, TrailingBsr,
};
use paceline_ran::{AmConfig, CORE, Fate, RlcConfig, Slot, SlotSpan, station_port};
use std::net::IpAddr;

const AM: AmConfig = AmConfig {
    t_poll_retransmit: SlotSpan(40),
    poll_pdu: Some(16),
    poll_byte: None,
    max_retx_threshold: 8,
    t_status_prohibit: SlotSpan(10),
};

fn budget() -> LinkBudget {
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
fn config() -> SidelinkConfig {
    SidelinkConfig {
        prb: 50,
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
fn address(pair: usize, station: bool) -> IpAddr {
    format!("198.18.{}.{}", if station { 128 } else { 64 }, pair + 1).parse().unwrap()
}
fn pair(index: usize, to_station: PathKind, to_peer: PathKind) -> PairConfig {
    let motion = Motion {
        radius_m: 20.0,
        angle_rad: index as f64,
        start_m: 20.0,
        end_m: 20.0,
        speed_mps: 0.0,
        returns: false,
        waypoints: Vec::new(),
    };
    PairConfig { addresses: vec![address(index, true)], to_station, to_peer, motion }
}
fn node(config: SidelinkConfig, routes: &[(PathKind, PathKind)]) -> Sidelink {
    let pairs = routes.iter().enumerate().map(|(index, (a, b))| pair(index, *a, *b)).collect();
    let mut node = Sidelink::new(config, pairs, 1);
    node.record_messages();
    node
}
fn packet(pair: usize, direction: FlowDirection, payload: u32, number: u32) -> Packet {
    let ends = [address(pair, false), address(pair, true)];
    let (src, dst) = match direction {
        FlowDirection::ToStation => (ends[0], ends[1]),
        FlowDirection::ToPeer => (ends[1], ends[0]),
    };
    let tcp = TcpHeader {
        flags: TcpFlags::ACK,
        payload_len: payload,
        seq: paceline_net::SeqNumber(number),
        ..TcpHeader::default()
    };
    Packet::tcp(src, dst, tcp)
}
fn port(pair: usize, direction: FlowDirection) -> Port {
    if direction == FlowDirection::ToStation { CORE } else { station_port(pair) }
}

/// Sends a segment to the station, which answers at once; returns the time of the answer at the peer, ms.
fn round_trip(node: &mut Sidelink, payload: u32) -> Vec<f64> {
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

#[test]
fn the_timeline_of_a_direct_segment_and_its_ack_is_the_published_one() {
    use FlowDirection::{ToPeer, ToStation};
    use MessageKind::{Data, Delivered, ReportDecoded, Request, ShortGrant};
    let mut node = node(config(), &[(PathKind::Direct, PathKind::Direct)]);
    let times = round_trip(&mut node, 536);
    assert_eq!(times, [15.0, 30.0], "{:?}", node.messages());
    let seen: Vec<_> = node.messages().iter().map(|m| (m.slot.0, m.direction, m.kind)).collect();
    let one_way = |start: u64, direction| {
        [(0, Request), (5, ShortGrant), (9, ReportDecoded), (11, Data), (15, Delivered)]
            .map(|(at, kind)| (start + at, direction, kind))
    };
    let expected: Vec<_> = one_way(0, ToStation).into_iter().chain(one_way(15, ToPeer)).collect();
    let mut in_order = seen.clone();
    in_order.sort_by_key(|(slot, direction, _)| (*slot, *direction as usize));
    assert_eq!(in_order, expected);
}

#[test]
fn an_ack_on_the_infrastructure_path_shares_the_short_grant_with_the_report() {
    // Data: 15 ms to the eNB, and the downlink's 5 ms. The ACK is in the short grant: 9 and 5 ms.
    let mut node = node(config(), &[(PathKind::Infrastructure, PathKind::Infrastructure)]);
    assert_eq!(round_trip(&mut node, 536), [20.0, 34.0]);
    let stolen = node.messages().iter().filter(|m| m.direction == FlowDirection::ToPeer);
    assert!(stolen.clone().all(|m| m.kind != MessageKind::Data), "no data grant was needed");
}

#[test]
fn data_and_acks_have_paths_of_their_own() {
    use PathKind::{Direct, Infrastructure};
    for (routes, expected) in
        [((Direct, Infrastructure), [15.0, 29.0]), ((Infrastructure, Direct), [20.0, 35.0])]
    {
        let mut node = node(config(), &[routes]);
        assert_eq!(round_trip(&mut node, 536), expected, "{routes:?}");
        for (direction, path) in [(FlowDirection::ToStation, routes.0), (FlowDirection::ToPeer, routes.1)] {
            assert_eq!(node.carried(0, direction, path).packets, 1);
            assert_eq!(node.carried(0, direction, path.other()).packets, 0);
        }
    }
}

/// Random traffic in both directions of several pairs with switches; every packet is delivered once and in
/// order, or dropped. Returns the number of drops.
fn swarm(config: SidelinkConfig, seed: u64, pairs: usize) -> u64 {
    let mut draws = Stream::new(seed, "test");
    let paths = [PathKind::Direct, PathKind::Infrastructure];
    let routes: Vec<_> = (0..pairs)
        .map(|_| {
            let path = paths[draws.below(2) as usize];
            (path, path)
        })
        .collect();
    let mut node = node(config, &routes);
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
        now += paceline_net::Duration::from_micros(700);
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
    let counted: u64 = (0..pairs)
        .flat_map(|p| FlowDirection::BOTH.map(|d| node.hops(p, d)))
        .map(|(first, relay)| first.dropped.total() + relay.dropped.total())
        .sum();
    assert_eq!(counted, dropped);
    dropped
}

#[test]
fn packets_are_conserved_and_in_order_over_random_switches() {
    let mut of_drop = 0;
    for seed in 0..12 {
        let mut draws = Stream::new(seed, "switches");
        let mut slots: Vec<Slot> = (0..20).map(|_| Slot(draws.below(3000))).collect();
        slots.sort_unstable();
        slots.dedup();
        let selection = Selection::Scripted(slots);
        let base = SidelinkConfig { selection, ..config() };
        let kept = swarm(base.clone(), seed, 3);
        let interrupted = swarm(SidelinkConfig { interrupt_harq: true, ..base.clone() }, seed, 3);
        assert!(interrupted > kept, "seed {seed}: {interrupted} against {kept} drops");
        of_drop += kept;
        let um =
            swarm(SidelinkConfig { fate: Fate::Forward { status_report: false }, ..base.clone() }, seed, 3);
        assert!(um > 0, "UM loses the content of RLC");
        let am =
            SidelinkConfig { fate: Fate::Forward { status_report: false }, rlc: RlcConfig::Am(AM), ..base };
        assert_eq!(swarm(am, seed, 3), 0, "seed {seed}: AM loses nothing");
    }
    assert!(of_drop > 0);
}

#[test]
fn distant_pairs_share_resource_blocks_and_close_ones_do_not() {
    let goodput = |spread: f64, threshold| {
        let config = SidelinkConfig { reuse_threshold_dbm: threshold, ..config() };
        let mut pairs: Vec<PairConfig> =
            (0..4).map(|i| pair(i, PathKind::Direct, PathKind::Direct)).collect();
        for (index, pair) in pairs.iter_mut().enumerate() {
            pair.motion.radius_m = spread;
            pair.motion.angle_rad = index as f64 * std::f64::consts::FRAC_PI_2;
        }
        let mut node = Sidelink::new(config, pairs, 1);
        for index in 0..4 {
            for number in 0..2000 {
                node.handle_packet(Instant::ZERO, CORE, packet(index, FlowDirection::ToStation, 536, number));
            }
        }
        let end = Instant::from_millis(300);
        node.handle_timeout(end);
        let carried = (0..4).map(|i| node.carried(i, FlowDirection::ToStation, PathKind::Direct).bytes);
        carried.sum::<u64>()
    };
    let alone = goodput(1000.0, None);
    let shared = goodput(1000.0, Some(-110.0));
    assert!(shared as f64 > 2.0 * alone as f64, "{shared} against {alone} bytes");
    let (close, apart) = (goodput(15.0, Some(-110.0)) as f64, goodput(15.0, None) as f64);
    assert!((close / apart - 1.0).abs() < 0.1, "close pairs do not: {close} against {apart} bytes");
}
