//! How emulations end: exit codes, signals, and what is left behind.

use crate::common::outer::{Outer, have, namespace_in_use, random_bytes, runs, signal, skip, until};
use crate::common::{PACELINE, Place};
use crate::{ONE, SHORTLY, assert_good, assert_report, http, summary};
use serde_json::Value;
use std::time::Duration;

/// A program that says who and where it is and then waits.
const WAIT: &str = "echo $$ > pid; readlink /proc/self/ns/net > ns; exec sleep 25";

#[test]
fn exit_codes_and_output() {
    let Some(outer) = Outer::new(&[]) else { return };
    let said =
        outer.emulate(ONE, &["--", "sh", "-c", "echo $PACELINE_STATION $PACELINE_HOST $PACELINE_HOST6"]);
    assert_good(&said);
    assert_eq!(said.stdout, "0 198.18.0.1 2001:2::1\n");
    let said = outer.emulate(ONE, &["--json", "--", "true"]);
    assert_good(&said);
    let json: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(json["mode"], "emulated");

    let said = outer.emulate(ONE, &["--", "sh", "-c", "exit 7"]);
    assert_eq!(
        (said.code, said.stderr.contains("station 0 ended with exit status: 7")),
        (1, true),
        "{said:?}"
    );
    let two = ["--station", "0-1", "--", "sh", "-c", "exit $PACELINE_STATION"];
    let said = outer.emulate(&ONE.replace("direction", "count = 2\ndirection"), &two);
    assert_eq!(
        (said.code, said.stderr.contains("station 1 ended with exit status: 1")),
        (1, true),
        "{said:?}"
    );
    assert!(!said.stderr.contains("station 0 ended"), "{said:?}");
    let said = outer.emulate(ONE, &["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((said.code, said.stderr.contains("signal: 9 (SIGKILL)")), (1, true), "{said:?}");
    for (program, why) in [("no-such-program", "No such file"), ("/tmp", "Permission denied")] {
        let said = outer.emulate(ONE, &["--out", "out", "--", program]);
        let message = format!("paceline: cannot run `{program}`: {why}");
        assert!(said.code == 1 && said.stderr.starts_with(&message) && said.stdout.is_empty(), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        assert!(outer.place.names().iter().all(|name| !name.to_string_lossy().contains("out/")), "{program}");
        assert!(!outer.place.join("out").exists() && !outer.place.join(".out.partial").exists());
    }
    assert_eq!(outer.devices(), "");
}

#[test]
fn a_signal_ends_program_and_devices() {
    let Some(outer) = Outer::new(&[]) else { return };
    for name in ["INT", "TERM"] {
        let mut paceline = outer.start(ONE, &["--out", name, "--", "sh", "-c", WAIT]);
        let (pid, ns) = waiting(&outer);
        assert!(runs(pid) && namespace_in_use(&ns) && outer.devices().starts_with("paceline0"));
        paceline.signal(name);
        let said = paceline.finish(SHORTLY);
        assert_eq!(said.code, 1, "SIG{name}: {said:?}");
        assert_report(&said);
        assert!(!runs(pid) && !namespace_in_use(&ns), "SIG{name} left something");
        assert_eq!(outer.devices(), "", "SIG{name}");
        assert_eq!(summary(&outer, name)["mode"], "emulated", "results are kept");
    }
    // A program that does not listen is killed.
    let deaf = format!("trap '' INT TERM; {WAIT}");
    let mut paceline = outer.start(ONE, &["--", "sh", "-c", &deaf]);
    let (pid, ns) = waiting(&outer);
    paceline.signal("TERM");
    let said = paceline.finish(SHORTLY);
    assert!(said.code == 1 && said.stderr.contains("SIGKILL"), "{said:?}");
    assert!(!runs(pid) && !namespace_in_use(&ns));
}

/// Process and namespace of [`WAIT`], once it runs.
fn waiting(outer: &Outer) -> (u32, String) {
    let read =
        |name: &str| std::fs::read_to_string(outer.place.join(name)).ok().filter(|t| t.ends_with('\n'));
    let (pid, ns) = until("the program", || Some((read("pid")?, read("ns")?)));
    ["pid", "ns"].iter().for_each(|name| std::fs::remove_file(outer.place.join(name)).unwrap());
    (pid.trim().parse().unwrap(), ns.trim().to_owned())
}

#[test]
fn a_killed_program_ends_the_emulation() {
    let Some(outer) = Outer::new(&[]) else { return };
    let mut paceline = outer.start(ONE, &["--", "sh", "-c", WAIT]);
    let (pid, ns) = waiting(&outer);
    signal(pid, "KILL");
    let said = paceline.finish(SHORTLY);
    assert!(said.code == 1 && said.stderr.contains("station 0 ended with signal: 9 (SIGKILL)"), "{said:?}");
    assert_report(&said);
    assert!(!namespace_in_use(&ns));
    assert_eq!(outer.devices(), "");
}

#[test]
fn nothing_is_left_when_paceline_is_killed() {
    let Some(outer) = Outer::new(&[]) else { return };
    let scenario = ONE.replace("direction", "count = 2\ndirection");
    for script in [WAIT, &format!("trap '' TERM HUP INT; {WAIT}")] {
        let mut paceline = outer.start(&scenario, &["--out", "out", "--", "sh", "-c", script]);
        let (pid, ns) = waiting(&outer);
        paceline.signal("KILL");
        paceline.finish(SHORTLY);
        until("the end of the program", || (!runs(pid) && !namespace_in_use(&ns)).then_some(()));
        until("the end of the device", || outer.devices().is_empty().then_some(()));
        assert!(!outer.place.join("out").exists(), "half results under the name of whole ones");
    }
    // The next emulation is not in its way.
    assert_good(&outer.emulate(ONE, &["--out", "out", "--", "true"]));
    assert!(outer.place.join("out/summary.json").exists() && !outer.place.join(".out.partial").exists());
}

#[test]
fn a_second_emulation_in_one_namespace_is_refused_and_disturbs_nothing() {
    let Some(outer) = Outer::new(&["python3", "curl"]) else { return };
    let file = random_bytes(3_000_000);
    outer.place.write("file", &file);
    let _http = http(&outer);
    let script = "echo $$ > pid; echo x > ns; exec curl -sSf -o got http://198.18.0.1:8000/file";
    let mut first = outer.start(ONE, &["--", "sh", "-c", script]);
    waiting(&outer);
    let second = outer.run(&[PACELINE, "emulate", "radio.toml", "--", "true"]);
    assert!(second.code == 1 && second.stderr.lines().count() == 1, "{second:?}");
    println!("{}", second.stderr);
    assert_good(&first.finish(Duration::from_secs(20)));
    assert!(std::fs::read(outer.place.join("got")).unwrap() == file);
}

#[test]
fn without_privileges_it_says_what_is_missing() {
    let place = Place::new();
    let drop = "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps=-all";
    if place.shell("id -u").stdout != "0\n" {
        let said = place.paceline(&["emulate", "single-station", "--", "true"]);
        assert!(said.code == 1 && said.stderr.contains("CAP_NET_ADMIN"), "{said:?}");
        return;
    }
    if !have(&["setpriv"]) || place.shell(&format!("{drop} \"$PACELINE\" --version")).code != 0 {
        skip("the program cannot be run by another user here");
        return;
    }
    let said = place.shell(&format!("{drop} $PACELINE emulate single-station -- true"));
    assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{said:?}");
    assert!(said.stderr.starts_with("paceline: emulate: needs CAP_NET_ADMIN"), "{said:?}");
    assert!(said.stderr.contains("run as root") && said.stderr.lines().count() == 1, "{said:?}");
    let doctor = place.shell(&format!("{drop} $PACELINE doctor"));
    assert!(doctor.code == 0 && doctor.stdout.contains("emulate: no: needs CAP_NET_ADMIN"), "{doctor:?}");
}
