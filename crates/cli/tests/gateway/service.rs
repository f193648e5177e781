//! The gateway as a service: messages to the service manager and the journal, privileges, the unit file.

use crate::common::namespace::{Program, have_programs, random_bytes, wait_for};
use crate::common::testbed::{HTTP, INTERFACES, Testbed};
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

/// The thread of this name, which it gives itself when it begins to run.
fn thread_named(process: u32, name: &str) -> String {
    let named = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    wait_for(name, || {
        let mut tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        tasks.find_map(|entry| entry.ok().map(|entry| entry.path()).filter(named))
    })
    .display()
    .to_string()
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
    let thread = thread_named(gateway.id(), "worker0");
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
    // Those by the control socket, as of `systemctl reload`, are there too.
    assert_eq!(testbed.control(&["reload"]).code, 2);
    wait_for_entry(&journal, "reload-refused");
    testbed.dir.write("gateway.toml", testbed.config(""));
    assert_eq!(testbed.control(&["reload"]).code, 0);
    assert_eq!(wait_for_entry(&journal, "reloaded")["PRIORITY"], "5");
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
    testbed.shell(&testbed.middlebox, "chmod 777 .");
    let records = testbed.dir.join("transfers.csv");
    let settings = format!(
        "user = \"nobody\"\ncontrol_group = \"daemon\"\nmetrics = \"127.0.0.1:9464\"\nrecords = \"{}\"\n",
        records.display()
    );
    let gateway = testbed.gateway(&testbed.config(&settings));
    let (net_admin, net_raw, sys_nice) = (12, 13, 23);
    let status = format!("/proc/{}/status", gateway.id());
    let nobody = status_field(&status, "Uid");
    assert_ne!(nobody, "0");
    assert_eq!(status_field(&status, "CapPrm"), set(&[net_admin, net_raw, sys_nice]));
    assert_eq!(status_field(&status, "CapBnd"), set(&[net_admin, net_raw, sys_nice]));
    assert_eq!(status_field(&status, "NoNewPrivs"), "1");
    for name in ["worker0", "metrics", "records"] {
        let thread = format!("{}/status", thread_named(gateway.id(), name));
        wait_for("an end of the thread's privileges", || {
            ["CapPrm", "CapEff", "CapAmb"]
                .iter()
                .all(|kind| status_field(&thread, kind) == set(&[]))
                .then_some(())
        });
        wait_for("a filter of system calls", || (status_field(&thread, "Seccomp") == "2").then_some(()));
    }
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
    wait_for("a record", || (testbed.dir.read("transfers.csv").lines().count() > 1).then_some(()));
    let scrape =
        testbed.shell(&testbed.middlebox, "curl -sS --max-time 5 http://127.0.0.1:9464/metrics").stdout;
    assert!(scrape.contains("\npaceline_packets_left_total{by=\"policy\"} 0\n"), "{scrape}");
    let started = scrape.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
    let now: f64 = testbed.shell(&testbed.middlebox, "date +%s").stdout.trim().parse().unwrap();
    assert!((now - started.unwrap().parse::<f64>().unwrap()).abs() < 3600.0, "{scrape}");
    assert_eq!(testbed.stop(gateway)["flows-reset"], 0);
}

/// A member of `view_group` looks and changes nothing; one of no group is refused.
#[test]
fn a_group_may_look_at_the_gateway_and_change_nothing() {
    let Some(testbed) = Testbed::new(&["setpriv"]) else { return };
    testbed.shell(&testbed.middlebox, "chmod 777 .");
    for settings in ["view_group = \"games\"\n", "view_group = \"games\"\ncontrol_group = \"daemon\"\n"] {
        let gateway = testbed.gateway(&testbed.config(settings));
        let ask = |group: &str, request: &str| {
            let who = format!("setpriv --reuid nobody --regid nogroup --groups {group}");
            testbed.try_shell(
                &testbed.middlebox,
                &format!(
                    "{who} {PACELINE} gateway {request} --control {}",
                    testbed.dir.join("ctl").display()
                ),
            )
        };
        for request in ["status", "flows --json"] {
            let output = ask("games", request);
            assert_eq!(output.code, 0, "{request}: {output:?}");
        }
        for request in ["reload", "stop", "experiment --share 50% --for 1h"] {
            let output = ask("games", request);
            assert!(output.code != 0 && output.stderr.contains("view_group"), "{request}: {output:?}");
        }
        assert_ne!(ask("nogroup", "status").code, 0);
        let has_control = settings.contains("control_group");
        assert_eq!(ask("daemon", "reload").code == 0, has_control);
        assert_eq!(testbed.control(&["reload"]).code, 0);
        testbed.stop(gateway);
    }
}

/// The page is on a port that any program of the machine reaches.
#[test]
fn silent_clients_do_not_keep_others_waiting_and_foreign_names_get_nothing() {
    let Some(testbed) = Testbed::new(&["curl", "python3"]) else { return };
    let settings = "metrics = \"127.0.0.1:9464\"\nmetrics_hosts = [\"gw1.example.net\"]\n";
    let gateway = testbed.gateway(&testbed.config(settings));
    let silent = "python3 -c 'import socket,time
all=[socket.create_connection((\"127.0.0.1\",9464)) for _ in range(100)]
print(\"open\",flush=True); time.sleep(60)'";
    let mut silent = testbed.start(&testbed.middlebox, "silent", silent);
    wait_for("the silent clients", || silent.output_so_far().stdout.contains("open").then_some(()));
    let get = |options: &str| {
        let line = format!("curl -sS --max-time 20 -w '%{{http_code}} %{{time_total}}' {options} -o body");
        testbed.shell(&testbed.middlebox, &format!("{line} http://127.0.0.1:9464/metrics")).stdout
    };
    let answer = get("");
    let (code, seconds) = answer.split_once(' ').unwrap();
    assert!(code == "200" && seconds.parse::<f64>().unwrap() < 1.5, "{answer}");
    for (host, code) in [("evil.example", "421"), ("localhost", "200"), ("gw1.example.net:9464", "200")] {
        let answer = get(&format!("-H 'Host: {host}'"));
        assert!(answer.starts_with(code), "{host}: {answer}");
        assert_eq!(testbed.dir.read("body").contains("paceline_flows_active"), code == "200");
    }
    drop(silent);
    testbed.stop(gateway);
}

/// The lower user owns the folder of the control socket, and puts a link in the place of the socket.
#[test]
fn a_link_in_the_place_of_the_socket_gives_no_file_away() {
    let Some(testbed) = Testbed::new(&["python3", "setpriv"]) else { return };
    let folder = testbed.dir.join("own");
    fs::create_dir(&folder).unwrap();
    testbed.dir.write("victim", "root only");
    fs::set_permissions(testbed.dir.join("victim"), fs::Permissions::from_mode(0o600)).unwrap();
    testbed.shell(&testbed.middlebox, "chmod 755 .; chown nobody own");
    let socket = folder.join("ctl");
    testbed.dir.write(
        "plant.py",
        "import os, sys
print('ready', flush=True)
for _ in range(2000000):
    try:
        os.unlink('own/ctl')
        os.symlink('../victim', 'own/ctl')
    except OSError: pass",
    );
    let plant = "setpriv --reuid nobody --regid nogroup --clear-groups python3 plant.py";
    let mut planter = testbed.start(&testbed.middlebox, "plant", plant);
    wait_for("the attacker", || planter.output_so_far().stdout.contains("ready").then_some(()));
    let config = format!("control = \"{}\"\nuser = \"nobody\"\n{INTERFACES}", socket.display());
    testbed.dir.write("gateway.toml", config);
    for _ in 0..5 {
        // A gateway that starts nevertheless is ended.
        let line = format!("timeout -s KILL 0.5 {PACELINE} gateway gateway.toml");
        testbed.try_shell(&testbed.middlebox, &line);
        let victim = fs::metadata(testbed.dir.join("victim")).unwrap();
        assert_eq!((victim.uid(), victim.permissions().mode() & 0o777), (0, 0o600));
    }
}

#[test]
fn a_user_or_group_that_is_missing_is_refused_by_the_check() {
    let Some(testbed) = Testbed::new(&[]) else { return };
    for key in ["user", "control_group", "view_group"] {
        testbed.dir.write("gateway.toml", testbed.config(&format!("{key} = \"missing-here\"\n")));
        let output =
            testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} gateway --check gateway.toml"));
        let expected = format!("paceline: gateway.toml: {key} = \"missing-here\": allowed: ");
        assert!(output.code == 2 && output.stderr.starts_with(&expected), "{output:?}");
    }
}

/// Keys of the unit on which connections depend, and folders that the documents name.
#[test]
fn the_unit_waits_for_interfaces_and_has_the_folders_of_the_documents() {
    let value = |key: &str| {
        UNIT.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("no {key}"))
    };
    assert_eq!(value("StartLimitIntervalSec"), "0");
    assert!(!UNIT.contains("BindsTo=") && value("Restart") == "on-failure");
    let minutes: u32 = value("WatchdogSec").strip_suffix("min").unwrap().parse().unwrap();
    assert!(minutes >= 2, "a pause that ends is no hang");
    let page = include_str!("../../../../docs/gateway.md");
    for (key, folder) in [("LogsDirectory", "/var/log"), ("StateDirectory", "/var/lib")] {
        assert!(page.contains(&format!("{folder}/{}/", value(key))), "{key}");
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
