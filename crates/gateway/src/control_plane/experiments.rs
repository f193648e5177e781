//! The experiment of a gateway, as the control plane handles it: begun and ended by requests, gone on with
//! after a restart. The kernel program is told which devices are accelerated, by a function of the caller.

use super::socket::protocol::ExperimentRequest;
use crate::config::GatewayConfig;
use crate::experiment::{self, ExperimentStatus, Saved, Shared, Successor, Tap};
use crate::policy::Table;
use anyhow::Context;
use paceline_experiment::{Assignment, Experiment, Measure, Plan, Row, State};
use paceline_linux::random::random;
use std::sync::Arc;

/// Tells the kernel program which devices are accelerated.
type Choose<'a> = &'a dyn Fn(Assignment) -> anyhow::Result<()>;

/// The last experiment, if there was one.
#[derive(Default)]
pub struct Experiments {
    shared: Option<Arc<Shared>>,
    /// The state on which [`Self::check`] has acted.
    acted_on: Option<State>,
    /// The place for its next socket on the interface.
    tap: Successor,
}

impl Experiments {
    /// Handles a request; the error names the allowed values.
    pub fn handle(
        &mut self,
        request: &ExperimentRequest,
        config: &GatewayConfig,
        choose: Choose<'_>,
    ) -> Result<(), String> {
        match request {
            ExperimentRequest::Report => Ok(()),
            ExperimentRequest::Start { share, duration, seed, design, practical } => {
                experiment::check(*share, *duration, *design, *practical)?;
                self.check_idle()?;
                let seed = seed.map_or_else(|| random().map(|seed| seed as u32), Ok);
                let seed = seed.map_err(|error| format!("{error:#}"))?;
                let plan = Plan::new(*design, seed, *share, *duration);
                let plan = practical.map_or(plan, |practical| plan.with_practical(practical));
                let saved = Saved { experiment: Experiment::new(plan), overruled: false };
                self.run(saved, config, choose).map_err(|error| format!("{error:#}"))
            }
            ExperimentRequest::Stop => {
                let running = self.shared.as_ref().filter(|shared| shared.state() == State::Running);
                running.ok_or("no experiment runs")?.stop();
                self.check(choose);
                Ok(())
            }
        }
    }
    /// Whether another experiment may begin.
    fn check_idle(&self) -> Result<(), String> {
        match &self.shared {
            Some(shared) if shared.state() == State::Running => {
                Err("an experiment runs already; `paceline gateway experiment --stop` ends it".into())
            }
            Some(shared) if shared.switches_off() => Err("acceleration is off because an experiment found \
                harm; `paceline gateway reload` switches it on again"
                .into()),
            _ => Ok(()),
        }
    }
    /// State and last look.
    pub fn status(&self) -> Option<ExperimentStatus> {
        self.shared.as_ref().map(|shared| shared.status())
    }
    /// Whether an experiment has found harm, so that acceleration is off.
    pub fn is_switched_off(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.switches_off())
    }
    /// Goes on with the experiment of a gateway that ran before.
    pub fn resume(&mut self, config: &GatewayConfig, choose: Choose<'_>) -> anyhow::Result<()> {
        match experiment::load(&experiment::path(config))? {
            Some(saved) => self.run(saved, config, choose),
            None => Ok(()),
        }
    }
    fn run(&mut self, saved: Saved, config: &GatewayConfig, choose: Choose<'_>) -> anyhow::Result<()> {
        let state = saved.experiment.state();
        let shared = Arc::new(Shared::new(saved, experiment::path(config), Table::new(&config.policy)));
        if state == State::Running {
            let interface = nix::net::if_::if_nametoindex(config.mobile.as_str());
            let interface = interface.with_context(|| format!("there is no interface {}", config.mobile))?;
            let tap = Tap::open(interface).context("cannot observe the interface")?;
            self.tap = tap.successor();
            shared.begin_period(choose)?;
            shared.save();
            experiment::watch(Arc::clone(&shared), tap).context("cannot start a thread")?;
        }
        self.shared = Some(shared);
        // Of the ends, harm alone has a lasting effect.
        self.acted_on = Some(if state == State::Harm { State::Running } else { state });
        Ok(())
    }
    /// The interface towards the devices has come back with another index.
    pub fn observe(&self, interface: u32) -> std::io::Result<()> {
        let runs = self.shared.as_ref().is_some_and(|shared| shared.state() == State::Running);
        if runs { self.tap.open(interface) } else { Ok(()) }
    }
    /// Lets the next period of an experiment begin. Acts on the end of an experiment: all devices are
    /// accelerated again, or none after harm. Returns,
    /// once, a message for the operator, and whether acceleration is off.
    pub fn check(&mut self, choose: Choose<'_>) -> Option<(bool, String)> {
        let shared = self.shared.as_ref()?;
        let begun = shared.begin_period(choose);
        let state = shared.state();
        if let (Err(error), State::Running) = (begun, state) {
            shared.stop();
            let _ = choose(Assignment::ALL); // it fails for the same reason
            return Some((false, format!("the experiment is stopped: {error:#}")));
        }
        if self.acted_on.replace(state) == Some(state) || state == State::Running {
            return None;
        }
        let status = shared.status();
        let off = status.switched_off;
        let assignment = if off { Assignment { seed: 0, share: 0 } } else { Assignment::ALL };
        if let Err(error) = choose(assignment) {
            return Some((off, format!("the experiment's end has no effect: {error:#}")));
        }
        let text = match state {
            State::Harm if off => {
                let rows = status.report.iter().flat_map(|report| {
                    let others = report.neighbours.iter().filter(|row| row.is_harmful());
                    let others = others.map(|row| format!("of untouched devices, {}", describe(row)));
                    report.rows.iter().filter(|row| row.is_harmful()).map(describe).chain(others)
                });
                let rows = rows.collect::<Vec<_>>().join("; ");
                format!("acceleration does harm, and is off until the configuration is read again: {rows}")
            }
            State::Complete => "the experiment is complete; all devices are accelerated again".into(),
            _ => return None,
        };
        Some((off, text))
    }
    /// The configuration was read again: acceleration is on again after harm.
    pub fn on_reload(&self, config: &GatewayConfig, choose: Choose<'_>) {
        let Some(shared) = &self.shared else { return };
        shared.set_policies(Table::new(&config.policy));
        if shared.switches_off() {
            shared.overrule();
            let _ = choose(Assignment::ALL); // fails only with the gateway
        }
    }
    /// Ends the thread with the gateway; the next gateway goes on with the experiment.
    pub fn leave(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.end();
        }
    }
}

/// A harmful finding, as a sentence.
fn describe(row: &Row) -> String {
    let size = row.size.as_deref().map_or(String::new(), |size| format!(" of transfers {size}"));
    let name = match row.measure {
        Measure::Unfinished => "more transfers do not finish",
        Measure::Time => "completion takes longer",
        _ => "goodput is lower",
    };
    let [low, high] = row.interval.map(|end| 100.0 * end);
    format!("{name}{size} by {:.1}% ({low:.1} to {high:.1}%)", 100.0 * row.change.abs())
}
