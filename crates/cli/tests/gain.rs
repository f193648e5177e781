//! `paceline explain --gain`: a known gain, none, a capture that the model does not reproduce, and bad input.

use crate::common::{TestDir, parse_json};
use serde_json::Value;

/// Downloads of one device: the first is hampered by losses of the radio.
const LOSSY: &str = "[run]\nduration = \"20 s\"\nwarmup = \"0 s\"\nseed = 7\n\
    [core]\nhops = [{ rate = \"1 Gb/s\", delay = \"15 ms\" }]\n\
    [link]\ndelay = \"20 ms\"\nqueue = \"200 kB\"\nloss_percent = 0.5\n\
    [link.fixed]\ndownlink_rate = \"20 Mb/s\"\n\
    [[station]]\ntransfers = [{ start = \"0 s\", file = \"8 MB\" }, { start = \"5 s\", file = \"2 MB\" }]\n";

fn capture(dir: &TestDir, set: &[&str]) -> String {
    dir.write("lossy.toml", LOSSY);
    let out = format!("run-{}", dir.paths().len());
    let mut args = vec!["run", "lossy.toml", "--pcap", "--out", &out];
    set.iter().for_each(|setting| args.extend(["--set", setting]));
    dir.paceline_ok(&args);
    format!("{out}/seed-7.pcapng")
}

fn gain(dir: &TestDir, capture: &str) -> Value {
    let args = ["explain", capture, "--interface", "servers", "--gain", "--json"];
    parse_json(&dir.paceline_ok(&args))["gain"].clone()
}

fn remedy<'a>(gain: &'a Value, name: &str) -> &'a Value {
    let found = gain["remedies"].as_array().unwrap().iter().find(|own| own["remedy"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {gain}"))
}

/// Mean completion time of both downloads, over seeds that the capture does not have.
fn truth(dir: &TestDir, set: &str) -> f64 {
    let args = ["run", "lossy.toml", "--json", "--seeds", "6", "--seed", "100", "--set", set];
    let runs = parse_json(&dir.paceline_ok(&args));
    let of_run = |run: &Value| {
        let end = |flow: usize| run["flows"][flow]["received_s"].as_f64().unwrap();
        (end(0) + end(1) - 5.0) / 2.0
    };
    let times: Vec<f64> = runs["runs"].as_array().unwrap().iter().map(of_run).collect();
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn the_expected_gain_is_that_of_the_network_with_the_remedy() {
    let dir = TestDir::new();
    let capture = capture(&dir, &[]);
    let found = gain(&dir, &capture);
    assert_eq!(found["claims"], true, "{found}");
    for (name, set) in [("accelerator", "core.proxy=accelerator"), ("bbr", "tcp.congestion_control=bbr")] {
        let own = remedy(&found, name);
        assert_eq!(own["verdict"], "gain", "{own}");
        let (predicted, truth) = (own["completion_s"]["median"].as_f64().unwrap(), truth(&dir, set));
        assert!((predicted / truth - 1.0).abs() < 0.1, "{name}: {predicted} of {truth}");
    }
    // A policer of ACKs changes next to nothing, though both simulations scatter by losses.
    let change = remedy(&found, "ack_policer")["completion_change"]["median"].as_f64().unwrap();
    assert!(change.abs() < 0.03, "{change}");
    assert_eq!(gain(&dir, &capture), found, "equal input, equal values on any number of threads");

    let args = ["explain", &capture, "--interface", "servers", "--gain", "--draws", "20", "--out", "out"];
    let text = dir.paceline_ok(&args);
    assert!(text.contains("Expected gain: most is gained by accelerator: transfers take "), "{text}");
    assert!(dir.read("out/report.html").contains("<h2>Expected gain</h2>"));
    let csv = dir.read("out/gain.csv");
    let first: Vec<&str> = csv.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(first[..4], ["remedy", "measured", "as it is", "accelerator"], "{csv}");
}

#[test]
fn nothing_is_gained_where_the_application_limits() {
    let dir = TestDir::new();
    let transfers = "station.transfers=[{ start = \"0 s\", file = \"4 MB\", chunk = \"50 kB\", \
                     chunk_interval = \"200 ms\" }]";
    let found = gain(&dir, &capture(&dir, &["link.loss_percent=0", transfers]));
    let summary = found["summary"].as_str().unwrap();
    assert!(summary.starts_with("nothing to gain in completion time"), "{summary}");
    assert!(summary.contains("the application decides"), "{summary}");
    assert!(found["remedies"].as_array().unwrap().iter().all(|own| own["verdict"] != "gain"), "{found}");
}

#[test]
fn no_gain_is_claimed_for_what_the_model_does_not_reproduce() {
    let dir = TestDir::new();
    let pauses =
        ["link.loss_percent=0", "link.fixed.interruption=3 s", "link.fixed.interruption_interval=4 s"];
    let of_pauses = gain(&dir, &capture(&dir, &pauses));
    let several = gain(&dir, &capture(&dir, &["station.count=4"]));
    for (found, reason) in
        [(of_pauses, "does not reproduce this capture"), (several, "data are of other clients")]
    {
        let summary = found["summary"].as_str().unwrap();
        assert!(summary.starts_with("no gain is claimed: ") && summary.contains(reason), "{summary}");
        assert_eq!((&found["claims"], found["remedies"].as_array().map(Vec::len)), (&false.into(), Some(0)));
    }
}

#[test]
fn captures_and_options_that_allow_no_estimate_are_refused() {
    let dir = TestDir::new();
    let capture = capture(&dir, &["station.transfers=[{ start = \"0 s\", file = \"1 B\" }]"]);
    for (args, reason) in [
        (&["explain", &capture, "--gain"][..], "no gain can be estimated"),
        (&["explain", &capture, "--draws", "9"], "--gain"),
        (&["explain", &capture, "--gain", "--draws", "2"], "2 is not in 5..=1000"),
        (&["explain", "--live", "--interface", "lo", "--gain"], "cannot be used with"),
    ] {
        let output = dir.paceline(args);
        let error = &output.stderr;
        assert_eq!(output.code, 2, "{args:?}: {error}");
        assert!(error.contains(reason), "{args:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}
