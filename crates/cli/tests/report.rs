//! `paceline report`: a self-contained HTML page with pictures, from every kind of results folder.

use crate::common::{PACELINE, TestDir, has_program, run, time_limit};
use std::process::Command;

/// Makes the page of a folder. Every page must be well formed, and load nothing from elsewhere.
fn page(dir: &TestDir, folder: &str) -> String {
    dir.paceline_ok(&["report", folder]);
    let page = dir.read(&format!("{folder}/report.html"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    let offline = page.replace("http://www.w3.org/2000/svg", "").replace("href=\"data:,\"", "");
    for part in ["http://", "https://", "src=", "href=", "@import", "url(", "<script ", "NaN", "Infinity"] {
        assert!(!offline.contains(part), "{folder}: `{part}` in the page");
    }
    for tag in ["figure", "svg", "table", "div", "p", "details"] {
        let open = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{folder}: <{tag}>");
    }
    page
}

fn figures(page: &str) -> Vec<&str> {
    let parts = page.split("<figcaption><span>").skip(1);
    parts.map(|part| part.split("</span></figcaption>").next().unwrap()).collect()
}

#[test]
fn a_run_has_pictures_of_stations_and_of_time_series() {
    let dir = TestDir::new();
    for (out, count) in [("few", "3"), ("many", "12")] {
        let count = format!("station.count={count}");
        dir.paceline_ok(&["run", "good.toml", "--seeds", "2", "--set", &count, "--out", out]);
        let page = page(&dir, out);
        let figures = figures(&page);
        assert!(
            page.find("over whole connections: TCP is limited by") < page.find("<table>"),
            "the answer comes first: {page}"
        );
        for title in [
            "Goodput of each station",
            "Where the round trip passes",
            "What the senders waited for",
            "Congestion window",
            "MCS of downlink blocks",
            "MCS of uplink blocks",
        ] {
            assert!(figures.contains(&title), "{title}: {figures:?}");
        }
        assert!(page.matches("<svg").count() >= 8, "{figures:?}");
        assert_eq!(page.contains("median station"), out == "many");
        assert_eq!(page.contains(">station 2</text>"), out == "few");
    }
}

#[test]
fn groups_of_stations_have_a_table_and_pictures_beside_one_another() {
    let dir = TestDir::new();
    let text = dir.read("good.toml") + "[[station]]\ntcp = { congestion_control = \"bbr\" }\n";
    dir.write("groups.toml", &text);
    dir.paceline_ok(&["run", "groups.toml", "--seeds", "2", "--out", "run"]);
    let run = page(&dir, "run");
    assert!(run.contains("<h2>Groups of stations</h2>") && run.contains(">bbr</td>"), "{run}");
    let over = "station.0.downlink_sinr=5 dB,20 dB";
    dir.paceline_ok(&["sweep", "groups.toml", "--over", over, "--seeds", "2", "--out", "sweep"]);
    let sweep = page(&dir, "sweep");
    assert!(figures(&sweep).contains(&"Goodput per station"), "{:?}", figures(&sweep));
    // One group has the figures of the totals.
    dir.paceline_ok(&["sweep", "good.toml", "--over", "station.count=1,2", "--seeds", "2", "--out", "one"]);
    assert!(!page(&dir, "one").contains("Groups of stations"));
}

#[test]
fn a_run_without_transfers_has_a_page() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--set", "station.start=10 s", "--out", "idle"]);
    let page = page(&dir, "idle");
    assert!(!figures(&page).contains(&"Goodput"), "zeros are not drawn");
    assert!(!page.contains("TCP is"), "there are no connections");
}

#[test]
fn a_sweep_has_lines_over_numbers_and_bars_over_names() {
    let dir = TestDir::new();
    let scheme = ["--over", "ack_filter.scheme=basic,hybrid-opt"];
    let sweep = ["sweep", "good.toml", "--seeds", "2"];
    dir.paceline_ok(&[&sweep[..], &scheme, &["--over", "station.count=1,2,4", "--out", "lines"]].concat());
    dir.paceline_ok(&[&sweep[..], &scheme, &["--out", "bars"]].concat());
    dir.paceline_ok(&[&sweep[..3], &["1"], &scheme, &["--out", "one-seed"]].concat());
    for folder in ["lines", "bars", "one-seed"] {
        let page = page(&dir, folder);
        let figures = figures(&page);
        assert!(figures.contains(&"Goodput of all stations"), "{figures:?}");
        assert!(figures.contains(&"Fairness between stations"), "{figures:?}");
        assert!(page.contains("hybrid-opt"));
        assert_eq!(page.contains("±"), folder != "one-seed");
    }
    let page = dir.read("lines/report.html");
    assert!(page.contains("station.count") && page.contains(">hybrid-opt</text>"), "the legend");
}

#[test]
fn the_page_depends_on_the_results_alone() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--out", "out"]);
    let page = page(&dir, "out");
    dir.paceline_ok(&["report", "out", "--out", "other.html"]);
    assert_eq!(dir.read("other.html"), page);
    let out = Command::new(PACELINE).args(["report", "out"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "out/report.html\n");
}

/// A page of each kind, with the scenarios that have the pictures of every kind.
fn pages(dir: &TestDir) -> Vec<String> {
    let sweep = ["sweep", "good.toml", "--seeds", "2", "--set", "station.count=3"];
    let scheme = ["--over", "ack_filter.scheme=basic,safe"];
    let counts = ["--over", "station.count=1,2,3,40"];
    let uplinks = ["--over", "cell.uplink_bandwidth=1.4 MHz,3 MHz,5 MHz,10 MHz"];
    dir.paceline_ok(&["run", "good.toml", "--seeds", "2", "--set", "station.count=8", "--out", "run"]);
    let deployment =
        "[run]\nduration = \"300 ms\"\nwarmup = \"50 ms\"\n[deployment]\n[[station]]\ncount = 9\n";
    dir.write("deployment.toml", deployment);
    dir.paceline_ok(&["run", "deployment.toml", "--out", "deployment"]);
    dir.paceline_ok(&[&sweep[..], &scheme, &["--out", "bars"]].concat());
    dir.paceline_ok(&[&sweep[..4], &scheme, &counts, &["--out", "lines"]].concat());
    dir.paceline_ok(&[&sweep[..4], &uplinks, &counts, &["--out", "maps"]].concat());
    dir.paceline_ok(&["reproduce", "calibration", "--stations", "100", "--out", "calibration"]);
    let tiny = ["--quick", "--set", "run.duration=300 ms", "--set", "run.warmup=100 ms"];
    dir.paceline_ok(&[&["reproduce", "ack-filter", "--out", "filter"][..], &tiny].concat());
    let folders = ["run", "deployment", "bars", "lines", "maps", "calibration", "filter"];
    for folder in folders {
        page(dir, folder);
    }
    dir.paceline_ok(&["run", "good.toml", "--seeds", "2", "--set", "station.count=6", "--out", "other"]);
    dir.paceline_ok(&["compare", "run", "other", "--report", "compare.html"]);
    let mut pages = folders.map(|folder| format!("{folder}/report.html")).to_vec();
    pages.push(String::from("compare.html"));
    pages
}

#[test]
fn reports_work_in_a_browser() {
    let dir = TestDir::new();
    let pages = pages(&dir);
    let browser =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| has_program(name));
    let Some(browser) = browser else {
        let required = std::env::var_os("PACELINE_REQUIRE_LINT").is_some();
        assert!(!required, "there is no Chromium; run scripts/setup.sh test");
        println!("skipped: there is no Chromium; run scripts/setup.sh test");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser.py");
    let mut command = Command::new("timeout");
    command.args(time_limit()[1..].iter()).args(["python3", script, "--program", browser]).args(pages);
    let output = run(command.current_dir(dir.path()));
    assert!(output.code == 0, "{output:?}");
}

#[test]
fn a_sweep_over_two_quantities_is_a_map_and_a_comparison_has_pictures() {
    let dir = TestDir::new();
    pages(&dir);
    let maps = dir.read("maps/report.html");
    assert!(maps.contains("<title>station.count: 40\ncell.uplink_bandwidth, MHz: 1.4\n"), "{maps}");
    let lines = dir.read("lines/report.html");
    assert!(lines.contains("<polygon class=\"band f0\"") && lines.contains("<polygon class=\"band f1\""));
    assert!(figures(&dir.read("bars/report.html")).contains(&"Goodput of a station"));
    let compared = dir.read("compare.html");
    assert!(figures(&compared).contains(&"Goodput of all stations") && compared.contains(">count=8"));
    assert!(figures(&dir.read("run/report.html")).contains(&"Goodput of a station"));
    let output = dir.paceline(&["compare", "run", "--report", "."]);
    assert!(output.code == 2 && output.stderr.contains("--report .: is a folder"), "{output:?}");
}

#[test]
fn names_are_escaped_in_html() {
    let dir = TestDir::new();
    let name = "<b>&\"quoted\"'";
    dir.write(&format!("{name}.toml"), crate::common::GOOD);
    let file = format!("{name}.toml");
    dir.paceline_ok(&["run", &file, "--out", "run"]);
    dir.paceline_ok(&["sweep", &file, "--over", "run.seed=1,2", "--out", "sweep"]);
    for folder in ["run", "sweep"] {
        let page = page(&dir, folder);
        assert!(!page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;b&gt;&amp;&quot;quoted&quot;&#39;"), "{page}");
    }
}

#[test]
fn folders_without_results_are_refused() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("empty")).unwrap();
    std::fs::create_dir(dir.join("bad")).unwrap();
    dir.write("bad/summary.json", "{\"mean\": 3}");
    for (args, part) in [
        (&["report", "empty"][..], "empty: holds no results"),
        (&["report", "missing"], "missing: holds no results"),
        (&["report", "bad"], "bad/summary.json"),
        (&["report"], "<FOLDER>"),
    ] {
        let before = dir.paths();
        let output = dir.paceline(args);
        assert!(
            output.code == 2 && output.stdout.is_empty() && output.stderr.contains(part),
            "{args:?}: {output:?}"
        );
        assert_eq!(dir.paths(), before);
    }
    dir.paceline_ok(&["run", "good.toml", "--out", "out"]);
    let output = dir.paceline(&["report", "out", "--out", "empty"]);
    assert!(output.code == 2 && output.stderr.contains("--out empty: is a folder"), "{output:?}");
    let output = dir.paceline(&["report", "out", "--out", "nowhere/x.html"]);
    assert!(output.code == 1 && output.stderr.contains("--out nowhere/x.html"), "{output:?}");
}

#[test]
fn a_calibration_has_a_page() {
    let dir = TestDir::new();
    dir.paceline_ok(&["reproduce", "calibration", "--stations", "100", "--out", "out"]);
    let page = page(&dir, "out");
    let summary = dir.json("out/summary.json");
    let rows = summary["rows"].as_array().unwrap();
    let values: usize = rows.iter().map(|row| row["values"].as_array().unwrap().len()).sum();
    // A table that is wider than a page has its rows several times.
    assert!(page.matches("<tr>").count() >= 1 + values + 1 + rows.len());
    for part in ["<svg", "published", "R1-165974", "no spread given", "data-key=\"50\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
