//! The guardian: it is started again when it dies, nothing is acknowledged early without it, and it waits for
//! interfaces that are away. Interfaces that come back while the gateway runs.

use crate::common::namespace::{is_running, random_bytes, signal, wait_for};
use crate::common::testbed::{SERVER, Testbed, counter, wait_for_message, wait_for_messages};
use crate::common::{PACELINE, TestDir};
use crate::gateway::operation::{ends, fetch_from, serve, wait_until_exposed};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

const TRANSFERS: u64 = 50;
const SLOW_LINK: &str = "tc qdisc replace dev mob root tbf rate 200mbit burst 100kb limit 1mb";
/// The link between middlebox and client, with addresses that stay when it is made again: a neighbour that
/// knows the former ones needs no time to find the new ones.
const CLIENT_MAC: &str = "02:00:00:00:09:02";
const SERVER_MAC: &str = "02:00:00:00:09:01";

fn bed(size: u64) -> Option<Testbed> {
    let testbed = Testbed::new(&["python3", "tc"])?;
    testbed.dir.write("file", random_bytes(size));
    testbed.shell(&testbed.client, &format!("ip link set cli0 address {CLIENT_MAC}"));
    testbed.shell(&testbed.server, &format!("ip link set srv0 address {SERVER_MAC}"));
    testbed.shell(&testbed.middlebox, SLOW_LINK);
    Some(testbed)
}

/// The guardian of a gateway, once there is one.
fn guardian(gateway: u32) -> u32 {
    let found = || {
        let tasks = fs::read_dir(format!("/proc/{gateway}/task")).ok()?;
        let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
        let processes = children.flat_map(|line| {
            line.split_whitespace().filter_map(|text| text.parse().ok()).collect::<Vec<u32>>()
        });
        processes.into_iter().find(|process| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            is_running(*process) && String::from_utf8_lossy(&line).contains("guard\0")
        })
    };
    wait_for("a guardian", found)
}

/// Makes the link of an end again, which was deleted with the port of the middlebox.
fn make_again(testbed: &Testbed, port: &str) {
    let (end, name, mac, addresses) = match port {
        "mob" => (&testbed.client, "cli0", CLIENT_MAC, ["10.9.0.2/24", "fd09::2/64"]),
        _ => (&testbed.server, "srv0", SERVER_MAC, ["10.9.0.1/24", "fd09::1/64"]),
    };
    let middlebox = testbed.middlebox.id();
    let [v4, v6] = addresses;
    testbed.shell(
        end,
        &format!(
            "ip link add {name} address {mac} type veth peer name {port} netns {middlebox}; ip link set {name} up; \
             ip addr add {v4} dev {name}; ip -6 addr add {v6} dev {name} nodad"
        ),
    );
    testbed.shell(&testbed.middlebox, &format!("ip link set {port} up"));
    if port == "mob" {
        testbed.shell(&testbed.middlebox, SLOW_LINK);
    }
}

#[test]
fn a_guardian_that_dies_is_started_again_and_clears_connections_after_a_crash() {
    let Some(testbed) = bed(2_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config("metrics = \"127.0.0.1:9464\"\n"));
    let transfers = fetch_from(&testbed, SERVER, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    for times in 1..=3 {
        let first = guardian(gateway.id());
        signal(first, "KILL");
        let second =
            wait_for("another guardian", || Some(guardian(gateway.id())).filter(|process| *process != first));
        wait_for("a guarded gateway", || (testbed.status()["guarded"] == true).then_some(()));
        assert!(is_running(second));
        let output = gateway.output_so_far().stderr;
        assert_eq!(output.matches("the guardian has died").count(), times, "{output}");
    }
    let scrape = "curl -sS --max-time 5 http://127.0.0.1:9464/metrics";
    let scrape = testbed.shell(&testbed.middlebox, scrape).stdout;
    assert!(scrape.contains("\npaceline_guardian_restarts_total 3\n"), "{scrape}");
    assert!(scrape.contains("\npaceline_started_after_crash 0\n"), "{scrape}");
    assert_eq!(ends(transfers), (TRANSFERS, 0));
    let transfers = fetch_from(&testbed, SERVER, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    gateway.signal("KILL");
    let _ = gateway.finish();
    let (complete, reset) = ends(transfers);
    assert_eq!(complete + reset, TRANSFERS);
    // The next gateway reports the crash.
    wait_for("the guardian's report", || {
        testbed.dir.read("gateway.stderr").contains("the gateway left").then_some(())
    });
    let gateway = testbed.gateway(&testbed.config("metrics = \"127.0.0.1:9464\"\n"));
    let scrape = "curl -sS --max-time 5 http://127.0.0.1:9464/metrics";
    let scrape = testbed.shell(&testbed.middlebox, scrape).stdout;
    assert!(scrape.contains("\npaceline_started_after_crash 1\n"), "{scrape}");
    let rescued = format!("paceline_rescued_connections{{end=\"reset\"}} {reset}\n");
    assert!(scrape.contains(&rescued), "{reset} reset: {scrape}");
    testbed.stop(gateway);
}

/// A copy of the program that may be made impossible to start.
fn copy_of_program(dir: &TestDir) -> std::path::PathBuf {
    let copy = dir.join("paceline");
    fs::copy(PACELINE, &copy).unwrap();
    copy
}
fn allow_start(program: &std::path::Path, allowed: bool) {
    fs::set_permissions(program, fs::Permissions::from_mode(if allowed { 0o755 } else { 0o600 })).unwrap();
}

#[test]
fn without_a_guardian_nothing_is_acknowledged_early() {
    let Some(testbed) = bed(1_000_000) else { return };
    let _server = serve(&testbed);
    let program = copy_of_program(&testbed.dir);
    testbed.dir.write("gateway.toml", testbed.config(""));
    let mut gateway = testbed.start_gateway("./paceline gateway gateway.toml --json");
    assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
    let before = testbed.counter("early-acks");
    assert!(before > 0);
    allow_start(&program, false);
    signal(guardian(gateway.id()), "KILL");
    wait_for_message(&mut gateway, "cannot start a guardian");
    let between = testbed.counter("early-acks");
    assert_eq!(ends(fetch_from(&testbed, SERVER, 10)), (10, 0));
    let status = testbed.status();
    assert_eq!(counter(&status["counters"], "early-acks"), between, "{status}");
    assert_eq!(status["guarded"], false);
    wait_for("a note", || {
        testbed.status()["notes"].to_string().contains("there is no guardian").then_some(())
    });
    allow_start(&program, true);
    wait_for("a guardian", || (testbed.status()["guarded"] == true).then_some(()));
    assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
    assert!(testbed.counter("early-acks") > between);
    testbed.stop(gateway);
}

/// Another driver, a USB modem: connections wait, and none is reset.
#[test]
fn transfers_complete_when_an_interface_is_removed_and_comes_back() {
    let Some(testbed) = bed(3_000_000) else { return };
    let _server = serve(&testbed);
    let records = testbed.dir.join("transfers.csv");
    let settings = format!("workers = 2\nrecords = \"{}\"\n", records.display());
    let mut gateway = testbed.gateway(&testbed.config(&settings));
    for (n, port) in (1..).zip(["mob", "srv"]) {
        let transfers = fetch_from(&testbed, SERVER, TRANSFERS);
        wait_until_exposed(&testbed, TRANSFERS);
        testbed.shell(&testbed.middlebox, &format!("ip link del {port}"));
        wait_for_message(&mut gateway, &format!("{port} is gone; connections wait"));
        wait_for("a note", || testbed.status()["notes"].to_string().contains("is gone").then_some(()));
        sleep(Duration::from_millis(500));
        make_again(&testbed, port);
        wait_for_message(&mut gateway, &format!("{port} is there again"));
        assert_eq!(ends(transfers), (TRANSFERS, 0));
        let before = testbed.counter("flows");
        assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
        let status = testbed.status();
        assert_eq!(counter(&status["counters"], "flows"), before + 3, "{status}");
        wait_for("the end of the note", || {
            (!testbed.status()["notes"].to_string().contains("is gone")).then_some(())
        });
        wait_for("the records", || {
            let lines = testbed.dir.read("transfers.csv").lines().count() as u64;
            (lines > n * 3).then_some(())
        });
    }
    assert_eq!(testbed.counter("flows-reset"), 0);
    testbed.stop(gateway);
}

/// An interface that was in another namespace has the same index again.
#[test]
fn transfers_complete_when_an_interface_comes_back_with_the_same_index() {
    let Some(testbed) = bed(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(""));
    for seconds in ["1", "0"] {
        let transfers = fetch_from(&testbed, SERVER, TRANSFERS);
        wait_until_exposed(&testbed, TRANSFERS);
        let before = gateway.output_so_far().stderr.matches("mob is there again").count();
        let move_away = format!(
            "ip link set mob netns {0}; sleep {seconds}; nsenter --net=/proc/{0}/ns/net ip link set mob netns {1}",
            testbed.server.id(),
            testbed.middlebox.id()
        );
        testbed.shell(&testbed.middlebox, &move_away);
        testbed.shell(&testbed.middlebox, SLOW_LINK);
        wait_for_messages(&mut gateway, "mob is there again", before + 1);
        assert_eq!(ends(transfers), (TRANSFERS, 0));
        let before = testbed.counter("flows");
        assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
        assert_eq!(testbed.counter("flows"), before + 3);
    }
    testbed.stop(gateway);
}

/// In routed mode, whose routes go with the interface.
#[test]
fn a_router_works_at_an_interface_that_has_come_back() {
    let Some(testbed) = bed(2_000_000) else { return };
    testbed.route();
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config("mode = \"routed\"\n"));
    let transfers = fetch_from(&testbed, "10.20.0.1", 20);
    wait_until_exposed(&testbed, 20);
    testbed.shell(&testbed.middlebox, "ip link del mob");
    wait_for_message(&mut gateway, "mob is gone");
    make_again(&testbed, "mob");
    testbed.shell(&testbed.middlebox, "ip addr add 10.9.0.254/32 dev mob; ip route add 10.9.0.2 dev mob");
    testbed.shell(&testbed.client, "ip route add 10.20.0.0/24 via 10.9.0.254");
    wait_for_message(&mut gateway, "mob is there again");
    assert_eq!(ends(transfers), (20, 0));
    let before = testbed.counter("flows");
    assert_eq!(ends(fetch_from(&testbed, "10.20.0.1", 3)), (3, 0));
    assert_eq!(testbed.counter("flows"), before + 3);
    testbed.stop(gateway);
}

/// The gateway is killed while an interface is away: its guardian waits for the interface by name.
#[test]
fn a_guardian_waits_for_an_interface_that_is_away() {
    let Some(testbed) = bed(3_000_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(""));
    let transfers = fetch_from(&testbed, SERVER, TRANSFERS);
    wait_until_exposed(&testbed, TRANSFERS);
    let began = Instant::now();
    testbed.shell(&testbed.middlebox, "ip link del mob");
    gateway.signal("KILL");
    let _ = gateway.finish();
    let logged = |text: &str| testbed.dir.read("gateway.stderr").contains(text).then_some(());
    wait_for("the wait", || logged("exposed connections wait for the interface mob"));
    sleep(Duration::from_secs(1));
    make_again(&testbed, "mob");
    testbed.shell(&testbed.middlebox, "ip link set mob master paceline0");
    let (complete, reset) = ends(transfers);
    eprintln!("{complete} complete, {reset} reset in {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(complete + reset, TRANSFERS);
    wait_for("the guardian's report", || logged("the gateway left"));
}
