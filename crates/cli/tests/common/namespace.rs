//! Network namespaces, and programs in them. Tests leave the host's own network alone.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs run in real time

use super::{HANG_GUARD, Output, TestDir, has_program, run};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Life of a namespace whose test was killed. Chosen: longer than any test.
const NAMESPACE_SECONDS: &str = "1800";

/// Waits until no other test of this process uses namespaces: emulations and gateways are sensitive to load.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A network namespace. A sleeping process keeps it alive, which is killed when this value is dropped.
pub struct Namespace(Child);

impl Namespace {
    pub fn new() -> Self {
        let argv = ["-n", "sleep", NAMESPACE_SECONDS];
        let child = Command::new("unshare").args(argv).stdin(Stdio::null()).spawn();
        let namespace = Self(child.expect("unshare runs"));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        let path = namespace.path();
        wait_for("a namespace", || fs::read_link(&path).is_ok_and(|link| link != own).then_some(()));
        assert_eq!(run(namespace.command().args(["ip", "link", "set", "lo", "up"])).code, 0);
        namespace
    }
    /// The process that keeps it alive.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
    /// Its file in `/proc`.
    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }
    /// A command in the namespace; program and arguments are to be appended. `nsenter` is replaced by the
    /// program, so that signals reach the program.
    pub fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg("--").stdin(Stdio::null());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running program, killed when this value is dropped.
pub struct Program {
    child: Child,
    files: [PathBuf; 2],
}

impl Program {
    /// Starts a program with its output in the files `name.stdout` and `name.stderr` of the folder.
    pub fn spawn(dir: &TestDir, name: &str, command: &mut Command) -> Self {
        let files = ["stdout", "stderr"].map(|kind| dir.join(&format!("{name}.{kind}")));
        let [stdout, stderr] = files.each_ref().map(|file| File::create(file).unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn();
        Self { child: child.expect("nsenter runs"), files }
    }
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Waits until it ends; fails at the hang guard.
    pub fn finish(&mut self) -> Output {
        let end = Instant::now() + HANG_GUARD;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let output = self.output(status.code().unwrap_or(-1));
                assert!(!output.stderr.contains("panicked"), "{output:?}");
                return output;
            }
            assert!(Instant::now() < end, "the program hangs: {:?}", self.output(-1));
            sleep(Duration::from_millis(10));
        }
    }
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
    /// Its output until now; fails if it has ended.
    pub fn output_so_far(&mut self) -> Output {
        assert!(self.runs(), "the program has ended: {:?}", self.output(-1));
        self.output(0)
    }
    fn output(&self, code: i32) -> Output {
        let [stdout, stderr] =
            self.files.each_ref().map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned());
        Output { code, stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says why a test cannot run here. With `PACELINE_REQUIRE_PRIVILEGED` set, the test fails instead.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "cannot be tested here: {reason}");
    // `eprintln` of a test that passes is not shown; the stream itself is.
    let _ = writeln!(io::stderr(), "skipped: {reason}");
}

/// Whether this host has these programs; skips if not.
pub fn have_programs(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !has_program(program));
    if let Some(program) = missing {
        skip(&format!("no {program} on this host"));
    }
    missing.is_none()
}

pub fn signal(process: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot signal {process}");
}

/// Polls until `ready` gives a value; fails at the hang guard.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + HANG_GUARD;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < end, "timed out waiting for {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs; a zombie does not.
pub fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Whether any process is in a network namespace, given as `net:[4026531833]`.
pub fn namespace_in_use(name: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .map(|process| fs::read_link(process.path().join("ns/net")))
        .any(|link: io::Result<_>| link.is_ok_and(|link| link.to_string_lossy() == name))
}

/// Bytes that cannot be compressed.
pub fn random_bytes(len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open("/dev/urandom").unwrap(), len), &mut bytes).unwrap();
    bytes
}
