//! `paceline pace`: congestion controls of the kernel, in a namespace. Needs root.

use crate::common::emulation::EmulationHost;
use crate::common::namespace::{Program, skip, wait_for};
use crate::common::{PACELINE, TestDir, parse_json, run};
use std::process::Command;

/// Sends 8 MB over the loopback device with the congestion control that the argument names, shows the
/// controls while the connection is open, and checks the bytes.
const TRANSFER: &str = r#"
import os, socket, subprocess, sys, threading
server = socket.create_server(("127.0.0.1", 7000))
sender = socket.socket()
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
sender.connect(server.getsockname())
receiver, _ = server.accept()
data = os.urandom(8_000_000)
thread = threading.Thread(target=lambda: sender.sendall(data))
thread.start()
got = b""
while len(got) < len(data):
    got += receiver.recv(1 << 20)
thread.join()
assert got == data
print(subprocess.run([sys.argv[2], "pace", "show", "--json"], check=True, capture_output=True, text=True).stdout)
"#;

fn host() -> Option<EmulationHost> {
    let doctor = run(Command::new(PACELINE).arg("doctor"));
    let pace = doctor.stdout.lines().find(|line| line.starts_with("pace: ")).unwrap_or("");
    if pace != "pace: yes" {
        skip(pace);
        return None;
    }
    EmulationHost::new(&["python3"])
}

/// A name that no other run uses, of up to 15 characters.
fn unique(letter: char) -> String {
    format!("t{letter}{}", std::process::id() % 10_000_000)
}

fn attach(host: &EmulationHost, control: &str, name: &str) -> Program {
    let args = ["pace", "attach", "--control", control, "--name", name, "--pattern", "DDDSU/30kHz"];
    let mut command = Command::new(PACELINE);
    command.args(args).args(["--rate", "200 Mb/s"]).current_dir(host.dir.path());
    let mut program = Program::spawn(&host.dir, name, &mut command);
    wait_for(name, || program.output_so_far().stderr.contains("is registered").then_some(()));
    program
}

fn is_available(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().any(|known| known == name)
}

#[test]
fn transfers_are_exact_and_shown_and_nothing_is_left_after_an_end_or_a_crash() {
    let Some(host) = host() else { return };
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    host.dir.write("transfer.py", TRANSFER);
    for (control, letter) in [("illinois", 'i'), ("cubic", 'c'), ("reno", 'r')] {
        let name = unique(letter);
        let mut program = attach(&host, control, &name);
        let output = host.run(&["python3", "transfer.py", &name, PACELINE]);
        assert_eq!(output.code, 0, "{output:?}");
        let json = parse_json(&output.stdout);
        let all = json["controls"].as_array().unwrap();
        let shown = all.iter().find(|shown| shown["name"] == *name).expect("the control is shown");
        assert_eq!(shown["stated_period_ms"], 2.5, "{shown}");
        let sent = |flow: &&serde_json::Value| flow["remote"] == "127.0.0.1:7000";
        let flow = shown["flows"].as_array().unwrap().iter().find(sent).expect("the connection is shown");
        assert!(flow["bytes_acked"].as_u64().unwrap() > 1_000_000, "{shown}");
        assert!((199.0..201.0).contains(&flow["rate_mbps"].as_f64().unwrap()), "{shown}");
        let again = host.run(&[PACELINE, "pace", "set", "--name", &name, "--pattern", "auto"]);
        assert_eq!(again.code, 0, "{again:?}");
        if control == "reno" {
            program.signal("KILL");
            program.finish();
        } else {
            let ended = host.run(&[PACELINE, "pace", "detach", "--name", &name]);
            assert_eq!((ended.code, program.finish().code), (0, 0), "{ended:?}");
        }
        wait_for("the end of the control", || (!is_available(&name)).then_some(()));
    }
    assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap(), default);
}

/// Prints the congestion control of a new socket.
const CHOSEN: &str = "import socket
print(socket.socket().getsockopt(6, socket.TCP_CONGESTION, 16).split(b'\\0')[0].decode())";

/// A namespace keeps its default control after `kill -9` of the command. It is shown, the next control of
/// that name takes its place, and `detach` ends it.
#[test]
fn a_namespace_with_the_control_of_a_killed_command_is_shown_and_freed() {
    let Some(host) = host() else { return };
    let name = unique('k');
    let chosen = || host.run(&["python3", "-c", CHOSEN]).stdout.trim().to_owned();
    let shown = || {
        let json = parse_json(&host.run(&[PACELINE, "pace", "show", "--json"]).stdout);
        let all = json["controls"].as_array().unwrap().clone();
        let named = all.into_iter().filter(|shown| shown["name"] == *name);
        named.map(|shown| (shown["process_runs"].as_bool().unwrap(), shown["namespaces"].clone()))
    };
    let kill = |mut program: Program| {
        program.signal("KILL");
        program.finish();
        wait_for("the end of the control", || (!is_available(&name)).then_some(()));
    };
    let first = attach(&host, "reno", &name);
    let default = format!("echo {name} > /proc/sys/net/ipv4/tcp_congestion_control");
    assert_eq!(host.run(&["sh", "-c", &default]).code, 0);
    kill(first);
    assert_eq!(chosen(), name, "the kernel keeps the default of a namespace");
    let left: Vec<_> = shown().collect();
    assert!(left.len() == 1 && !left[0].0 && left[0].1.as_array().unwrap().len() == 1, "{left:?}");

    let second = attach(&host, "reno", &name);
    let running: Vec<_> = shown().filter(|(runs, _)| *runs).collect();
    assert_eq!(running.len(), 1);
    assert_eq!(chosen(), name);
    kill(second);
    let output = host.run(&[PACELINE, "pace", "detach", "--name", &name]);
    assert!(output.code == 0 && output.stderr.contains("was the default"), "{output:?}");
    assert!(["cubic", "reno"].contains(&chosen().as_str()), "{}", chosen());
    assert_eq!(shown().count(), 0);
}

/// `set` and `detach` without a name, and `show`, count no control that the command itself has registered.
#[test]
fn a_control_needs_no_name_if_it_is_the_only_one() {
    let Some(host) = host() else { return };
    let name = unique('n');
    let mut program = attach(&host, "cubic", &name);
    for round in 0..3 {
        let output = host.run(&[PACELINE, "pace", "set", "--rate", "100 Mb/s"]);
        // Tests of other programs may have controls of their own.
        let others = || output.stderr.split("attached: ").nth(1).is_some_and(|names| names.contains(", t"));
        assert!(output.code == 0 || others(), "{round}: {output:?}");
        assert!(!output.stderr.contains("trial"), "{output:?}");
        let show = host.run(&[PACELINE, "pace", "show"]).stdout;
        assert!(show.contains(&format!("{name}: cubic")) && !show.contains("trial"), "{show}");
    }
    let ended = host.run(&[PACELINE, "pace", "detach", "--name", &name]);
    assert_eq!((ended.code, program.finish().code), (0, 0), "{ended:?}");
}

#[test]
fn mistakes_have_one_line() {
    let dir = TestDir::new();
    let attach = ["pace", "attach", "--control", "reno"];
    for (more, part) in [
        (&["--pattern", "DDDSU"][..], "such as DDDSU/30kHz"),
        (&["--pattern", "DDDSU/20kHz"], "allowed are 15kHz, 30kHz"),
        (&["--pattern", "DDDDD/30kHz"], "both directions"),
        (&["--pattern", "auto", "--phase", "1 ms"], "--phase: needs a pattern with slots"),
        (&["--pattern", "DDDSU/30kHz", "--phase", "3 ms"], "less than the pattern's period"),
        (&["--pattern", "auto", "--name", "a-b"], "a-z, 0-9 and _"),
        (&["--pattern", "auto", "--name", "reno"], "the kernel has a congestion control of this name"),
        (&[], "--pattern: name the cell's slots"),
    ] {
        let output = dir.paceline(&[&attach[..], more].concat());
        assert!(output.code == 2 && output.stderr.contains(part), "{more:?}: {output:?}");
    }
}
