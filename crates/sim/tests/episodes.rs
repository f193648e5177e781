//! Episodes: a caller steers the senders of a station, or the scheduler of a cell, between steps of a run.

use paceline_net::{Bytes, Duration, Rate};
use paceline_sim::episode::{RateEpisode, RateReport, SchedulingEpisode, StationReport};
use paceline_sim::{Scenario, scenario};
use paceline_tcp::Setting;

const STEP: Duration = Duration::from_millis(10);

fn load(text: &str) -> Scenario {
    scenario::load("episode.toml", text, &[]).unwrap()
}
/// One station at a link of 20 Mb/s and 40 ms with a queue of 200 kB.
fn link(station: &str) -> Scenario {
    load(&format!(
        "[run]\nduration = \"6 s\"\nwarmup = \"1 s\"\n[core]\nhops = []\n[link]\ndelay = \"20 ms\"\n\
         queue = \"200 kB\"\n[link.fixed]\ndownlink_rate = \"20 Mb/s\"\n[[station]]\n{station}\n"
    ))
}
fn rate(mbps: u64) -> Setting {
    Setting { rate: Some(Rate(mbps * 1_000_000)), window: None }
}
/// The reports of all steps with settings by their number.
fn run(scenario: &Scenario, seed: u64, of_step: impl Fn(usize) -> Setting) -> Vec<RateReport> {
    let mut episode = RateEpisode::new(scenario, seed, &[0], STEP).unwrap();
    let mut reports = Vec::new();
    while reports.last().is_none_or(|last: &RateReport| !last.over && !last.complete) {
        reports.extend(episode.step(&[of_step(reports.len())]));
    }
    reports
}
/// Payload in Mb/s over the steps.
fn mbps(reports: &[RateReport], of: impl Fn(&RateReport) -> Bytes) -> f64 {
    let time: f64 = reports.iter().map(|report| report.step.as_secs_f64()).sum();
    reports.iter().map(|report| of(report).0 as f64 * 8e-6).sum::<f64>() / time
}

#[test]
fn a_sender_sends_at_the_rate_that_is_set_and_the_round_trip_follows() {
    let reports = run(&link(""), 1, |step| rate(if step < 300 { 10 } else { 30 }));
    assert_eq!(reports.len(), 600);
    assert!(reports[599].over && !reports[598].over && !reports[599].complete);
    let (slow, fast) = (&reports[50..300], &reports[306..312]);
    assert!((mbps(slow, |report| report.sent) - 10.0).abs() < 0.1, "{}", mbps(slow, |r| r.sent));
    assert!((mbps(slow, |report| report.acked) - 10.0).abs() < 0.1);
    assert!(slow.iter().all(|report| report.lost == Bytes::ZERO && report.connections == 1));
    let mean = slow[100].rtt_mean_s.unwrap();
    assert!((0.040..0.043).contains(&mean), "{mean}");
    // 400 kb are in flight at 10 Mb/s and 40 ms.
    assert!((45_000..55_000).contains(&slow[100].in_flight.0), "{:?}", slow[100]);
    assert!((mbps(fast, |report| report.sent) - 30.0).abs() < 1.0, "{}", mbps(fast, |r| r.sent));
    // A queue that gets 30 Mb/s and serves 20 Mb/s of which 5% are headers: half a second more every second.
    let gradient = fast[2].rtt_gradient;
    assert!((0.3..0.7).contains(&gradient), "{gradient}");
    assert!(mbps(&reports[400..], |report| report.lost) > 5.0, "the queue is full");
    assert!((mbps(&reports[400..], |report| report.acked) - 19.0).abs() < 0.5);
    assert!((0.040..0.042).contains(&reports[599].rtt_min_s.unwrap()));
}

#[test]
fn a_window_alone_limits_the_bytes_in_flight() {
    let window = Bytes(50_000);
    for pacing in ["none", "linux"] {
        let scenario = link(&format!("tcp = {{ pacing = \"{pacing}\" }}"));
        let reports = run(&scenario, 1, |_| Setting { window: Some(window), rate: None });
        assert!(reports.iter().all(|report| report.in_flight <= window), "{pacing}");
        // 50 kB every 40 ms are 10 Mb/s.
        let goodput = mbps(&reports[100..], |report| report.acked);
        assert!((9.0..10.1).contains(&goodput), "{pacing}: {goodput}");
        assert!(reports[100..].iter().all(|report| report.cwnd == window));
    }
}

#[test]
fn equal_actions_give_equal_observations_and_another_seed_other_ones() {
    let cell = load(
        "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n[[station]]\ncount = 2\nstart_spread = \"50 ms\"\nfading = \"3 dB\"\n",
    );
    let of_step = |step: usize| rate(1 + step as u64 % 9);
    let (first, again, other) = (run(&cell, 1, of_step), run(&cell, 1, of_step), run(&cell, 2, of_step));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn a_transfer_that_ends_is_complete_in_either_direction_and_over_several_connections() {
    for station in ["file = \"500 kB\"", "file = \"500 kB\"\ndirection = \"upload\"\nflows = 3"] {
        let reports = run(&link(station), 1, |_| rate(4));
        let last = reports.last().unwrap();
        assert!(last.complete && !last.over, "{station}: {last:?}");
        let acked: u64 = reports.iter().map(|report| report.acked.0).sum();
        let flows = if station.contains("flows") { 3 } else { 1 };
        // FIN counts one.
        assert!(acked.abs_diff(flows * 500_000) <= flows, "{station}: {acked}");
    }
}

#[test]
fn each_station_of_an_episode_has_its_setting() {
    let scenario = link("count = 3");
    let mut episode = RateEpisode::new(&scenario, 1, &[2, 0], STEP).unwrap();
    let mut reports = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        let step = episode.step(&[rate(2), rate(5)]);
        reports.iter_mut().zip(step).for_each(|(reports, report)| reports.push(report));
    }
    for (reports, expected) in reports.iter().zip([2.0, 5.0]) {
        let sent = mbps(&reports[100..], |report| report.sent);
        assert!((sent - expected).abs() < 0.1, "{sent} for {expected}");
    }
    let error = RateEpisode::new(&scenario, 1, &[1, 1], STEP).err().expect("refused").to_string();
    assert_eq!(error, "episode: station = 1: allowed: each station once");
}

#[test]
fn the_results_of_an_episode_are_those_of_a_run() {
    let scenario = link("");
    let mut episode = RateEpisode::new(&scenario, 1, &[0], STEP).unwrap();
    while !episode.step(&[rate(10)])[0].over {}
    let result = episode.finish();
    assert!((result.measured_s - 5.0).abs() < 1e-9);
    assert!((result.totals.goodput_mbps - 10.0).abs() < 0.1, "{}", result.totals.goodput_mbps);
    assert_eq!(result.samples.len(), 60);
}

const CELL: &str = "[run]\nduration = \"4 s\"\nwarmup = \"1 s\"\n[cell]\nscheduler = \"proportional-fair\"\n\
    [[station]]\ncount = 2\ndownlink_sinr = \"15 dB\"\ntraffic = \"udp\"\nudp_rate = \"60 Mb/s\"\n";

/// Bytes delivered to each station in the last three quarters, and the reports at the end.
fn schedule(weights: &[f64]) -> (Vec<u64>, Vec<StationReport>) {
    let mut episode = SchedulingEpisode::new(&load(CELL), 1, STEP).unwrap();
    let mut delivered = vec![0; episode.stations()];
    let mut last = Vec::new();
    while !episode.is_over() {
        assert_eq!(episode.step(weights), STEP);
        last = episode.reports();
        if episode.elapsed() > Duration::from_secs(1) {
            delivered.iter_mut().zip(&last).for_each(|(sum, report)| *sum += report.delivered.0);
        }
    }
    (delivered, last)
}

#[test]
fn the_weights_share_the_cell() {
    let share = |weights: &[f64]| {
        let (delivered, reports) = schedule(weights);
        for report in &reports {
            assert!(report.state.mcs.is_some() && report.state.queued > Bytes::ZERO, "{report:?}");
            assert!(report.state.head_wait > Duration::ZERO, "{report:?}");
        }
        delivered[0] as f64 / (delivered[0] + delivered[1]) as f64
    };
    let (equal, unequal, alone) = (share(&[1.0, 1.0]), share(&[3.0, 1.0]), share(&[1.0, 0.0]));
    assert!((equal - 0.5).abs() < 0.01, "{equal}");
    assert!((unequal - 0.75).abs() < 0.02, "{unequal}");
    assert!(alone > 0.97, "{alone}");
}

#[test]
fn arguments_and_scenarios_without_such_an_episode_are_refused() {
    let told = |error: paceline_sim::ScenarioError| error.to_string();
    let refused = |text: &str, station: usize, step: Duration| {
        told(RateEpisode::new(&load(text), 1, &[station], step).err().expect("refused"))
    };
    let one = "[run]\nduration = \"2 s\"\nwarmup = \"1 s\"\n[[station]]\n";
    assert_eq!(
        refused(one, 1, STEP),
        "episode: station = 1: allowed: 0 to 0, one of the scenario's stations"
    );
    let error = refused(one, 0, Duration::from_micros(10));
    assert!(error.starts_with("episode: step = ") && error.contains("1 ms to 2 s"), "{error}");
    assert!(refused(&format!("{one}traffic = \"udp\"\n"), 0, STEP).contains("station.0.traffic = udp"));
    assert!(refused(&format!("{one}direction = \"none\"\n"), 0, STEP).contains("station.0.direction = none"));
    let error = told(SchedulingEpisode::new(&load(one), 1, STEP).err().expect("refused"));
    assert!(
        error.contains("cell.scheduler = \"round-robin\": allowed: proportional-fair or max-ci"),
        "{error}"
    );
    let error = told(SchedulingEpisode::new(&link(""), 1, STEP).err().expect("refused"));
    assert!(error.contains("link = "), "{error}");
    // The senders of a scenario have nobody to set them.
    let text = "[tcp]\ncongestion_control = \"external\"\n[[station]]\n";
    let error = told(scenario::load("a.toml", text, &[]).unwrap_err());
    assert!(error.contains("congestion_control = \"external\"") && error.contains("cubic"), "{error}");
}
