use super::experiment::{Experiment, SCHEMES, STATIONS};
use super::network::Network;
use super::rows::stations_served;
use paceline_sim::results::{RadioDelays, RunResult, StationResult, Totals};

const NETWORK: Network = Network {
    segment: 536.0,
    header: 58.0,
    hop_mbps: Some(50.0),
    uplink_for_data: 0.96,
    sr_occasions_per_s: 100.0,
};

/// A run in which station `i` sends `acks[i]` ACKs and has a goodput of `goodput[i]` Mb/s.
fn run(seed: u64, acks: &[u64], goodput: &[f64], uplink: f64) -> RunResult {
    let station = |(index, (acks, goodput)): (usize, (&u64, &f64))| StationResult {
        station: index,
        group: 0,
        goodput_mbps: *goodput,
        upload_mbps: 0.0,
        acks_in: 2 * acks,
        acks_discarded: *acks,
        acks_sent: *acks,
        rtt_mean_ms: 50.0,
        downlink_mcs: 10.0,
        uplink_mcs: 5.0,
        downlink_sinr_db: None,
        uplink_sinr_db: None,
        downlink_block_bytes: 2400.0,
        scheduling_requests: 0,
        uplink: paceline_sim::results::UplinkResult::default(),
        waits: RadioDelays::default(),
        no_service: None,
        sector: 0,
        place: None,
    };
    let totals = Totals {
        goodput_mbps: goodput.iter().sum(),
        acks_sent_per_s: acks.iter().sum::<u64>() as f64,
        acks_in_per_s: 2.0 * acks.iter().sum::<u64>() as f64,
        acks_discarded_per_s: acks.iter().sum::<u64>() as f64,
        uplink_prb_share: uplink,
        ..Totals::default()
    };
    let stations = acks.iter().zip(goodput).enumerate().map(station).collect();
    RunResult {
        seed,
        measured_s: 1.0,
        totals,
        groups: Vec::new(),
        stations,
        measured_from_s: None,
        flows: Vec::new(),
        queues: Vec::new(),
        paths: Vec::new(),
        switches: Vec::new(),
        handovers: Vec::new(),
        routers: Vec::new(),
        policers: Vec::new(),
        pings: Vec::new(),
        kernel_connections: Vec::new(),
        senders: Vec::new(),
        samples: Vec::new(),
    }
}

/// Runs with two stations each, whose figures are `goodput(scheme, stations)` and `acks(scheme)` with seed 1.
/// Seed 2 doubles all figures, which changes no ratio.
fn points(goodput: fn(usize, u64) -> [f64; 2], acks: fn(usize) -> [u64; 2]) -> Vec<Vec<RunResult>> {
    let point = |scheme: usize, stations: u64| {
        let (goodput, acks) = (goodput(scheme, stations), acks(scheme));
        vec![run(1, &acks, &goodput, 0.9), run(2, &acks.map(|n| 2 * n), &goodput.map(|x| 2.0 * x), 0.9)]
    };
    let schemes = 0..SCHEMES.len();
    schemes.flat_map(|scheme| STATIONS.map(|stations| point(scheme, stations))).collect()
}

/// Runs as published: from scheme to scheme more goodput, fewer ACKs and a fairer distribution.
fn as_published() -> Vec<Vec<RunResult>> {
    let goodput = |scheme: usize, stations: u64| {
        if stations == 10 {
            return [9.0, 9.0];
        }
        let (more, unfair) = ([0.0, 2.0, 2.5, 3.0][scheme], [4.0, 2.0, 1.5, 1.0][scheme]);
        [10.0 + more - unfair, 10.0 + more + unfair]
    };
    points(goodput, |scheme| [[1000, 1000], [800, 700], [600, 600], [500, 250]][scheme])
}

fn close(ours: Option<f64>, expected: f64) {
    assert!(ours.is_some_and(|ours| (ours - expected).abs() < 1e-9), "{ours:?} is not {expected}");
}

#[test]
fn every_row_holds_for_runs_as_published() {
    let points = as_published();
    let rows = Experiment::new(NETWORK, &points).rows();
    let ids: Vec<&str> = rows.iter().map(|row| &*row.id).collect();
    assert_eq!(ids, ["1a", "1b", "1c", "1d", "1e", "1f", "1g", "1h", "1i"]);
    for row in &rows {
        assert!(row.holds, "{row:?}");
        // Seed 2 doubles all figures: the value of 1g, which is no ratio, has a wide interval.
        assert_eq!(row.holds_in_ci95, row.id != "1g", "{row:?}");
        assert!(row.values.iter().all(|v| v.ours.mean.is_some() && v.ours.half.is_some()), "{row:?}");
    }
}

#[test]
fn ratios_are_paired_by_seed() {
    let points = as_published();
    let rows = Experiment::new(NETWORK, &points).rows();
    close(rows[1].values[0].ours.mean, 100.0 * (750.0 / 1200.0 - 1.0));
    close(rows[1].values[1].ours.mean, 100.0 * (250.0 / 600.0 - 1.0));
    close(rows[2].values[0].ours.mean, 100.0 * (750.0 / 2000.0 - 1.0));
    close(rows[2].values[1].ours.mean, -75.0);
    // Seed 2 doubles all figures: the ratio is the same with both, and its interval has no width.
    close(rows[2].values[0].ours.half, 0.0);
    close(rows[3].values[0].ours.mean, 30.0);
    close(rows[3].values[1].ours.mean, 100.0 * (26.0 / 24.0 - 1.0));
    // 2000 and 4000 ACKs per second of 52 bytes, 1000 times.
    close(rows[8].values[0].ours.mean, 3000.0 * 52.0 * 8.0 / 1000.0);
}

#[test]
fn jain_counts_the_stations_of_a_sector() {
    let points = as_published();
    let row = &Experiment::new(NETWORK, &points).rows()[7];
    close(row.values[0].ours.mean, 20.0 * 20.0 / (2.0 * (6.0 * 6.0 + 14.0 * 14.0)));
    assert!(row.why.contains("granted is above basic in 1 of 1"), "{}", row.why);
}

#[test]
fn rows_fail_for_runs_of_the_opposite_direction() {
    let goodput = |scheme: usize, stations: u64| [20.0 + stations as f64 / 10.0, 8.0 - 2.0 * scheme as f64];
    let points = points(goodput, |scheme| [100 + scheme as u64, 100]);
    let rows = Experiment::new(NETWORK, &points).rows();
    let held: Vec<&str> = rows.iter().filter(|row| row.holds).map(|row| &*row.id).collect();
    assert!(held.is_empty(), "{held:?}");
}

#[test]
fn explanations_name_the_resource_that_is_used_up() {
    let points = as_published();
    let row = &Experiment::new(NETWORK, &points).rows()[0];
    assert!(row.why.contains("used up: the uplink's resource blocks ("), "{}", row.why);
    assert!(row.why.contains("uplink blocks 94%"), "{}", row.why);
    let rows = Experiment::new(NETWORK, &points).rows();
    // A block of 2400 bytes has four segments: two delayed ACKs.
    assert!(rows[1].why.contains("2.0 on average (2 to 2)"), "{}", rows[1].why);
}

#[test]
fn rows_without_measurements_have_no_numbers_and_do_not_hold() {
    let points = points(|_, _| [0.0, 0.0], |_| [0, 0]);
    for row in Experiment::new(NETWORK, &points).rows() {
        let text = row.to_json().to_string() + &row.why;
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(!row.holds && !row.holds_in_ci95, "{row:?}");
    }
}

#[test]
fn stations_served_are_interpolated_between_the_numbers_of_the_experiment() {
    assert_eq!(stations_served(&[30.0, 30.0, 25.0, 20.0, 20.0, 20.0]), 30.0);
    assert_eq!(stations_served(&[20.0, 30.0, 30.0, 20.0, 20.0, 20.0]), 35.0);
    assert_eq!(stations_served(&[30.0; 6]), 60.0);
    assert_eq!(stations_served(&[20.0; 6]), 0.0);
}

#[test]
fn a_hop_of_every_cell_counts_once_per_cell() {
    let mbps = |text: &str| Network::of(&paceline_sim::scenario::load("t.toml", text, &[]).unwrap()).hop_mbps;
    let shared = "{ rate = \"100 Mb/s\", delay = \"1 ms\" }";
    let own = |rate| format!("{{ rate = \"{rate} Mb/s\", delay = \"1 ms\", per_cell = true }}");
    let (site, cell) = ("[deployment]\n[[station]]\n", "[[station]]\n");
    let two_sites = "[deployment]\nserved_sites = 2\n[[station]]\n";
    let cases = [(30, site, 90.0), (50, site, 100.0), (50, cell, 50.0), (10, two_sites, 60.0)];
    for (rate, rest, expected) in cases {
        let text = format!("[core]\nhops = [{shared}, {}]\n{rest}", own(rate));
        assert_eq!(mbps(&text), Some(expected), "{text}");
    }
}
