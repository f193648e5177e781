//! Rates over time.

use super::measured::Measured;
use super::parts::{DROPS, Part, parts};
use crate::host::Setting;
use crate::plan::strings;
use paceline_pep::ack_policer::Mode;
use paceline_report::{html, over_time};
use paceline_sim::simulate;
use paceline_study::{InputError, scenario_file};

/// The rate of one session at 90 Mb/s over its first 3 s, with a line for each share of dropped ACKs: row 5a.
pub(super) fn simulated(set: &[String]) -> Result<String, InputError> {
    let all = parts();
    let mut lines = Vec::new();
    for drop in DROPS {
        let wanted = format!("start-90-{drop}");
        let part: Option<&Part> = all.iter().find(|part| part.name == wanted);
        let Some(part) = part else { continue };
        let set = [strings(&["run.sample=100 ms"]), set.to_vec()].concat();
        let scenario = scenario_file::parse("router.toml", &part.scenario, &set)?;
        let run = simulate(&scenario, scenario.run.seed, None, &mut |_| {});
        let bytes = |pair: &[paceline_sim::results::Sample]| {
            let [from, to] = [0, 1].map(|index: usize| pair[index].at.as_secs_f64());
            (to, 8e-6 * (pair[1].downloaded - pair[0].downloaded) as f64 / (to - from))
        };
        let points = run.samples.windows(2).map(bytes).collect();
        lines.push((format!("{drop}% dropped"), points));
    }
    Ok(rates("Rate at 90 Mb/s over time, by share of dropped ACKs", &lines))
}

/// Files of the measured settings: one session by share of dropped ACKs, and two sessions by policer.
pub(super) fn measured(measured: &Measured<'_>) -> Vec<(String, String)> {
    let plain = |setting: &Setting| {
        (setting.rate_mbps, setting.sessions, setting.run) == (90, 1, 0)
            && setting.control == "cubic"
            && setting.mode == Mode::Published
    };
    let of_one = measured.0.iter().filter(|(setting, _)| plain(setting)).flat_map(|(setting, figures)| {
        let name = format!("{}% dropped", setting.drop_percent);
        figures.rates_over_time().into_iter().next().map(|points| (name, points))
    });
    let title = "Measured rate at 90 Mb/s over time, by share of dropped ACKs";
    let one = (String::from("measured-rates.svg"), rates(title, &of_one.collect::<Vec<_>>()));
    let two =
        measured.0.iter().filter(|(setting, _)| setting.sessions == 2 && setting.exempt && setting.per_flow);
    let two = two.map(|(setting, figures)| {
        let lines: Vec<_> =
            ["filtered", "unfiltered"].map(String::from).into_iter().zip(figures.rates_over_time()).collect();
        let queue = setting.queue_bytes / 1000;
        let title = format!("Measured rates of two sessions, one filtered at 80%, queue of {queue} kB");
        (format!("measured-sessions-{queue}kB.svg"), rates(&title, &lines))
    });
    [one].into_iter().chain(two).collect()
}

/// Rates in Mb/s over time in s as an SVG file: named lines.
fn rates(title: &str, lines: &[(String, Vec<(f64, f64)>)]) -> String {
    html::standalone(&over_time::rates(title, lines).svg())
}
