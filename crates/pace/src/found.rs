//! The registered controls of all processes, and those that sockets and namespaces keep after the end of
//! their process.

use super::layout::Settings;
use super::maps::{NAME_BYTES, ONLY, SETTINGS, read_settings};
use super::namespaces;
use super::parameters::Parameters;
use super::report::{self, Report};
use anyhow::{Context, bail};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use paceline_net::Duration;

/// Turns in which the end of a process is waited for, and that of a control that nobody uses: the kernel
/// frees it some grace periods (RCU) later.
const PROCESS_TURNS: u32 = 100;
const CONTROL_TURNS: u32 = 20;
/// Length of a turn. Chosen: short for a user.
const TURN: Duration = Duration::from_millis(50);

/// A registered control, or one that is used further.
pub struct Found {
    /// Its name, by which sockets and routes choose it.
    pub name: String,
    /// The process that registered it.
    pub process: u32,
    /// Whether that process runs. Without it the control cannot be chosen any more, and those who chose it
    /// keep it.
    pub runs: bool,
    /// Paths of the network namespaces whose default it is.
    pub namespaces: Vec<String>,
    settings: Settings,
    map: u32,
}

/// All of them, those of running processes first.
pub fn find() -> anyhow::Result<Vec<Found>> {
    for _ in 0..CONTROL_TURNS {
        let all = list()?;
        if all.iter().all(|found| found.runs || !found.namespaces.is_empty()) {
            return Ok(all);
        }
        paceline_linux::clock::pause(TURN); // it may be about to go
    }
    list()
}

fn list() -> anyhow::Result<Vec<Found>> {
    let size = Settings::default().to_bytes().len() as u32;
    let maps = MapInfoIter::default().filter(|map| map.name == SETTINGS && map.value_size == size);
    let mut all = Vec::new();
    for info in maps {
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue }; // it may have gone
        let settings = read_settings(&map)?;
        if settings.process == 0 {
            continue; // a trial
        }
        let end = settings.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        let name = String::from_utf8_lossy(&settings.name[..end]).into_owned();
        let runs = process_started(settings.process) == Some(settings.process_started);
        let namespaces = namespaces::with_default(&name)?;
        all.push(Found { name, process: settings.process, runs, namespaces, settings, map: info.id });
    }
    all.sort_by(|a, b| (!a.runs, &a.name).cmp(&(!b.runs, &b.name)));
    Ok(all)
}

impl Found {
    /// Ends its process, with which the kernel takes the control away, and its use as a default. Open sockets
    /// keep it, without pattern and rate. Returns whether there are none.
    pub fn detach(&self) -> anyhow::Result<bool> {
        self.end_process()?;
        namespaces::take_default(&self.name)?;
        if let Ok(map) = MapHandle::from_map_id(self.map) {
            let plain = Settings { slots: 0, gate: 0, learn: 0, rate: 0, ..read_settings(&map)? };
            write(&map, &plain)?;
        }
        for _ in 0..CONTROL_TURNS {
            if MapHandle::from_map_id(self.map).is_err() {
                return Ok(true);
            }
            paceline_linux::clock::pause(TURN);
        }
        Ok(false)
    }
    fn end_process(&self) -> anyhow::Result<()> {
        let has_ended = || process_started(self.process) != Some(self.settings.process_started);
        if has_ended() {
            return Ok(());
        }
        let process = Pid::from_raw(self.process as i32);
        kill(process, Signal::SIGTERM).with_context(|| format!("cannot end process {process}"))?;
        for _ in 0..PROCESS_TURNS {
            if has_ended() {
                return Ok(());
            }
            paceline_linux::clock::pause(TURN);
        }
        bail!("process {process} does not end")
    }
    /// Changes parameters for all its connections.
    pub fn set(&self, parameters: &Parameters) -> anyhow::Result<()> {
        let mut settings = self.settings;
        parameters.write(&mut settings);
        write(&MapHandle::from_map_id(self.map).context("the control has gone")?, &settings)
    }
    /// Its parameters and connections, those with most data first; none if it has gone since it was found.
    pub fn report(&self) -> anyhow::Result<Option<Report>> {
        match report::read(&self.name, self.runs, &self.namespaces, &self.settings) {
            Err(_) if MapHandle::from_map_id(self.map).is_err() => Ok(None),
            report => report.map(Some),
        }
    }
}

fn write(map: &MapHandle, settings: &Settings) -> anyhow::Result<()> {
    map.update(&ONLY, &settings.to_bytes(), MapFlags::ANY).context("cannot change the parameters")
}

/// Start of a process in clock ticks after boot (proc_pid_stat(5), field 22); none if it does not run.
pub fn process_started(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    // Field 3 is the state.
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}
