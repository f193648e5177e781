//! Changes around a running gateway in the middle of transfers: links that go down, other MTUs and addresses,
//! full disks, little memory, and an endless change of connections. Every transfer is byte-exact.

use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::testbed::{CLIENT, SERVER, Testbed, wait_for_message};
use crate::common::{HANG_GUARD, PACELINE, parse_json, run};
use crate::gateway::operation::{ends, fetch_from, serve, wait_until_exposed};
use serde_json::Value;
use std::process::Command;

const SLOW_LINK: &str = "tc qdisc replace dev mob root tbf rate 100mbit burst 100kb limit 1mb";

/// Transfers that run, over a slow link.
fn running(config: &str, transfers: u64) -> Option<(Testbed, Program, Program, Program)> {
    let testbed = Testbed::new(&["python3", "tc"])?;
    testbed.dir.write("file", random_bytes(3_000_000));
    testbed.shell(&testbed.middlebox, SLOW_LINK);
    let server = serve(&testbed);
    let gateway = testbed.gateway(&testbed.config(config));
    let fetch = fetch_from(&testbed, SERVER, transfers);
    wait_until_exposed(&testbed, transfers);
    Some((testbed, server, gateway, fetch))
}

#[test]
fn links_that_flap_delay_transfers_and_harm_none() {
    let Some((testbed, _server, gateway, fetch)) = running("", 10) else { return };
    for port in ["mob", "srv", "mob"] {
        testbed
            .shell(&testbed.middlebox, &format!("ip link set {port} down; sleep 0.5; ip link set {port} up"));
    }
    assert_eq!(ends(fetch), (10, 0));
    assert_eq!(testbed.counter("flows-reset"), 0);
    testbed.stop(gateway);
}

/// A port whose MTU is lowered carries no full segments of earlier connections, as a bridge without gateway.
#[test]
fn changes_of_the_mtu_delay_transfers_and_harm_none() {
    let Some((testbed, _server, gateway, fetch)) = running("", 10) else { return };
    let set = |mtu: u32| {
        testbed.shell(&testbed.middlebox, &format!("ip link set mob mtu {mtu}"));
        testbed.shell(&testbed.client, &format!("ip link set cli0 mtu {mtu}"));
    };
    set(1300);
    std::thread::sleep(std::time::Duration::from_secs(1));
    set(1500);
    assert_eq!(ends(fetch), (10, 0));
    // New connections have the segments of the smaller MTU, and keep them.
    set(1300);
    let fetch = fetch_from(&testbed, SERVER, 10);
    wait_until_exposed(&testbed, 10);
    set(1500);
    assert_eq!(ends(fetch), (10, 0));
    assert_eq!(testbed.counter("flows-reset"), 0);
    testbed.stop(gateway);
}

#[test]
fn addresses_of_the_machine_and_of_a_device_may_change() {
    let Some((testbed, _server, gateway, fetch)) = running("", 10) else { return };
    // The bridge gets addresses, and other ones.
    for change in ["add 10.9.0.200/24", "add fd09::200/64", "del 10.9.0.200/24", "add 10.9.0.201/24"] {
        testbed.shell(&testbed.middlebox, &format!("ip addr {change} dev paceline0"));
    }
    testbed.shell(&testbed.client, "ip addr add 10.9.0.77/24 dev cli0");
    assert_eq!(ends(fetch), (10, 0));
    // The device has the new address alone.
    testbed.shell(
        &testbed.client,
        &format!("ip addr del {CLIENT}/24 dev cli0; ip addr replace 10.9.0.77/24 dev cli0"),
    );
    let before = testbed.counter("flows");
    assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
    assert_eq!(testbed.counter("flows"), before + 3);
    testbed.stop(gateway);
}

#[test]
fn a_full_disk_ends_a_capture_and_disturbs_no_transfer() {
    let Some((testbed, _server, gateway, fetch)) = running("", 10) else { return };
    testbed.shell(&testbed.middlebox, "mkdir small && mount -t tmpfs -o size=64k none small");
    let flows: Value = parse_json(&testbed.control(&["flows", "--json"]).stdout);
    let flow = flows["flows"][0]["flow"].as_str().unwrap();
    let socket = testbed.dir.join("ctl");
    let capture = format!(
        "{PACELINE} gateway capture {flow} --out small/one.pcapng --seconds 20 --control {}",
        socket.display()
    );
    let output = testbed.try_shell(&testbed.middlebox, &capture);
    assert!(output.code == 1 && output.stderr.contains("cannot write small/one.pcapng"), "{output:?}");
    assert_eq!(ends(fetch), (10, 0));
    testbed.stop(gateway);
}

#[test]
fn memory_for_data_stays_below_its_limit() {
    const LIMIT: u64 = 4 << 20;
    let Some((testbed, _server, gateway, mut fetch)) = running("[accelerator]\nmemory = \"4 MiB\"\n", 30)
    else {
        return;
    };
    let mut most = 0;
    while fetch.runs() {
        most = most.max(testbed.status()["held"].as_u64().unwrap());
    }
    assert_eq!(ends(fetch), (30, 0));
    assert!(most > 0 && most <= LIMIT, "{most} of {LIMIT} bytes");
    wait_for("the memory to be free", || (testbed.status()["held"] == 0).then_some(()));
    testbed.stop(gateway);
}

/// A short run of `make soak`: thousands of connections, and as many SYNs without an answer.
#[test]
fn memory_is_flat_over_many_connections() {
    let Some(testbed) = Testbed::new(&["python3", "ethtool"]) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/gateway/soak.py");
    let mut command = Command::new("timeout");
    command.arg(HANG_GUARD.as_secs().to_string()).args(["python3", script, "--paceline", PACELINE]);
    command.args(["--connections", "6000", "--rate", "1000", "--report", "1000"]);
    let output = run(command.current_dir(testbed.dir.path()));
    eprintln!("{}", output.stdout);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("flat: yes"), "{output:?}");
}

/// Records of transfers, on a disk that becomes full and has room again.
#[test]
fn records_of_transfers_are_written_while_the_disk_has_room() {
    let Some(testbed) = Testbed::new(&["python3", "mount"]) else { return };
    testbed.dir.write("file", random_bytes(100_000));
    let _server = serve(&testbed);
    testbed.shell(&testbed.middlebox, "mkdir small && mount -t tmpfs -o size=64k none small");
    let file = testbed.dir.join("small").join("transfers.csv");
    let mut gateway = testbed.gateway(&testbed.config(&format!("records = \"{}\"\n", file.display())));
    let lines = || {
        let text = testbed.shell(&testbed.middlebox, "cat small/transfers.csv").stdout;
        text.lines().skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
    wait_for("three records", || (lines().len() == 3).then_some(()));
    for line in lines() {
        let columns: Vec<&str> = line.split(',').collect();
        assert_eq!(
            (columns[1], columns[2], columns[3], columns[5]),
            (SERVER, "9000", CLIENT, "100000"),
            "{line}"
        );
        assert_eq!((columns.len(), columns[10]), (11, "1"), "{line}");
    }
    testbed.try_shell(&testbed.middlebox, "cat /dev/zero > small/full");
    // The last block of the file has room for some lines more.
    assert_eq!(ends(fetch_from(&testbed, SERVER, 60)), (60, 0));
    wait_for_message(&mut gateway, "transfers are left out");
    testbed.shell(&testbed.middlebox, "rm small/full");
    let before = lines().len();
    assert_eq!(ends(fetch_from(&testbed, SERVER, 3)), (3, 0));
    wait_for("records again", || (lines().len() > before).then_some(()));
    testbed.stop(gateway);
}
