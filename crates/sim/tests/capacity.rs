//! Throughput of TCP compared with the capacity of the cell, determinism, and conservation of drops in
//! results.

use paceline_net::{DropReason, Instant};
use paceline_ran::lte::{cqi, mcs, tbs};
use paceline_sim::{Model, scenario, simulate};

fn run(text: &str, seed: u64) -> paceline_sim::RunResult {
    let scenario = scenario::load("test.toml", text, &[]).unwrap();
    simulate(&scenario, seed, None, &mut |_| {})
}

#[test]
fn tcp_of_a_single_station_uses_the_capacity_of_the_cell() {
    for (sinr, control) in [(25.0, "cubic"), (12.0, "cubic"), (4.0, "newreno"), (25.0, "newreno")] {
        let text = format!(
            "[run]\nduration = \"25 s\"\nwarmup = \"10 s\"\n[tcp]\ncongestion_control = \"{control}\"\n\
             [[station]]\ndownlink_sinr = \"{sinr} dB\"\nuplink_sinr = \"12 dB\"\n"
        );
        let index = cqi::mcs(cqi::of_sinr(sinr)).unwrap();
        let capacity = tbs::transport_block_bits(mcs::DOWNLINK[usize::from(index)].i_tbs, 100);
        let goodput = run(&text, 1).totals.goodput_mbps;
        let share = goodput / (f64::from(capacity) / 1000.0);
        assert!(
            (0.95..1.0).contains(&share),
            "{sinr} dB, {control}: {goodput} Mb/s are {share} of {capacity}"
        );
    }
}

#[test]
fn an_upload_uses_the_capacity_of_the_uplink() {
    let text = "[run]\nduration = \"15 s\"\nwarmup = \"5 s\"\n\
                [[station]]\nuplink_sinr = \"25 dB\"\ndirection = \"upload\"\n";
    let totals = run(text, 1).totals;
    // MCS 20 without uplink 64QAM, on the 96 resource blocks that PUCCH leaves.
    let capacity = f64::from(tbs::transport_block_bits(19, 96)) / 1000.0;
    assert!(totals.upload_mbps > 0.93 * capacity && totals.upload_mbps < capacity, "{}", totals.upload_mbps);
}

#[test]
fn files_complete_and_results_have_the_time() {
    let text = "[run]\nduration = \"10 s\"\n[[station]]\ncount = 3\nflows = 2\nfile = \"300 kB\"\nfading = \"3 dB\"\n";
    let result = run(text, 4);
    assert_eq!(result.flows.len(), 6);
    for flow in &result.flows {
        assert_eq!(flow.bytes, 300_000);
        assert!(flow.completed_s.is_some_and(|s| s > 0.05 && s < 5.0), "{flow:?}");
    }
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let text = "[run]\nduration = \"4 s\"\nwarmup = \"1 s\"\n[[station]]\ncount = 4\nfading = \"3 dB\"\n";
    assert_eq!(run(text, 9), run(text, 9));
    assert_ne!(run(text, 9).totals, run(text, 10).totals);
}

#[test]
fn results_count_every_packet_that_the_cell_drops() {
    // An uplink whose blocks often fail, and a radio link that fails after a few retransmissions.
    let text = "[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\n\
                [cell]\nbandwidth = \"5 MHz\"\nrlc = \"am\"\nmax_retx_threshold = 2\nmax_harq_tx = 1\ndiscard_timer = \"50 ms\"\n\
                downlink_buffer = \"30 kB\"\n\
                [[station]]\ncount = 3\ndownlink_sinr = \"6 dB\"\nuplink_sinr = \"3 dB\"\nfading = \"4 dB\"\n";
    let scenario = scenario::load("test.toml", text, &[]).unwrap();
    let mut model = Model::new(&scenario, 1, &[]);
    model.engine.run_until(Instant::from_millis(4000));
    let mut expected = [0; 3];
    for station in 0..model.stations() {
        let (down, up) = (model.cell().downlink(station), model.cell().uplink(station));
        expected[0] += down.dropped.of(DropReason::QueueFull);
        for stats in [down, up] {
            expected[1] += stats.dropped.of(DropReason::RadioLinkFailure);
            expected[2] += stats.dropped.of(DropReason::PdcpDiscard);
        }
    }
    assert!(expected.iter().all(|count| *count > 0), "{expected:?}");
    let totals = simulate(&scenario, 1, None, &mut |_| {}).totals;
    let per_s = [totals.downlink_queue_drops_per_s, totals.radio_losses_per_s, totals.pdcp_discards_per_s];
    assert_eq!(per_s.map(|rate| (rate * 4.0).round() as u64), expected, "in AM nothing else is lost");
}

#[test]
fn served_cells_are_three_per_served_site() {
    let deployed = |sites| format!("[deployment]\nserved_sites = {sites}\n[[station]]\ncount = 3\n");
    let stated = "[[station]]\n".to_owned();
    for (text, cells) in [(stated, 1), (deployed(1), 3), (deployed(2), 6), (deployed(7), 21)] {
        let scenario = scenario::load("test.toml", &text, &[]).unwrap();
        let model = Model::new(&scenario, 1, &[]);
        assert_eq!((scenario.served_cells(), model.cell().cells()), (cells, cells), "{text}");
    }
}

#[test]
fn every_cell_has_the_rate_of_its_own_hop() {
    let text = "[run]\nduration = \"12 s\"\nwarmup = \"4 s\"\n\
                [core]\nhops = [{ rate = \"1 Gb/s\", delay = \"5 ms\" }, \
                { rate = \"2 Mb/s\", delay = \"5 ms\", queue = \"50 kB\", per_cell = true }]\n\
                [deployment]\n[[station]]\ncount = 9\nDIRECTION";
    for direction in ["download", "upload"] {
        let text = text.replace("DIRECTION", &format!("direction = \"{direction}\"\n"));
        let scenario = scenario::load("test.toml", &text, &[]).unwrap();
        let model = Model::new(&scenario, 3, &[]);
        let result = simulate(&scenario, 3, None, &mut |_| {});
        for cell in 0..scenario.served_cells() {
            let stations = result.stations.iter().filter(|at| model.cell().serving(at.station) == cell);
            let mbps: f64 = stations.map(|at| at.goodput_mbps + at.upload_mbps).sum();
            assert!((1.7..2.0).contains(&mbps), "{direction}, cell {cell}: {mbps} of 2 Mb/s");
        }
    }
}
