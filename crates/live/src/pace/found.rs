//! The registered controls of all processes.

use super::layout::Settings;
use super::maps::{NAME_BYTES, ONLY, SETTINGS, read_settings};
use super::parameters::Parameters;
use super::report::{self, Report};
use anyhow::{Context, bail};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A registered control.
pub struct Found {
    /// Its name, by which sockets and routes choose it.
    pub name: String,
    /// The process that holds it.
    pub process: u32,
    settings: Settings,
    map: MapHandle,
}

/// The controls whose processes live.
pub fn find() -> anyhow::Result<Vec<Found>> {
    let size = Settings::default().to_bytes().len() as u32;
    let maps = MapInfoIter::default().filter(|map| map.name == SETTINGS && map.value_size == size);
    let mut all = Vec::new();
    for info in maps {
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue }; // it may have gone
        let settings = read_settings(&map)?;
        if process_started(settings.process) != Some(settings.process_started) {
            continue; // sockets of a process that has ended still use the programs
        }
        let end = settings.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        let name = String::from_utf8_lossy(&settings.name[..end]).into_owned();
        all.push(Found { name, process: settings.process, settings, map });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

impl Found {
    /// Ends its process, with which the kernel takes the control away. Open sockets keep it.
    pub fn detach(&self) -> anyhow::Result<()> {
        let process = Pid::from_raw(self.process as i32);
        kill(process, Signal::SIGTERM).with_context(|| format!("cannot end process {process}"))?;
        for _ in 0..100 {
            if process_started(self.process) != Some(self.settings.process_started) {
                return Ok(());
            }
            crate::realtime::clock::pause(paceline_net::Duration::from_millis(50));
        }
        bail!("process {process} does not end")
    }
    /// Changes parameters for all its connections.
    pub fn set(&self, parameters: &Parameters) -> anyhow::Result<()> {
        let mut settings = self.settings;
        parameters.write(&mut settings);
        self.map.update(&ONLY, &settings.to_bytes(), MapFlags::ANY).context("cannot change the parameters")
    }
    /// Its parameters and connections, those with most data first.
    pub fn report(&self) -> anyhow::Result<Report> {
        report::read(&self.name, &self.settings)
    }
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
