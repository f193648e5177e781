//! TCP over LTE-TDD cells: throughput and use of the resource blocks of a direction.

use paceline_sim::{RunResult, scenario, simulate};

fn run(configuration: u8) -> RunResult {
    let text = format!(
        "[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\n[cell]\ntdd_configuration = {configuration}\n\
         [[station]]\ndownlink_sinr = \"25 dB\"\nuplink_sinr = \"20 dB\"\n"
    );
    let scenario = scenario::load("test.toml", &text, &[]).unwrap();
    simulate(&scenario, 1, None, &mut |_| {})
}

#[test]
fn a_download_uses_the_downlink_slots_alone() {
    // 75,376 bits in D, 55,056 (I_TBS 26 on 75 PRBs) in S.
    for (configuration, peak_mbps) in [(1, 41.26), (2, 56.34), (5, 65.81)] {
        let result = run(configuration);
        let totals = &result.totals;
        assert!((0.9..=1.0).contains(&totals.downlink_prb_share), "{configuration}: {totals:?}");
        let share = totals.goodput_mbps / (peak_mbps * totals.downlink_prb_share);
        assert!((0.93..=1.0).contains(&share), "configuration {configuration}: {totals:?}");
    }
}
