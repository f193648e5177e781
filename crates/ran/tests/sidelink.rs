//! Pairs with direct links: the published timeline, routes, switches, conservation of packets.

use crate::pairs::{AM, config, conserve, node, packet, pair, round_trip, scripted, swarm};
use paceline_net::{Instant, Node, Stream};
use paceline_ran::sidelink::{FlowDirection, MessageKind, PairConfig, PathKind, Sidelink, SidelinkConfig};
use paceline_ran::{CORE, Fate, RlcConfig};

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

#[test]
fn packets_are_conserved_and_in_order_over_random_switches() {
    let mut of_drop = 0;
    for seed in 0..12 {
        let base = SidelinkConfig { selection: scripted(seed), ..config() };
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
fn a_duplicated_switch_loses_no_packet_in_either_mode_and_delivers_each_once() {
    for seed in 0..12 {
        for rlc in [RlcConfig::Um, RlcConfig::Am(AM)] {
            let base = SidelinkConfig { selection: scripted(seed), fate: Fate::Duplicate, rlc, ..config() };
            assert_eq!(swarm(base.clone(), seed, 3), 0, "seed {seed}, {rlc:?}");
        }
        // In UM both directions may have paths of their own.
        let um = SidelinkConfig { selection: scripted(seed), fate: Fate::Duplicate, ..config() };
        let mut node = node(um, &[(PathKind::Direct, PathKind::Infrastructure); 2]);
        assert_eq!(conserve(&mut node, seed, 2, &mut Stream::new(seed, "test")), 0, "seed {seed}");
        let copies = |direction| node.counters(0, direction)[0].pdcp_copies;
        assert!(FlowDirection::BOTH.into_iter().map(copies).sum::<u64>() > 0, "both paths carry packets");
    }
}

#[test]
fn weak_links_lose_nothing_in_am_whatever_the_fate_but_drop() {
    for seed in 0..8 {
        for fate in [Fate::Duplicate, Fate::Forward { status_report: false }] {
            let base = SidelinkConfig { selection: scripted(seed), fate, ..config() };
            let mut weak = SidelinkConfig { rlc: RlcConfig::Am(AM), ..base };
            // No margin: HARQ repeats one block in ten.
            weak.budget.cqi_margin_db = 0.0;
            weak.budget.ue_power_dbm = -24.0;
            weak.max_harq_tx = 2;
            let pairs = (0..3).map(|index| pair(index, PathKind::Direct, PathKind::Direct)).collect();
            let mut node = Sidelink::new(weak, pairs, seed);
            assert_eq!(
                conserve(&mut node, seed, 3, &mut Stream::new(seed, "test")),
                0,
                "seed {seed} {fate:?}"
            );
            let repeated = |pair| FlowDirection::BOTH.map(|d| node.counters(pair, d));
            let harq: u64 = (0..3).flat_map(repeated).flatten().map(|stats| stats.harq_retransmissions).sum();
            assert!(harq > 20, "{harq}");
        }
    }
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
