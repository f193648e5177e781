//! The knowledge of the TDD cell on their path that servers and the accelerator have.

use crate::scenario::{Hop, PacingPattern, Scenario, Tcp};
use paceline_net::pacing::Hint;
use paceline_net::{Bytes, Duration, Instant};

/// Headers of a segment: IPv4 (RFC 791) and TCP with timestamps (RFC 7323).
const HEADERS: Bytes = Bytes(20 + 32);

/// The pattern that a server with this table has, and its phase.
pub(super) fn pacing_hint(scenario: &Scenario, tcp: &Tcp) -> Hint {
    let known = (&tcp.pacing_pattern, tcp.pacing_phase);
    hint(scenario, known, &scenario.core.hops, tcp.segment_size)
}
/// The same of the accelerator.
pub(super) fn accelerator_hint(scenario: &Scenario) -> Hint {
    let pattern = scenario.accelerator.pacing_pattern.clone().unwrap_or_default();
    let known = (&pattern, scenario.accelerator.pacing_phase);
    hint(scenario, known, scenario.core.around_path().1, scenario.tcp.segment_size)
}
/// The pattern at a sender that `hops` separate from the cell.
fn hint(
    scenario: &Scenario,
    (pattern, phase): (&PacingPattern, Option<Duration>),
    hops: &[Hop],
    segment_size: Bytes,
) -> Hint {
    let pattern = match pattern {
        PacingPattern::Learned => None,
        PacingPattern::Cell => scenario.cell().and_then(|cell| cell.plan().pattern().cloned()),
        PacingPattern::Slots(_, slots) => Some(slots.clone()),
    };
    let Some(pattern) = pattern else { return Hint::None };
    let computed = || {
        let period = pattern.period().as_nanos();
        let way = hops
            .iter()
            .fold(Duration::ZERO, |way, hop| way + hop.delay + hop.rate.time_to_send(segment_size + HEADERS));
        Duration::from_nanos(period - way.as_nanos() % period)
    };
    let phase = Instant::ZERO + phase.unwrap_or_else(computed);
    Hint::Pattern { pattern, phase, error: Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::{accelerator_hint, pacing_hint};
    use crate::scenario::load;
    use paceline_net::pacing::Hint;
    use paceline_net::{Duration, Instant};

    const CELL: &str = "[core]\nhops = [{ rate = \"10 Gb/s\", delay = \"2 ms\" }]\n[cell]\nrat = \"nr\"\n\
        pattern = \"DDDSU\"\nbandwidth = \"20 MHz\"\n[[station]]\n";

    fn hint(set: &[&str]) -> Hint {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let scenario = load("cell.toml", CELL, &set).unwrap();
        assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        pacing_hint(&scenario, &scenario.tcp)
    }

    #[test]
    fn the_phase_follows_from_the_wired_path_and_a_given_one_goes_before_it() {
        assert_eq!(hint(&[]), Hint::None);
        let Hint::Pattern { pattern, phase, error } = hint(&["tcp.pacing_pattern=cell"]) else { panic!() };
        assert_eq!((pattern.to_string().as_str(), error), ("DDDSU 10:2:2", Duration::ZERO));
        // 1,500 bytes take 1.2 us; 2.0012 ms after the start of a period one begins at the cell.
        assert_eq!(phase, Instant::from_nanos(500_000 - 1200));
        let set = ["tcp.pacing_pattern=DDSUU 6:4:4/30kHz", "tcp.pacing_phase=1 ms"];
        let Hint::Pattern { pattern, phase, .. } = hint(&set) else { panic!() };
        assert_eq!((pattern.to_string().as_str(), phase), ("DDSUU 6:4:4", Instant::from_millis(1)));
        let proxy = ["core.proxy=accelerator", "accelerator.pacing=tdd", "accelerator.pacing_pattern=cell"];
        let proxy = proxy.map(str::to_owned);
        let phase = |set: &[String]| match accelerator_hint(&load("cell.toml", CELL, set).unwrap()) {
            Hint::Pattern { phase, .. } => phase,
            other => panic!("{other:?}"),
        };
        // The accelerator stands behind the hop, unless the scenario says otherwise.
        assert_eq!(phase(&proxy), Instant::from_nanos(2_500_000));
        let before = [&proxy[..], &["core.proxy_after=0".into()]].concat();
        assert_eq!(phase(&before), Instant::from_nanos(500_000 - 1200));
        let error = load("cell.toml", CELL, &["tcp.pacing_pattern=DDDSU".into()]).unwrap_err().to_string();
        assert!(error.contains("tcp.pacing_pattern") && error.contains("DDDSU/30kHz"), "{error}");
    }
}
