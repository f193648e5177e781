//! Names and parameters of paced congestion controls, and their form in the kernel program's settings.

use super::layout::{MAX_SLOTS, Settings};
use super::maps::NAME_BYTES;
use paceline_net::{Duration, SlotPattern};

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
            return Err(format!(
                "pattern {pattern}: {count} slots; the kernel program takes {MAX_SLOTS} at most"
            ));
        }
        match phase {
            Some(phase) if *phase >= period => {
                Err(format!("phase: {phase}: less than the pattern's period, {period}"))
            }
            _ => Ok(()),
        }
    }
    /// Writes them into the program's settings.
    pub(super) fn write(&self, settings: &mut Settings) {
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

/// Checks a name of a congestion control; `kernel` are those that the kernel has.
pub fn check_name(name: &str, kernel: &[String]) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || name.len() >= NAME_BYTES || !name.chars().all(is_plain) {
        return Err(format!("name {name:?}: 1 to {} of the characters a-z, 0-9 and _", NAME_BYTES - 1));
    }
    if kernel.iter().any(|known| known == name) {
        return Err(format!("name {name}: the kernel has a congestion control of this name; choose another"));
    }
    Ok(())
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
            assert!(check_name(bad, &["reno".into()]).is_err(), "{bad}");
        }
        assert_eq!(check_name("pace_tdd1", &[]), Ok(()));
        let error = stated("DDDSU", Some(Duration::from_millis(3))).check().unwrap_err();
        assert!(error.contains("2500 us"), "{error}");
        assert_eq!(stated("DDDSU", Some(Duration::from_millis(2))).check(), Ok(()));
    }
}
