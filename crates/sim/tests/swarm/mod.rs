//! Random scenarios from seeds: in each of them packets are conserved (every packet that entered left or is
//! still there), nothing panics, and data arrive in order.

mod random;

use paceline_net::{Bytes, DropReason, Instant, Stream};
use paceline_ran::sidelink::FlowDirection;
use paceline_sim::link::PipeStats;
use paceline_sim::model::Access;
use paceline_sim::scenario::{AcceleratorProfile, Proxy, Stations};
use paceline_sim::{Model, scenario};
use paceline_tcp::{EcnMode, Limit};
use random::{pick, random_deployment, random_link, random_pairs, random_scenario};

/// Numbers of scenarios. Chosen: some seconds each in a debug build.
const SCENARIOS: u64 = 60;
const DEPLOYMENTS: u64 = 250;
const LINKS: u64 = 80;
const PAIRS: u64 = 120;

/// Asserts that no packet and no byte is lost or counted twice: at UDP, TCP, the cell or the link.
fn check_conservation(model: &Model, seed: u64) {
    for station in 0..model.stations() {
        if let Some((server, host)) = model.udp(station) {
            let copies = match model.access() {
                Access::Cell(_) | Access::Sidelink(_) => 0,
                Access::Link(link) => link.downlink(station).copies + link.uplink(station).copies,
            };
            for (sender, receiver) in [(server, host), (host, server)] {
                assert!(receiver.received <= sender.sent + copies, "seed {seed}: more received than sent");
                assert!(sender.answers <= receiver.received + copies, "seed {seed}: more answers than sent");
            }
        }
        for (server, host) in model.flows(station) {
            for (from, to) in [(server, host), (host, server)] {
                let (acked, received) = (from.stats().bytes_acked, to.stats().bytes_received);
                // A proxy acknowledges before the far end has the data.
                let plausible = model.pep().is_some() || acked <= received;
                assert!(plausible, "seed {seed}: {acked} bytes acknowledged, {received} received");
                assert!(received <= from.stats().bytes_sent, "seed {seed}: more received than sent");
                let times = from.limits(model.engine.now());
                let sum: f64 = Limit::ALL.iter().map(|limit| times.share(*limit)).sum();
                let has_lifetime = !times.life().is_zero();
                assert!(!has_lifetime || (sum - 1.0).abs() < 1e-9, "seed {seed}: shares of {sum}: {times:?}");
                // A proxy without hops before it acknowledges at once: the connection then has no length.
                let has_rtt = from.stats().rtt_ns > 0;
                let silent = acked == 0 || from.is_requester();
                assert!(has_lifetime || silent || !has_rtt, "seed {seed}: {acked} bytes in no time");
                assert!(times.life() <= model.engine.now().since(Instant::ZERO), "seed {seed}: {times:?}");
            }
        }
    }
    match model.access() {
        Access::Cell(cell) => check_cell(cell, model.stations(), seed),
        Access::Sidelink(sidelink) => {
            for station in 0..model.stations() {
                for direction in FlowDirection::BOTH {
                    let [stats, ..] = sidelink.counters(station, direction);
                    let out = stats.packets_out + stats.dropped.total() + sidelink.held(station, direction);
                    assert_eq!(stats.packets_in, out, "seed {seed}, station {station}: {stats:?}");
                }
            }
        }
        Access::Link(link) => {
            for station in 0..model.stations() {
                for stats in [link.downlink(station), link.uplink(station)] {
                    let PipeStats { packets_in, copies, packets_out, queue_drops, losses, held, .. } = stats;
                    let out = packets_out + queue_drops + losses + held;
                    assert_eq!(packets_in + copies, out, "seed {seed}, station {station}: {stats:?}");
                }
            }
        }
    }
}

fn check_cell(cell: &paceline_ran::Cell, stations: usize, seed: u64) {
    for station in 0..stations {
        let held = cell.held(station);
        for (name, stats, held) in
            [("downlink", cell.downlink(station), held.0), ("uplink", cell.uplink(station), held.1)]
        {
            let out = stats.packets_out + stats.dropped.total();
            assert_eq!(stats.packets_in, out + held, "seed {seed}, station {station}, {name}: {stats:?}");
        }
        let buffer = cell.uplink_buffer(station);
        let counters = buffer.counters();
        let out = counters.packets_out + counters.acks_discarded + counters.queue_drops + counters.expired;
        assert_eq!(
            counters.packets_in,
            out + buffer.packets() as u64,
            "seed {seed}, station {station}: {counters:?}"
        );
    }
}

#[test]
fn packets_are_conserved_in_random_scenarios() {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut moved = 0;
    for seed in first..first + SCENARIOS {
        let mut stream = Stream::new(seed, "swarm");
        let scenario = random_scenario(&mut stream);
        let text = scenario.to_toml();
        let loaded =
            scenario::load("swarm.toml", &text, &[]).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert_eq!(loaded.to_toml(), text, "seed {seed}: the resolved file gives the same scenario");
        let scenario = loaded;
        let mut model = Model::new(&scenario, seed, &[]);
        for step in 1..=6 {
            model.engine.run_until(Instant::from_millis(500 * step));
            check_conservation(&model, seed);
        }
        moved += model.monitor().counters().iter().map(|c| c.downloaded + c.uploaded).sum::<u64>();
    }
    assert!(moved > 10_000_000, "all scenarios moved {moved} bytes");
}

#[test]
fn packets_are_conserved_in_random_deployments() {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut moved, mut failures, mut expired, mut handovers) = (0, 0, 0, 0);
    for seed in first..first + DEPLOYMENTS {
        let mut stream = Stream::new(seed, "deployments");
        let scenario = random_deployment(&mut stream);
        let text = scenario.to_toml();
        let loaded =
            scenario::load("swarm.toml", &text, &[]).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert_eq!(loaded.to_toml(), text, "seed {seed}: the resolved file gives the same scenario");
        let scenario = loaded;
        let mut model = Model::new(&scenario, seed, &[]);
        for step in 1..=3 {
            model.engine.run_until(Instant::from_millis(500 * step));
            check_conservation(&model, seed);
        }
        moved += model.monitor().counters().iter().map(|c| c.downloaded + c.uploaded).sum::<u64>();
        handovers += model.cell().handovers().len();
        for station in 0..model.stations() {
            for stats in [model.cell().downlink(station), model.cell().uplink(station)] {
                failures += stats.radio_link_failures;
                expired += stats.dropped.of(DropReason::PdcpDiscard);
            }
        }
    }
    assert!(moved > 10_000_000, "all scenarios moved {moved} bytes");
    assert!(failures > 5 && expired > 50, "{failures} radio-link failures, {expired} discards");
    assert!(handovers > 50, "{handovers} handovers");
}

#[test]
fn packets_are_conserved_among_random_pairs() {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut moved, mut switches, mut copies, mut filtered) = (0, 0, 0, 0);
    for seed in first..first + PAIRS {
        let mut stream = Stream::new(seed, "pairs");
        let scenario = random_pairs(&mut stream);
        let text = scenario.to_toml();
        let loaded =
            scenario::load("swarm.toml", &text, &[]).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert_eq!(loaded.to_toml(), text, "seed {seed}: the resolved file gives the same scenario");
        let scenario = loaded;
        let mut model = Model::new(&scenario, seed, &[]);
        for step in 1..=6 {
            model.engine.run_until(Instant::from_millis(500 * step));
            check_conservation(&model, seed);
        }
        let Access::Sidelink(sidelink) = model.access() else { panic!("pairs") };
        moved += model.monitor().counters().iter().map(|c| c.downloaded + c.uploaded).sum::<u64>();
        switches += sidelink.switches().len();
        for (station, direction) in (0..model.stations()).flat_map(|s| FlowDirection::BOTH.map(|d| (s, d))) {
            copies += sidelink.counters(station, direction)[0].pdcp_copies;
            filtered += sidelink.buffer(station, direction).acks_discarded;
        }
    }
    assert!(moved > 10_000_000, "all scenarios moved {moved} bytes");
    assert!(switches > 500 && copies > 500 && filtered > 500, "{switches} {copies} {filtered}");
}

#[test]
fn packets_are_conserved_on_random_links() {
    let first = std::env::var("PACELINE_SWARM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut moved, mut kinds, mut ends) = (0, [0; 4], [0; 4]);
    for seed in first..first + LINKS {
        let mut stream = Stream::new(seed, "links");
        let mut scenario = random_scenario(&mut stream);
        let unset = Stations::default();
        for group in &mut scenario.stations {
            (group.downlink_sinr, group.uplink_sinr) = (unset.downlink_sinr, unset.uplink_sinr);
            (group.fading, group.coherence) = (unset.fading, unset.coherence);
        }
        scenario.access = scenario::Access::Link(Box::new(random_link(&mut stream)));
        if stream.chance(0.5) {
            scenario.tcp.ecn = EcnMode::On;
        }
        scenario.core.proxy =
            pick(&mut stream, &[Proxy::None, Proxy::None, Proxy::SplitTcp, Proxy::Accelerator]);
        let hops = scenario.core.hops.len() as u64;
        scenario.core.proxy_after = stream.chance(0.3).then(|| stream.below(hops + 1) as usize);
        if stream.chance(0.3) {
            scenario.accelerator.profile = AcceleratorProfile::Paper;
        }
        scenario.accelerator.flow_buffer = Bytes((16 << 10) + stream.below(4 << 20));
        scenario.accelerator.exposure = Bytes(stream.below(4 << 20));
        scenario.split_tcp.buffer = Bytes((16 << 10) + stream.below(4 << 20));
        let mut at = 0;
        let lines = (0..1 + stream.below(300)).map(|_| {
            at += stream.below(4) * stream.below(4);
            format!("{at}\n")
        });
        let trace = lines.collect::<String>() + &format!("{}\n", at + 1);
        let text = scenario.to_toml();
        let scenario = scenario::load_with("swarm.toml", &text, &[], &|_| Ok(trace.clone().into()))
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let again =
            scenario::load_with("swarm.toml", &scenario.to_toml(), &[], &|_| Ok(trace.clone().into()));
        assert_eq!(again.unwrap(), scenario, "seed {seed}: the resolved file gives the same scenario");
        let link = scenario.link().unwrap();
        let present =
            [link.fixed.is_some(), link.trace.is_some(), link.hspa.is_some(), link.lte_early.is_some()];
        kinds[present.iter().position(|is| *is).unwrap()] += 1;
        let mut model = Model::new(&scenario, seed, &[]);
        for step in 1..=6 {
            model.engine.run_until(Instant::from_millis(500 * step));
            check_conservation(&model, seed);
        }
        let Access::Link(link) = model.access() else { panic!("a link") };
        for station in 0..model.stations() {
            moved +=
                model.monitor().counters()[station].downloaded + model.monitor().counters()[station].uploaded;
            for stats in [link.downlink(station), link.uplink(station)] {
                for (end, count) in
                    ends.iter_mut().zip([stats.queue_drops, stats.losses, stats.copies, stats.marked])
                {
                    *end += count;
                }
            }
        }
    }
    assert!(
        moved > 10_000_000 && kinds.iter().all(|n| *n > 5),
        "all scenarios moved {moved} bytes over {kinds:?}"
    );
    assert!(ends.iter().all(|count| *count > 100), "drops, losses, copies, marks: {ends:?}");
}
