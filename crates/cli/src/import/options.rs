//! Options of `paceline trace import`.

use super::units::{RateUnit, TimeUnit};

/// Statements of the user about a file; the rest is taken from the file.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Column of the times, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Column of the rates, or of the bytes since the row before, by name or by number from 1
    #[arg(long, value_name = "COLUMN")]
    pub rate: Option<String>,
    /// Unit of the times: s, ms, us or ns
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Unit of the rates: b/s, kb/s, Mb/s, Gb/s, B/s, kB/s, MB/s, GB/s, or B for bytes since the row before
    #[arg(long, value_name = "UNIT")]
    pub rate_unit: Option<RateUnit>,
    /// Time between two values of a file without times, such as "100 ms"
    #[arg(long, default_value = "1 s")]
    pub interval: paceline_net::Duration,
    /// Leave out the silence before the first delivery
    #[arg(long)]
    pub trim: bool,
}
