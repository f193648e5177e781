//! A gateway that is stopped, killed or hangs: transfers complete or are reset, and none hangs.

use crate::common::testbed::LONG_DRAIN;
use crate::gateway_clients::middlebox::Middlebox;
use crate::gateway_clients::network::{CLIENT, Network, SERVER};
use crate::gateway_clients::servers::{SOCKETS, sockets};
use std::thread::{scope, sleep};
use std::time::Duration;

const DOWNLOAD_BYTES: u64 = 400_000;

/// A network with a slow link to the client, so that a hundred downloads last some seconds.
fn slow_network() -> Option<Network> {
    let network = Network::new(&[CLIENT])?;
    network.shape("100mbit", "200k");
    Some(network)
}

/// Runs a hundred downloads at once; gives how many ended in which way.
fn hundred_downloads(network: &Network) -> Vec<(u32, String)> {
    let output = network.exchange(CLIENT.name, "hundred-downloads", &SERVER.v4(), SOCKETS, DOWNLOAD_BYTES);
    assert_eq!(output.code, 0, "{output:?}");
    let line = |line: &str| {
        let (count, end) = line.split_once(' ').expect("count and end");
        (count.parse().expect("a count"), end.to_owned())
    };
    output.stdout.lines().map(line).collect()
}

#[test]
fn a_stop_lets_a_hundred_downloads_complete() {
    let Some(network) = slow_network() else { return };
    let _servers = sockets(&network);
    let mut middlebox = Middlebox::start(&network, LONG_DRAIN);
    scope(|scope| {
        let downloads = scope.spawn(|| hundred_downloads(&network));
        let idle = scope.spawn(|| network.exchange_ok("idle", 6));
        let upload = scope.spawn(|| network.exchange_ok("upload", 40_000_000));
        sleep(Duration::from_millis(1500));
        middlebox.signal("TERM");
        let counters = middlebox.ended();
        println!("{counters}");
        assert_eq!(downloads.join().unwrap(), [(100, "exact".to_owned())]);
        idle.join().unwrap();
        upload.join().unwrap();
        counters.assert_some("early-acks");
    });
    network.exchange_ok("get", 1); // by the bridge alone
}

#[test]
fn after_a_kill_no_connection_hangs() {
    let Some(network) = slow_network() else { return };
    let _servers = sockets(&network);
    let middlebox = Middlebox::start(&network, "");
    scope(|scope| {
        // Idle connections and uploads have no exposure: they must go on.
        let idle = scope.spawn(|| network.exchange_ok("idle", 6));
        sleep(Duration::from_secs(1));
        let upload = scope.spawn(|| network.exchange_ok("upload", 40_000_000));
        let downloads = scope.spawn(|| hundred_downloads(&network));
        sleep(Duration::from_millis(1500));
        middlebox.signal("KILL");
        network.exchange_ok("get", 1);
        let next = Middlebox::start(&network, "");
        idle.join().expect("an idle connection goes on");
        upload.join().expect("an upload goes on");
        let ends = downloads.join().unwrap();
        println!("after a kill: {ends:?}");
        assert!(ends.iter().all(|(_, end)| end == "exact" || end == "reset"), "{ends:?}");
        println!("the next gateway: {}", next.stop());
    });
}

#[test]
fn the_kernel_forwards_while_the_gateway_hangs() {
    let Some(network) = slow_network() else { return };
    let _servers = sockets(&network);
    let middlebox = Middlebox::start(&network, "");
    scope(|scope| {
        // Connections without data, with little data, with downloads and with uploads in progress.
        let idle = scope.spawn(|| network.exchange_ok("idle", 6));
        let drip = scope.spawn(|| network.exchange_ok("drip", 3));
        let ping = scope.spawn(|| network.exchange_ok("ping", 4));
        sleep(Duration::from_secs(1));
        let upload = scope.spawn(|| network.exchange_ok("upload", 30_000_000));
        let downloads = scope.spawn(|| hundred_downloads(&network));
        sleep(Duration::from_secs(1));
        middlebox.signal("STOP");
        network.exchange_ok("short", 200);
        middlebox.signal("CONT");
        network.exchange_ok("get", 2);
        idle.join().expect("an idle connection goes on");
        drip.join().expect("a connection with little data goes on");
        ping.join().expect("requests are answered");
        upload.join().expect("an upload goes on");
        assert_eq!(downloads.join().unwrap(), [(100, "exact".to_owned())]);
    });
    println!("{}", middlebox.stop());
}

#[test]
fn repeated_starts_and_stops_do_no_harm() {
    let Some(network) = slow_network() else { return };
    let _servers = sockets(&network);
    scope(|scope| {
        let ends = scope.spawn(|| hundred_downloads(&network));
        let idle = scope.spawn(|| network.exchange_ok("idle", 6));
        for _ in 0..6 {
            let mut middlebox = Middlebox::start(&network, LONG_DRAIN);
            sleep(Duration::from_millis(500));
            middlebox.signal("TERM");
            middlebox.ended();
        }
        assert_eq!(ends.join().unwrap(), [(100, "exact".to_owned())]);
        idle.join().unwrap();
    });
}
