//! Files and pages that show a running gateway: the dashboard and the alert rules name metrics that exist,
//! and the page works in a browser.

use crate::common::namespace::{have_programs, random_bytes, skip};
use crate::common::testbed::{CLIENT, SERVER, Testbed};
use crate::common::{has_program, parse_json, run, time_limit};
use crate::gateway::operation::serve;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
const METRICS: &str = "metrics = \"127.0.0.1:9464\"\n";

/// Labels of each metric with their values, from a scrape.
fn labels(scrape: &str) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut all: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for line in scrape.lines().filter(|line| !line.starts_with('#')) {
        let series = line.rsplit_once(' ').unwrap().0;
        let (name, rest) = series.split_once('{').unwrap_or((series, ""));
        let of = all.entry(name.to_owned()).or_default();
        for pair in rest.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once("=\"").unwrap();
            of.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
        }
    }
    all
}
/// All texts of a JSON value under a key.
fn texts<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == key => found.push(text),
            value => texts(value, key, found),
        }),
        Value::Array(values) => values.iter().for_each(|value| texts(value, key, found)),
        _ => {}
    }
}
/// Faults of a query: metrics, labels of their selectors and label values that the gateway does not have.
fn faults(query: &str, known: &BTreeMap<String, BTreeMap<String, BTreeSet<String>>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, _) in query.match_indices("paceline_") {
        let name: String =
            query[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let Some(labels) = known.get(&name) else {
            faults.push(format!("{name}: no such metric"));
            continue;
        };
        let Some(selector) = query[at + name.len()..].strip_prefix('{') else { continue };
        for matcher in selector.split('}').next().unwrap().split(',').map(str::trim) {
            let (label, value) = matcher.split_once('=').unwrap();
            // The monitoring system adds these two.
            if ["instance", "job"].contains(&label) {
                continue;
            }
            let value = value.trim_matches('"');
            if !labels.get(label).is_some_and(|values| values.contains(value)) {
                faults.push(format!("{name}: no {label}=\"{value}\""));
            }
        }
    }
    // Labels that results are grouped by have to be those of a metric in the query.
    for (_, rest) in query.match_indices(" by (").map(|(at, by)| query.split_at(at + by.len())) {
        for label in rest.split(')').next().unwrap().split(',').map(str::trim) {
            let has = |(name, labels): (&String, &BTreeMap<_, _>)| {
                query.contains(name.as_str()) && labels.contains_key(label)
            };
            if label != "instance" && !known.iter().any(has) {
                faults.push(format!("no metric of the query has the label {label}"));
            }
        }
    }
    faults
}

#[test]
fn the_dashboard_and_the_rules_name_metrics_and_labels_that_exist() {
    let Some(testbed) = Testbed::new(&["python3", "curl"]) else { return };
    // The ACK filter's metrics exist where it is used.
    let filter = "[[policy]]\nprefix = \"10.99.0.0/16\"\naction = \"filter\"\n[filter]\nrate = \"1 Gb/s\"\n";
    let gateway = testbed.gateway(&testbed.config(&format!("{METRICS}{filter}")));
    let known = labels(&testbed.shell(&testbed.middlebox, "curl -sS http://127.0.0.1:9464/metrics").stdout);
    let read = |file: &str| std::fs::read_to_string(format!("{PACKAGING}/{file}")).unwrap();
    let dashboard: Value = parse_json(&read("grafana/paceline.json"));
    let mut queries = Vec::new();
    texts(&dashboard, "expr", &mut queries);
    texts(&dashboard, "query", &mut queries);
    assert!(queries.len() > 30, "{queries:?}");
    let rules = read("prometheus/paceline.rules.yml");
    queries.push(&rules);
    let wrong: Vec<String> = queries.iter().flat_map(|query| faults(query, &known)).collect();
    assert_eq!(wrong, [""; 0]);
    // The check finds faults.
    for query in [
        "rate(paceline_flows_totals[5m])",
        "paceline_bypassed_total{reason=\"rain\"}",
        "paceline_bypassed_total{cause=\"mptcp\"}",
        "sum by (device) (paceline_flows_active)",
    ] {
        assert_eq!(faults(query, &known).len(), 1, "{query}");
    }
    testbed.stop(gateway);
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    if !have_programs(&["promtool"]) {
        return;
    }
    for check in [["check", "rules", "paceline.rules.yml"], ["test", "rules", "paceline.test.yml"]] {
        let folder = format!("{PACKAGING}/prometheus");
        let output = run(Command::new("promtool").args(check).current_dir(folder));
        assert_eq!(output.code, 0, "{output:?}");
    }
}

#[test]
fn the_page_shows_a_running_gateway_in_a_browser() {
    let Some(testbed) = Testbed::new(&["python3", "curl"]) else { return };
    let browser =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| has_program(name));
    let Some(browser) = browser else { return skip("there is no Chromium; run scripts/setup.sh test") };
    testbed.dir.write("file", random_bytes(5_000_000));
    testbed.dir.write("devices.py", include_str!("../common/devices.py"));
    let _server = serve(&testbed);
    let gateway = testbed.gateway(&testbed.config(METRICS));
    let get = |options: &str| {
        testbed.shell(&testbed.middlebox, &format!("curl -sS {options} http://127.0.0.1:9464/")).stdout
    };
    let page = get("-i");
    assert!(page.contains("Content-Security-Policy: default-src 'none'"), "{page}");
    assert!(get("-X POST -d stop").contains("GET alone"));
    let offline = page.replace("http://www.w3.org/2000/svg", "").replace("href=\"data:,\"", "");
    for part in ["http://", "https://", "src=\"", "href=", "@import", "url("] {
        assert!(!offline.contains(part), "`{part}` in the page");
    }
    // One connection after the other, for longer than the browser needs.
    let line = format!("python3 devices.py {SERVER} 9000 {CLIENT} 1 300");
    let mut transfers = None;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gateway_page.py");
    // With the longer queue nothing is refused.
    for (limit, state) in [("1mb", "good"), ("20kb", "refusing")] {
        let shaper = format!("tc qdisc replace dev mob root tbf rate 20mbit burst 100kb limit {limit}");
        testbed.shell(&testbed.middlebox, &shaper);
        transfers.get_or_insert_with(|| testbed.start(&testbed.client, "devices", &line));
        let mut command = testbed.middlebox.command();
        let arguments = ["python3", script, browser, "http://127.0.0.1:9464/", CLIENT, "20", state];
        command.args(time_limit()).args(arguments);
        let output = run(command.current_dir(testbed.dir.path()));
        assert_eq!(output.code, 0, "{state}: {output:?}");
    }
    drop(transfers);
    testbed.stop(gateway);
}
