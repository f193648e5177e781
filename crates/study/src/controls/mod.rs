//! The few keys of a scenario that a page shows as controls: their present values, and the values that this
//! scenario allows.
//!
//! A value is offered only if the scenario is accepted with it: the bandwidths of the carrier's band, the
//! patterns of its numerology. An edit changes the scenario's text and leaves its comments. [`round_trip`]
//! and [`traffic`] stand for several keys each.

mod round_trip;
mod sliders;
mod traffic;

use crate::scenario_file::short_trace;
use paceline_sim::link::{PREFIX, generated_kinds};
use paceline_sim::scenario::reference::{self, Entry};
use paceline_sim::scenario::{load_with, with_setting};
use paceline_sim::{Scenario, ScenarioError};
use serde::Serialize;

/// A key with its values.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Control {
    /// Dotted path of the key, or [`round_trip::KEY`] or [`traffic::KEY`].
    pub key: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// The present value: a word, a quantity or a number.
    pub value: String,
    /// Whether the values are in ascending order, for a slider.
    pub ordered: bool,
    /// The values, the present one among them.
    pub choices: Vec<Choice>,
}

/// A value of a control.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Choice {
    /// The value, as [`edit`] takes it.
    pub value: String,
    /// Its meaning; empty for most quantities.
    pub meaning: String,
}

/// Keys and names of the controls, in their order on the page. Chosen: the subjects of lectures on TCP over
/// radio.
const KEYS: [(&str, &str); 18] = [
    ("station.0.count", "Stations"),
    (traffic::KEY, "Traffic"),
    (round_trip::KEY, "Round-trip time without radio"),
    ("cell.downlink_buffer", "Buffer per station"),
    ("link.queue", "Buffer of the link"),
    ("sidelink.buffer", "Buffer per station"),
    ("station.0.downlink_sinr", "SINR"),
    ("cell.max_harq_tx", "Loss: HARQ transmissions"),
    ("link.loss_percent", "Loss, % of the packets"),
    ("tcp.congestion_control", "Congestion control"),
    ("cell.bandwidth", "Bandwidth"),
    ("cell.pattern", "TDD pattern"),
    ("cell.tdd_configuration", "TDD configuration"),
    ("link.trace.downlink", "Trace of the downlink"),
    ("tcp.pacing", "Pacing of the sender"),
    ("ack_filter.scheme", "ACK filter"),
    ("core.proxy", "Proxy before the radio"),
    ("run.duration", "Simulated time"),
];
/// Channel bandwidths (TS 36.104 Table 5.6-1, TS 38.101-1 and -2 Table 5.3.2-1), MHz.
const BANDWIDTHS_MHZ: [&str; 17] =
    ["1.4", "3", "5", "10", "15", "20", "25", "30", "40", "50", "60", "70", "80", "90", "100", "200", "400"];
/// Patterns of deployed networks: those of docs/nr.md and of the TDD-pacing experiments.
const PATTERNS: [&str; 6] =
    ["DDDSU 10:2:2", "DDDSUUDDDD 6:4:4", "DDDDDDDSUU 6:4:4", "DSUUU 10:2:2", "DDSUU 10:2:2", "DSU 10:2:2"];
/// Durations offered.
const DURATIONS: [&str; 7] = ["2 s", "5 s", "10 s", "20 s", "30 s", "60 s", "200 s"];

/// The controls of a scenario whose text is accepted as `scenario`.
pub fn controls(text: &str, scenario: &Scenario) -> Vec<Control> {
    let resolved: toml::Value = toml::from_str(&scenario.to_toml()).expect("a resolved scenario is TOML");
    let present = |key: &str| match key {
        round_trip::KEY => round_trip::present(scenario).map(|time| time.to_string()),
        traffic::KEY => traffic::present(scenario).map(str::to_owned),
        _ => key.split('.').try_fold(&resolved, |at, part| inner(at, part)).map(plain),
    };
    // A bandwidth that only NR has would make an LTE cell one of NR.
    let rat = |scenario: &Scenario| scenario.cell().map(|cell| cell.rat);
    let of_same_rat = |changed: Scenario| rat(&changed) == rat(scenario);
    let accepted = |key: &str, value: &str| {
        edit(text, key, value).is_ok_and(|edited| parse(&edited).is_ok_and(of_same_rat))
    };
    let entries = reference::entries();
    let control = |&(key, label): &(&'static str, &'static str)| {
        let value = present(key)?;
        let stops = sliders::stops(key, &value);
        let ordered = stops.is_some();
        let mut choices = stops.unwrap_or_else(|| candidates(key, &entries));
        if !choices.iter().any(|choice| choice.value == value) {
            choices.insert(0, quantity(value.clone()));
        }
        let fits = |choice: &Choice| choice.value == value || accepted(key, &choice.value);
        if ordered {
            // The allowed values are an interval, and the present one is among them.
            let last = choices.iter().rposition(fits).map_or(0, |last| last + 1);
            choices.truncate(last);
            choices.drain(..choices.iter().position(fits).unwrap_or(0));
        } else {
            choices.retain(fits);
        }
        let first = key.starts_with("station.0.") && scenario.stations.len() > 1;
        let label = if first { sliders::label_of_first_group(key) } else { label };
        (choices.len() > 1).then_some(Control { key, label, value, ordered, choices })
    };
    KEYS.iter().filter_map(control).collect()
}

/// The text of a scenario with one value changed; comments stay.
pub fn edit(text: &str, key: &str, value: &str) -> Result<String, String> {
    let scenario = || parse(text).map_err(|error| error.to_string());
    match key {
        round_trip::KEY => round_trip::edit(text, &scenario()?, value),
        traffic::KEY => traffic::edit(text, &scenario()?, value),
        _ => with_setting(text, &format!("{key}={value}")),
    }
}

/// Reads a text without suggestions of similar names, which are slow to find, and without its traces.
fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    load_with("scenario.toml", text, &[], &short_trace)
}

fn inner<'a>(at: &'a toml::Value, part: &str) -> Option<&'a toml::Value> {
    part.parse::<usize>().map_or_else(|_| at.get(part), |index| at.get(index))
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn candidates(key: &str, entries: &[Entry]) -> Vec<Choice> {
    let plain = |values: &[&str]| values.iter().map(|value| quantity((*value).to_owned())).collect();
    match key {
        "cell.bandwidth" => BANDWIDTHS_MHZ.iter().map(|mhz| quantity(format!("{mhz} MHz"))).collect(),
        "cell.pattern" => plain(&PATTERNS),
        "cell.tdd_configuration" => (0..=6u8).map(|number| quantity(number.to_string())).collect(),
        "link.trace.downlink" => generated_kinds().map(|kind| quantity(format!("{PREFIX}{kind}"))).collect(),
        "run.duration" => plain(&DURATIONS),
        traffic::KEY => traffic::choices(),
        _ => words(key, entries),
    }
}

fn quantity(value: String) -> Choice {
    Choice { value, meaning: String::new() }
}

/// The words of a key by the reference; those with an argument get the published one.
fn words(key: &str, entries: &[Entry]) -> Vec<Choice> {
    let entry = entries.iter().find(|entry| entry.path == key);
    let choice = |(word, meaning): &(String, String)| Choice {
        // Chosen: half of the ACKs; T = 6 is the published default of `hybrid`.
        value: word.replace("(RATIO)", "(0.5)").replace("(T)", "(6)"),
        meaning: meaning.clone(),
    };
    entry.map_or(Vec::new(), |entry| entry.values.iter().map(choice).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file;

    fn of(name: &str) -> (&'static str, Vec<Control>) {
        let (_, text) = scenario_file::built_in(name);
        let scenario = scenario_file::parse_without_files(name, text, &[]).unwrap();
        (text, controls(text, &scenario))
    }

    fn values<'a>(controls: &'a [Control], key: &str) -> Vec<&'a str> {
        let control = controls.iter().find(|control| control.key == key);
        control.map_or(Vec::new(), |control| control.choices.iter().map(|c| c.value.as_str()).collect())
    }

    #[test]
    fn a_control_offers_what_its_scenario_allows() {
        let (_, lte) = of("single-station");
        assert_eq!(
            values(&lte, "cell.bandwidth"),
            ["1.4 MHz", "3 MHz", "5 MHz", "10 MHz", "15 MHz", "20 MHz"]
        );
        assert!(values(&lte, "cell.pattern").is_empty() && values(&lte, "link.trace.downlink").is_empty());
        assert!(values(&lte, "ack_filter.scheme").contains(&"hybrid(6)"), "{lte:?}");
        let (_, nr) = of("private-5g");
        assert!(values(&nr, "cell.pattern").len() > 1 && values(&nr, "cell.bandwidth").contains(&"100 MHz"));
        let first = |key| nr.iter().find(|control| control.key == key).unwrap();
        let sinr = first("station.0.downlink_sinr");
        assert!(
            sinr.ordered && sinr.choices.iter().any(|choice| choice.meaning == "15 to 32 dB"),
            "{sinr:?}"
        );
        assert_eq!(first("rtt").value, "2 ms");
        assert_eq!(first("traffic").value, "bulk");
        let (_, trace) = of("accelerator-trace");
        assert!(
            values(&trace, "rtt").contains(&"50 ms") && values(&trace, "link.loss_percent").contains(&"1")
        );
        assert!(values(&trace, "link.trace.downlink").len() > 3);
        assert_eq!(values(&trace, "core.proxy"), ["none", "split-tcp", "accelerator"]);
    }

    #[test]
    fn the_round_trip_time_is_that_of_hops_and_link_and_traffic_can_be_taken_back() {
        let parsed = |text: &str| parse(text).unwrap();
        // A file without hops, several hops, a link.
        for (text, least) in [
            ("[[station]]\n", 0),
            (scenario_file::built_in("uplink-limited").1, 14),
            (scenario_file::built_in("accelerator-trace").1, 10),
        ] {
            let edited = edit(text, "rtt", "60 ms").unwrap();
            assert_eq!(round_trip::present(&parsed(&edited)).unwrap().to_string(), "60 ms");
            let bulk = edit(text, "traffic", "bulk").unwrap();
            for traffic in ["short transfers", "a thin flow beside"] {
                let changed = edit(&bulk, "traffic", traffic).unwrap();
                assert_eq!(traffic::present(&parsed(&changed)), Some(traffic), "{changed}");
                assert_eq!(edit(&changed, "traffic", "bulk").unwrap(), bulk);
            }
            let refused =
                edit(text, "rtt", "1 us").is_err_and(|error| error.contains(&format!("{least} ms or")));
            assert!(refused || least == 0, "{text}");
        }
        assert!(
            edit("[[station]]\n", "traffic", "heavy").is_err_and(|error| error.contains("allowed: bulk"))
        );
    }

    #[test]
    fn every_choice_of_every_built_in_scenario_is_accepted_after_its_edit() {
        for name in scenario_file::built_in_names() {
            let (text, controls) = of(name);
            assert!(controls.len() >= 4, "{name}: {controls:?}");
            for Control { key, choices, .. } in controls {
                for choice in choices {
                    let edited = edit(text, key, &choice.value).unwrap();
                    let parsed = scenario_file::parse(name, &edited, &[]);
                    assert!(parsed.is_ok(), "{name}: {key} = {}: {parsed:?}", choice.value);
                }
            }
        }
    }
}
