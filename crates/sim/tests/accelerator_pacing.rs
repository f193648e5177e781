//! The accelerator's spacings in a TDD cell.

use paceline_sim::{scenario, simulate};

/// A narrow cell with an accelerator; the buffer takes the window of the rate control.
const CELL: &str = "[run]\nduration = \"4 s\"\nwarmup = \"2 s\"\n[core]\nproxy = \"accelerator\"\n\
    hops = [{ rate = \"10 Gb/s\", delay = \"2 ms\" }]\n[cell]\nrat = \"nr\"\npattern = \"DDDSU\"\n\
    frequency = \"4.75 GHz\"\nbandwidth = \"20 MHz\"\nsubcarrier_spacing = \"30 kHz\"\nouter_loop = true\n\
    downlink_buffer = \"1 MB\"\n[[station]]\ndownlink_sinr = \"20 dB\"\nuplink_sinr = \"20 dB\"\n";

fn goodput_mbps(set: &[&str]) -> f64 {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let scenario = scenario::load("cell.toml", CELL, &set).unwrap();
    simulate(&scenario, 1, None, &mut |_| {}).totals.goodput_mbps
}

#[test]
fn behind_a_deep_buffer_every_spacing_fills_the_cell() {
    let control = goodput_mbps(&[]);
    for pacing in ["none", "linux-per-segment", "tdd", "tdd-published"] {
        for pattern in ["learned", "cell", "DDDSU/30kHz"] {
            let set =
                [format!("accelerator.pacing={pacing}"), format!("accelerator.pacing_pattern={pattern}")];
            let goodput = goodput_mbps(&set.each_ref().map(String::as_str));
            println!("{pacing}, {pattern}: {goodput:.1} of {control:.1} Mb/s");
            // The published spacing leaves 10% of a cell whose rank and MCS change with each report.
            let least = if pacing == "tdd-published" { 0.85 } else { 0.9 };
            assert!(
                (least..1.1).contains(&(goodput / control)),
                "{pacing} {pattern}: {goodput} of {control}"
            );
        }
    }
}

#[test]
fn a_learner_alone_changes_nothing() {
    assert_eq!(goodput_mbps(&["accelerator.pacing_pattern=learned"]), goodput_mbps(&[]));
}
