//! Paced congestion controls of the kernel: loads `bpf/pace.bpf.c`, registers one of its controls under a name,
//! and shows and changes those of other processes.
//!
//! [`Pace`] is a control that this process registered. The kernel takes it away with the process; sockets
//! that use it keep the programs until they close. [`find`] gives all registered ones.

mod found;
mod layout;
mod learn;
mod report;

pub use found::{Found, find};
pub use report::{FlowReport, Report};

use anyhow::{Context, anyhow};
use layout::{Hint, MAX_SLOTS, Settings};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use paceline_net::{Duration, SlotPattern};
use std::ffi::OsStr;

const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pace.bpf.o"));
/// Key of the maps with one entry, by definition of an array map.
const ONLY: [u8; 4] = 0u32.to_ne_bytes();
/// Bytes of a control's name with its terminating zero (linux/tcp.h, TCP_CA_NAME_MAX).
const NAME_BYTES: usize = 16;
/// Names of the maps.
const SETTINGS: &str = "pace_settings";
const FLOWS: &str = "pace_flows";
const HINT: &str = "pace_hint";
const ACKS: &str = "pace_acks";

/// How the window grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// By the mean queueing delay of a round trip.
    Illinois,
    /// By the kernel's CUBIC.
    Cubic,
    /// By the kernel's Reno.
    Reno,
}

impl Control {
    /// All of them, by the kernel program's numbers.
    pub const ALL: [Self; 3] = [Self::Illinois, Self::Cubic, Self::Reno];
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Illinois => "illinois",
            Self::Cubic => "cubic",
            Self::Reno => "reno",
        }
    }
}

/// The pattern of the cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// The period is learned from the ACKs of all connections.
    Learned,
    /// Stated, with the start of the pattern at this host on the real-time clock, modulo the period.
    Stated(SlotPattern, Option<Duration>),
}

/// Changes of the parameters, also while connections use them; none leaves a parameter as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameters {
    /// The pattern.
    pub pattern: Option<Pattern>,
    /// A fixed rate of payload in bytes per second; 0: the mean rate of Linux.
    pub rate: Option<u64>,
    /// Whether congestion controls get the delay without the pattern's part.
    pub clean: Option<bool>,
}

impl Parameters {
    /// Checks what the types allow and the programs do not.
    pub fn check(&self) -> Result<(), String> {
        let Some(Pattern::Stated(pattern, phase)) = &self.pattern else { return Ok(()) };
        let (count, period) = (pattern.slots().len(), pattern.period());
        if count > MAX_SLOTS as usize {
            return Err(format!("pattern {pattern}: {count} slots; the kernel program takes {MAX_SLOTS} at most"));
        }
        match phase {
            Some(phase) if *phase >= period => {
                Err(format!("phase: {phase}: less than the pattern's period, {period}"))
            }
            _ => Ok(()),
        }
    }
    /// Writes them into the program's settings.
    fn write(&self, settings: &mut Settings) {
        settings.rate = self.rate.unwrap_or(settings.rate);
        settings.clean = self.clean.map_or(settings.clean, u8::from);
        let Some(given) = &self.pattern else { return };
        settings.learn = (*given == Pattern::Learned).into();
        (settings.slots, settings.slot_ns, settings.open) = (0, 0, 0);
        (settings.gate, settings.phase_ns) = (0, 0);
        if let Pattern::Stated(pattern, phase) = given {
            let count = pattern.slots().len() as u64;
            (settings.slots, settings.slot_ns) = (count, pattern.slot().as_nanos());
            // Packets leave in the slot before a downlink slot, as in net::pacing::Pacer.
            let is_open = |slot: u64| u64::from(pattern.kind(slot + 1).down > 0) << slot;
            settings.open = (0..count).map(is_open).sum();
            settings.gate = phase.is_some().into();
            settings.phase_ns = phase.unwrap_or(Duration::ZERO).as_nanos();
        }
    }
}

/// Checks a name of a congestion control.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || name.len() >= NAME_BYTES || !name.chars().all(is_plain) {
        return Err(format!("name {name:?}: 1 to {} of the characters a-z, 0-9 and _", NAME_BYTES - 1));
    }
    let kernel = crate::probe::congestion_controls();
    if kernel.iter().any(|known| known == name) {
        return Err(format!("name {name}: the kernel has a congestion control of this name; choose another"));
    }
    Ok(())
}

/// A congestion control that this process has registered.
pub struct Pace {
    object: Object,
    _link: Link,
    learner: learn::ClockAndLearner,
}

impl Pace {
    /// Loads and registers a control.
    pub fn attach(name: &str, control: Control, parameters: &Parameters) -> anyhow::Result<Self> {
        let mut object = load(name, control)?;
        let mut settings = Settings {
            name: name_bytes(name),
            process: std::process::id(),
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
        Pace::attach(&name, control, &parameters)
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

fn read_settings(map: &MapHandle) -> anyhow::Result<Settings> {
    let bytes = map.lookup(&ONLY, MapFlags::ANY)?;
    bytes.as_deref().and_then(Settings::from_bytes).context("the program has no settings")
}

fn read_hint(map: &MapHandle) -> anyhow::Result<Hint> {
    let bytes = map.lookup(&ONLY, MapFlags::ANY)?;
    bytes.as_deref().and_then(Hint::from_bytes).context("the program has no hint")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str, phase: Option<Duration>) -> Parameters {
        let pattern = Pattern::Stated(SlotPattern::from_letters(text, 1).unwrap(), phase);
        Parameters { pattern: Some(pattern), ..Parameters::default() }
    }

    #[test]
    fn slots_before_downlink_slots_are_open() {
        let mut settings = Settings::default();
        stated("DDDSU", Some(Duration::from_micros(100))).write(&mut settings);
        assert_eq!((settings.open, settings.slots, settings.slot_ns), (0b10111, 5, 500_000));
        assert_eq!((settings.gate, settings.phase_ns, settings.learn), (1, 100_000, 0));
        stated("DDDSU", None).write(&mut settings);
        assert_eq!((settings.gate, settings.phase_ns), (0, 0));
        let pattern = Some(Pattern::Learned);
        Parameters { pattern, rate: Some(5), clean: Some(false) }.write(&mut settings);
        assert_eq!((settings.slots, settings.learn, settings.rate, settings.clean), (0, 1, 5, 0));
    }

    #[test]
    fn names_and_phases_are_checked() {
        for bad in ["", "a-b", "Cap", "longer_than_fifteen", "reno"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert_eq!(check_name("pace_tdd1"), Ok(()));
        let error = stated("DDDSU", Some(Duration::from_millis(3))).check().unwrap_err();
        assert!(error.contains("2500 us"), "{error}");
        assert_eq!(stated("DDDSU", Some(Duration::from_millis(2))).check(), Ok(()));
    }
}
