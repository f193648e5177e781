//! Tables of several runs: as CSV for a results folder, and by columns for other programs.

mod columns;
mod csv;
mod kernel;
mod network;
mod stations;

pub use columns::{Column, Values};

use super::run::RunResult;
use super::totals::Totals;
use columns::columns;
use csv::text;
use kernel::KernelConnectionRow;
use network::{HandoverRow, PathRow, PingRow, PolicerRow, QueueRow, RouterRow, SwitchRow};
use stations::{FlowRow, GroupRow, SampleRow, StationRow};

macro_rules! tables {
    ($($(#[$doc:meta])* $kind:ident $name:literal $rows:ident $columns:ident;)*) => {
        /// A table of several runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Table {
            /// A row per seed: the totals.
            Runs,
            $($(#[$doc])* $kind,)*
        }
        impl Table {
            /// All tables.
            pub const ALL: &'static [Self] = &[Self::Runs, $(Self::$kind),*];
            /// Name.
            pub fn name(self) -> &'static str {
                match self {
                    Self::Runs => "runs",
                    $(Self::$kind => $name,)*
                }
            }
            /// The columns.
            pub fn columns(self, runs: &[RunResult]) -> Vec<Column> {
                match self {
                    Self::Runs => totals(runs),
                    $(Self::$kind => columns($rows(runs)),)*
                }
            }
        }
        $($(#[$doc])*
        pub(super) fn $columns(runs: &[RunResult]) -> String {
            text($rows(runs))
        })*
    };
}

tables! {
    /// A row per seed and group of stations: `groups.csv`.
    Groups "groups" group_rows groups_csv;
    /// A row per seed and station: `stations.csv`.
    Stations "stations" station_rows stations_csv;
    /// A row per seed and connection of the simulated stations: `flows.csv`.
    Flows "flows" flow_rows flows_csv;
    /// A row per seed, sample and station: `timeseries.csv`.
    Series "series" sample_rows timeseries_csv;
    /// A row per seed and change of the serving cell: `handovers.csv`.
    Handovers "handovers" handover_rows handovers_csv;
    /// A row per seed, pair, direction and path: `paths.csv`.
    Paths "paths" path_rows paths_csv;
    /// A row per seed and change of path: `switches.csv`.
    Switches "switches" switch_rows switches_csv;
    /// A row per seed and managed queue: `queues.csv`.
    Queues "queues" queue_rows queues_csv;
    /// A row per seed and router: `routers.csv`.
    Routers "routers" router_rows routers_csv;
    /// A row per seed, policer and decision: `policers.csv`.
    Policers "policers" policer_rows policers_csv;
    /// A row per seed, station and part of the pings: `pings.csv`.
    Pings "pings" ping_rows pings_csv;
    /// A row per seed and connection of the real stations: `kernel_connections.csv`.
    KernelConnections "kernel_connections" kernel_connection_rows kernel_connections_csv;
}

/// Seed, length of the measured interval and totals of every run.
fn totals(runs: &[RunResult]) -> Vec<Column> {
    let column = |name, values| Column { name, values, present: None };
    let seeds = runs.iter().map(|run| i64::try_from(run.seed).unwrap_or(i64::MAX)).collect();
    let values: Vec<Vec<f64>> = runs.iter().map(|run| run.totals.values()).collect();
    let measured = runs.iter().map(|run| run.measured_s).collect();
    let mut all =
        vec![column("seed", Values::Integers(seeds)), column("measured_s", Values::Numbers(measured))];
    all.extend(Totals::names().iter().enumerate().map(|(index, name)| {
        column(name, Values::Numbers(values.iter().map(|values| values[index]).collect()))
    }));
    all
}

fn group_rows(runs: &[RunResult]) -> impl Iterator<Item = GroupRow> {
    runs.iter().flat_map(|run| run.groups.iter().map(|group| GroupRow::new(run, group)))
}
fn station_rows(runs: &[RunResult]) -> impl Iterator<Item = StationRow> {
    runs.iter().flat_map(|run| run.stations.iter().map(|station| StationRow::new(run, station)))
}
fn flow_rows(runs: &[RunResult]) -> impl Iterator<Item = FlowRow> {
    runs.iter().flat_map(|run| run.flows.iter().map(|flow| FlowRow::new(run, flow)))
}
fn sample_rows(runs: &[RunResult]) -> impl Iterator<Item = SampleRow> {
    runs.iter().flat_map(|run| run.samples.iter().map(|sample| SampleRow::new(run, sample)))
}
fn handover_rows(runs: &[RunResult]) -> impl Iterator<Item = HandoverRow<'_>> {
    runs.iter().flat_map(|run| run.handovers.iter().map(|own| HandoverRow::new(run.seed, own)))
}
fn path_rows(runs: &[RunResult]) -> impl Iterator<Item = PathRow<'_>> {
    runs.iter().flat_map(|run| run.paths.iter().map(|own| PathRow::new(run.seed, own)))
}
fn switch_rows(runs: &[RunResult]) -> impl Iterator<Item = SwitchRow<'_>> {
    runs.iter().flat_map(|run| run.switches.iter().map(|own| SwitchRow::new(run.seed, own)))
}
fn queue_rows(runs: &[RunResult]) -> impl Iterator<Item = QueueRow> {
    runs.iter().flat_map(|run| run.queues.iter().map(|queue| QueueRow::new(run, queue)))
}
fn router_rows(runs: &[RunResult]) -> impl Iterator<Item = RouterRow> {
    runs.iter().flat_map(|run| run.routers.iter().map(|router| RouterRow::new(run, router)))
}
fn policer_rows(runs: &[RunResult]) -> impl Iterator<Item = PolicerRow> {
    let of_run = |run| move |policer| PolicerRow::of_policer(run, policer);
    runs.iter().flat_map(move |run: &RunResult| run.policers.iter().flat_map(of_run(run)))
}
fn ping_rows(runs: &[RunResult]) -> impl Iterator<Item = PingRow<'_>> {
    runs.iter().flat_map(|run| run.pings.iter().flat_map(|ping| PingRow::of_station(run.seed, ping)))
}
fn kernel_connection_rows(runs: &[RunResult]) -> impl Iterator<Item = KernelConnectionRow> {
    runs.iter().flat_map(|run| run.kernel_connections.iter().map(|own| KernelConnectionRow::new(run, own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_rows_have_their_header() {
        assert_eq!(timeseries_csv(&[]).lines().count(), 1);
        assert!(
            flows_csv(&[]).starts_with("seed,station,flow,bytes,")
                && flows_csv(&[]).ends_with(",stored_ms,group,group_name\n")
        );
    }

    #[test]
    fn columns_have_the_rows_of_the_csv_and_none_where_a_field_is_empty() {
        let text = "[run]\nduration = \"1 s\"\nwarmup = \"0 s\"\n[[station]]\ncount = 2\n";
        let scenario = crate::scenario::load("test.toml", text, &[]).unwrap();
        let runs = [crate::run::simulate(&scenario, 3, None, &mut |_| {})];
        for (table, csv) in [(Table::Stations, stations_csv(&runs)), (Table::Series, timeseries_csv(&runs))] {
            let columns = table.columns(&runs);
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            let mut lines = csv.lines();
            assert_eq!(names.join(","), lines.next().unwrap());
            let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
            for (index, column) in columns.iter().enumerate() {
                let (len, first) = match &column.values {
                    Values::Integers(values) => (values.len(), values[0].to_string()),
                    Values::Numbers(values) => (values.len(), values[0].to_string()),
                    Values::Texts(values) => (values.len(), values[0].clone()),
                };
                assert_eq!(len, rows.len(), "{}", column.name);
                let present = column.present.as_ref().is_none_or(|present| present[0]);
                assert_eq!(present, !rows[0][index].is_empty(), "{}", column.name);
                if let Values::Integers(_) = column.values
                    && present
                {
                    assert_eq!(first, rows[0][index], "{}", column.name);
                }
            }
        }
    }
}
