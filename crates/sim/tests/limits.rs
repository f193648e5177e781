//! The limits of TCP in results: one scenario per cause, whose verdict must name it.

use paceline_sim::results::{GroupResult, LimitShares, Origin};
use paceline_sim::{RunResult, Summary, scenario, simulate};

/// The result of the first group of stations, and the run.
fn limits_of(text: &str, sets: &[&str]) -> (GroupResult, RunResult) {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let text = format!("[run]\nduration = \"10 s\"\nwarmup = \"1 s\"\n{text}");
    let scenario = scenario::load("limits.toml", &text, &sets).unwrap();
    let run = simulate(&scenario, 3, None, &mut |_| {});
    for flow in &run.flows {
        let sum: f64 = flow.limits.values().iter().sum();
        assert!((sum - 1.0).abs() < 1e-9 && flow.life_s > 0.0, "{flow:?}");
    }
    let origin = Origin { version: String::from("0"), commit: String::from("none") };
    let summary = Summary::new(origin, "limits", "simulated", &scenario, vec![run.clone()]);
    let totals = &summary.mean;
    let sum = totals.handshake_share
        + totals.application_share
        + totals.send_buffer_share
        + totals.receive_window_share
        + totals.congestion_window_share
        + totals.pacing_share
        + totals.recovery_share
        + totals.timeout_share;
    assert!((sum - 1.0).abs() < 1e-9, "{totals:?}");
    let csv = summary.flows_csv();
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{csv}");
    println!("{}", summary.groups[0].verdict);
    (summary.groups[0].clone(), run)
}
fn mostly(group: &GroupResult, share: fn(&LimitShares) -> f64, words: &[&str]) {
    assert!(share(&group.limits) > 0.6, "{group:?}");
    assert!(words.iter().all(|word| group.verdict.contains(word)), "{words:?}: {}", group.verdict);
}

const DOWNLOAD: &str = "[[station]]\ncount = 2\n";

#[test]
fn a_small_receive_window_is_named() {
    let (group, run) = limits_of(DOWNLOAD, &["tcp.receive_buffer=64 kB", "tcp.autotune=false"]);
    mostly(&group, |shares| shares.receive_window, &["limited by the receive window", "64 kB at"]);
    // The goodput is window over round-trip time.
    let by_hand = 2.0 * 64.0 * 8.0 / group.mean.rtt_mean_ms;
    assert!((run.totals.goodput_mbps / by_hand - 1.0).abs() < 0.1, "{by_hand} {}", run.totals.goodput_mbps);
}

#[test]
fn the_17_kb_window_of_windows_xp_is_named() {
    let (group, _) = limits_of(DOWNLOAD, &["tcp.profile=windows-xp"]);
    mostly(&group, |shares| shares.receive_window, &["limited by the receive window", "18 kB at"]);
}

#[test]
fn an_application_with_little_data_is_named() {
    let chunks = format!("{DOWNLOAD}chunk = \"2 kB\"\nchunk_interval = \"200 ms\"\n");
    let (group, _) = limits_of(&chunks, &[]);
    mostly(&group, |shares| shares.application, &["without data to send"]);
}

#[test]
fn a_narrow_downlink_is_named_with_its_queue_and_the_congestion_window() {
    let (group, _) = limits_of(DOWNLOAD, &["cell.bandwidth=3 MHz"]);
    mostly(
        &group,
        |shares| shares.congestion_window,
        &["limited by the downlink", "congestion window", "queue"],
    );
    assert!(group.round_trip.downlink_queue > 0.5, "{group:?}");
}

#[test]
fn losses_at_a_short_queue_are_named_as_the_congestion_window() {
    // Losses limit the window to the capacity of a hop of 20 ms and a queue of half as much.
    let hop = "[[core.hops]]\nrate = \"10 Mb/s\"\ndelay = \"20 ms\"\nqueue = \"30 kB\"\n";
    let (group, _) = limits_of(&format!("{hop}{DOWNLOAD}"), &["tcp.congestion_control=newreno"]);
    mostly(&group, |shares| shares.congestion_window, &["limited by the congestion window"]);
    assert!(!group.verdict.contains("downlink"), "{}", group.verdict);
}

#[test]
fn pacing_at_a_configured_rate_is_named() {
    let (group, _) = limits_of(DOWNLOAD, &["tcp.pacing=2 Mb/s"]);
    mostly(&group, |shares| shares.pacing, &["limited by pacing", "2.0 Mb/s"]);
}

#[test]
fn recovery_by_timeouts_alone_is_named() {
    // A queue of one packet at a narrow hop, and a sender whose windows are too small for fast retransmit.
    let hop = "[[core.hops]]\nrate = \"200 kb/s\"\ndelay = \"20 ms\"\nqueue = \"1500 B\"\n";
    let sets = ["tcp.profile=rfc793+reno", "tcp.initial_window=4", "station.0.flows=3"];
    let (group, run) = limits_of(&format!("{hop}{DOWNLOAD}"), &sets);
    mostly(&group, |shares| shares.timeout, &["waiting for time-outs"]);
    let timeouts: u64 = run.flows.iter().map(|flow| flow.timeouts).sum();
    assert!(group.verdict.contains(&format!("{timeouts} of them")), "{}", group.verdict);
}

#[test]
fn a_short_uplink_is_named_before_the_window_that_it_limits() {
    let cell = "[cell]\nuplink_bandwidth = \"1.4 MHz\"\n";
    let stations = "[[station]]\ncount = 10\nuplink_sinr = \"0 dB\"\n";
    let (group, run) =
        limits_of(&format!("{cell}{stations}"), &["tcp.segment_size=536 B", "tcp.delayed_ack_segments=1"]);
    assert!(group.verdict.starts_with("limited by the uplink"), "{}", group.verdict);
    assert!(group.round_trip.uplink_queue > 0.5, "{group:?}");
    // The parts are means over packets, and add up to about the round-trip time.
    for flow in &run.flows {
        let sum: f64 = flow.round_trip.values().iter().sum();
        assert!(sum > 0.5 && sum < 1.15, "{flow:?}");
    }
}

#[test]
fn the_round_trip_of_a_lone_segment_is_the_wait_for_a_grant() {
    let chat = "[[station]]\nchunk = \"500 B\"\nchunk_interval = \"300 ms\"\n";
    let (group, run) =
        limits_of(chat, &["cell.sr_period=80 ms", "core.hops=[]", "tcp.delayed_ack_segments=1"]);
    mostly(&group, |shares| shares.application, &["without data to send"]);
    // Each ACK arrives at an empty buffer: up to 80 ms to the SR occasion, and 8 ms to the transport block.
    assert!(group.round_trip.grant > 0.6 && group.round_trip.uplink_queue < 0.1, "{group:?}");
    let waited = run.stations[0].waits.grant;
    assert!((waited - run.stations[0].uplink.sr_wait_mean_ms).abs() < 1.0, "{waited}");
}

/// Segments that wait for a downlink that seldom carries them count in the mean delays, but not in the round
/// trips.
#[test]
fn shares_of_the_round_trip_add_up_to_at_most_one_with_losses() {
    const RARE: &str = "[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\n[cell]\nrat = \"nr\"\nbandwidth = \"100 MHz\"\n\
                        pattern = \"DSUUU\"\nrlc = \"am\"\nmax_harq_tx = 1\n[[station]]\ncount = 2\n\
                        downlink_sinr = \"-30 dB\"\nfading = \"12 dB\"\ncoherence = \"50 ms\"\nfile = \"30 kB\"\n";
    let mut full = 0;
    for path in ["none", "split-tcp"] {
        let scenario = scenario::load("rare.toml", RARE, &[format!("core.proxy={path}")]).unwrap();
        for seed in 1..=16 {
            let run = simulate(&scenario, seed, None, &mut |_| {});
            let totals = &run.totals;
            let parts = [
                totals.rtt_downlink_queue_share,
                totals.rtt_grant_share,
                totals.rtt_uplink_queue_share,
                totals.rtt_harq_share,
            ];
            let sums = run.flows.iter().map(|flow| flow.round_trip.values().iter().sum::<f64>());
            for sum in sums.chain([parts.iter().sum()]) {
                assert!((0.0..=1.0 + 1e-9).contains(&sum), "{path}, seed {seed}: {sum}");
                full += u32::from(sum > 1.0 - 1e-9);
            }
        }
    }
    assert!(full > 10, "{full} sums are those of parts that exceed the round trip");
}

#[test]
fn a_station_without_connections_has_no_verdict() {
    let scenario = scenario::load("idle.toml", "[[station]]\ndirection = \"none\"\n", &[]).unwrap();
    let run = simulate(&scenario, 1, None, &mut |_| {});
    let origin = Origin { version: String::from("0"), commit: String::from("none") };
    assert!(Summary::new(origin, "idle", "simulated", &scenario, vec![run]).groups.is_empty());
}

/// The first transmission of MCS 0 fails more often than one in ten from -7.0 dB on; four transmissions gain
/// 6 dB.
#[test]
fn a_weak_uplink_is_served_as_far_as_harq_carries_it_and_named_below() {
    const NR: &str = "[cell]\nrat = \"nr\"\nbandwidth = \"20 MHz\"\nduplex = \"fdd\"\n\
                      subcarrier_spacing = \"15 kHz\"\n[[station]]\n";
    for (cell, uplink_db, served) in [
        ("[[station]]\n", -7.1, true),
        ("[[station]]\n", -12.0, true),
        ("[[station]]\n", -13.2, false),
        ("[[station]]\n", -16.0, false),
        (NR, -7.1, true),
        (NR, -12.0, true),
        (NR, -13.2, false),
        (NR, -16.0, false),
    ] {
        let text =
            format!("[run]\nduration = \"5 s\"\nwarmup = \"1 s\"\n{cell}uplink_sinr = \"{uplink_db} dB\"\n");
        let text = format!("{text}downlink_sinr = \"20 dB\"\nfading = \"0 dB\"\n");
        let run = simulate(&scenario::load("weak.toml", &text, &[]).unwrap(), 3, None, &mut |_| {});
        let cause = run.stations[0].no_service.as_deref();
        let case = format!("{cell} {uplink_db} dB: {} Mb/s, {cause:?}", run.totals.goodput_mbps);
        println!("{case}");
        assert_eq!(run.totals.goodput_mbps > 5.0, served, "{case}");
        let named = cause.is_some_and(|cause| cause.contains("uplink's SINR is too low for MCS 0"));
        assert_eq!(named, !served, "{case}");
    }
}
