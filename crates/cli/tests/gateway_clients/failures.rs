//! How a gateway may end: killed, stopped, hung. Connections through it end well, or are reset; none waits for ever.

use crate::middle::Middle;
use crate::servers::{SOCKETS, sockets};
use crate::town::{CLIENT, SERVER, Town};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Bytes of each of a hundred downloads.
const EACH: u64 = 400_000;

/// A town whose link to clients makes a hundred downloads last some seconds.
fn town() -> Option<Town> {
    let town = Town::new(&[CLIENT])?;
    town.shape("100mbit", "200k");
    Some(town)
}

/// A hundred downloads at once, and how many ended in which way.
fn herd(town: &Town) -> Vec<(u32, String)> {
    let said = town.talk(CLIENT.name, "herd", &SERVER.v4(), SOCKETS, EACH);
    assert_eq!(said.code, 0, "{said:?}");
    let line = |line: &str| {
        let (count, end) = line.split_once(' ').expect("count and end");
        (count.parse().expect("a count"), end.to_owned())
    };
    said.stdout.lines().map(line).collect()
}

fn well(town: &Town, what: &str, number: u64) -> String {
    let said = town.talk(CLIENT.name, what, &SERVER.v4(), SOCKETS, number);
    assert_eq!(said.code, 0, "{what}: {said:?}");
    said.stdout
}

#[test]
fn a_stop_lets_a_hundred_downloads_finish() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    let mut middle = Middle::start(&town, "");
    scope(|scope| {
        let downloads = scope.spawn(|| herd(&town));
        let idle = scope.spawn(|| well(&town, "idle", 6));
        let upload = scope.spawn(|| well(&town, "uphill", 40_000_000));
        sleep(Duration::from_millis(1500));
        let start = Instant::now();
        middle.signal("TERM");
        let counters = middle.ended(Duration::from_secs(35));
        println!("stopped after {:.1} s: {counters}", start.elapsed().as_secs_f64());
        assert_eq!(downloads.join().unwrap(), [(100, "exact".to_owned())]);
        idle.join().unwrap();
        upload.join().unwrap();
        counters.assert_some("early-acks");
    });
    well(&town, "get", 1); // the bridge alone
}

#[test]
fn a_kill_leaves_nobody_waiting() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    let middle = Middle::start(&town, "");
    scope(|scope| {
        // Nothing is owed to these.
        let idle = scope.spawn(|| well(&town, "idle", 6));
        sleep(Duration::from_secs(1));
        let upload = scope.spawn(|| well(&town, "uphill", 40_000_000));
        let downloads = scope.spawn(|| herd(&town));
        sleep(Duration::from_millis(1500));
        middle.signal("KILL");
        let through = Instant::now();
        well(&town, "get", 1);
        println!("a new download after the kill: {:.1} s", through.elapsed().as_secs_f64());
        let again = Middle::start(&town, "");
        idle.join().expect("an idle connection goes on");
        upload.join().expect("an upload goes on");
        let ends = downloads.join().unwrap();
        println!("after a kill: {ends:?}");
        assert!(ends.iter().all(|(_, end)| end == "exact" || end == "reset"), "{ends:?}");
        println!("the next gateway: {}", again.stop());
    });
}

#[test]
fn while_it_hangs_the_kernel_forwards() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    let middle = Middle::start(&town, "");
    scope(|scope| {
        // Held in turn: connections at rest, with little, with much on its way down, and on its way up.
        let idle = scope.spawn(|| well(&town, "idle", 6));
        let drip = scope.spawn(|| well(&town, "drip", 3));
        let ping = scope.spawn(|| well(&town, "ping", 4));
        sleep(Duration::from_secs(1));
        let upload = scope.spawn(|| well(&town, "uphill", 30_000_000));
        let downloads = scope.spawn(|| herd(&town));
        sleep(Duration::from_secs(1));
        middle.signal("STOP");
        well(&town, "short", 200);
        middle.signal("CONT");
        well(&town, "get", 2);
        idle.join().expect("a connection at rest goes on");
        drip.join().expect("a connection with little on its way goes on");
        ping.join().expect("questions are answered");
        upload.join().expect("an upload goes on");
        assert_eq!(downloads.join().unwrap(), [(100, "exact".to_owned())]);
    });
    println!("{}", middle.stop());
}

#[test]
fn starts_and_stops_are_not_noticed() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    scope(|scope| {
        let ends = scope.spawn(|| herd(&town));
        let idle = scope.spawn(|| well(&town, "idle", 6));
        for _ in 0..6 {
            let mut middle = Middle::start(&town, "drain = \"20 s\"");
            sleep(Duration::from_millis(500));
            middle.signal("TERM");
            middle.ended(Duration::from_secs(25));
        }
        assert_eq!(ends.join().unwrap(), [(100, "exact".to_owned())]);
        idle.join().unwrap();
    });
}
