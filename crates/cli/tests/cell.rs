//! `paceline cell show`: text, JSON and picture of a cell's configuration.

mod common;

use common::{TestDir, parse_json};

#[test]
fn a_cell_is_shown_as_text_json_and_picture() {
    let dir = TestDir::new();
    let text = dir.paceline_ok(&["cell", "show", "single-station", "--svg", "slots.svg"]);
    for part in ["LTE FDD, downlink 20 MHz, 100 PRBs", "75,376", "n+4", "75.4", "data after"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picture = dir.read("slots.svg");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
    let json = parse_json(&dir.paceline_ok(&["cell", "show", "single-station", "--json"]));
    assert_eq!(json["rat"], "lte");
    assert_eq!(json["slots"][0]["k1"], 4);
    assert_eq!(json["latency"]["downlink"]["mean_ms"], 3.5);
}

#[test]
fn a_scenario_without_a_cell_and_a_bad_file_name_are_refused() {
    let dir = TestDir::new();
    for (args, part) in [
        (&["cell", "show", "accelerator-3g"][..], "has a [link] and no cell"),
        (&["cell", "show", "single-station", "--svg", "."], "--svg .: is a folder"),
        (&["cell", "show", "single-staton"], "did you mean single-station"),
    ] {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
}

#[test]
fn a_cell_of_nr_is_shown_and_runs() {
    let dir = TestDir::new();
    let cell = "[cell]\nrat = \"nr\"\nbandwidth = \"100 MHz\"\npattern = \"DDDSU\"\n[[station]]\n";
    dir.write("nr.toml", cell);
    let text = dir.paceline_ok(&["cell", "show", "nr.toml", "--svg", "nr.svg"]);
    for part in ["NR TDD FR1, 100 MHz, 273 PRBs", "1,179,864", "4+1P", "2337.0", "1724.1", "2 of 70 symbols"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(dir.read("nr.svg").matches("class=\"l thin l3\"").count() == 4, "four acknowledgments");
    let run = ["run", "nr.toml", "--set", "run.duration=90 ms", "--set", "station.start_spread=0 s"];
    let run = parse_json(&dir.paceline_ok(&[&run[..], &["--set", "run.warmup=40 ms", "--json"]].concat()));
    assert!(run["mean"]["goodput_mbps"].as_f64().unwrap() > 1.0, "{run}");
}
