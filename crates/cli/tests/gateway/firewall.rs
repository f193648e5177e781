//! A firewall on the gateway's own machine that follows connections too.

use crate::common::PACELINE;
use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::{HTTP, Testbed, counter, wait_for_message};
use std::time::{Duration, Instant};

/// The usual rules of a router: what belongs to no connection is dropped.
const RULES: &str = "table ip own { chain forward { type filter hook forward priority 0; policy drop; \
    ct state invalid counter drop; ct state established,related accept; iifname \"mob\" ct state new accept; \
    iifname \"paceline0r\" ct state new accept\n}\n}\n";
const URL: &str = "http://10.20.0.1:8000";

fn routed() -> Option<Testbed> {
    let testbed = Testbed::new(&["curl", "python3", "nft"])?;
    testbed.dir.write("file", random_bytes(20_000_000));
    testbed.route();
    testbed.dir.write("rules.nft", RULES);
    testbed.shell(&testbed.middlebox, "nft -f rules.nft");
    Some(testbed)
}

fn config(testbed: &Testbed) -> String {
    testbed.config("mode = \"routed\"\n")
}

#[test]
fn routed_mode_pauses_behind_a_firewall_that_drops_early_acknowledgments() {
    let Some(testbed) = routed() else { return };
    let _server = testbed.serve_files();
    testbed.dir.write("box.toml", config(&testbed));
    let check = testbed.shell(&testbed.middlebox, &format!("{PACELINE} gateway box.toml --check"));
    assert!(check.stderr.contains("table own, chain forward"), "{check:?}");
    let doctor = testbed.shell(&testbed.middlebox, &format!("{PACELINE} doctor")).stdout;
    assert!(doctor.contains("routed mode may pause"), "{doctor}");
    let mut gateway = testbed.gateway(&config(&testbed));
    let start = Instant::now();
    testbed.download("file", URL);
    println!("{:.2} s with the gateway paused", start.elapsed().as_secs_f64());
    wait_for_message(&mut gateway, "do not leave this machine by srv");
    let flows = testbed.counter("flows");
    testbed.download("file", URL);
    assert_eq!(testbed.counter("flows"), flows, "the kernel forwards");
    // With the setting that the message names, and after a reload, it accelerates.
    testbed.shell(&testbed.middlebox, "echo 1 > /proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal");
    assert_eq!(testbed.control(&["reload"]).code, 0);
    wait_for_message(&mut gateway, "accelerating again");
    testbed.download("file", URL);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!((testbed.counter("flows"), testbed.status()["paused"].as_bool()), (flows + 1, Some(false)));
    let (sent, left) = (testbed.counter("acks-out"), testbed.counter("acks-left"));
    assert!(left > 0 && left <= sent, "{left} of {sent}");
    testbed.stop(gateway);
}

#[test]
fn bridge_mode_pauses_while_its_frames_pass_a_firewall_that_follows_connections() {
    let Some(testbed) = Testbed::new(&["curl", "python3", "nft"]) else { return };
    testbed.dir.write("file", random_bytes(1_000_000));
    let _server = testbed.serve_files();
    let rules = "nft add table bridge own; nft 'add chain bridge own forward { type filter hook forward priority 0; }'";
    testbed.shell(&testbed.middlebox, rules);
    let mut gateway = testbed.gateway(&testbed.config(""));
    assert!(testbed.accelerates("file", HTTP), "a chain without the state of connections");
    let state = "nft add rule bridge own forward ct state invalid drop";
    if testbed.try_shell(&testbed.middlebox, state).code == 0 {
        wait_for_message(&mut gateway, "table own, chain forward");
        assert!(!testbed.accelerates("file", HTTP));
    }
    testbed.shell(&testbed.middlebox, "nft flush ruleset");
    wait_for("acceleration", || testbed.accelerates("file", HTTP).then_some(()));
    // By bridge netfilter, where the kernel has it.
    let calls = "/proc/sys/net/bridge/bridge-nf-call-iptables";
    if testbed.try_shell(&testbed.middlebox, &format!("echo 1 > {calls}")).code == 0 {
        let rules = "table ip own {\nchain forward {\ntype filter hook forward priority 0;\nct state invalid drop\n}\n}\n";
        testbed.dir.write("rules.nft", rules);
        testbed.shell(&testbed.middlebox, "nft -f rules.nft");
        wait_for("the gateway to pause", || (testbed.status()["paused"] == true).then_some(()));
        testbed.download("file", HTTP);
        testbed.shell(&testbed.middlebox, &format!("echo 0 > {calls}"));
        wait_for("the gateway to resume", || (testbed.status()["paused"] == false).then_some(()));
    }
    let counters = testbed.stop(gateway);
    assert_eq!(counter(&counters, "flows-reset"), 0, "{counters}");
}
