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
    let goodput = cubic.goodput_mbps + bbr.goodput_mbps;
    assert!((goodput - shared.mean.goodput_mbps).abs() < 1e-9 && bbr.goodput_mbps > 0.0, "{goodput}");
    assert!((bbr.goodput_per_station_mbps * 2.0 - bbr.goodput_mbps).abs() < 1e-9);
    assert!(cubic.jain_index > 0.5 && cubic.jain_index <= 1.0, "{}", cubic.jain_index);
    let groups: Vec<usize> = shared.runs[0].stations.iter().map(|station| station.group).collect();
    assert_eq!(groups, [0, 0, 1, 1]);
    assert!(
        shared
            .stations_csv()
            .lines()
            .all(|line| line.ends_with(",group") || line.ends_with(",0") || line.ends_with(",1"))
    );
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
    assert!(failed.warning().is_some_and(|text| text.starts_with("no connection opened")));
    let late = summary("[run]\nduration = \"1 s\"\nwarmup = \"0 s\"\n[[station]]\nstart = \"5 s\"\n");
    assert_eq!((late.connections_never_opened, late.warning()), (0, None));
    let opened = summary(CELL);
    assert_eq!((opened.connections_never_opened, opened.warning()), (0, None));
    assert!(!opened.to_json().contains("connections_never_opened"));
}
