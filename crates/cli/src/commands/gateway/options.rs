//! Options of `paceline gateway` and its subcommands.

use paceline_gateway::Interface;
use paceline_net::Duration;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct RunArgs {
    /// Configuration file (docs/gateway.md)
    pub config: PathBuf,
    /// Check the configuration and its interfaces only, and print it with all defaults
    #[arg(long)]
    pub check: bool,
    /// Control socket, in place of the configuration's
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Print the counters to stdout as JSON at the end
    #[arg(long)]
    pub json: bool,
}

/// The running gateway that a command controls.
#[derive(clap::Args, Clone)]
pub struct Which {
    /// Control socket of the gateway; by default the only one in /run/paceline
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct StopArgs {
    #[command(flatten)]
    pub which: Which,
    /// Time for the delivery of data that were acknowledged early; by default `drain` of the configuration
    #[arg(long, value_name = "TIME")]
    pub limit: Option<Duration>,
}

#[derive(clap::Args)]
pub struct TableArgs {
    #[command(flatten)]
    pub which: Which,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct ExperimentArgs {
    #[command(flatten)]
    pub which: Which,
    /// Begin: compare the transfers of this time, such as 24h
    #[arg(long = "for", id = "duration", value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Begin: accelerate this share of devices, and leave the others untouched [default: 50%]
    #[arg(long, value_name = "PERCENT", value_parser = share, requires = "duration")]
    pub share: Option<f64>,
    /// Begin: compare devices at the same time (parallel), or periods in which all devices are accelerated
    /// with periods in which none is (switchback) [default: parallel]
    #[arg(long, value_name = "DESIGN", requires = "duration")]
    pub design: Option<DesignName>,
    /// Begin: smallest change that matters, beside which chance is judged [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = practical, requires = "duration")]
    pub practical: Option<f64>,
    /// Begin: seed of the choice of devices and periods [default: random]
    #[arg(long, value_name = "N", requires = "duration")]
    pub seed: Option<u32>,
    /// End the running experiment
    #[arg(long, conflicts_with = "duration")]
    pub stop: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Name of a design.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesignName {
    Parallel,
    Switchback,
}

#[derive(clap::Args)]
pub struct CaptureArgs {
    #[command(flatten)]
    pub which: Which,
    /// The connection, as `flows` names it: SERVER:PORT-DEVICE:PORT
    pub flow: String,
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the states of the device's accelerated connections to this file as well, two in a second, as
    /// lines of JSON (docs/results.md)
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// End after so many seconds [default: 10, with --packets 3600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,
    /// End after so many packets [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub packets: Option<u64>,
}

#[derive(clap::Args)]
pub struct MtuArgs {
    /// The address, which has to answer echo requests (ping)
    pub address: IpAddr,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct GuardArgs {
    /// Interfaces by name and index
    #[arg(value_name = "NAME:INDEX", num_args = 2..=3, required = true)]
    pub interfaces: Vec<Interface>,
    /// File for the result
    #[arg(long)]
    pub report: Option<PathBuf>,
}

/// Parses a percentage such as `50%`.
fn percentage(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number.map(|percent| percent / 100.0)
}
/// How a number without its sign is written as a percentage; empty for other texts.
fn as_percentage(text: &str) -> String {
    let number = text.trim().parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number));
    let percent = number.map(|number| if number < 1.0 { 100.0 * number } else { number });
    percent.map_or(String::new(), |percent| format!("write {percent}%; "))
}
fn share(text: &str) -> Result<f64, String> {
    let share = percentage(text).filter(|share| (0.05..=0.95).contains(share));
    share.ok_or_else(|| format!("{}allowed: 5% to 95%", as_percentage(text)))
}
fn practical(text: &str) -> Result<f64, String> {
    let practical = percentage(text).filter(|practical| (0.0..=0.5).contains(practical));
    practical.ok_or_else(|| format!("{}allowed: 0% to 50%", as_percentage(text)))
}

/// Parses a time such as `24h`, `7d` or `30 min`.
fn time(text: &str) -> Result<Duration, String> {
    /// By definition.
    const LONG: [(char, u64); 2] = [('h', 3600), ('d', 86_400)];
    let long = LONG.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(*unit)?.trim().parse().ok()?;
        number.checked_mul(*seconds).filter(|seconds| *seconds <= 90 * 86_400)
    });
    let time = long.map(Duration::from_secs).or_else(|| text.parse().ok());
    time.ok_or_else(|| "allowed: a time with its unit: s, min, h or d, of up to 90d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!(share("50%"), Ok(0.5));
        assert_eq!(share("12.5 %"), Ok(0.125));
        assert_eq!(share("50"), Err("write 50%; allowed: 5% to 95%".into()));
        assert_eq!(share("0.5"), Err("write 50%; allowed: 5% to 95%".into()));
        for wrong in ["0%", "100%", "4%", "-50%", "half", "nan%", ""] {
            assert_eq!(share(wrong), Err("allowed: 5% to 95%".into()), "{wrong}");
        }
    }

    #[test]
    fn times_may_be_hours_and_days() {
        assert_eq!(time("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(time("7 d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(time("90 s"), Ok(Duration::from_secs(90)));
        for wrong in ["24", "h", "-1h", "1000d", "99999999999999999999h", "1.5h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
