//! A network namespace that plays the host for one test, so that the real host's network is not touched.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs are waited for in real time

use super::{PACELINE, Place, Said, has, said};
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One emulation at a time: they are sensitive to load.
pub static TURN: Mutex<()> = Mutex::new(());
/// Longest life of anything that is started here.
const LIMIT: Duration = Duration::from_secs(30);

/// A network namespace, held by a process that sleeps.
pub struct Holder(Child);

impl Holder {
    /// Makes one, with its loopback up.
    pub fn new() -> Self {
        let child = Command::new("unshare").args(["-n", "sleep", "300"]).stdin(Stdio::null()).spawn();
        let holder = Self(child.expect("unshare runs"));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        let path = holder.path();
        until("a namespace", || fs::read_link(&path).is_ok_and(|held| held != own).then_some(()));
        assert_eq!(said(holder.command().args(["ip", "link", "set", "lo", "up"])).code, 0);
        holder
    }
    /// The process that holds it.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }
    /// What is appended runs in the namespace; its process is the one that is spawned.
    pub fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg("--").stdin(Stdio::null());
        command
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace and a folder.
pub struct Outer {
    holder: Holder,
    /// Files of this test.
    pub place: Place,
    _turn: MutexGuard<'static, ()>,
}

/// Says why a test cannot be done here; with `PACELINE_REQUIRE_PRIVILEGED` set, that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_none(), "cannot be tested here: {why}");
    // Past the test harness, which keeps to itself what tests that pass print.
    let _ = writeln!(io::stderr(), "skipped: {why}");
}

/// Whether these programs are here; says so if not.
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !has(program));
    if let Some(program) = missing {
        skip(&format!("no {program} on this host"));
    }
    missing.is_none()
}

impl Outer {
    /// Makes a namespace with its loopback up; none if this host cannot emulate or lacks a program.
    pub fn new(programs: &[&str]) -> Option<Self> {
        let doctor = said(Command::new(PACELINE).arg("doctor"));
        let emulate = doctor.stdout.lines().find(|line| line.starts_with("emulate: ")).unwrap_or("");
        if emulate != "emulate: yes" {
            skip(emulate);
            return None;
        }
        if !have(&[&["unshare", "nsenter", "ip", "ss", "timeout"], programs].concat()) {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(Self { holder: Holder::new(), place: Place::new(), _turn: turn })
    }
    /// A command in the namespace; its process is the one that is spawned.
    fn command(&self, argv: &[&str]) -> Command {
        let mut command = self.holder.command();
        command.args(argv).current_dir(self.place.path()).env("SHELL", "/bin/sh");
        command
    }
    /// Runs a short command in the namespace.
    pub fn run(&self, argv: &[&str]) -> Said {
        said(&mut self.command(&[&["timeout", "-k", "5", "20"], argv].concat()))
    }
    /// Runs `paceline emulate` on a scenario until it ends.
    pub fn emulate(&self, scenario: &str, args: &[&str]) -> Said {
        self.start(scenario, args).finish(LIMIT)
    }
    /// Starts `paceline emulate`.
    pub fn start(&self, scenario: &str, args: &[&str]) -> Program {
        self.place.write("radio.toml", scenario);
        self.spawn("paceline", &[&[PACELINE, "emulate", "radio.toml"], args].concat())
    }
    /// Starts a server, and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, argv: &[&str]) -> Program {
        let mut server = self.spawn(name, argv);
        let filter = format!("sport = :{port}");
        until(name, || {
            assert!(server.child.try_wait().unwrap().is_none(), "{name} ended: {:?}", server.said(0));
            let said = self.run(&["ss", "-Hlntu", &filter]);
            (!said.stdout.is_empty()).then_some(())
        });
        server
    }
    fn spawn(&self, name: &str, argv: &[&str]) -> Program {
        Program::spawn(&self.place, name, &mut self.command(argv))
    }
    /// TUN devices in the namespace.
    pub fn devices(&self) -> String {
        self.run(&["ip", "-br", "link", "show", "type", "tun"]).stdout
    }
}

/// A program in the namespace; killed when dropped.
pub struct Program {
    child: Child,
    files: [std::path::PathBuf; 2],
}

impl Program {
    /// Starts it; what it says goes to files in the folder.
    pub fn spawn(place: &Place, name: &str, command: &mut Command) -> Self {
        let files = ["stdout", "stderr"].map(|kind| place.join(&format!("{name}.{kind}")));
        let [stdout, stderr] = files.each_ref().map(|file| File::create(file).unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn();
        Self { child: child.expect("nsenter runs"), files }
    }
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Waits for the end. A program that does not end in time fails the test.
    pub fn finish(&mut self, limit: Duration) -> Said {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let said = self.said(status.code().unwrap_or(-1));
                assert!(!said.stderr.contains("panicked"), "{said:?}");
                return said;
            }
            assert!(Instant::now() < end, "does not end: {:?}", self.said(-1));
            sleep(Duration::from_millis(10));
        }
    }
    /// Sends a signal, such as `INT`.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }
    /// What it has said while it runs.
    pub fn so_far(&mut self) -> Said {
        assert!(self.child.try_wait().unwrap().is_none(), "ended: {:?}", self.said(-1));
        self.said(0)
    }
    fn said(&self, code: i32) -> Said {
        let [stdout, stderr] =
            self.files.each_ref().map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned());
        Said { code, stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot signal {process}");
}

/// Waits a few seconds for something.
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(8);
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs; one that nobody has waited for does not.
pub fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Whether any process is in this network namespace, such as `net:[4026531833]`.
pub fn namespace_in_use(name: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .map(|process| fs::read_link(process.path().join("ns/net")))
        .any(|link: io::Result<_>| link.is_ok_and(|link| link.to_string_lossy() == name))
}

/// Bytes that do not compress.
pub fn random_bytes(len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open("/dev/urandom").unwrap(), len), &mut bytes).unwrap();
    bytes
}
