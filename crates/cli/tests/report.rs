//! `paceline report`: one page that needs nothing else, with pictures, from every kind of results folder.

mod common;

use common::{PACELINE, Place};
use std::process::Command;

/// Makes the page of a folder and checks what every page must be.
fn page(place: &Place, folder: &str) -> String {
    let said = place.paceline(&["report", folder]);
    assert!(said.code == 0 && said.stderr.is_empty(), "{said:?}");
    let page = place.read(&format!("{folder}/report.html"));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    let offline = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for part in ["http://", "https://", "src=", "href=", "@import", "url(", "<script", "NaN", "Infinity"] {
        assert!(!offline.contains(part), "{folder}: `{part}` in the page");
    }
    for tag in ["figure", "svg", "table", "div", "p", "details"] {
        let open = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{folder}: <{tag}>");
    }
    page
}

fn figures(page: &str) -> Vec<&str> {
    let parts = page.split("<figcaption>").skip(1);
    parts.map(|part| part.split("</figcaption>").next().unwrap()).collect()
}

fn ok(place: &Place, args: &[&str]) {
    let said = place.paceline(args);
    assert!(said.code == 0, "{said:?}");
}

#[test]
fn a_run_has_stations_and_time_series() {
    let place = Place::new();
    for (out, count) in [("few", "3"), ("many", "12")] {
        let count = format!("station.count={count}");
        ok(&place, &["run", "good.toml", "--seeds", "2", "--set", &count, "--out", out]);
        let page = page(&place, out);
        let figures = figures(&page);
        assert!(
            page.contains("Why TCP is as slow as it is") && page.contains("<td class=\"text\">limited by")
        );
        for title in [
            "Goodput of each station",
            "ACKs of each station",
            "What the senders waited for",
            "Congestion window",
            "ACKs sent",
            "MCS of downlink blocks",
            "MCS of uplink blocks",
        ] {
            assert!(figures.contains(&title), "{title}: {figures:?}");
        }
        assert!(page.matches("<svg").count() >= 8, "{figures:?}");
        assert_eq!(page.contains("median station"), out == "many");
        assert_eq!(page.contains("station 2</span>"), out == "few");
    }
}

#[test]
fn nothing_transferred_is_a_page_too() {
    let place = Place::new();
    ok(&place, &["run", "good.toml", "--set", "station.start=10 s", "--out", "idle"]);
    let page = page(&place, "idle");
    assert!(!figures(&page).contains(&"Goodput"), "zeros are not drawn");
    assert!(!page.contains("Why TCP"), "there is none");
}

#[test]
fn a_sweep_has_a_line_per_value_or_bars() {
    let place = Place::new();
    let scheme = ["--over", "ack_filter.scheme=basic,hybrid-opt"];
    let sweep = ["sweep", "good.toml", "--seeds", "2"];
    ok(&place, &[&sweep[..], &scheme, &["--over", "station.count=1,2,4", "--out", "lines"]].concat());
    ok(&place, &[&sweep[..], &scheme, &["--out", "bars"]].concat());
    ok(&place, &[&sweep[..3], &["1"], &scheme, &["--out", "one-seed"]].concat());
    for folder in ["lines", "bars", "one-seed"] {
        let page = page(&place, folder);
        let figures = figures(&page);
        assert!(figures.contains(&"Goodput of all stations"), "{figures:?}");
        assert!(figures.contains(&"Fairness: Jain index"), "{figures:?}");
        assert!(page.contains("hybrid-opt"));
        assert_eq!(page.contains("±"), folder != "one-seed");
    }
    let page = place.read("lines/report.html");
    assert!(page.contains("station.count") && page.contains("hybrid-opt</span>"), "its legend");
}

#[test]
fn the_same_bytes_every_time_and_elsewhere() {
    let place = Place::new();
    ok(&place, &["run", "good.toml", "--out", "out"]);
    let page = page(&place, "out");
    ok(&place, &["report", "out", "--out", "other.html"]);
    assert_eq!(place.read("other.html"), page);
    let out = Command::new(PACELINE).args(["report", "out"]).current_dir(place.path()).output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "out/report.html\n");
}

#[test]
fn names_are_escaped() {
    let place = Place::new();
    let name = "<b>&\"quoted\"'";
    place.write(&format!("{name}.toml"), common::GOOD);
    let file = format!("{name}.toml");
    ok(&place, &["run", &file, "--out", "run"]);
    ok(&place, &["sweep", &file, "--over", "run.seed=1,2", "--out", "sweep"]);
    for folder in ["run", "sweep"] {
        let page = page(&place, folder);
        assert!(!page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;b&gt;&amp;&quot;quoted&quot;&#39;"), "{page}");
    }
}

#[test]
fn what_is_no_results_folder_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.join("empty")).unwrap();
    std::fs::create_dir(place.join("bad")).unwrap();
    place.write("bad/summary.json", "{\"mean\": 3}");
    for (args, part) in [
        (&["report", "empty"][..], "empty: holds no results"),
        (&["report", "missing"], "missing: holds no results"),
        (&["report", "bad"], "bad/summary.json"),
        (&["report"], "<FOLDER>"),
    ] {
        let before = place.names();
        let said = place.paceline(args);
        assert!(said.code == 2 && said.stdout.is_empty() && said.stderr.contains(part), "{args:?}: {said:?}");
        assert_eq!(place.names(), before);
    }
    ok(&place, &["run", "good.toml", "--out", "out"]);
    let said = place.paceline(&["report", "out", "--out", "empty"]);
    assert!(said.code == 2 && said.stderr.contains("--out empty: is a folder"), "{said:?}");
    let said = place.paceline(&["report", "out", "--out", "nowhere/x.html"]);
    assert!(said.code == 1 && said.stderr.contains("--out nowhere/x.html"), "{said:?}");
}
