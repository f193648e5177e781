//! Pairs in NR, sidelink mode 1: the timeline of a packet, HARQ by PSFCH, changes of path, conservation.

use crate::pairs::{config, conserve, node, pair, round_trip, scripted};
use paceline_net::SlotPattern;
use paceline_ran::rlc_nr::{AmConfig, UmConfig};
use paceline_ran::sidelink::{
    Carrier, FlowDirection, MessageKind, PathKind, ResourcePool, Sidelink, SidelinkConfig,
};
use paceline_ran::{Duplex, Fate, NrConfig, Numerology, Rat, RlcConfig, SlotClock, SlotSpan};

/// A carrier of 51 PRBs with scheduling requests every 10 slots.
fn carrier(mu: u8, pattern: Option<&str>, psfch_period: u64) -> Carrier {
    let numerology = Numerology::new(mu).unwrap();
    Carrier {
        rat: Rat::Nr(NrConfig::new(numerology)),
        numerology,
        duplex: pattern
            .map_or(Duplex::Fdd, |pattern| Duplex::Tdd(SlotPattern::from_letters(pattern, mu).unwrap())),
        downlink_prb: 51,
        uplink_prb: 51,
        pucch_prb: 2,
        decode_delay: SlotSpan(1),
        sr_period: SlotSpan(10),
        pool: ResourcePool { subchannel: 10, psfch_period },
    }
}
fn nr(carrier: Carrier) -> SidelinkConfig {
    let clock = SlotClock::new(carrier.numerology);
    SidelinkConfig { carrier, rlc: RlcConfig::NrUm(UmConfig::new(clock)), ..config() }
}
fn am(config: &SidelinkConfig) -> SidelinkConfig {
    let clock = SlotClock::new(config.carrier.numerology);
    SidelinkConfig { rlc: RlcConfig::NrAm(AmConfig::new(clock)), ..config.clone() }
}

/// The slots of the messages of a direct segment, and of the answer to it.
fn timeline(carrier: Carrier) -> [Vec<(u64, MessageKind)>; 2] {
    let mut node = node(nr(carrier), &[(PathKind::Direct, PathKind::Direct)]);
    round_trip(&mut node, 536);
    FlowDirection::BOTH.map(|direction| {
        let own = node.messages().iter().filter(|message| message.direction == direction);
        own.map(|message| (message.slot.0, message.kind)).collect()
    })
}

#[test]
fn the_timeline_of_a_direct_segment_and_its_ack_follows_from_the_distances() {
    use MessageKind::{Data, Delivered, ReportDecoded, Request, ShortGrant};
    let at = |slots: [u64; 5]| {
        let kinds = [Request, ShortGrant, ReportDecoded, Data, Delivered];
        slots.into_iter().zip(kinds).collect::<Vec<_>>()
    };
    // FDD: SR in the slots of the station, 0 and 1 of 10. The gNB decides 3 slots after a reception, a PUSCH
    // and a PSSCH are 4 slots after the decision, and a block takes its slot and one for decoding.
    for mu in [0, 1, 2] {
        let expected = [at([0, 7, 10, 14, 16]), at([21, 28, 31, 35, 37])];
        assert_eq!(timeline(carrier(mu, None, 1)), expected, "numerology {mu}");
    }
    // DDDSU: uplink slots 4 and 9 of 10, granted by the slots 0 and 5; the gNB decides in downlink slots.
    let expected = [at([4, 14, 17, 24, 26]), at([29, 39, 42, 49, 51])];
    assert_eq!(timeline(carrier(1, Some("DDDSU"), 1)), expected);
}

#[test]
fn an_ack_shares_the_short_grant_on_the_infrastructure_path() {
    let mut node = node(nr(carrier(1, None, 1)), &[(PathKind::Infrastructure, PathKind::Infrastructure)]);
    let arrivals = round_trip(&mut node, 536);
    assert_eq!(arrivals.len(), 2);
    let of_ack = node.messages().iter().filter(|message| message.direction == FlowDirection::ToPeer);
    assert!(of_ack.clone().all(|message| message.kind != MessageKind::Data), "no data grant was needed");
    assert!(of_ack.clone().any(|message| message.kind == MessageKind::Relayed));
}

#[test]
fn packets_are_conserved_over_random_switches_with_every_fate_and_duplex() {
    let carriers = [
        carrier(0, None, 1),
        carrier(1, Some("DDDSU"), 1),
        carrier(1, Some("DDDSUUDDDD"), 2),
        carrier(2, None, 4),
    ];
    for seed in 0..4 {
        for carrier in &carriers {
            for fate in [Fate::Drop, Fate::Forward { status_report: false }, Fate::Duplicate] {
                let base = SidelinkConfig { selection: scripted(seed), fate, ..nr(carrier.clone()) };
                for config in [am(&base), base] {
                    let name = format!("seed {seed}, {:?}, {fate:?}, {:?}", config.carrier, config.rlc);
                    let lossless = matches!(config.rlc, RlcConfig::NrAm(_)) || fate == Fate::Duplicate;
                    let pairs = (0..3).map(|index| pair(index, PathKind::Direct, PathKind::Direct)).collect();
                    let mut node = Sidelink::new(config, pairs, seed);
                    let dropped = conserve(&mut node, seed, 3, &mut paceline_net::Stream::new(seed, "test"));
                    assert_eq!(dropped == 0, lossless && fate != Fate::Drop, "{name}: {dropped} dropped");
                }
            }
        }
    }
}

#[test]
fn failed_direct_blocks_are_sent_again_after_their_answer() {
    let mut weak = am(&nr(carrier(1, Some("DDDSU"), 1)));
    weak.budget.cqi_margin_db = -2.5;
    weak.budget.ue_power_dbm = -12.0;
    let pairs = vec![pair(0, PathKind::Direct, PathKind::Direct)];
    let mut node = Sidelink::new(weak, pairs, 3);
    let dropped = conserve(&mut node, 3, 1, &mut paceline_net::Stream::new(3, "test"));
    assert_eq!(dropped, 0);
    let [_, direct, ..] = node.counters(0, FlowDirection::ToStation);
    assert!(direct.harq_retransmissions > 20, "{direct:?}");
    // A verdict needs 18 slots (slot 4 to 22), and the grant leads to slot 29: 25 slots per retransmission.
    let mean = direct.harq_wait_slots.0 as f64 / direct.harq_retransmissions as f64;
    assert!((mean - 25.0).abs() < 3.0, "{mean} slots per retransmission");
}
