//! Options of `paceline trace import`.

use super::units::{RateUnit, TimeUnit};

/// Statements of the user about a file; the rest is taken from the file.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Column of the times, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Column of the rates, or of amounts of data, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    pub rate: Option<String>,
    /// Unit of the times: s, ms, us or ns
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Unit of the rates: b/s, kb/s, Mb/s, Gb/s, Kibit/s, Mibit/s, B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s; or of
    /// amounts: B, kB, MB, KiB, MiB, packets
    #[arg(long, value_name = "UNIT")]
    pub rate_unit: Option<RateUnit>,
    /// Amounts of data: those of each row, or values of a counter; if left out, a column that never falls is
    /// a counter
    #[arg(long, value_enum)]
    pub amounts: Option<Amounts>,
    /// Rates of several rows at one time: the mean of them, or their sum; if left out, the sum where a column
    /// numbers streams, flows or interfaces
    #[arg(long, value_enum)]
    pub same_time: Option<SameTime>,
    /// Skip all steps of a clock that was set, not a single one alone
    #[arg(long)]
    pub allow_steps: bool,
    /// Time between two values of a file without times, such as "100 ms"
    #[arg(long, default_value = "1 s")]
    pub interval: paceline_net::Duration,
    /// Leave out the silence before the first delivery
    #[arg(long)]
    pub trim: bool,
}

/// How amounts of data are meant.
#[derive(Clone, Copy, PartialEq, Debug, clap::ValueEnum)]
pub enum Amounts {
    EachRow,
    Counter,
}

/// How several rates at one time are joined.
#[derive(Clone, Copy, PartialEq, Debug, clap::ValueEnum)]
pub enum SameTime {
    Mean,
    Sum,
}
