//! The proof of gain on a running gateway: devices with addresses of their own download over a path on which
//! acceleration helps, and with a configuration that makes it harmful.

use crate::common::namespace::{Program, random_bytes, wait_for};
use crate::common::parse_json;
use crate::common::testbed::{SERVER, Testbed, wait_for_message};
use crate::gateway::operation::serve;
use paceline_experiment::{Arm, Assignment};
use serde_json::Value;
use std::net::IpAddr;

const DEVICES: usize = 24;
const DELAY_LINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/gateway/delay_line.py");
const METRICS: &str = "metrics = \"127.0.0.1:9464\"\n";

fn addresses() -> impl Iterator<Item = IpAddr> {
    (0..DEVICES).map(|n| [10, 9, 0, 100 + n as u8].into())
}
/// A seed with as many accelerated as untouched devices.
fn seed() -> u32 {
    let accelerated = |seed: u32| {
        let assignment = Assignment::new(seed, 0.5);
        addresses().filter(|address| assignment.arm(*address) == Arm::Accelerated).count()
    };
    (1..).find(|seed| accelerated(*seed) == DEVICES / 2).expect("one of four billion")
}
/// A testbed whose round trip of 80 ms lies half between server and gateway and half behind the gateway: in
/// both namespaces at the ends, a line with a delay connects a pair of devices with the testbed's own.
struct Devices {
    testbed: Testbed,
    _lines: [Program; 2],
}

impl Devices {
    fn new(size: u64) -> Option<Self> {
        let testbed = Testbed::new(&["python3", "curl", "mount"])?;
        testbed.dir.write("file", random_bytes(size));
        let line = |namespace, port: &str, addresses: Vec<String>| {
            let add = |address: String| format!("ip addr add {address}/24 dev end && ");
            testbed.shell(
                namespace,
                &format!(
                    "ip addr flush dev {port} && ip link add end type veth peer name line && \
                     echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore && {} ip link set end up && \
                     ip link set line up",
                    addresses.into_iter().map(add).collect::<String>()
                ),
            );
            // The line stands for a cable, which programs on a busy machine do not slow down.
            let command = format!("nice -n -20 python3 {DELAY_LINE} line {port} 20");
            testbed.start(namespace, &format!("line-{port}"), &command)
        };
        let devices = addresses().map(|address| address.to_string()).collect();
        let lines =
            [line(&testbed.server, "srv0", vec![SERVER.into()]), line(&testbed.client, "cli0", devices)];
        testbed.dir.write("devices.py", include_str!("../common/devices.py"));
        Some(Self { testbed, _lines: lines })
    }
}

fn begin(testbed: &Testbed, time: &str) {
    let seed = seed().to_string();
    let begun = testbed.control(&["experiment", "--share", "50%", "--for", time, "--seed", &seed]);
    assert_eq!((begun.code, begun.stderr.as_str()), (0, ""), "{begun:?}");
    assert!(begun.stdout.contains("experiment running") && begun.stdout.contains("first look"), "{begun:?}");
}
fn download(testbed: &Testbed, seconds: u32) -> Program {
    download_by(testbed, DEVICES, seconds)
}
fn download_by(testbed: &Testbed, devices: usize, seconds: u32) -> Program {
    let line = format!("python3 devices.py {SERVER} 9000 10.9.0.100 {devices} {seconds}");
    testbed.start(&testbed.client, "devices", &line)
}
fn report(testbed: &Testbed) -> Value {
    parse_json(&testbed.control(&["experiment", "--json"]).stdout)
}
fn row<'a>(report: &'a Value, size: Option<&str>, measure: &str) -> &'a Value {
    let rows = report["report"]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["size"].as_str() == size && row["measure"] == measure).unwrap()
}
fn metric(testbed: &Testbed, name: &str) -> f64 {
    let text = testbed.shell(&testbed.middlebox, "curl -sS http://127.0.0.1:9464/metrics").stdout;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
}

/// Slow start takes half as long to the gateway as to the device.
#[test]
fn an_experiment_shows_the_gain_and_accelerates_all_devices_afterwards() {
    let Some(Devices { testbed, _lines }) = Devices::new(300_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(METRICS));
    let none = testbed.control(&["experiment"]);
    assert!(none.code == 1 && none.stderr.contains("there was no experiment"), "{none:?}");
    begin(&testbed, "8 s");
    let twice = testbed.control(&["experiment", "--share", "50%", "--for", "1h"]);
    assert!(twice.code == 1 && twice.stderr.contains("runs already"), "{twice:?}");
    let mut devices = download(&testbed, 8);
    wait_for_message(&mut gateway, "the experiment is complete");
    let downloads: Value = parse_json(&devices.finish().stdout);
    let found = report(&testbed);
    eprintln!("{}", testbed.control(&["experiment"]).stdout);
    assert_eq!((&found["state"], &found["report"]["look"]), (&"complete".into(), &10.into()), "{found}");
    let goodput = row(&found, Some("100 kB to 1 MB"), "goodput");
    assert_eq!(goodput["devices"], serde_json::json!([DEVICES / 2, DEVICES / 2]), "{downloads}");
    assert_eq!(goodput["finding"], "better", "{goodput}");
    // Both arms have the same round-trip time behind the gateway.
    for mean in row(&found, None, "rtt")["means"].as_array().unwrap() {
        assert!((0.03..0.2).contains(&mean.as_f64().unwrap()), "{mean}");
    }
    let counters = testbed.status()["counters"].clone();
    assert!(counters["packets-left-by-experiment"].as_u64() >= Some(DEVICES as u64 / 2), "{counters}");
    assert!(metric(&testbed, "paceline_experiment_goodput_ratio{bound=\"low\"}") > 1.0);
    assert_eq!(metric(&testbed, "paceline_experiment_running"), 0.0);
    // All devices are accelerated again.
    let before = testbed.counter("flows");
    assert_eq!(download(&testbed, 1).finish().code, 0);
    assert!(testbed.counter("flows") >= before + DEVICES as u64);
    testbed.stop(gateway);
}

/// A buffer of 16 KiB for a connection is its window on the path of 40 ms to the server: with it,
/// acceleration slows every transfer down.
#[test]
fn harm_stops_acceleration_until_the_configuration_is_read_again() {
    let Some(Devices { testbed, _lines }) = Devices::new(300_000) else { return };
    let _server = serve(&testbed);
    let harmful = "[accelerator]\nflow_buffer = \"16 KiB\"\n";
    let config = testbed.config(&format!("{METRICS}{harmful}"));
    let mut gateway = testbed.gateway(&config);
    begin(&testbed, "35 s");
    let mut devices = download(&testbed, 8);
    wait_for_message(
        &mut gateway,
        "acceleration does harm, and is off until the configuration is read again",
    );
    let output = testbed.control(&["experiment"]);
    eprintln!("{}", output.stdout);
    assert!(output.code == 1 && output.stdout.contains("acceleration does harm, and is off"), "{output:?}");
    let found = report(&testbed);
    assert_eq!(row(&found, Some("100 kB to 1 MB"), "goodput")["finding"], "worse", "{found}");
    assert!(found["report"]["look"].as_u64() < Some(10), "{found}");
    assert_eq!(metric(&testbed, "paceline_experiment_harmful"), 1.0);
    let is_off = |status: &Value| status["flows"] == 0 && status["paused"] == true;
    wait_for("the connections to be detached", || is_off(&testbed.status()).then_some(()));
    assert_eq!(testbed.status()["switched_off"], true);
    assert_eq!(devices.finish().code, 0);
    // Another gateway stays off too.
    testbed.stop(gateway);
    let mut gateway = testbed.gateway(&config);
    wait_for_message(&mut gateway, "acceleration does harm");
    assert_eq!(download(&testbed, 1).finish().code, 0);
    assert_eq!(testbed.counter("flows"), 0);
    let refused = testbed.control(&["experiment", "--share", "50%", "--for", "1h"]);
    assert!(refused.code == 1 && refused.stderr.contains("reload"), "{refused:?}");
    assert_eq!(testbed.control(&["reload"]).code, 0);
    wait_for("acceleration to be on", || (testbed.status()["paused"] == false).then_some(()));
    assert_eq!(download(&testbed, 1).finish().code, 0);
    assert!(testbed.counter("flows") > 0);
    testbed.stop(gateway);
}

#[test]
fn an_experiment_goes_on_after_a_restart_and_a_full_disk_does_not_end_it() {
    let Some(Devices { testbed, _lines }) = Devices::new(10_000) else { return };
    let _server = serve(&testbed);
    testbed.shell(&testbed.middlebox, "mkdir small && mount -t tmpfs -o size=64k none small");
    let file = testbed.dir.join("small").join("experiment.json");
    let config = testbed.config(&format!("experiment = \"{}\"\n", file.display()));
    let gateway = testbed.gateway(&config);
    // Without periods, of which the first part would not count. Few devices: no look can find harm, which the
    // gateway's share of a busy machine does.
    begin(&testbed, "35 s");
    let devices = download_by(&testbed, 8, 30);
    let transfers = |report: &Value| report["transfers"].as_array().unwrap().clone();
    let before = wait_for("transfers of both arms", || {
        Some(report(&testbed)).filter(|now| transfers(now).iter().all(|count| count.as_u64() > Some(0)))
    });
    devices.signal("KILL");
    testbed.stop(gateway);
    let mut gateway = testbed.gateway(&config);
    let after = report(&testbed);
    assert_eq!((&after["plan"], &after["state"]), (&before["plan"], &"running".into()), "{after}");
    assert!(transfers(&after).iter().zip(transfers(&before)).all(|(now, old)| now.as_u64() >= old.as_u64()));
    // The disk is full: it goes on in memory, and traffic is not disturbed.
    testbed.try_shell(&testbed.middlebox, "cat /dev/zero > small/full");
    let stopped = testbed.control(&["experiment", "--stop"]);
    assert!(stopped.code == 0 && stopped.stdout.contains("ended by the operator"), "{stopped:?}");
    wait_for_message(&mut gateway, "the experiment goes on in memory alone");
    begin(&testbed, "1h");
    assert_eq!(download(&testbed, 1).finish().code, 0);
    testbed.stop(gateway);
}

/// Twelve pairs of periods of 1.5 s, in which all devices are accelerated or none.
#[test]
fn a_switchback_compares_periods_with_acceleration_of_all_and_of_none() {
    let Some(Devices { testbed, _lines }) = Devices::new(100_000) else { return };
    let _server = serve(&testbed);
    let mut gateway = testbed.gateway(&testbed.config(METRICS));
    let short = testbed.control(&["experiment", "--for", "35 s", "--design", "switchback"]);
    assert!(short.code == 1 && short.stderr.contains("duration = 35 s"), "{short:?}");
    let begun = testbed.control(&["experiment", "--for", "36 s", "--design", "switchback", "--seed", "5"]);
    assert_eq!(begun.code, 0, "{begun:?}");
    let mut devices = download_by(&testbed, 6, 36);
    wait_for_message(&mut gateway, "the experiment is complete");
    assert_eq!(devices.finish().code, 0);
    let found = report(&testbed);
    let text = testbed.control(&["experiment"]).stdout;
    // A period without a transfer, as a busy machine has, leaves its pair out. Unit tests have all pairs.
    let pairs = found["report"]["pairs"].as_u64().unwrap();
    assert!(found["plan"]["design"] == "switchback" && (1..=12).contains(&pairs), "{found}");
    assert!(found["transfers"].as_array().unwrap().iter().all(|count| count.as_u64() > Some(0)), "{found}");
    let goodput = row(&found, Some("100 kB to 1 MB"), "goodput");
    let enough = goodput["finding"] != "too-few-devices";
    assert!(!enough || goodput["change"].as_f64() > Some(0.0), "{goodput} {text}");
    assert!(goodput["finding"] != "worse", "{goodput} {text}");
    assert!(text.contains(&format!("{pairs} pairs of periods")), "{text}");
    // All devices are accelerated again.
    let before = testbed.counter("flows");
    assert_eq!(download_by(&testbed, 6, 1).finish().code, 0);
    assert!(testbed.counter("flows") >= before + 6);
    testbed.stop(gateway);
}
