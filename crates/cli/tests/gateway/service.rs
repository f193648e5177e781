//! The gateway as a service: messages to the service manager and the journal, privileges, the unit file.

use crate::common::namespace::{Program, have_programs, random_bytes, wait_for};
use crate::common::testbed::{HTTP, Testbed};
use crate::common::{PACELINE, TestDir, run};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

const UNIT: &str = include_str!("../../../../packaging/paceline-gateway@.service");
/// Time between two pings of the tests' watchdog. Same as a third of `WATCHDOG_USEC` in [`managed`].
const PING_INTERVAL: Duration = Duration::from_millis(300);
/// Stops one thread of a process, as a hang does, until its input ends: PTRACE_SEIZE, PTRACE_INTERRUPT.
const HOLD_THREAD: &str = "import ctypes, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
for request in 0x4206, 0x4207:
    if ptrace(request, int(sys.argv[1]), 0, 0):
        sys.exit(f'ptrace: {ctypes.get_errno()}')
print('held', flush=True)
sys.stdin.read()
";

/// A socket that gets datagrams of a gateway.
fn receiver(dir: &TestDir, name: &str) -> UnixDatagram {
    let socket = UnixDatagram::bind(dir.join(name)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// The next message with this text.
fn wait_for_datagram(socket: &UnixDatagram, text: &str) -> String {
    loop {
        let mut datagram = [0; 4096];
        let length = receive(socket, &mut datagram).expect("a message within a minute");
        let message = String::from_utf8_lossy(&datagram[..length]).into_owned();
        if message.contains(text) {
            return message;
        }
    }
}

/// A gateway whose service manager is the returned socket.
fn managed(testbed: &Testbed, more: &str) -> (Program, UnixDatagram) {
    let manager = receiver(&testbed.dir, "manager");
    testbed.dir.write("gateway.toml", testbed.config(more));
    let environment = format!("NOTIFY_SOCKET={} WATCHDOG_USEC=900000", testbed.dir.join("manager").display());
    let gateway = testbed.start_gateway(&format!("env {environment} {PACELINE} gateway gateway.toml --json"));
    (gateway, manager)
}

fn status_field(path: &str, name: &str) -> String {
    let status = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name}")).split_whitespace().next().unwrap_or("").to_owned()
}

/// The thread of the only worker.
fn worker_thread(process: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|entry| entry.unwrap().path());
    let named = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "worker0")
    };
    tasks.into_iter().find(named).expect("a worker").display().to_string()
}

#[test]
fn the_service_manager_gets_ready_reloading_stopping_and_pings() {
    let Some(testbed) = Testbed::new(&["env"]) else { return };
    let (gateway, manager) = managed(&testbed, "");
    let ready = wait_for_datagram(&manager, "READY=1");
    assert!(ready.contains("STATUS=accelerating from srv to mob"), "{ready}");
    (0..3).for_each(|_| drop(wait_for_datagram(&manager, "WATCHDOG=1")));
    gateway.signal("HUP");
    assert!(wait_for_datagram(&manager, "RELOADING=1").contains("MONOTONIC_USEC="));
    wait_for_datagram(&manager, "READY=1");
    testbed.dir.write("gateway.toml", "server = 1");
    gateway.signal("HUP");
    wait_for_datagram(&manager, "RELOADING=1");
    wait_for_datagram(&manager, "READY=1"); // with the configuration as it was
    gateway.signal("TERM");
    let stopping = wait_for_datagram(&manager, "STOPPING=1");
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC=40000000"), "{stopping}"); // 30 s of drain, and a margin
}

#[test]
fn a_worker_that_hangs_stops_the_pings() {
    let Some(testbed) = Testbed::new(&["env", "python3"]) else { return };
    let (mut gateway, manager) = managed(&testbed, "");
    wait_for_datagram(&manager, "WATCHDOG=1");
    let thread = worker_thread(gateway.id());
    let thread = thread.rsplit('/').next().unwrap();
    let mut hold = Command::new("python3");
    hold.args(["-c", HOLD_THREAD, thread]).stdin(std::process::Stdio::piped());
    let mut holder = Program::spawn(&testbed.dir, "holder", &mut hold);
    wait_for("the hang", || holder.output_so_far().stdout.contains("held").then_some(()));
    // A worker hangs after two seconds without a turn. Later pings would be those of a working one.
    manager.set_read_timeout(Some(PING_INTERVAL * 10)).unwrap();
    let mut datagram = [0; 64];
    while manager.recv(&mut datagram).is_ok() {}
    gateway.output_so_far(); // the process and its main thread run on
    drop(holder);
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    wait_for_datagram(&manager, "WATCHDOG=1");
}

#[test]
fn messages_go_to_the_journal_with_priority_and_fields() {
    let Some(testbed) = Testbed::new(&["stat", "mount"]) else { return };
    let journal = receiver(&testbed.dir, "socket");
    testbed.dir.write("gateway.toml", testbed.config(""));
    let folder = testbed.dir.path().display();
    let line = format!(
        "unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
         mount --bind {folder} /run/systemd/journal && export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) \
         && exec {PACELINE} gateway gateway.toml'"
    );
    let gateway = testbed.start(&testbed.middlebox, "gateway", &line);
    let started = wait_for_entry(&journal, "started");
    for (name, value) in [
        ("PRIORITY", "5"),
        ("MESSAGE", "accelerating from srv to mob"),
        ("PACELINE_SERVER", "srv"),
        ("PACELINE_MOBILE", "mob"),
        ("SYSLOG_IDENTIFIER", "paceline"),
    ] {
        assert_eq!(started[name], value, "{name}");
    }
    testbed.dir.write("gateway.toml", "server = 1");
    gateway.signal("HUP");
    let refused = wait_for_entry(&journal, "reload-refused");
    assert!(refused["PRIORITY"] == "3" && refused["MESSAGE"].contains("stays as it was"), "{refused:?}");
    gateway.signal("TERM");
    wait_for_entry(&journal, "stopping");
    let ended = wait_for_entry(&journal, "ended");
    assert_eq!((ended["PACELINE_DETACHED"].as_str(), ended["PACELINE_RESET"].as_str()), ("0", "0"));
}

/// Receives a datagram within the socket's timeout, which begins anew where a signal interrupts it.
fn receive(socket: &UnixDatagram, datagram: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match socket.recv(datagram) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The next entry of an event.
fn wait_for_entry(journal: &UnixDatagram, event: &str) -> BTreeMap<String, String> {
    loop {
        let mut datagram = [0; 4096];
        let length = receive(journal, &mut datagram).expect("an entry within a minute");
        let entry = entry(&datagram[..length]);
        if entry.get("PACELINE_EVENT").is_some_and(|name| name == event) {
            return entry;
        }
    }
}

/// The fields of a journal entry: `NAME=value` and a line feed, or the name, a line feed, the value's length
/// in 64 bits (little endian), the value, a line feed.
fn entry(mut rest: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let (name, value) = if let Some((name, value)) = line.split_once('=') {
            (name.to_owned(), value.to_owned())
        } else {
            let (length, value) = rest.split_at(8);
            let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
            rest = &value[length + 1..];
            (line, String::from_utf8_lossy(&value[..length]).into_owned())
        };
        fields.insert(name, value);
    }
    fields
}

/// The sum of capabilities by their numbers in linux/capability.h.
fn set(numbers: &[u32]) -> String {
    format!("{:016x}", numbers.iter().map(|number| 1u64 << number).sum::<u64>())
}

#[test]
fn privileges_end_with_the_set_up_and_the_control_socket_is_for_one_group() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    testbed.dir.write("file", random_bytes(3_000_000));
    let _server = testbed.serve_files();
    let settings = "user = \"nobody\"\ncontrol_group = \"daemon\"\n";
    let gateway = testbed.gateway(&testbed.config(settings));
    let (net_admin, net_raw, sys_nice) = (12, 13, 23);
    let status = format!("/proc/{}/status", gateway.id());
    let nobody = status_field(&status, "Uid");
    assert_ne!(nobody, "0");
    assert_eq!(status_field(&status, "CapPrm"), set(&[net_admin, net_raw, sys_nice]));
    assert_eq!(status_field(&status, "CapBnd"), set(&[net_admin, net_raw, sys_nice]));
    assert_eq!(status_field(&status, "NoNewPrivs"), "1");
    let worker = format!("{}/status", worker_thread(gateway.id()));
    wait_for("an end of the worker's privileges", || {
        ["CapPrm", "CapAmb"].iter().all(|kind| status_field(&worker, kind) == set(&[])).then_some(())
    });
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", gateway.id())).unwrap();
    let guardian = format!("/proc/{}/status", children.split_whitespace().next().expect("a guardian"));
    wait_for("the guardian's privileges", || {
        (status_field(&guardian, "CapPrm") == set(&[net_admin, net_raw])).then_some(())
    });
    assert_eq!(status_field(&guardian, "Uid"), nobody);
    let socket = fs::metadata(testbed.dir.join("ctl")).unwrap();
    assert_eq!((socket.permissions().mode() & 0o777, socket.uid().to_string()), (0o660, nobody));
    let daemon = run(Command::new("getent").args(["group", "daemon"])).stdout;
    assert_eq!(daemon.split(':').nth(2), Some(socket.gid().to_string().as_str()), "{daemon}");
    assert!(testbed.accelerates("file", HTTP));
    assert_eq!(testbed.control(&["reload"]).code, 0);
    assert_eq!(testbed.stop(gateway)["flows-reset"], 0);
}

#[test]
fn a_user_or_group_that_is_missing_is_refused_by_the_check() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    for key in ["user", "control_group"] {
        testbed.dir.write("gateway.toml", testbed.config(&format!("{key} = \"missing-here\"\n")));
        let output =
            testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway --check gateway.toml"));
        let expected = format!("paceline: gateway.toml: {key} = \"missing-here\": allowed: ");
        assert!(output.code == 2 && output.stderr.starts_with(&expected), "{output:?}");
    }
}

#[test]
fn the_unit_is_valid_and_its_exposure_is_below_3() {
    if !have_programs(&["systemd-analyze"]) {
        return;
    }
    let dir = TestDir::new();
    // The verifier wants the programs to be there.
    dir.write("paceline-gateway@.service", UNIT.replace("/usr/bin/paceline", PACELINE));
    let unit = dir.join("paceline-gateway@.service");
    let analyze = |arguments: &[&str]| run(Command::new("systemd-analyze").args(arguments).arg(&unit));
    let verified = analyze(&["verify", "--man=no"]);
    assert!(verified.code == 0 && !verified.stderr.contains("paceline-gateway"), "{verified:?}");
    let security = analyze(&["security", "--offline=true", "--threshold=30"]);
    assert_eq!(security.code, 0, "{}", security.stdout);
}
