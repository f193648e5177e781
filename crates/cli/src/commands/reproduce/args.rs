//! The command line of an experiment, by its [`Inputs`].

use clap::{ArgMatches, Args as _, Command};
use paceline_reproduce::{Inputs, Options, PAPERS, Paper};
use std::path::PathBuf;

/// An experiment with its options.
pub struct Args {
    pub paper: &'static Paper,
    pub options: Options,
    /// Runs at the same time.
    pub jobs: Option<u16>,
    /// Folder for the results, which experiments with sweeps have.
    pub out: Option<PathBuf>,
    pub measure: Measure,
}

/// Whether to measure.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Measure {
    /// Where this host can: root, with `tc` and `ethtool`
    Auto,
    /// Simulate only
    No,
    /// Measure only
    Only,
}

// A comment for documentation would take the place of the experiment's line in the help.
#[derive(clap::Args)]
struct Sweeps {
    /// Two seeds and shorter runs unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Runs of each point
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Runs at the same time; all cores if left out
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Set one value of the scenario (repeatable); the results list it
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder for the results; an interrupted run continues there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(clap::Args)]
struct Parts {
    #[command(flatten)]
    sweeps: Sweeps,
    /// Run this part only (repeatable), such as edge; or a group: statements (if left out), maps, all
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<String>,
}

#[derive(clap::Args)]
struct Measured {
    #[command(flatten)]
    sweeps: Sweeps,
    /// Whether to measure the rows with this host's TCP and forwarding too, in namespaces; 10 minutes
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    measure: Measure,
}

#[derive(clap::Args)]
struct Runs {
    /// Two seeds unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Runs of each cell
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Set one value of every scenario (repeatable); the results list it
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder for summary.json and rows.csv; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Stations {
    /// Stations dropped in each deployment
    #[arg(long, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    stations: Option<u32>,
    /// Fewer stations unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Seed of the drops
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for summary.json and rows.csv; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The subcommand of an experiment.
fn command(paper: &Paper) -> Command {
    let command = Command::new(paper.name).about(paper.about);
    let (command, count) = match paper.inputs {
        Inputs::Sweeps => (Sweeps::augment_args(command), "seeds"),
        Inputs::Parts => (Parts::augment_args(command), "seeds"),
        Inputs::Measured => (Measured::augment_args(command), "seeds"),
        Inputs::Runs => (Runs::augment_args(command), "seeds"),
        Inputs::Stations => (Stations::augment_args(command), "stations"),
    };
    let (usual, quick) = paper.counts;
    command.mut_args(|arg| {
        if arg.get_id() != count {
            return arg;
        }
        let what = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{what}: {usual} if left out, {quick} with --quick"))
    })
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let command = command.subcommand_required(true).arg_required_else_help(true);
        command.subcommands(PAPERS.iter().map(|paper| self::command(paper)))
    }
    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().expect("clap requires an experiment");
        let paper = PAPERS.iter().find(|paper| paper.name == name).expect("clap knows those of the table");
        Ok(match paper.inputs {
            Inputs::Sweeps => Self::of_sweeps(paper, Sweeps::from_arg_matches(matches)?),
            Inputs::Parts => {
                let Parts { sweeps, parts } = Parts::from_arg_matches(matches)?;
                let args = Self::of_sweeps(paper, sweeps);
                Self { options: Options { parts, ..args.options }, ..args }
            }
            Inputs::Measured => {
                let Measured { sweeps, measure } = Measured::from_arg_matches(matches)?;
                let args = Self::of_sweeps(paper, sweeps);
                let only_measure = measure == Measure::Only;
                Self { options: Options { only_measure, ..args.options }, measure, ..args }
            }
            Inputs::Runs => {
                let Runs { quick, seeds, set, out } = Runs::from_arg_matches(matches)?;
                Self::of(paper, Options { quick, seeds, set, ..Options::default() }, out)
            }
            Inputs::Stations => {
                let Stations { stations, quick, seed, out } = Stations::from_arg_matches(matches)?;
                Self::of(paper, Options { quick, stations, seed: Some(seed), ..Options::default() }, out)
            }
        })
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args {
    fn of(paper: &'static Paper, options: Options, out: Option<PathBuf>) -> Self {
        Self { paper, options, jobs: None, out, measure: Measure::No }
    }
    fn of_sweeps(paper: &'static Paper, sweeps: Sweeps) -> Self {
        let Sweeps { quick, seeds, jobs, set, out } = sweeps;
        Self { jobs, ..Self::of(paper, Options { quick, seeds, set, ..Options::default() }, Some(out)) }
    }
}
