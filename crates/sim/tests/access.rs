//! Uplink access in results: scheduling requests, random access, limits of grants; and its scenario keys.

use paceline_sim::{RunResult, Summary, results::Origin, scenario, simulate};

fn run(text: &str, seed: u64) -> RunResult {
    let scenario = scenario::load("test.toml", text, &[]).unwrap();
    simulate(&scenario, seed, None, &mut |_| {})
}

const CROWD: &str = "[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\n[cell]\ninitial_access = true\n\
                     [[station]]\ncount = 40\nstart_spread = \"5 ms\"\nfile = \"20 kB\"\n";

#[test]
fn results_have_the_random_access_of_each_station() {
    let result = run(CROWD, 3);
    for station in &result.stations {
        let uplink = &station.uplink;
        assert_eq!(uplink.random_accesses, 1, "{uplink:?}");
        // A random access without collision takes 17 ms from its preamble on, after up to 10 ms to the PRACH
        // occasion.
        assert!(uplink.random_access_mean_ms >= 17.0 && uplink.preambles >= 1, "{uplink:?}");
        assert!(uplink.grants > 0 && uplink.reestablishments == 0 && uplink.sr_failures == 0, "{uplink:?}");
        assert!(uplink.sr_wait_mean_ms >= 8.0, "{uplink:?}");
        assert_eq!((uplink.headroom_reports, uplink.headroom_mean_db), (0, None), "SINRs are stated");
    }
    let sum = |of: fn(&paceline_sim::results::UplinkResult) -> u64| -> u64 {
        result.stations.iter().map(|station| of(&station.uplink)).sum()
    };
    let (preambles, collisions) = (sum(|u| u.preambles), sum(|u| u.preamble_collisions));
    assert!(collisions > 0, "40 stations in two occasions choose among 52 preambles");
    let totals = &result.totals;
    assert_eq!(totals.random_accesses_per_s, 10.0);
    assert!((totals.preamble_collision_share - collisions as f64 / preambles as f64).abs() < 1e-12);
    assert_eq!(totals.stations_without_service, 0.0);
}

#[test]
fn random_access_delays_the_transfer() {
    let connected = CROWD.replace("initial_access = true", "initial_access = false").replace("40", "1");
    let idle = CROWD.replace("40", "1");
    let completed = |text: &str| run(text, 3).flows[0].completed_s.unwrap();
    let more_ms = 1000.0 * (completed(&idle) - completed(&connected));
    // At least 17 ms of random access and 50 ms of connection setup; at most the time of three preambles
    // more.
    assert!((67.0..=67.0 + 70.0).contains(&more_ms), "{more_ms} ms");
}

#[test]
fn stations_csv_has_a_value_in_every_column() {
    let scenario = scenario::load("test.toml", CROWD, &[]).unwrap();
    let origin = Origin { version: String::from("0"), commit: String::from("none") };
    let summary = Summary::new(origin, "crowd", "simulated", &scenario, vec![run(CROWD, 1)]);
    let csv = summary.stations_csv();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|column| *column == name).unwrap();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), header.len(), "{line}");
        assert_eq!(fields[at("random_accesses")], "1");
        let (blocks, power) = (fields[at("block_limited_share")], fields[at("power_limited_share")]);
        assert!(blocks.parse::<f64>().unwrap() <= 1.0 && power == "0.0000", "{line}");
    }
}

#[test]
fn grants_are_limited_by_power_or_by_free_resource_blocks() {
    let text = |extra: &str| {
        format!(
            "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n[cell]\nbandwidth = \"10 MHz\"\n[deployment]\n\
             neighbour_load = 0.0\n{extra}[[station]]\ncount = 12\ndirection = \"upload\"\n"
        )
    };
    // P0 so high that every station sends at its maximum power, and so low that none does.
    let loud = run(&text("p0_dbm = -40.0\n"), 1);
    let quiet = run(&text("p0_dbm = -100.0\n"), 1);
    let (loud_share, quiet_share) =
        (loud.totals.uplink_power_limited_share, quiet.totals.uplink_power_limited_share);
    assert!(loud_share > 0.9 && quiet_share < 0.1, "{loud_share} {quiet_share}");
    assert!(quiet.totals.uplink_block_limited_share > 0.8, "{:?}", quiet.totals);
    let headroom = |result: &RunResult| -> f64 {
        let all = result.stations.iter().filter_map(|station| station.uplink.headroom_mean_db);
        all.sum::<f64>() / result.stations.len() as f64
    };
    assert!(headroom(&loud) < 0.0 && headroom(&quiet) > 5.0, "{} {}", headroom(&loud), headroom(&quiet));
}

#[test]
fn random_access_keys_take_the_values_of_the_standard() {
    let with = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        scenario::load("test.toml", "[[station]]\n", &sets)
    };
    for good in [
        "cell.prach_config_index=15",
        "cell.ra_preambles=64",
        "cell.preamble_trans_max=200",
        "cell.ra_response_window=2 ms",
        "cell.backoff_indicator=960 ms",
        "cell.contention_resolution_timer=64 ms",
        "cell.sr_detection=0.99",
        "cell.dsr_trans_max=4",
    ] {
        let scenario = with(&[good]).unwrap_or_else(|error| panic!("{good}: {error}"));
        assert_eq!(scenario::load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{good}");
    }
    let narrow = ["cell.bandwidth=1.4 MHz", "cell.pucch_prb=1", "cell.prach_config_index=14"];
    assert!(with(&narrow).is_ok(), "connected stations need no PRACH");
    let error = with(&[&narrow[..], &["cell.initial_access=true"]].concat()).unwrap_err().to_string();
    assert!(error.contains("other than 14"), "{error}");
    for (bad, part) in [
        ("deployment.tpc_target=50 dB", "-10 dB to 40 dB"),
        ("deployment.periodic_phr_timer=30 ms", "one of 0, 10, 20, 50"),
        ("deployment.prohibit_phr_timer=2 s", "one of 0, 10, 20, 50"),
        ("deployment.path_loss_change_db=2", "one of 0, 1, 3, 6"),
    ] {
        let error = with(&[bad]).expect_err(bad).to_string();
        assert!(error.contains(part), "{error}");
    }
}
