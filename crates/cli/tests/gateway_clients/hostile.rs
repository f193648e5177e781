//! Floods, broken and forged packets, and clients that lie. Who is honest gets every byte; what the gateway holds
//! stays bounded.

use crate::common::outer::{Program, until};
use crate::middle::{Counters, Middle};
use crate::servers::{SOCKETS, sockets};
use crate::town::{ATTACKER, CLIENT, SERVER, Town};
use std::thread::{scope, sleep};
use std::time::Duration;

/// Port of `sockets.py victim`.
const VICTIM: &str = "40000";

fn town() -> Option<Town> {
    let town = Town::new(&[CLIENT, ATTACKER])?;
    town.place.write("hostile.py", include_str!("hostile.py"));
    Some(town)
}

/// Runs an attack in a home to its end; what it says.
fn attack(town: &Town, home: &str, argv: &[&str]) -> String {
    let said = town.run(home, &[&["python3", "hostile.py"], argv].concat());
    assert_eq!(said.code, 0, "{argv:?}: {said:?}");
    println!("{} from {home}: {}", argv[0], said.stdout.trim());
    said.stdout
}

fn well(town: &Town, what: &str, number: u64) {
    let said = town.talk(CLIENT.name, what, &SERVER.v4(), SOCKETS, number);
    assert_eq!(said.code, 0, "{what}: {said:?}");
}

/// Waits until the victim downloads.
fn under_way(town: &Town) {
    until("the download", || {
        let argv = ["ss", "-Htni", "state", "established", &format!("sport = :{VICTIM}")];
        let said = town.run(CLIENT.name, &argv).stdout;
        said.split_whitespace().any(|word| word.strip_prefix("bytes_received:").is_some()).then_some(())
    });
}

/// The gateway has not grown without bound, and has worked; what it counted.
fn bounded(middle: Middle, megabytes: f64) -> Counters {
    println!("memory: {:.0} MB", middle.memory());
    assert!(middle.memory() < megabytes, "{:.0} MB", middle.memory());
    let counters = middle.stop();
    println!("{counters}");
    counters.assert_some("early-acks");
    counters
}

#[test]
fn a_flood_of_syns_stops_nobody() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    // What the server answers goes back the way that the flood came.
    town.must(SERVER.name, &format!("ip route add default via {}", ATTACKER.v4()));
    let middle = Middle::start(&town, "[limits]\nmax_openings = 20000\n");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let flood = scope.spawn(|| attack(&town, ATTACKER.name, &["flood", &SERVER.v4(), &port, "4"]));
        sleep(Duration::from_secs(2));
        for number in 0..3 {
            well(&town, "get", number);
        }
        flood.join().unwrap();
    });
    well(&town, "short", 200);
    let _ = bounded(middle, 100.0);
}

#[test]
fn broken_packets_break_nothing() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    town.shape("100mbit", "200k");
    let middle = Middle::start(&town, "");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let download = scope.spawn(|| well(&town, "victim", 60_000_000));
        let upload = scope.spawn(|| well(&town, "uphill", 20_000_000));
        under_way(&town);
        // In the names of both ends of the download, and of strangers.
        for (home, src, dst, ports) in [
            (CLIENT.name, CLIENT.v4(), SERVER.v4(), [VICTIM, &port]),
            (SERVER.name, SERVER.v4(), CLIENT.v4(), [&port, VICTIM]),
            (CLIENT.name, CLIENT.v6(), SERVER.v6(), [VICTIM, &port]),
            (SERVER.name, SERVER.v6(), CLIENT.v6(), ["80", "81"]),
            (ATTACKER.name, ATTACKER.v4(), SERVER.v4(), ["1", &port]),
        ] {
            let town = &town;
            scope.spawn(move || attack(town, home, &["malformed", &src, &dst, ports[0], ports[1], "1"]));
        }
        download.join().unwrap();
        upload.join().unwrap();
    });
    well(&town, "get", 1);
    let _ = bounded(middle, 100.0);
}

#[test]
fn forged_packets_are_refused() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    town.shape("100mbit", "200k");
    let middle = Middle::start(&town, "");
    let port = SOCKETS.to_string();
    scope(|scope| {
        let download = scope.spawn(|| well(&town, "victim", 60_000_000));
        under_way(&town);
        for (home, src, dst, ports) in [
            (CLIENT.name, CLIENT.v4(), SERVER.v4(), [VICTIM, &port]),
            (SERVER.name, SERVER.v4(), CLIENT.v4(), [&port, VICTIM]),
        ] {
            let town = &town;
            scope.spawn(move || attack(town, home, &["inject", &src, &dst, ports[0], ports[1], "5"]));
        }
        download.join().unwrap();
    });
    let _ = bounded(middle, 100.0);
}

#[test]
fn clients_that_lie_harm_themselves_alone() {
    let Some(town) = town() else { return };
    let _servers = sockets(&town);
    let middle = Middle::start(&town, "");
    let port = SOCKETS.to_string();
    scope(|scope| {
        for (number, how) in [(101, "divide"), (102, "optimistic"), (103, "duplicate"), (104, "silent")] {
            let (town, port) = (&town, &port);
            let own = format!("10.77.0.{number}");
            let seconds = "5";
            scope.spawn(move || {
                attack(town, ATTACKER.name, &["misbehave", &own, &SERVER.v4(), port, how, seconds])
            });
        }
        for number in 0..3 {
            well(&town, "get", number);
        }
    });
    well(&town, "get", 3);
    let _ = bounded(middle, 100.0);
}

#[test]
fn thousands_of_idle_connections() {
    let Some(town) = town() else { return };
    let port = 7005;
    let _server = town.serve("hold", port, &["python3", "sockets.py", "hold", &port.to_string()]);
    let middle = Middle::start_in_small_pages(&town, "[limits]\nmax_flows_per_device = 20000\n");
    let before = middle.memory();
    let argv = ["python3", "sockets.py", "hoard", &SERVER.v4(), &port.to_string(), "9000"];
    let mut hoard: Program = town.start(CLIENT.name, "hoard", &argv);
    until("nine thousand connections", || hoard.so_far().stdout.contains("held").then_some(()));
    let grown = middle.memory() - before;
    println!("9,000 idle connections: {grown:.1} MB more than {before:.1} MB");
    assert!(grown < 13.5, "{grown:.1} MB: more than 1.5 kB for a connection");
    drop(hoard);
    println!("{}", middle.stop());
}
