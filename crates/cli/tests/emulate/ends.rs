//! The end of an emulation: exit codes, signals, and no devices, namespaces or processes left behind.

use crate::common::emulation::EmulationHost;
use crate::common::namespace::{
    have_programs, is_running, namespace_in_use, random_bytes, signal, skip, wait_for,
};
use crate::common::{PACELINE, TestDir, parse_json};
use crate::emulate::{ONE, assert_good, assert_report, summary};
use serde_json::Value;

/// A program that writes its process and its namespace to files and sleeps, far longer than the hang guard.
const WAIT: &str = "echo $$ > pid; readlink /proc/self/ns/net > ns; exec sleep 1000";

#[test]
fn exit_code_and_messages_tell_how_programs_ended() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let output =
        host.emulate(ONE, &["--", "sh", "-c", "echo $PACELINE_STATION $PACELINE_HOST $PACELINE_HOST6"]);
    assert_good(&output);
    assert_eq!(output.stdout, "0 198.18.0.1 2001:2::1\n");
    let output = host.emulate(ONE, &["--json", "--", "true"]);
    assert_good(&output);
    let json: Value = parse_json(&output.stdout);
    assert_eq!(json["mode"], "emulated");

    let output = host.emulate(ONE, &["--", "sh", "-c", "exit 7"]);
    assert_eq!(
        (output.code, output.stderr.contains("station 0 ended with exit status: 7")),
        (1, true),
        "{output:?}"
    );
    let two = ["--station", "0-1", "--", "sh", "-c", "exit $PACELINE_STATION"];
    let output = host.emulate(&ONE.replace("direction", "count = 2\ndirection"), &two);
    assert_eq!(
        (output.code, output.stderr.contains("station 1 ended with exit status: 1")),
        (1, true),
        "{output:?}"
    );
    assert!(!output.stderr.contains("station 0 ended"), "{output:?}");
    let output = host.emulate(ONE, &["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((output.code, output.stderr.contains("signal: 9 (SIGKILL)")), (1, true), "{output:?}");
    for (program, why) in [("no-such-program", "No such file"), ("/tmp", "Permission denied")] {
        let output = host.emulate(ONE, &["--out", "out", "--", program]);
        let message = format!("paceline: cannot run `{program}`: {why}");
        assert!(
            output.code == 1 && output.stderr.starts_with(&message) && output.stdout.is_empty(),
            "{output:?}"
        );
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
        assert!(host.dir.paths().iter().all(|name| !name.to_string_lossy().contains("out/")), "{program}");
        assert!(!host.dir.join("out").exists() && !host.dir.join(".out.partial").exists());
    }
    assert_eq!(host.tun_devices(), "");
}

#[test]
fn a_signal_ends_programs_and_removes_devices() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    for name in ["INT", "TERM"] {
        let mut paceline = host.start(ONE, &["--out", name, "--", "sh", "-c", WAIT]);
        let (pid, ns) = process_and_namespace(&host);
        assert!(is_running(pid) && namespace_in_use(&ns) && host.tun_devices().starts_with("paceline0"));
        paceline.signal(name);
        let output = paceline.finish();
        assert_eq!(output.code, 1, "SIG{name}: {output:?}");
        assert_report(&output);
        assert!(!is_running(pid) && !namespace_in_use(&ns), "SIG{name} left a process or a namespace");
        assert_eq!(host.tun_devices(), "", "SIG{name}");
        assert_eq!(summary(&host, name)["mode"], "emulated", "results are kept");
    }
    // A program that ignores SIGTERM is killed.
    let stubborn = format!("trap '' INT TERM; {WAIT}");
    let mut paceline = host.start(ONE, &["--", "sh", "-c", &stubborn]);
    let (pid, ns) = process_and_namespace(&host);
    paceline.signal("TERM");
    let output = paceline.finish();
    assert!(output.code == 1 && output.stderr.contains("SIGKILL"), "{output:?}");
    assert!(!is_running(pid) && !namespace_in_use(&ns));
}

/// Waits until [`WAIT`] runs; gives its process and its namespace.
fn process_and_namespace(host: &EmulationHost) -> (u32, String) {
    let read = |name: &str| std::fs::read_to_string(host.dir.join(name)).ok().filter(|t| t.ends_with('\n'));
    let (pid, ns) = wait_for("the program", || Some((read("pid")?, read("ns")?)));
    ["pid", "ns"].iter().for_each(|name| std::fs::remove_file(host.dir.join(name)).unwrap());
    (pid.trim().parse().unwrap(), ns.trim().to_owned())
}

#[test]
fn a_killed_program_ends_the_emulation() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let mut paceline = host.start(ONE, &["--", "sh", "-c", WAIT]);
    let (pid, ns) = process_and_namespace(&host);
    signal(pid, "KILL");
    let output = paceline.finish();
    assert!(
        output.code == 1 && output.stderr.contains("station 0 ended with signal: 9 (SIGKILL)"),
        "{output:?}"
    );
    assert_report(&output);
    assert!(!namespace_in_use(&ns));
    assert_eq!(host.tun_devices(), "");
}

#[test]
fn a_killed_paceline_leaves_no_process_namespace_or_device() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    let scenario = ONE.replace("direction", "count = 2\ndirection");
    for script in [WAIT, &format!("trap '' TERM HUP INT; {WAIT}")] {
        let mut paceline = host.start(&scenario, &["--out", "out", "--", "sh", "-c", script]);
        let (pid, ns) = process_and_namespace(&host);
        paceline.signal("KILL");
        paceline.finish();
        wait_for("the end of the program", || (!is_running(pid) && !namespace_in_use(&ns)).then_some(()));
        wait_for("the end of the device", || host.tun_devices().is_empty().then_some(()));
        assert!(!host.dir.join("out").exists(), "partial results under the final name");
    }
    // The next emulation takes over the partial folder.
    assert_good(&host.emulate(ONE, &["--out", "out", "--", "true"]));
    assert!(host.dir.join("out/summary.json").exists() && !host.dir.join(".out.partial").exists());
}

#[test]
fn a_second_emulation_in_one_namespace_is_refused_without_harm_to_the_first() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", random_bytes(3_000_000));
    let _server = host.serve_files();
    let script = "echo $$ > pid; echo x > ns; exec curl -sSf -o got http://198.18.0.1:8000/file";
    let mut first = host.start(ONE, &["--", "sh", "-c", script]);
    process_and_namespace(&host);
    let second = host.run(&[PACELINE, "emulate", "radio.toml", "--", "true"]);
    assert!(second.code == 1 && second.stderr.lines().count() == 1, "{second:?}");
    println!("{}", second.stderr);
    assert_good(&first.finish());
    host.dir.assert_same("file", "got");
}

#[test]
fn without_privileges_the_message_names_the_missing_capability() {
    let dir = TestDir::new();
    let drop = "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps=-all";
    if dir.shell("id -u").stdout != "0\n" {
        let output = dir.paceline(&["emulate", "single-station", "--", "true"]);
        assert!(output.code == 1 && output.stderr.contains("CAP_NET_ADMIN"), "{output:?}");
        return;
    }
    if !have_programs(&["setpriv"]) || dir.shell(&format!("{drop} \"$PACELINE\" --version")).code != 0 {
        skip("the program cannot be run by another user here");
        return;
    }
    let output = dir.shell(&format!("{drop} $PACELINE emulate single-station -- true"));
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.starts_with("paceline: emulate: needs CAP_NET_ADMIN"), "{output:?}");
    assert!(output.stderr.contains("run as root") && output.stderr.lines().count() == 1, "{output:?}");
    let doctor = dir.shell(&format!("{drop} $PACELINE doctor"));
    assert!(doctor.code == 0 && doctor.stdout.contains("emulate: no: needs CAP_NET_ADMIN"), "{doctor:?}");
}
