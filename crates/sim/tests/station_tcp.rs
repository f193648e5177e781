//! A TCP of its own for each group of stations, and the results of each group.

use paceline_sim::{Summary, results::Origin, scenario, simulate};

fn summary(text: &str) -> Summary {
    let scenario = scenario::load("test.toml", text, &[]).unwrap();
    let run = simulate(&scenario, 1, None, &mut |_| {});
    Summary::new(
        Origin { version: String::new(), commit: String::new() },
        "test",
        "simulated",
        &scenario,
        vec![run],
    )
}

const CELL: &str = "[run]\nduration = \"6 s\"\nwarmup = \"1 s\"\n[[station]]\ncount = 2\n";

#[test]
fn groups_of_one_cell_have_their_own_tcp_and_results() {
    let shared =
        summary(&format!("{CELL}[[station]]\ncount = 2\ntcp = {{ congestion_control = \"bbr\" }}\n"));
    let [cubic, bbr] = &shared.groups[..] else { panic!("two groups: {:?}", shared.groups) };
    assert_eq!((cubic.group, bbr.group, cubic.stations, bbr.stations), (0, 1, 2, 2));
    let goodput = cubic.mean.goodput_mbps + bbr.mean.goodput_mbps;
    assert!((goodput - shared.mean.goodput_mbps).abs() < 1e-9 && bbr.mean.goodput_mbps > 0.0, "{goodput}");
    assert!((bbr.mean.goodput_per_station_mbps * 2.0 - bbr.mean.goodput_mbps).abs() < 1e-9);
    assert!(cubic.mean.jain_index > 0.5 && cubic.mean.jain_index <= 1.0, "{}", cubic.mean.jain_index);
    let groups: Vec<usize> = shared.runs[0].stations.iter().map(|station| station.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
    let csv = shared.stations_csv();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "group").unwrap();
    let groups: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(column).unwrap()).collect();
    assert_eq!(groups, ["0", "0", "1", "1"]);
    // BBR is not limited by the same window: its senders are paced, CUBIC's are not.
    assert!(bbr.limits.pacing > 0.01 && cubic.limits.pacing < 0.01, "{bbr:?} {cubic:?}");
}

#[test]
fn a_table_that_repeats_the_shared_tcp_changes_nothing() {
    let plain = summary(&format!("{CELL}[[station]]\n"));
    let own = summary(&format!("{CELL}[[station]]\ntcp = {{ congestion_control = \"cubic\" }}\n"));
    assert_eq!(plain, own);
}

#[test]
fn a_run_whose_connections_never_opened_says_so() {
    let text = "[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\n[tcp]\nsyn_retries = 0\n\
                [[station]]\nflows = 2\nuplink_sinr = \"-30 dB\"\ndownlink_sinr = \"-30 dB\"\n";
    let failed = summary(text);
    assert_eq!((failed.groups.len(), failed.connections_never_opened), (0, 2));
    let warning = failed.warning().unwrap();
    assert!(warning.starts_with("no connection opened"), "{warning}");
    let cause =
        "no uplink grant: the uplink's SINR is too low for MCS 0, with all HARQ transmissions combined";
    assert!(warning.ends_with(&format!("station 0 has no service: {cause}")), "{warning}");
    assert!(failed.stations_csv().ends_with(&format!("\"{cause}\",station.0\n")));
    let late = summary("[run]\nduration = \"1 s\"\nwarmup = \"0 s\"\n[[station]]\nstart = \"5 s\"\n");
    assert_eq!((late.connections_never_opened, late.warning()), (0, None));
    let opened = summary(CELL);
    assert_eq!((opened.connections_never_opened, opened.warning()), (0, None));
    assert!(!opened.to_json().contains("connections_never_opened"));
}

#[test]
fn groups_of_one_link_have_their_own_tcp_and_results() {
    let link = "[run]\nduration = \"6 s\"\nwarmup = \"1 s\"\n[link.fixed]\ndownlink_rate = \"20 Mb/s\"\n";
    for per_station in ["false", "true"] {
        let text = format!(
            "{link}[link]\nper_station = {per_station}\n[[station]]\ncount = 2\n[[station]]\n\
             tcp = {{ receive_buffer = \"16 kB\", autotune = false }}\n"
        );
        let result = summary(&text);
        let [open, small] = &result.groups[..] else { panic!("two groups: {:?}", result.groups) };
        assert_eq!((open.stations, small.stations), (2, 1));
        let sum = open.mean.goodput_mbps + small.mean.goodput_mbps;
        assert!((sum - result.mean.goodput_mbps).abs() < 1e-9, "{sum}");
        assert!(small.limits.receive_window > 0.6 && open.limits.receive_window < 0.1, "{small:?}");
        assert!(open.verdict.starts_with("limited by the downlink"), "{}", open.verdict);
        let goodput = |group: usize| result.runs[0].groups[group].figures.goodput_mbps;
        assert_eq!([goodput(0), goodput(1)], [open.mean.goodput_mbps, small.mean.goodput_mbps]);
    }
}

#[test]
fn split_tcp_has_congestion_control_and_segment_size_of_each_station() {
    let text = format!(
        "{CELL}[[station]]\ntcp = {{ congestion_control = \"bbr\", segment_size = \"536 B\" }}\n\
         [core]\nproxy = \"split-tcp\"\n"
    );
    let result = summary(&text);
    let relay = |group: usize| &result.groups[group].sides[1];
    assert!(relay(1).limits.pacing > 0.01 && relay(0).limits.pacing < 0.01, "{:?}", result.groups);
    // The downlink blocks of a station with smaller segments have more headers for the same goodput.
    let acks = |station: usize| {
        let of = &result.runs[0].stations[station];
        of.acks_in as f64 / of.goodput_mbps
    };
    assert!(acks(2) > 1.5 * acks(0), "{} {}", acks(2), acks(0));
    let same = summary(&format!("{text}[split_tcp]\ncongestion_control = \"cubic\"\n"));
    assert!(same.groups[1].sides[1].limits.pacing < 0.01, "{:?}", same.groups[1]);
}

#[test]
fn stations_have_the_mean_sinr_of_their_blocks() {
    let result = summary(&format!("{CELL}downlink_sinr = \"14 dB\"\nuplink_sinr = \"6 dB\"\n[[station]]\n"));
    for (station, sinrs) in result.runs[0].stations.iter().zip([(14.0, 6.0), (14.0, 6.0), (20.0, 10.0)]) {
        let means = (station.downlink_sinr_db.unwrap(), station.uplink_sinr_db.unwrap());
        assert!((means.0 - sinrs.0).abs() < 1e-3 && (means.1 - sinrs.1).abs() < 1e-3, "{means:?}");
    }
    let faded =
        summary(&format!("{CELL}downlink_sinr = \"14 dB\"\nfading = \"3 dB\"\ncoherence = \"5 ms\"\n"));
    let mean = faded.runs[0].stations[0].downlink_sinr_db.unwrap();
    assert!((mean - 14.0).abs() < 0.3 && (mean - 14.0).abs() > 1e-3, "the mean of the values in dB: {mean}");
}
