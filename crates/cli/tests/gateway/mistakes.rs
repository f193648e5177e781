//! Mistakes of an operator, and changes of interfaces and routes while the gateway runs.

use crate::common::namespace::{random_bytes, wait_for};
use crate::common::testbed::{
    HTTP, HTTP6, INTERFACES, Testbed, counter, wait_for_message, wait_for_messages,
};
use crate::common::{Output, PACELINE};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

/// The server's files where the middlebox is a router.
const ROUTED: &str = "http://10.20.0.1:8000";

fn with_file(size: u64) -> Option<Testbed> {
    let testbed = Testbed::new(&["curl", "python3"])?;
    testbed.dir.write("file", random_bytes(size));
    Some(testbed)
}
/// Starts a gateway that is expected to end by itself, beside the one that runs.
fn second_gateway(testbed: &Testbed, config: &str) -> Output {
    testbed.dir.write("second.toml", config);
    testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway second.toml"))
}

#[test]
fn a_second_gateway_on_an_interface_is_refused() {
    let Some(testbed) = with_file(2_000_000) else { return };
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&testbed.config(""));
    for workers in [1, 2] {
        let output = second_gateway(&testbed, &format!("workers = {workers}\n{INTERFACES}"));
        assert!(output.code == 1 && output.stderr.contains("another gateway works at srv"), "{output:?}");
        testbed.download("file", HTTP);
        assert_eq!(testbed.counter("flows"), workers);
    }
    testbed.stop(gateway);
}

#[test]
fn a_check_refuses_a_missing_interface_and_prints_the_defaults() {
    let Some(testbed) = with_file(1) else { return };
    let check = |config: &str| {
        testbed.dir.write("box.toml", config);
        testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway box.toml --check"))
    };
    let output = check("server = \"srv\"\nmobile = \"absent\"\n");
    assert!(output.code == 2 && output.stderr.contains("box.toml: mobile = \"absent\""), "{output:?}");
    assert!(output.stderr.lines().count() == 1 && output.stdout.is_empty(), "{output:?}");
    let output = check(INTERFACES);
    assert!(output.code == 0 && output.stdout.contains("workers = 1\n"), "{output:?}");
    assert!(output.stdout.contains("mode = \"bridge\"") && output.stdout.contains("[limits]"), "{output:?}");
    assert!(output.stdout.contains("control = \"/run/paceline/srv-mob.sock\"\n"), "{output:?}");
    assert!(output.stdout.contains("# memory for data: "), "{output:?}");
    assert!(output.stdout.lines().any(|line| line.starts_with("memory = \"")), "{output:?}");
}

/// Files that the gateway could not write, and settings that an operator should know of.
#[test]
fn a_check_refuses_files_that_cannot_be_written_and_warns_of_settings() {
    let Some(testbed) = with_file(1) else { return };
    let check = |config: &str| {
        testbed.dir.write("box.toml", format!("{config}{INTERFACES}"));
        testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway box.toml --check"))
    };
    for key in ["records", "experiment"] {
        let path = "/proc/version/none.csv";
        let output = check(&format!("{key} = \"{path}\"\n"));
        let expected = format!("box.toml: {key} = \"{path}\": cannot be written: ");
        assert!(output.code == 2 && output.stderr.contains(&expected), "{output:?}");
        // As in the unit without the folder: a file system that must not be written.
        let path = testbed.dir.join("sealed").join("new.csv");
        testbed.dir.write("box.toml", format!("{key} = \"{}\"\n{INTERFACES}", path.display()));
        let line = format!(
            "mkdir -p sealed; unshare -m sh -c 'mount -t tmpfs -o ro none sealed && exec {PACELINE} gateway box.toml --check'"
        );
        let output = testbed.try_shell(&testbed.middlebox, &line);
        assert!(output.code == 2 && output.stderr.contains("cannot be written: "), "{output:?}");
        assert!(output.stderr.contains("Read-only file system"), "{output:?}");
        let fine = testbed.dir.join("new.csv");
        let output = check(&format!("{key} = \"{}\"\n", fine.display()));
        assert!(output.code == 0 && output.stderr.is_empty() && !fine.exists(), "{output:?}");
    }
    for (address, warns) in [("0.0.0.0:9464", true), ("[::]:9464", true), ("127.0.0.1:9464", false)] {
        let output = check(&format!("metrics = \"{address}\"\n"));
        assert_eq!((output.code, output.stderr.contains("everybody who reaches port 9464")), (0, warns));
    }
    testbed.route();
    for forwarding in [0, 1] {
        testbed.shell(&testbed.middlebox, &format!("echo {forwarding} > /proc/sys/net/ipv4/ip_forward"));
        let output = check("mode = \"routed\"\n");
        let warns = output.stderr.contains("net.ipv4.ip_forward=1");
        assert_eq!((output.code, warns), (0, forwarding == 0), "{output:?}");
    }
}

/// A router that translates addresses sees the devices' packets alone: such connections are counted.
#[test]
fn connections_that_are_left_alone_because_of_address_translation_are_counted() {
    let Some(testbed) = with_file(300_000) else { return };
    testbed.route();
    let nat = "nft add table ip nat && nft 'add chain ip nat post { type nat hook postrouting priority 100 ; }' \
               && nft add rule ip nat post oifname srv masquerade";
    if testbed.try_shell(&testbed.middlebox, nat).code != 0 {
        return crate::common::namespace::skip("this kernel translates no addresses");
    }
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&testbed.config("mode = \"routed\"\n"));
    (0..3).for_each(|_| testbed.download("file", ROUTED));
    let counters = testbed.stop(gateway);
    assert_eq!((counter(&counters, "bypassed-one-sided"), counter(&counters, "flows")), (3, 0), "{counters}");
}

#[test]
fn a_control_socket_with_too_many_clients_says_so() {
    let Some(testbed) = with_file(1) else { return };
    let gateway = testbed.gateway(&testbed.config(""));
    let path = testbed.dir.join("ctl");
    // Each keeps a thread of the gateway until its time for a request is over. A connection that the gateway
    // has not accepted yet counts only later.
    let mut idle = Vec::new();
    let refused = wait_for("a refusal", || {
        idle.push(UnixStream::connect(&path).unwrap());
        Some(testbed.control(&["status"])).filter(|output| output.code != 0)
    });
    assert!(refused.code == 1 && refused.stderr.contains("32 requests are being answered"), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    drop(idle);
    wait_for("an answer", || (testbed.control(&["status"]).code == 0).then_some(()));
    testbed.stop(gateway);
}

/// A TUN device cannot be a port of a bridge.
#[test]
fn an_interface_without_an_ethernet_header_is_refused() {
    let Some(testbed) = with_file(1) else { return };
    testbed.shell(&testbed.middlebox, "ip tuntap add dev tun0 mode tun; ip link set tun0 up");
    testbed.dir.write("box.toml", "server = \"srv\"\nmobile = \"tun0\"\n");
    for (option, code) in [("--check", 2), ("", 1)] {
        let line = format!("{PACELINE} gateway box.toml {option}");
        let output = testbed.try_shell(&testbed.middlebox, &line);
        assert!(
            output.code == code && output.stderr.contains("tun0: its packets have no Ethernet"),
            "{output:?}"
        );
    }
    assert!(!testbed.shell(&testbed.middlebox, "ip -br link").stdout.contains("paceline0"));
}

#[test]
fn a_port_in_use_for_metrics_is_one_line() {
    let Some(testbed) = with_file(1) else { return };
    let _other =
        testbed.serve_in(&testbed.middlebox, "other", 9464, "python3 -m http.server -b 127.0.0.1 9464");
    let output = second_gateway(&testbed, &format!("metrics = \"127.0.0.1:9464\"\n{INTERFACES}"));
    let line = "paceline: metrics = 127.0.0.1:9464: another program listens there already\n";
    assert!(output.code == 1 && output.stderr == line, "{output:?}");
    assert!(!testbed.shell(&testbed.middlebox, "ip -br link").stdout.contains("paceline0"));
}

#[test]
fn two_routed_gateways_need_devices_of_different_names() {
    let Some(testbed) = with_file(2_000_000) else { return };
    testbed.route();
    testbed.shell(
        &testbed.middlebox,
        "ip link add one type veth peer name two; ip link set one up; ip link set two up",
    );
    let _server = testbed.serve_files();
    let gateway = testbed.gateway(&testbed.config("mode = \"routed\"\n"));
    let other = "mode = \"routed\"\nserver = \"one\"\nmobile = \"two\"\n";
    let output = second_gateway(&testbed, other);
    assert!(output.code == 1 && output.stderr.contains("bridge = \"paceline0\""), "{output:?}");
    testbed.download("file", ROUTED);
    assert_eq!(testbed.counter("flows"), 1);
    // A device of another kind is not replaced either.
    testbed.shell(&testbed.middlebox, "ip link add br7 type bridge");
    let output = second_gateway(&testbed, &format!("bridge = \"br7\"\n{other}"));
    assert!(output.code == 1 && output.stderr.contains("bridge = \"br7\""), "{output:?}");
    testbed.shell(&testbed.middlebox, "ip link show br7");
    // An interface that is down receives no packets.
    testbed.shell(&testbed.middlebox, "ip link set one down");
    let output = second_gateway(&testbed, &format!("bridge = \"pair\"\n{other}"));
    assert!(output.code == 1 && output.stderr.contains("`ip link set one up`"), "{output:?}");
    testbed.stop(gateway);
}

/// The gateway hands packets back to the kernel by a pair of devices. While the kernel does not accept
/// packets there, the gateway must take none.
#[test]
fn the_gateway_pauses_while_the_router_refuses_its_packets() {
    let Some(testbed) = with_file(2_000_000) else { return };
    testbed.route();
    let _server = testbed.serve_files();
    let mut gateway = testbed.gateway(&testbed.config("mode = \"routed\"\n"));
    testbed.download("file", ROUTED);
    let changes = [
        ("echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter", "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter"),
        (
            "echo 1 > /proc/sys/net/ipv4/conf/paceline0r/rp_filter",
            "echo 0 > /proc/sys/net/ipv4/conf/paceline0r/rp_filter",
        ),
        ("ip link set paceline0r down", "ip link set paceline0r up"),
    ];
    for (n, (change, back)) in (1..).zip(changes) {
        testbed.shell(&testbed.middlebox, change);
        wait_for_messages(&mut gateway, "the kernel forwards meanwhile", n);
        wait_for("a bypassed connection", || (!testbed.accelerates("file", ROUTED)).then_some(()));
        testbed.shell(&testbed.middlebox, back);
        wait_for_messages(&mut gateway, "the problem is gone", n);
        wait_for("an accelerated connection", || testbed.accelerates("file", ROUTED).then_some(()));
    }
    testbed.shell(&testbed.middlebox, "ip link del paceline0");
    let output = gateway.finish();
    assert!(output.code == 1 && output.stderr.contains("an interface is gone"), "{output:?}");
    testbed.download("file", ROUTED);
}

#[test]
fn interfaces_that_cannot_be_bridged_are_not_changed() {
    let Some(testbed) = with_file(1) else { return };
    let output = second_gateway(&testbed, &format!("bridge = \"lo\"\n{INTERFACES}"));
    assert!(output.code == 1 && output.stderr.contains("bridge = \"lo\": allowed: a bridge"), "{output:?}");
    let loopback = "server = \"srv\"\nmobile = \"lo\"\n";
    for (prepare, bridge) in [("true", ""), ("ip link add br5 type bridge", "bridge = \"br5\"\n")] {
        testbed.shell(&testbed.middlebox, prepare);
        let output = second_gateway(&testbed, &format!("{bridge}{loopback}"));
        assert!(output.code == 1 && output.stderr.contains("cannot make lo a port"), "{output:?}");
        let links = testbed.shell(&testbed.middlebox, "ip -br link; ip -d link show srv").stdout;
        assert!(!links.contains("paceline0") && !links.contains("master"), "{links}");
        assert_eq!(links.contains("br5"), !bridge.is_empty(), "{links}");
    }
}

#[test]
fn the_gateway_pauses_while_a_port_is_not_in_the_bridge() {
    let Some(testbed) = with_file(1_000_000) else { return };
    let _server = testbed.serve_files();
    let mut gateway = testbed.gateway(&testbed.config(""));
    for (n, port) in (1..).zip(["mob", "srv"]) {
        testbed.shell(&testbed.middlebox, &format!("ip link set {port} nomaster"));
        let message = format!("{port} is in no bridge any more; the kernel forwards meanwhile");
        wait_for_message(&mut gateway, &message);
        assert_eq!(testbed.status()["paused"], true);
        testbed.shell(&testbed.middlebox, &format!("ip link set {port} master paceline0"));
        wait_for_messages(&mut gateway, "the problem is gone", n);
        wait_for("an accelerated connection", || testbed.accelerates("file", HTTP).then_some(()));
    }
    testbed.stop(gateway);
}

#[test]
fn an_interface_removed_while_the_sides_are_learned_ends_the_gateway() {
    let Some(testbed) = with_file(1) else { return };
    testbed.dir.write("gateway.toml", format!("sides = \"learned\"\n{INTERFACES}"));
    let mut gateway =
        testbed.start(&testbed.middlebox, "gateway", &format!("{PACELINE} gateway gateway.toml"));
    // Before its sockets are bound to both interfaces, one that is missing is an error of another text.
    wait_for("the gateway's sockets", || {
        let links = testbed.shell(&testbed.middlebox, "ip -o link show mob && ip -o link show srv").stdout;
        let indices: Vec<&str> = links.lines().filter_map(|line| line.split(':').next()).collect();
        let sockets = testbed.shell(&testbed.middlebox, "cat /proc/net/packet").stdout;
        let bound = |index: &&str| sockets.lines().any(|line| line.split_whitespace().nth(4) == Some(*index));
        indices.iter().all(bound).then_some(())
    });
    gateway.output_so_far();
    testbed.shell(&testbed.middlebox, "ip link del mob");
    let output = gateway.finish();
    assert!(output.code == 1 && output.stderr.contains("an interface is gone"), "{output:?}");
}

#[test]
fn a_second_stop_with_a_shorter_limit_counts() {
    let Some(testbed) = with_file(10_000_000) else { return };
    let _server = testbed.serve_files();
    let mut gateway = testbed.gateway(&testbed.config("drain = \"3600 s\"\n"));
    let _download = testbed.exposed_download();
    gateway.signal("TERM");
    wait_for_message(&mut gateway, "stopping");
    // The hang guard is far below the first limit, an hour.
    let output = testbed.dir.paceline(&["gateway", "stop", "--limit", "1s", "--control", "ctl"]);
    assert!(output.code == 1 && output.stdout.contains(" 1 were reset"), "{output:?}");
    assert_eq!(gateway.finish().code, 0);
}

#[test]
fn the_answer_to_a_stop_comes_when_another_gateway_can_start() {
    let Some(testbed) = with_file(1) else { return };
    for mode in ["", "mode = \"routed\"\n"] {
        if !mode.is_empty() {
            testbed.shell(&testbed.middlebox, "ip link del paceline0");
            testbed.route();
        }
        let mut gateway = testbed.gateway(&testbed.config(&format!("workers = 8\n{mode}")));
        let mut stream = UnixStream::connect(testbed.dir.join("ctl")).unwrap();
        stream.write_all(b"{\"stop\":{}}\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let answers: Vec<String> = lines.take(2).collect();
        assert!(!testbed.dir.join("ctl").exists(), "{answers:?}");
        assert!(answers[1].contains("ended"), "{answers:?}");
        if !mode.is_empty() {
            let links = testbed.shell(&testbed.middlebox, "ip -br link").stdout;
            assert!(!links.contains("paceline0"), "{links}");
        }
        assert_eq!(gateway.finish().code, 0);
    }
}

/// A monitoring system takes a decrease for a restart of the counter.
#[test]
fn counters_do_not_decrease_when_one_of_several_workers_has_ended() {
    let Some(testbed) = with_file(10_000_000) else { return };
    let _server = testbed.serve_files();
    let mut gateway = testbed.gateway(&testbed.config("workers = 4\n"));
    for host in 10..20 {
        testbed.shell(&testbed.client, &format!("ip addr add 10.9.0.{host}/24 dev cli0"));
        testbed.download_from(Some(&format!("10.9.0.{host}")), "file", HTTP);
    }
    let _download = testbed.exposed_download();
    let before = testbed.status();
    gateway.signal("TERM");
    wait_for_message(&mut gateway, "stopping");
    sleep(Duration::from_millis(500));
    let after = testbed.status();
    assert!(after["draining"] == true && after["exposure"].as_u64() > Some(0), "{after}");
    for (name, value) in before["counters"].as_object().unwrap() {
        assert!(after["counters"][name].as_u64() >= value.as_u64(), "{name}: {before} {after}");
    }
    gateway.signal("TERM");
    assert_eq!(gateway.finish().code, 0);
}

#[test]
fn a_policy_for_all_of_ipv6_does_not_apply_to_ipv4() {
    let Some(testbed) = with_file(1_000_000) else { return };
    let _server = testbed.serve_files();
    let rule = "[[policy]]\nprefix = \"::/0\"\naction = \"leave\"\n";
    let gateway = testbed.gateway(&format!("{}{rule}", testbed.config("")));
    testbed.download("file", HTTP);
    testbed.download("file", HTTP6);
    let counters = testbed.stop(gateway);
    assert_eq!(counters["flows"], 1, "{counters}");
    assert!(counters["packets-left-by-policy"].as_u64() > Some(10), "{counters}");
}
