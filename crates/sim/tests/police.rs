//! ACK policers and routers with a service time between the ends of whole scenarios.

use paceline_sim::results::{PolicerResult, RouterResult};
use paceline_sim::{RunResult, scenario, simulate};

/// CUBIC downloads over a hop of 100 Mb/s with these keys, and a round trip of 20 ms.
fn run(hop: &str, stations: &str, duration_s: u64) -> RunResult {
    let text = format!(
        "[run]\nduration = \"{duration_s} s\"\nwarmup = \"1 s\"\n\
         [core]\nhops = [{{ rate = \"100 Mb/s\", delay = \"5 ms\", queue = \"500 kB\", {hop} }}]\n\
         [link]\ndelay = \"5 ms\"\n[link.fixed]\ndownlink_rate = \"1 Gb/s\"\nuplink_rate = \"1 Gb/s\"\n{stations}"
    );
    simulate(&scenario::load("police.toml", &text, &[]).unwrap(), 1, None, &mut |_| {})
}

const ONE: &str = "[[station]]\n";

fn policer(result: &RunResult) -> &PolicerResult {
    result.policers.first().expect("a policer")
}

fn router(result: &RunResult) -> &RouterResult {
    result.routers.first().expect("a router")
}

fn dropped_share(result: &RunResult) -> f64 {
    policer(result).dropped as f64 / policer(result).acks as f64
}

#[test]
fn the_router_forwards_fewer_packets_at_the_same_goodput() {
    let plain = run("service_time = \"10 us\"", ONE, 8);
    for mode in ["safe", "published"] {
        let keys = format!("service_time = \"10 us\", police = {{ mode = \"{mode}\", drop_share = 0.8 }}");
        let policed = run(&keys, ONE, 8);
        let ratio = policed.totals.goodput_mbps / plain.totals.goodput_mbps;
        assert!(ratio > 0.98, "{mode}: {ratio}");
        assert!(dropped_share(&policed) > 0.7, "{mode}: {:?}", policed.policers);
        // One ACK for two segments: without four of five ACKs there are 1.1 packets for 1.5.
        let packets = router(&policed).packets_per_s / router(&plain).packets_per_s;
        assert!((0.70..0.80).contains(&packets), "{mode}: {packets}");
        let busy = router(&policed).busy_share / router(&plain).busy_share;
        assert!((busy - packets).abs() < 0.01, "the load is linear in packets: {busy}, {packets}");
        assert_eq!(policer(&policed).packets, policer(&policed).acks, "a download's packets are ACKs");
        let kept: u64 = policer(&policed).kept.values().sum();
        assert_eq!(kept + policer(&policed).dropped, policer(&policed).acks);
    }
}

#[test]
fn the_published_policer_collapses_where_the_safe_one_does_not() {
    // The ACK rate under one per timeout: a bucket of one ACK in ten seconds.
    let police = |mode: &str| {
        run(&format!("police = {{ mode = \"{mode}\", cir = \"42 b/s\", cbs = \"52 B\" }}"), ONE, 20)
    };
    let (published, safe) = (police("published").totals, police("safe").totals);
    assert!(published.goodput_mbps < 1.0, "{}", published.goodput_mbps);
    assert!(safe.goodput_mbps > 90.0, "{}", safe.goodput_mbps);
}

#[test]
fn a_router_that_is_too_slow_drops_and_is_the_bottleneck() {
    // 250 us for a packet of either direction: 4000 packets/s, of which a third are ACKs.
    let result = run("service_time = \"250 us\", service_queue = 100", ONE, 20);
    let router = router(&result);
    assert!(router.busy_share > 0.9 && router.busy_share <= 1.0, "{router:?}");
    assert!(router.packets_per_s <= 4000.1 && router.downlink_drops > 0, "{router:?}");
    assert_eq!(router.most_waiting, 100, "{router:?}");
    let policed =
        run("service_time = \"250 us\", service_queue = 100, police = { drop_share = 0.8 }", ONE, 20);
    assert!(
        policed.totals.goodput_mbps > 1.1 * result.totals.goodput_mbps,
        "{:?}",
        policed.totals.goodput_mbps
    );
}

#[test]
fn an_exempt_group_is_not_policed() {
    let two = "[[station]]\n[[station]]\n";
    let both = run("police = { drop_share = 0.8 }", two, 8);
    let one = run("police = { drop_share = 0.8, exempt = [1] }", two, 8);
    assert!(policer(&both).acks > 3 * policer(&one).acks / 2, "{:?} {:?}", both.policers, one.policers);
    let none = run("police = { drop_share = 0.8, exempt = [0, 1] }", two, 8);
    assert_eq!((policer(&none).packets, policer(&none).dropped), (0, 0));
}

#[test]
fn the_acks_of_uploads_are_policed_in_the_downlink() {
    let upload = "[[station]]\ndirection = \"upload\"\n";
    let uplink = run("police = { drop_share = 0.8 }", upload, 6);
    assert_eq!(policer(&uplink).dropped, 0, "{:?}", uplink.policers);
    let downlink = run("police = { drop_share = 0.8, acks = \"downlink\" }", upload, 6);
    assert!(policer(&downlink).dropped > 1000, "{:?}", downlink.policers);
}

#[test]
fn mistakes_name_key_and_allowed_values() {
    for (keys, part) in [
        ("police = {}", "core.hops.0.police: allowed: exactly one of cir, drop_share and acks_per_rtt"),
        ("police = { drop_share = 0.5, cir = \"1 Mb/s\" }", "exactly one of cir"),
        ("police = { drop_share = 1.5 }", "core.hops.0.police.drop_share = 1.5: allowed: 0 to 1"),
        ("police = { drop_share = 0.5, cbs = \"5 kB\" }", "core.hops.0.police.cbs: allowed: only beside cir"),
        ("police = { cir = \"8 kb/s\", cbs = \"20 kB\" }", "52 bytes (one ACK) to 10000 bytes"),
        ("police = { acks_per_rtt = 8, per_flow = false }", "needs mode safe and one limit per flow"),
        ("police = { drop_share = 0.5, exempt = [1] }", "core.hops.0.police.exempt = 1"),
        ("police = { drop_share = 0.5, mode = \"fast\" }", "fast"),
        ("service_time = \"2 s\"", "core.hops.0.service_time = 2 s: allowed: 1 ns to 1 s"),
        ("service_queue = 0", "core.hops.0.service_queue = 0: allowed: 1 to 1000000 packets"),
    ] {
        let text =
            format!("[core]\nhops = [{{ rate = \"1 Gb/s\", delay = \"1 ms\", {keys} }}]\n[[station]]\n");
        let error = scenario::load("bad.toml", &text, &[]).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
}

#[test]
fn kept_acks_let_hystart_end_slow_start() {
    // Sixteen connections at 1 Gb/s, whose slow start HyStart ends by trains of ACKs less than 2 ms apart.
    let run = |share: f64| {
        let text = format!(
            "[run]\nduration = \"5 s\"\nwarmup = \"0 s\"\n[tcp]\npacing = \"linux\"\n\
             [core]\nhops = [{{ rate = \"10 Gb/s\", delay = \"0 ms\", police = {{ drop_share = {share} }} }}]\n\
             [link]\ndelay = \"20 ms\"\nqueue = \"2500 kB\"\n[link.fixed]\ndownlink_rate = \"1 Gb/s\"\n\
             [[station]]\nflows = 16\n"
        );
        simulate(&scenario::load("hystart.toml", &text, &[]).unwrap(), 1, None, &mut |_| {})
    };
    let (plain, policed) = (run(0.0), run(0.8));
    let sent_again =
        |result: &RunResult| -> u64 { result.flows.iter().map(|flow| flow.retransmissions).sum() };
    // The gaps of a connection are smaller in its first 8192 segments, a third of these.
    assert!(dropped_share(&policed) > 0.6, "{:?}", policed.policers);
    // 284 and 271; without the floor in slow start 6609.
    let (with, without) = (sent_again(&policed), sent_again(&plain));
    assert!(with as f64 <= 1.1 * without as f64, "{with} and {without} segments sent again");
}
