//! Paced congestion controls of the kernel: loads `bpf/pace.bpf.c`, registers one of its controls under a
//! name, and shows and changes those of other processes.
//!
//! [`Pace`] is a control that this process registered. The kernel takes it away with the process; sockets
//! that use it, and network namespaces whose default it is, keep the programs. [`find`] gives all of them.

mod ability;
mod found;
mod layout;
mod learn;
mod maps;
mod namespaces;
mod parameters;
mod report;

pub use ability::{problem, show_problem};
pub use found::{Found, find};
pub use parameters::{Control, Parameters, Pattern, check_name};
pub use report::{FlowReport, Report};

use anyhow::{Context, anyhow};
use layout::Settings;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use maps::{ACKS, FLOWS, HINT, NAME_BYTES, ONLY, SETTINGS, read_settings};
use std::ffi::OsStr;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pace.bpf.o"));
/// A congestion control that this process has registered.
pub struct Pace {
    object: Object,
    _link: Link,
    learner: learn::ClockAndLearner,
}

impl Pace {
    /// Loads and registers a control. Namespaces whose default was one of this name get it.
    pub fn attach(name: &str, control: Control, parameters: &Parameters) -> anyhow::Result<Self> {
        let attached = Self::register(name, control, parameters, std::process::id())?;
        // Without the right to enter other namespaces, these keep the earlier one.
        let _ = namespaces::renew_default(name);
        Ok(attached)
    }
    /// `process` is 0 for a trial, which [`find`] passes over.
    fn register(name: &str, control: Control, parameters: &Parameters, process: u32) -> anyhow::Result<Self> {
        let mut object = load(name, control)?;
        let mut settings = Settings {
            name: name_bytes(name),
            process,
            process_started: found::process_started(std::process::id()).unwrap_or(0),
            flows_map: map(&object, FLOWS)?.info()?.info.id,
            hint_map: map(&object, HINT)?.info()?.info.id,
            control: Control::ALL.iter().position(|known| *known == control).unwrap_or(0) as u8,
            ..Settings::default()
        };
        parameters.write(&mut settings);
        map(&object, SETTINGS)?.update(&ONLY, &settings.to_bytes(), MapFlags::ANY)?;
        let mut learner = learn::ClockAndLearner::new(map(&object, HINT)?);
        learner.tell(&settings)?; // the clock is needed before the first packet
        let mut operations = object
            .maps_mut()
            .find(|map| map.name() == OsStr::new(control.name()))
            .context("the program has no such control")?;
        let link = operations
            .attach_struct_ops()
            .with_context(|| format!("the kernel refuses the congestion control {name}"))?;
        Ok(Self { object, _link: link, learner })
    }
    /// Reads the ACKs of the last moment, and passes on clock and period; to be called some times a second.
    pub fn turn(&mut self) -> anyhow::Result<()> {
        let settings = read_settings(&map(&self.object, SETTINGS)?)?;
        self.learner.read(&map(&self.object, ACKS)?)?;
        self.learner.tell(&settings)
    }
}

/// Loads all controls and registers one for a moment. Fails where they cannot work.
pub fn trial() -> anyhow::Result<()> {
    let print = libbpf_rs::set_print(None); // the verifier's log is pages long
    let parameters = Parameters { pattern: Some(Pattern::Learned), ..Parameters::default() };
    let name = format!("trial{}", std::process::id() % 1_000_000_000);
    let attached = Control::ALL.into_iter().try_for_each(|control| {
        Pace::register(&name, control, &parameters, 0)
            .map(drop)
            .with_context(|| format!("{} does not work here", control.name()))
    });
    libbpf_rs::set_print(print);
    attached
}

fn name_bytes(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

fn load(name: &str, control: Control) -> anyhow::Result<Object> {
    let mut open: OpenObject =
        ObjectBuilder::default().name("paceline_pace").and_then(|builder| builder.open_memory(PROGRAMS))?;
    for mut map in open.maps_mut() {
        let Some(other) = Control::ALL.iter().find(|known| map.name() == OsStr::new(known.name())) else {
            continue;
        };
        if *other == control {
            // The name is the first member of the operations (bpf/pace_tcp.h).
            let operations = map.initial_value_mut().context("the operations have no value")?;
            operations[..NAME_BYTES].copy_from_slice(&name_bytes(name));
        } else {
            map.set_autocreate(false)?;
        }
    }
    open.load().context("the kernel refuses the programs (Linux 6.9 or newer with BTF is needed)")
}

fn map(object: &Object, name: &str) -> anyhow::Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == OsStr::new(name));
    let map = map.ok_or_else(|| anyhow!("the program has no map {name}"))?;
    MapHandle::try_from(&map).with_context(|| format!("cannot open the map {name}"))
}
