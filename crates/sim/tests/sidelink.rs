//! TCP between two stations with a direct link: published round-trip times, routes and changes of path.

use paceline_sim::{RunResult, Scenario, scenario, simulate};

const STATIC: &str = include_str!("../../../scenarios/d2d-static.toml");
const NR: &str = include_str!("../../../scenarios/d2d-nr.toml");
const DYNAMIC: &str = include_str!("../../../scenarios/d2d-dynamic.toml");

fn load(text: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    scenario::load("test.toml", text, &set).unwrap()
}
fn run(text: &str, set: &[&str]) -> RunResult {
    let scenario = load(text, set);
    simulate(&scenario, scenario.run.seed, None, &mut |_| {})
}

#[test]
fn the_round_trip_on_the_direct_link_is_30_ms_without_variation() {
    for window in ["7504 B", "8192 B"] {
        for size in ["536 B", "1024 B", "1460 B"] {
            let set = [format!("tcp.receive_buffer={window}"), format!("tcp.segment_size={size}")];
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            let result = run(STATIC, &[&set[..], &["run.duration=6 s"]].concat());
            assert_eq!(result.stations[0].rtt_mean_ms, 30.0, "{window}, {size}");
            // The histogram of the 95th percentile has bins of 1/1000 and more.
            assert!((result.totals.rtt_p95_ms - 30.0).abs() < 0.05, "{}", result.totals.rtt_p95_ms);
        }
    }
}

#[test]
fn the_round_trip_through_the_enb_fluctuates_about_42_ms_unless_every_block_has_a_report() {
    let both = ["sidelink.data=infrastructure", "sidelink.acks=infrastructure"];
    let of = |window: &str, bsr: &str| {
        let set = [format!("tcp.receive_buffer={window}"), format!("sidelink.trailing_bsr={bsr}")];
        let set: Vec<&str> = both.into_iter().chain(set.iter().map(String::as_str)).collect();
        run(STATIC, &set)
    };
    let backlog = ["7504 B", "8192 B"].map(|window| of(window, "backlog"));
    for result in &backlog {
        let (mean, p95) = (result.stations[0].rtt_mean_ms, result.totals.rtt_p95_ms);
        assert!((38.0..46.0).contains(&mean) && p95 > mean + 1.0, "{mean} {p95}");
    }
    let always = of("8192 B", "always");
    assert_eq!(always.stations[0].rtt_mean_ms, 34.0);
}

#[test]
fn paths_follow_the_cqi_as_the_stations_move() {
    let result = run(DYNAMIC, &["run.duration=130 s"]);
    // 130 m at 6 m/s are a crossing in 21.7 s: six of them in 130 s.
    let to_station: Vec<_> = result.switches.iter().filter(|s| s.direction == "to-station").collect();
    assert_eq!(to_station.len(), 6, "{to_station:?}");
    for (index, switch) in to_station.iter().enumerate() {
        let (path, better) = match index % 2 {
            0 => ("infrastructure", switch.uplink_cqi > switch.direct_cqi),
            _ => ("direct", switch.direct_cqi > switch.uplink_cqi),
        };
        assert_eq!((switch.path.as_str(), better), (path, true), "{switch:?}");
        assert_eq!(switch.uplink_cqi, 9, "constant on the circle");
        assert!(switch.time_s.fract() == 0.0 && switch.dropped_packets > 0);
    }
    assert!(result.paths.iter().all(|path| path.packets > 0), "{:?}", result.paths);
    // Hysteresis delays changes and may spare some.
    let slow = run(DYNAMIC, &["run.duration=60 s", "sidelink.hysteresis=1"]);
    assert!(slow.switches[0].time_s > result.switches[0].time_s);
}

#[test]
fn a_forwarded_switch_costs_tcp_nothing_and_a_dropping_one_a_part_of_the_window() {
    let script = ["sidelink.selection=scripted", "sidelink.switch_at=[\"3 s\", \"5 s\"]", "run.duration=8 s"];
    for set in [&["sidelink.fate=drop"][..], &["sidelink.fate=forward", "sidelink.rlc=am"]] {
        let big = [
            "tcp.window_scale=true",
            "tcp.receive_buffer=128 KiB",
            "tcp.loss_recovery=sack",
            "tcp.sack=true",
        ];
        let result = run(STATIC, &[&script[..], &big, set].concat());
        assert_eq!(result.switches.len(), 4);
        let dropped: u64 = result.switches.iter().map(|switch| switch.dropped_packets).sum();
        assert_eq!(dropped == 0, set.len() == 2, "{dropped}");
        let flow = &result.flows[0];
        assert_eq!(flow.retransmissions == 0, set.len() == 2, "{flow:?}");
    }
}

/// Goodput in Mb/s and mean round trip in ms of each station: a pair, and ordinary stations after it.
fn beside(direction: &str, count: usize, set: &[&str]) -> Vec<(f64, f64)> {
    let others = format!("[[station]]\npeer = false\ndirection = \"{direction}\"\ncount = {count}\n");
    let text = if count == 0 { STATIC.to_owned() } else { STATIC.to_owned() + &others };
    let window = ["tcp.window_scale=true", "tcp.receive_buffer=128 KiB"];
    let result = run(&text, &[&window, set].concat());
    result.stations.iter().map(|s| (s.goodput_mbps + s.upload_mbps, s.rtt_mean_ms)).collect()
}

#[test]
fn pairs_share_the_uplink_with_ordinary_stations_and_leave_them_the_downlink() {
    let alone = beside("upload", 0, &[])[0].0;
    let with_uploads = beside("upload", 2, &[]);
    assert!(with_uploads[0].0 < 0.7 * alone, "the uplink is shared: {alone} alone, {with_uploads:?}");
    assert!(with_uploads[1..].iter().all(|(mbps, _)| *mbps > 3.0), "{with_uploads:?}");
    // Downloads of others take only their ACKs' part of the uplink.
    let with_downloads = beside("download", 2, &[]);
    assert!(with_downloads[0].0 > 0.8 * alone, "{alone} alone, {with_downloads:?}");
    assert!(with_downloads[1..].iter().all(|(mbps, rtt)| *mbps > 5.0 && *rtt > 20.0), "{with_downloads:?}");
    let [near, far] = ["5 ms", "50 ms"].map(|delay| {
        let hops = format!("core.hops=[{{ rate = \"1 Gb/s\", delay = \"{delay}\" }}]");
        beside("download", 2, &["tcp.receive_buffer=8 KiB", &hops])
    });
    assert!((far[1].1 - near[1].1 - 90.0).abs() < 10.0, "{near:?}, {far:?} behind a core of 50 ms");
    assert!((far[0].1 - near[0].1).abs() < 3.0, "a peer is not behind the core: {near:?}, {far:?}");
}

#[test]
fn an_ack_filter_acts_in_the_uplink_buffers_of_the_infrastructure_path() {
    let discarded = |set: &[&str]| {
        let own = ["ack_filter.scheme=hybrid(6)", "tcp.window_scale=true", "tcp.receive_buffer=128 KiB"];
        let result = run(STATIC, &[&own, set].concat());
        assert!(result.totals.goodput_mbps > 5.0, "{set:?}");
        result.totals.acks_in_per_s - result.totals.acks_sent_per_s
    };
    let both = ["sidelink.data=infrastructure", "sidelink.acks=infrastructure"];
    assert!(discarded(&both) > 100.0 && discarded(&both[1..]) > 100.0);
    assert_eq!((discarded(&[]), discarded(&both[..1])), (0.0, 0.0), "ACKs take the direct path");
    let ordinary = ["station.peer=false"];
    assert!(discarded(&ordinary) > 100.0);
}

#[test]
fn pairs_in_nr_carry_tcp_on_both_paths_and_over_changes_between_them() {
    let fixed = |path: &str, pattern: &str| {
        let paths = ["data", "acks"].map(|flow| format!("sidelink.{flow}={path}"));
        let rest = ["sidelink.selection=fixed".into(), pattern.to_owned(), "run.duration=6 s".into()];
        let set: Vec<&str> = paths.iter().chain(&rest).map(String::as_str).collect();
        let station = run(NR, &set).stations[0].clone();
        (station.goodput_mbps, station.rtt_mean_ms)
    };
    for pattern in ["cell.pattern=DDDSU", "cell.pattern=DSUUU", "sidelink.psfch_period=4"] {
        let [direct, relayed] = ["direct", "infrastructure"].map(|path| fixed(path, pattern));
        // 100 PRBs, one slot in five: at most 27 Mb/s with a PSFCH in each of them.
        assert!(direct.0 > 10.0 && relayed.0 > 5.0, "{pattern}: {direct:?} {relayed:?}");
    }
    let moving = run(NR, &["run.duration=40 s"]);
    assert!(moving.switches.len() >= 2, "{:?}", moving.switches);
    assert_eq!(moving.switches.iter().map(|switch| switch.dropped_packets).sum::<u64>(), 0);
    assert!(moving.paths.iter().filter(|path| path.direction == "to-station").all(|path| path.packets > 0));
    for (fate, rlc) in [("duplicate", "um"), ("duplicate", "am"), ("drop", "um")] {
        let set =
            [format!("sidelink.fate={fate}"), format!("sidelink.rlc={rlc}"), "run.duration=40 s".into()];
        let result = run(NR, &set.each_ref().map(String::as_str));
        let dropped: u64 = result.switches.iter().map(|switch| switch.dropped_packets).sum();
        assert_eq!(dropped > 0, fate == "drop", "{fate} {rlc}: {dropped}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let set = ["run.duration=20 s", "station.count=3", "sidelink.reuse_threshold_dbm=-100"];
    assert_eq!(run(DYNAMIC, &set), run(DYNAMIC, &set));
}
