//! The user as whom programs run: the caller of sudo, or the one that `--user` names.

use crate::common::PACELINE;
use crate::common::emulation::EmulationHost;
use crate::common::namespace::{is_running, wait_for};
use crate::emulate::{ONE, assert_good};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

/// A number that is no account of any machine.
const CALLER: &str = "3999999";
/// A program that prints its user, its groups and its effective capabilities.
const WHO: &str = "id -u; id -g; id -G; grep CapEff /proc/self/status | cut -f 2; echo $HOME";

/// Runs an emulation with the variable of sudo.
fn by_sudo(host: &EmulationHost, args: &[&str]) -> crate::common::Output {
    host.dir.write("radio.toml", ONE);
    let caller = format!("SUDO_UID={CALLER}");
    let command = ["env", &caller, PACELINE, "emulate", "radio.toml"];
    host.run(&[&command[..], args].concat())
}

#[test]
fn under_sudo_programs_run_as_the_caller_and_the_option_names_another() {
    let Some(host) = EmulationHost::new(&["env", "id"]) else { return };
    let who = ["--", "sh", "-c", WHO];
    let output = by_sudo(&host, &who);
    assert_good(&output);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[..4], [CALLER, CALLER, CALLER, "0000000000000000"], "{output:?}");
    assert!(output.stderr.contains(&format!("the program runs as user {CALLER}, the caller")), "{output:?}");
    let nobody = by_sudo(&host, &[&["--user", "nobody"][..], &who].concat());
    assert_good(&nobody);
    let lines: Vec<&str> = nobody.stdout.lines().collect();
    assert_eq!((lines[0], lines[3]), ("65534", "0000000000000000"), "{nobody:?}");
    let root = by_sudo(&host, &[&["--user", "root"][..], &who].concat());
    assert_good(&root);
    assert!(root.stdout.starts_with("0\n") && !root.stdout.contains("\n0000000000000000\n"), "{root:?}");
    let unknown = by_sudo(&host, &["--user", "no-such-user", "--", "true"]);
    let message = "--user \"no-such-user\": allowed: a user of this machine, by name or number";
    assert!(unknown.code == 2 && unknown.stderr.contains(message), "{unknown:?}");
    let missing = by_sudo(&host, &["--", "no-such-program"]);
    let message = format!("paceline: cannot run `no-such-program` as user {CALLER}: ");
    assert!(missing.code == 1 && missing.stderr.contains(&message), "{missing:?}");
}

#[test]
fn a_program_of_another_user_ends_with_a_killed_paceline() {
    let Some(host) = EmulationHost::new(&[]) else { return };
    set_permissions(host.dir.path(), Permissions::from_mode(0o777)).unwrap();
    let script = "echo $$ > pid; exec sleep 1000";
    let mut paceline = host.start(ONE, &["--user", "nobody", "--", "sh", "-c", script]);
    let read = || std::fs::read_to_string(host.dir.join("pid")).ok().filter(|text| text.ends_with('\n'));
    let pid: u32 = wait_for("the program", read).trim().parse().unwrap();
    paceline.signal("KILL");
    paceline.finish();
    wait_for("the end of the program", || (!is_running(pid)).then_some(()));
}
