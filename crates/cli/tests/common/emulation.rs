//! A network namespace in place of the host, for tests of `paceline emulate`.

use super::namespace::{Namespace, Program, exclusive, have_programs, skip, wait_for};
use super::{Output, PACELINE, TestDir, run, time_limit};
use std::process::Command;
use std::sync::MutexGuard;

pub struct EmulationHost {
    namespace: Namespace,
    pub dir: TestDir,
    _exclusive: MutexGuard<'static, ()>,
}

impl EmulationHost {
    /// Makes the namespace; none if this host cannot emulate or lacks a program.
    pub fn new(programs: &[&str]) -> Option<Self> {
        let doctor = run(Command::new(PACELINE).arg("doctor"));
        let emulate = doctor.stdout.lines().find(|line| line.starts_with("emulate: ")).unwrap_or("");
        if emulate != "emulate: yes" {
            skip(emulate);
            return None;
        }
        if !have_programs(&[&["unshare", "nsenter", "ip", "ss", "timeout"], programs].concat()) {
            return None;
        }
        let exclusive = exclusive();
        Some(Self { namespace: Namespace::new(), dir: TestDir::new(), _exclusive: exclusive })
    }
    fn command(&self, argv: &[&str]) -> Command {
        let mut command = self.namespace.command();
        command.args(argv).current_dir(self.dir.path()).env("SHELL", "/bin/sh");
        command
    }
    pub fn run(&self, argv: &[&str]) -> Output {
        let limit = time_limit();
        run(&mut self.command(&[&limit.each_ref().map(String::as_str), argv].concat()))
    }
    /// Runs `paceline emulate` with the text of a scenario.
    pub fn emulate(&self, scenario: &str, args: &[&str]) -> Output {
        self.start(scenario, args).finish()
    }
    pub fn start(&self, scenario: &str, args: &[&str]) -> Program {
        self.dir.write("radio.toml", scenario);
        self.spawn("paceline", &[&[PACELINE, "emulate", "radio.toml"], args].concat())
    }
    /// Starts a server, and waits until it listens on `port`.
    pub fn serve(&self, name: &str, port: u16, argv: &[&str]) -> Program {
        let mut server = self.spawn(name, argv);
        let filter = format!("sport = :{port}");
        wait_for(name, || {
            server.output_so_far();
            (!self.run(&["ss", "-Hlntu", &filter]).stdout.is_empty()).then_some(())
        });
        server
    }
    /// Starts a server, and waits until it listens on `port` of this address over UDP.
    pub fn serve_at(&self, name: &str, address: &str, port: u16, argv: &[&str]) -> Program {
        let mut server = self.spawn(name, argv);
        let filter = format!("src = {address}:{port}");
        wait_for(name, || {
            server.output_so_far();
            (!self.run(&["ss", "-Hlnu", &filter]).stdout.is_empty()).then_some(())
        });
        server
    }
    /// Serves the folder on port 8000, over IPv4 and IPv6.
    pub fn serve_files(&self) -> Program {
        self.serve("http", 8000, &["python3", "-m", "http.server", "--bind", "::", "8000"])
    }
    /// Starts a program in the namespace.
    pub fn spawn(&self, name: &str, argv: &[&str]) -> Program {
        Program::spawn(&self.dir, name, &mut self.command(argv))
    }
    /// The TUN devices in the namespace, as `ip` lists them.
    pub fn tun_devices(&self) -> String {
        self.run(&["ip", "-br", "link", "show", "type", "tun"]).stdout
    }
}

/// Whether an emulation kept up with real time, from its report on stderr: 99% of its timers at most 1 ms
/// late. Figures of an emulator that was later than that say how loaded this machine is.
pub fn was_on_time(report: &str) -> bool {
    const MAX_LATE_US: f64 = 1000.0;
    let late_us = report.split(" us (99%)").next().and_then(|text| text.split_whitespace().last());
    late_us.and_then(|us| us.parse::<f64>().ok()).is_some_and(|us| us <= MAX_LATE_US)
}
