//! The files of a results folder.

use paceline_sim::{Scenario, Summary};

/// Names and contents of the files that the results of a run or an emulation have: `resolved.toml` with its
/// traces, `summary.json`, tables as CSV.
pub fn files(scenario: &Scenario, summary: &Summary) -> Vec<(String, Vec<u8>)> {
    // The traces are copied, so that `paceline run DIR/resolved.toml` gives the same figures again.
    let mut scenario = scenario.clone();
    let mut files = Vec::new();
    for (key, file) in scenario.traces_mut() {
        file.name = format!("{}.trace", key.rsplit('.').next().unwrap_or(key));
        files.push((file.name.clone(), file.trace.as_ref().map_or(Vec::new(), |trace| trace.to_file())));
    }
    let mut texts = vec![
        ("resolved.toml", scenario.to_toml()),
        ("summary.json", summary.to_json()),
        ("stations.csv", summary.stations_csv()),
        ("flows.csv", summary.flows_csv()),
        ("timeseries.csv", summary.timeseries_csv()),
    ];
    texts.extend(summary.groups_csv().map(|text| ("groups.csv", text)));
    texts.extend(summary.queues_csv().map(|text| ("queues.csv", text)));
    let paths = summary.paths_csv().map(|texts| ["paths.csv", "switches.csv"].into_iter().zip(texts));
    texts.extend(paths.into_iter().flatten());
    if scenario.cells().is_some_and(|cells| cells.handover.is_some()) {
        texts.push(("handovers.csv", summary.handovers_csv()));
    }
    texts.extend(summary.routers_csv().map(|text| ("routers.csv", text)));
    texts.extend(summary.policers_csv().map(|text| ("policers.csv", text)));
    texts.extend(summary.pings_csv().map(|text| ("pings.csv", text)));
    if summary.mode == "emulated" {
        texts.push(("kernel_connections.csv", summary.kernel_connections_csv()));
    }
    files.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())));
    files
}
