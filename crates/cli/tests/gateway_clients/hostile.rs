//! SYN floods, malformed and forged packets, and misbehaving clients. Other clients receive every byte, and
//! the gateway's memory stays bounded.

use crate::common::namespace::{Program, wait_for};
use crate::gateway_clients::middlebox::Middlebox;
use crate::gateway_clients::network::{ATTACKER, CLIENT, Network, SERVER};
use crate::gateway_clients::servers::{SOCKETS, sockets};
use std::thread::{scope, sleep};
use std::time::Duration;

/// Client port of the exchange `victim` of `sockets.py`.
const VICTIM: &str = "40000";
/// Resident memory of the gateway during an attack, at most. Chosen: several times what it takes without one.
const MAX_MEMORY_MB: f64 = 100.0;
/// Idle connections, and memory for each at most.
const IDLE_CONNECTIONS: u32 = 9000;
const MAX_KB_PER_IDLE_CONNECTION: f64 = 1.5;

fn network_with_attacker() -> Option<Network> {
    let network = Network::new(&[CLIENT, ATTACKER])?;
    network.dir.write("hostile.py", include_str!("hostile.py"));
    Some(network)
}

/// Runs an attack of `hostile.py` on a host until it ends; gives stdout.
fn attack(network: &Network, host: &str, argv: &[&str]) -> String {
    let output = network.run(host, &[&["python3", "hostile.py"], argv].concat());
    assert_eq!(output.code, 0, "{argv:?}: {output:?}");
    println!("{} from {host}: {}", argv[0], output.stdout.trim());
    output.stdout
}

/// Waits until the victim's download has received data.
fn wait_for_download(network: &Network) {
    wait_for("the download", || {
        let argv = ["ss", "-Htni", "state", "established", &format!("sport = :{VICTIM}")];
        let output = network.run(CLIENT.name, &argv).stdout;
        output.split_whitespace().any(|word| word.strip_prefix("bytes_received:").is_some()).then_some(())
    });
}

/// Stops the gateway. Its memory must be bounded, and it must have accelerated.
fn stop_with_bounded_memory(middlebox: Middlebox) {
    println!("memory: {:.0} MB", middlebox.memory());
    assert!(middlebox.memory() < MAX_MEMORY_MB, "{:.0} MB", middlebox.memory());
    let counters = middlebox.stop();
    println!("{counters}");
    counters.assert_some("early-acks");
}

#[test]
fn clients_transfer_during_a_syn_flood() {
    let Some(network) = network_with_attacker() else { return };
    let _servers = sockets(&network);
    // The server's answers to random addresses go to the attacker, through the gateway.
    network.shell_ok(SERVER.name, &format!("ip route add default via {}", ATTACKER.v4()));
    let middlebox = Middlebox::start(&network, "[limits]\nmax_openings = 20000\n");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let flood = scope.spawn(|| attack(&network, ATTACKER.name, &["flood", &SERVER.v4(), &port, "4"]));
        sleep(Duration::from_secs(2));
        for number in 0..3 {
            network.exchange_ok("get", number);
        }
        flood.join().unwrap();
    });
    // Connections of an overloaded worker stay in the kernel; on a busy machine it works off the flood later.
    for _ in 0..8 {
        network.exchange_ok("short", 200);
        sleep(Duration::from_millis(500));
    }
    stop_with_bounded_memory(middlebox);
}

#[test]
fn malformed_packets_do_no_harm() {
    let Some(network) = network_with_attacker() else { return };
    let _servers = sockets(&network);
    network.shape("100mbit", "200k");
    let middlebox = Middlebox::start(&network, "");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let download = scope.spawn(|| network.exchange_ok("victim", 60_000_000));
        let upload = scope.spawn(|| network.exchange_ok("upload", 20_000_000));
        wait_for_download(&network);
        // With the addresses of both ends of the download, and of hosts without connections.
        for (host, src, dst, ports) in [
            (CLIENT.name, CLIENT.v4(), SERVER.v4(), [VICTIM, &port]),
            (SERVER.name, SERVER.v4(), CLIENT.v4(), [&port, VICTIM]),
            (CLIENT.name, CLIENT.v6(), SERVER.v6(), [VICTIM, &port]),
            (SERVER.name, SERVER.v6(), CLIENT.v6(), ["80", "81"]),
            (ATTACKER.name, ATTACKER.v4(), SERVER.v4(), ["1", &port]),
        ] {
            let network = &network;
            scope.spawn(move || attack(network, host, &["malformed", &src, &dst, ports[0], ports[1], "1"]));
        }
        download.join().unwrap();
        upload.join().unwrap();
    });
    network.exchange_ok("get", 1);
    stop_with_bounded_memory(middlebox);
}

#[test]
fn forged_packets_are_refused() {
    let Some(network) = network_with_attacker() else { return };
    let _servers = sockets(&network);
    network.shape("100mbit", "200k");
    let middlebox = Middlebox::start(&network, "");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let download = scope.spawn(|| network.exchange_ok("victim", 60_000_000));
        wait_for_download(&network);
        for (host, src, dst, ports) in [
            (CLIENT.name, CLIENT.v4(), SERVER.v4(), [VICTIM, &port]),
            (SERVER.name, SERVER.v4(), CLIENT.v4(), [&port, VICTIM]),
        ] {
            let network = &network;
            scope.spawn(move || attack(network, host, &["inject", &src, &dst, ports[0], ports[1], "5"]));
        }
        download.join().unwrap();
    });
    stop_with_bounded_memory(middlebox);
}

#[test]
fn misbehaving_clients_do_not_harm_others() {
    let Some(network) = network_with_attacker() else { return };
    let _servers = sockets(&network);
    // Paths of a busy machine have long round trips, and a quarter of its memory is the default budget.
    let middlebox = Middlebox::start(&network, "[accelerator]\nmemory = \"32 MiB\"\n");
    let port = SOCKETS.to_string();
    scope(|scope| {
        for (number, how) in [(101, "divide"), (102, "optimistic"), (103, "duplicate"), (104, "silent")] {
            let (network, port) = (&network, &port);
            let own = format!("10.77.0.{number}");
            let seconds = "5";
            scope.spawn(move || {
                attack(network, ATTACKER.name, &["misbehave", &own, &SERVER.v4(), port, how, seconds])
            });
        }
        for number in 0..3 {
            network.exchange_ok("get", number);
        }
    });
    network.exchange_ok("get", 3);
    stop_with_bounded_memory(middlebox);
}

#[test]
fn nine_thousand_idle_connections_take_little_memory() {
    let Some(network) = network_with_attacker() else { return };
    let port = 7005;
    let _server = network.serve("hold", port, &["python3", "sockets.py", "hold", &port.to_string()]);
    let middlebox = Middlebox::start_in_small_pages(&network, "[limits]\nmax_flows_per_device = 20000\n");
    let before = middlebox.memory();
    let (port, count) = (port.to_string(), IDLE_CONNECTIONS.to_string());
    let argv = ["python3", "sockets.py", "hold-many", &SERVER.v4(), &port, &count];
    let mut client: Program = network.start(CLIENT.name, "hold-many", &argv);
    wait_for("the connections", || client.output_so_far().stdout.contains("held").then_some(()));
    let grown = middlebox.memory() - before;
    println!("{IDLE_CONNECTIONS} idle connections: {grown:.1} MB more than {before:.1} MB");
    assert!(grown * 1e3 < f64::from(IDLE_CONNECTIONS) * MAX_KB_PER_IDLE_CONNECTION, "{grown:.1} MB");
    drop(client);
    println!("{}", middlebox.stop());
}
