//! Queue disciplines and Poisson arrivals between the ends of whole scenarios.

use paceline_sim::results::QueueResult;
use paceline_sim::{RunResult, scenario, simulate};

fn run(text: &str, seed: u64) -> RunResult {
    simulate(&scenario::load("test.toml", text, &[]).unwrap(), seed, None, &mut |_| {})
}

/// CUBIC downloads at 10 Mb/s over a round trip of 40 ms for 25 s, of which the first five are not measured.
fn cubic(place: &str, keys: &str, ecn: &str, flows: u32) -> RunResult {
    let (hop, link) = if place == "hop" { (keys, "") } else { ("", keys) };
    let hop_rate = if place == "hop" { "10 Mb/s" } else { "1 Gb/s" };
    let hop: String = hop.lines().map(|line| format!(", {line}")).collect();
    let link_rate = if place == "hop" { "1 Gb/s" } else { "10 Mb/s" };
    run(
        &format!(
            "[run]\nduration = \"25 s\"\nwarmup = \"5 s\"\n[tcp]\necn = \"{ecn}\"\n\
             [core]\nhops = [{{ rate = \"{hop_rate}\", delay = \"5 ms\"{hop} }}]\n\
             [link]\ndelay = \"15 ms\"\n{link}\n[link.fixed]\ndownlink_rate = \"{link_rate}\"\n\
             uplink_rate = \"1 Gb/s\"\n[[station]]\nflows = {flows}\n"
        ),
        1,
    )
}

fn downlink(result: &RunResult) -> &QueueResult {
    result.queues.iter().find(|queue| queue.queue.ends_with("downlink")).expect("a managed queue")
}

#[test]
fn codel_holds_cubic_near_the_target_and_marks_instead_of_dropping_where_ecn_is_on() {
    for (place, name) in [("link", "link downlink"), ("hop", "core.hops.0 downlink")] {
        for ecn in ["off", "on"] {
            let result = cubic(place, "queue_discipline = \"codel\"", ecn, 1);
            let queue = downlink(&result);
            assert_eq!((queue.queue.as_str(), queue.discipline.as_str()), (name, "codel"));
            // The mean delay is of the order of the target (RFC 8289 §4.3); the sawtooth of one flow goes to
            // some targets between its signals.
            assert!(result.totals.goodput_mbps > 8.5, "{place}, {ecn}: {}", result.totals.goodput_mbps);
            assert!(queue.sojourn_mean_ms < 10.0 && queue.sojourn_p95_ms < 25.0, "{place}, {ecn}: {queue:?}");
            assert_eq!((queue.marks > 0, queue.drops > 0), (ecn == "on", ecn == "off"), "{queue:?}");
            assert_eq!(queue.overflows, 0, "{queue:?}");
            if ecn == "on" {
                assert_eq!(result.totals.retransmission_share, 0.0, "{place}");
            }
        }
    }
    let drop_tail = cubic("link", "", "off", 1);
    assert!(
        drop_tail.queues.is_empty() && drop_tail.totals.link_delay_p95_ms > 100.0,
        "{:?}",
        drop_tail.totals
    );
}

/// RFC 3168: marks lower the accelerator's rate as they lower a sender's. At 10 Mb/s a packet needs 1.2 ms.
#[test]
fn marks_hold_the_accelerators_queue_near_codels_target() {
    for discipline in ["codel", "fq-codel"] {
        let result = run(
            &format!(
                "[run]\nduration = \"25 s\"\nwarmup = \"5 s\"\n[tcp]\necn = \"on\"\n\
                 [core]\nproxy = \"accelerator\"\n[link]\ndelay = \"15 ms\"\n\
                 queue_discipline = \"{discipline}\"\n[link.fixed]\ndownlink_rate = \"10 Mb/s\"\n\
                 uplink_rate = \"1 Gb/s\"\n[[station]]\n"
            ),
            1,
        );
        let queue = downlink(&result);
        assert!(queue.marks > 0 && queue.drops == 0, "{queue:?}");
        assert!(queue.sojourn_mean_ms < 10.0 && queue.sojourn_p95_ms < 15.0, "{queue:?}");
        assert!(result.totals.goodput_mbps > 9.3, "{}", result.totals.goodput_mbps);
    }
}

#[test]
fn fq_codel_shares_a_link_between_flows_and_serves_a_sparse_flow_first() {
    let text = |discipline: &str| {
        format!(
            "[run]\nduration = \"20 s\"\nwarmup = \"5 s\"\n[core]\nhops = []\n\
             [link]\ndelay = \"20 ms\"\n{discipline}\n[link.fixed]\ndownlink_rate = \"10 Mb/s\"\n\
             [[station]]\nflows = 6\n[[station]]\n\
             [[station]]\ntraffic = \"udp\"\nudp_rate = \"64 kb/s\"\nudp_payload = \"160 B\"\n"
        )
    };
    let result = run(&text("queue_discipline = \"fq-codel\""), 1);
    let shares: Vec<f64> = result.stations.iter().map(|station| station.goodput_mbps).collect();
    // Seven flows of TCP: the station with six of them gets six shares.
    assert!((shares[0] / shares[1] - 6.0).abs() < 0.6, "{shares:?}");
    // A datagram waits for the packet in service and for those of other new flows, at 1.2 ms each.
    assert!(result.totals.udp_delay_mean_ms < 20.0 + 4.0, "{}", result.totals.udp_delay_mean_ms);
    let plain = run(&text(""), 1);
    assert!(plain.totals.udp_delay_mean_ms > 100.0, "{}", plain.totals.udp_delay_mean_ms);
}

#[test]
fn a_trace_with_codel_keeps_every_opportunity_while_packets_wait() {
    let text = "[run]\nduration = \"20 s\"\nwarmup = \"5 s\"\n[core]\nhops = []\n\
                [link]\nqueue_discipline = \"codel\"\n[link.trace]\ndownlink = \"x\"\n\
                [[station]]\ntraffic = \"udp\"\nudp_rate = \"14 Mb/s\"\n";
    let trace = |_: &str| Ok((1..=1000).map(|ms| format!("{ms}\n")).collect::<String>().into_bytes());
    let scenario = scenario::load_with("test.toml", text, &[], &trace).unwrap();
    let result = simulate(&scenario, 1, None, &mut |_| {});
    let totals = &result.totals;
    // UDP does not react, so that the queue grows to its limit; 1500 of 1504 bytes are the packet's.
    let most = totals.link_capacity_mbps * 1500.0 / 1504.0;
    assert!((totals.link_sent_mbps / most - 1.0).abs() < 1e-3, "{} of {most}", totals.link_sent_mbps);
    assert!(downlink(&result).drops > 100, "{:?}", result.queues);
}

#[test]
fn poisson_arrivals_wait_as_in_an_md1_queue() {
    // Packets of 1000 bytes at 8 Mb/s: a service time of 1 ms.
    for load in [0.5, 0.8] {
        let rate = (load * 8000.0) as u64;
        let text = format!(
            "[run]\nduration = \"11 s\"\nwarmup = \"1 s\"\n[core]\nhops = []\n\
             [link]\nqueue = \"1 GiB\"\n[link.fixed]\ndownlink_rate = \"8 Mb/s\"\n\
             [[station]]\ntraffic = \"udp\"\nudp_arrivals = \"poisson\"\nudp_rate = \"{rate} kb/s\"\n\
             udp_payload = \"972 B\"\n"
        );
        let waits: Vec<f64> = (1..=8).map(|seed| run(&text, seed).totals.link_delay_mean_ms - 1.0).collect();
        let n = waits.len() as f64;
        let mean = waits.iter().sum::<f64>() / n;
        let squares: f64 = waits.iter().map(|wait| (wait - mean) * (wait - mean)).sum();
        let error = (squares / (n * (n - 1.0))).sqrt();
        // Pollaczek-Khinchine with a constant service time.
        let expected = load / (2.0 * (1.0 - load));
        // Student's t for 99.9% and 7 degrees of freedom.
        assert!(
            (mean - expected).abs() < 5.41 * error,
            "{load}: {mean} +- {error} ms, expected {expected} ms"
        );
        assert!(error < 0.1 * expected, "{load}: the standard error is {error} ms");
    }
}
