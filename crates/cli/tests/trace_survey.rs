//! `paceline trace survey` on few short traces, and the picture of a trace.

use crate::common::{TestDir, parse_json};

#[test]
fn the_survey_compares_three_ways_on_generated_and_recorded_traces() {
    let dir = TestDir::new();
    let kinds = ["--kind", "3g-evdo", "--kind", "3g-umts", "--count", "1", "--duration", "8 s"];
    let text = dir.paceline_ok(&[&["trace", "survey"][..], &kinds].concat());
    assert!(
        text.contains("cubic %") && text.contains("\n3g-umts ") && text.contains("of 2 traces"),
        "{text}"
    );
    std::fs::create_dir(dir.join("mine")).unwrap();
    for (name, rate) in [("a.down", "2 Mb/s"), ("a.up", "1 Mb/s"), ("b.trace", "3 Mb/s")] {
        dir.paceline_ok(&["trace", "constant", rate, "--out", &format!("mine/{name}")]);
    }
    // Files beside the traces, also one in another format, are skipped.
    dir.write("mine/README", "Recorded by hand.\n");
    dir.write("mine/plot.png", b"\x89PNG\r\n\x1a\n\0".as_slice());
    dir.write("mine/walk.csv", "time_s,mbps\n0,8\n1,8\n");
    let output = dir.paceline(&["trace", "survey", "mine", "--duration", "8 s", "--json"]);
    for name in ["README", "plot.png", "walk.csv"] {
        assert!(output.stderr.contains(&format!("skipped, no trace: mine/{name}: ")), "{output:?}");
    }
    assert_eq!(output.code, 0, "{output:?}");
    let rows = parse_json(&output.stdout);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2, "the uplink is no trace of its own");
    for row in rows {
        assert_eq!(row["family"], "mine");
        for scheme in ["cubic", "bbr", "accelerator"] {
            let used = row[scheme]["utilisation_percent"].as_f64().unwrap();
            assert!(used > 80.0 && used <= 100.1, "{row}");
        }
        // CUBIC fills a queue of a second; a constant rate is no difficulty for the accelerator.
        assert!(row["cubic"]["delay_p95_ms"].as_f64().unwrap() > 500.0, "{row}");
        assert!(row["accelerator"]["delay_p95_ms"].as_f64().unwrap() < 200.0, "{row}");
    }
}

#[test]
fn mistakes_of_survey_and_plot_are_named() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("notes")).unwrap();
    dir.write("notes/README", "Recorded by hand.\n");
    for (args, part) in [
        (&["trace", "survey", "notes"][..], "notes: a folder without traces: 1 file is none"),
        (&["trace", "survey", "--kind", "4g"][..], "--kind 4g: allowed: stationary, "),
        (&["trace", "survey", "none"], "none: "),
        (&["trace", "survey", "--duration", "3 s"], "--duration 3 s: allowed: above 3 s"),
        (&["trace", "info", "generated:wifi", "generated:wifi:2", "--plot", "a.svg"], "draws one trace"),
        (&["trace", "info", "generated:wifi", "--plot", "."], "is a folder"),
    ] {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
}

#[test]
fn a_plot_is_a_picture_of_the_trace() {
    let dir = TestDir::new();
    dir.paceline_ok(&["trace", "info", "generated:3g-evdo", "--plot", "a.svg"]);
    let svg = dir.read("a.svg");
    for part in ["rate in steps of", "autocorrelation of the rate", "outages at or below", "<style>"] {
        assert!(svg.contains(part), "{part}");
    }
}
