//! The result: the capture, the simulation as it is, and each remedy.

use crate::interval::Interval;
use crate::plan::{Outcome, Plan};
use crate::remedy::Remedy;
use serde::Serialize;

/// Ratios of simulated to measured within which the capture counts as reproduced, beyond the interval of the
/// draws: of the completion time that by which a prediction is judged, of the round trip twice it, since
/// capture and sender take different samples.
const COMPLETION: f64 = 1.1;
const ROUND_TRIP: f64 = 1.2;

/// Share of the waits on the ACKs' way from which on the queue is there. Chosen: most of them.
const ACK_WAITS: f64 = 0.5;

/// Least doubt of a simulated difference: the simulator's congestion controls agree with RFC 9438's laws
/// within 2.6% (docs/tcp.md, validation).
const MODEL: f64 = 1.026;
/// Gain up to which there is little to gain: the bound of the fit's capacities.
const SMALL: f64 = 0.05;
/// Share of other clients' data from which on theirs, not the fitted path, may decide. Chosen: most of them.
const OTHERS: f64 = 0.5;

/// A gain, by its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is of less time.
    Gain,
    /// The interval contains no change.
    Nothing,
    /// The whole interval is of more time.
    Loss,
}

impl Verdict {
    fn of(change: &Interval) -> Self {
        match change {
            change if change.high < 0.0 => Self::Gain,
            change if change.low > 0.0 => Self::Loss,
            _ => Self::Nothing,
        }
    }
}

/// A remedy that does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NotApplicable {
    /// The remedy.
    pub remedy: Remedy,
    /// Why.
    pub reason: &'static str,
}

/// A remedy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemedyGain {
    /// The remedy.
    pub remedy: Remedy,
    /// Expected mean completion time, s.
    pub completion_s: Interval,
    /// Its change; -0.2 is a fifth less.
    pub completion_change: Interval,
    /// Expected mean round trip, ms.
    pub rtt_ms: Option<Interval>,
    /// Its change.
    pub rtt_change: Interval,
    /// Whether the completion time's interval is of less time.
    pub verdict: Verdict,
    /// Simulated transfers that did not end.
    pub unfinished: usize,
    /// In words.
    pub sentence: String,
}

/// A transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransferGain {
    /// Index of its connection in the explanation.
    pub connection: Option<usize>,
    /// Opening after the first one, s.
    pub start_s: f64,
    /// Bytes.
    pub bytes: u64,
    /// Measured completion time, s.
    pub measured_s: f64,
    /// Simulated completion time, s.
    pub simulated_s: Interval,
}

/// The expected gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// In words.
    pub summary: String,
    /// Whether gains are claimed: the simulation reproduces the capture. Else there are no remedies.
    pub claims: bool,
    /// The congestion control whose simulation is nearest the capture.
    pub congestion_control: &'static str,
    /// Draws of the path and of the seed.
    pub draws: u64,
    /// Mean completion time, measured, s.
    pub measured_completion_s: f64,
    /// The same simulated.
    pub simulated_completion_s: Interval,
    /// Mean round trip, measured, ms.
    pub measured_rtt_ms: Option<f64>,
    /// The same simulated.
    pub simulated_rtt_ms: Interval,
    /// The transfers.
    pub transfers: Vec<TransferGain>,
    /// Remedies.
    pub remedies: Vec<RemedyGain>,
    /// Remedies that do not apply.
    pub not_applicable: Vec<NotApplicable>,
    /// Assumptions of the fitted path.
    pub assumptions: Vec<String>,
    /// Statements on parts that are left out.
    pub notes: Vec<String>,
}

/// The interval without draws. Chosen: no number.
const NONE: Interval = Interval { median: f64::NAN, low: f64::NAN, high: f64::NAN };

fn interval(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Interval {
    Interval::of(&outcomes.iter().map(of).collect::<Vec<_>>()).unwrap_or(NONE)
}

fn base(plan: &Plan, control: &'static str, as_it_is: &[Outcome]) -> Gain {
    let transfers = plan.measured.transfers.iter().enumerate().map(|(index, own)| TransferGain {
        connection: own.connection,
        start_s: own.start_s,
        bytes: own.bytes,
        measured_s: own.completion_s,
        simulated_s: interval(as_it_is, |outcome| {
            outcome.completions_s.get(index).copied().unwrap_or(f64::NAN)
        }),
    });
    Gain {
        summary: String::new(),
        claims: false,
        congestion_control: control,
        draws: plan.draws,
        measured_completion_s: plan.measured.completion_s,
        simulated_completion_s: interval(as_it_is, Outcome::mean_s),
        measured_rtt_ms: plan.measured.rtt_ms,
        simulated_rtt_ms: interval(as_it_is, |outcome| outcome.rtt_ms),
        transfers: transfers.collect(),
        remedies: Vec::new(),
        not_applicable: Vec::new(),
        assumptions: plan.path.assumptions().to_vec(),
        notes: plan.measured.notes.clone(),
    }
}

/// Whether a measured value is within the interval of the simulated ones, widened by a factor.
fn within(measured: f64, simulated: &Interval, factor: f64) -> bool {
    (simulated.low / factor..=simulated.high * factor).contains(&measured)
}

/// The result that claims nothing, where the simulation does not reproduce the capture.
pub(crate) fn refusal(plan: &Plan, control: &'static str, as_it_is: &[Outcome]) -> Option<Gain> {
    let gain = base(plan, control, as_it_is);
    let differs = |name: &str, measured: f64, of: &Interval, unit: &str| {
        let Interval { median, low, high } = of;
        format!(
            "the model does not reproduce this capture: {name} measured {measured:.3} {unit}, simulated {median:.3} \
             {unit} ({low:.3} to {high:.3})"
        )
    };
    let mut reasons = Vec::new();
    if !within(gain.measured_completion_s, &gain.simulated_completion_s, COMPLETION) {
        let of = &gain.simulated_completion_s;
        reasons.push(differs("completion time", gain.measured_completion_s, of, "s"));
    }
    if let Some(rtt) = gain.measured_rtt_ms.filter(|rtt| !within(*rtt, &gain.simulated_rtt_ms, ROUND_TRIP)) {
        reasons.push(differs("round trip", rtt, &gain.simulated_rtt_ms, "ms"));
    }
    // The fitted path has no queue for ACKs.
    if let Some(share) =
        plan.measured.ack_waits.filter(|share| *share > ACK_WAITS && !plan.measured.is_upload)
    {
        let share = 100.0 * share;
        reasons.push(format!(
            "{share:.0}% of the waits are those of ACKs on their way, where an ACK filter acts"
        ));
    }
    if plan.measured.others > OTHERS {
        let share = 100.0 * plan.measured.others;
        reasons.push(format!(
            "{share:.0}% of the data are of other clients, and what they share of the path is not known; capture \
             one client"
        ));
    }
    if reasons.is_empty() {
        return None;
    }
    let summary = format!("no gain is claimed: {}", reasons.join("; "));
    Some(Gain { summary, ..gain })
}

fn percent(interval: &Interval) -> String {
    let Interval { median, low, high } = interval.map(|change| 100.0 * change);
    format!("{median:+.0}% ({low:+.0}% to {high:+.0}%)")
}

/// The result with remedies.
pub(crate) fn gain<'a>(
    plan: &Plan,
    control: &'static str,
    as_it_is: &[Outcome],
    with: impl Iterator<Item = (Remedy, &'a [Outcome])>,
    not_applicable: Vec<NotApplicable>,
) -> Gain {
    let gain = base(plan, control, as_it_is);
    let remedies: Vec<RemedyGain> = with.map(|(remedy, own)| one(&gain, (remedy, own), as_it_is)).collect();
    let summary = summary(plan, &remedies);
    Gain { summary, claims: true, remedies, not_applicable, ..gain }
}

/// The figure with a remedy, given the measured one without it: the simulated ones, adjusted by their
/// regression on those as it is (Beaumont et al., "Approximate Bayesian computation in population genetics",
/// 2002). A figure that follows the path follows the measured one; one that follows the seed does not.
fn adjusted(with: &[f64], as_it_is: &[f64], measured: f64) -> Interval {
    let logs = |values: &[f64]| values.iter().map(|value| libm::log(*value)).collect::<Vec<f64>>();
    let (with, without) = (logs(with), logs(as_it_is));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (of_with, of_without) = (mean(&with), mean(&without));
    let pairs = || with.iter().zip(&without);
    let common: f64 = pairs().map(|(a, b)| (a - of_with) * (b - of_without)).sum();
    let own: f64 = without.iter().map(|b| (b - of_without) * (b - of_without)).sum();
    // Without scatter all of the difference is one of the model, which both have.
    let slope = if own > 1e-12 { (common / own).clamp(0.0, 1.0) } else { 1.0 };
    let target = libm::log(measured);
    let values: Vec<f64> = pairs().map(|(a, b)| libm::exp(a + slope * (target - b))).collect();
    let simulated = Interval::of(as_it_is).unwrap_or(NONE);
    // A measured figure outside of the interval is a doubt of the model.
    let doubt = (measured / simulated.high).max(simulated.low / measured).max(MODEL);
    Interval::of(&values).unwrap_or(NONE).widened(doubt)
}

fn one(gain: &Gain, (remedy, own): (Remedy, &[Outcome]), as_it_is: &[Outcome]) -> RemedyGain {
    let all = |outcomes: &[Outcome], of: fn(&Outcome) -> f64| outcomes.iter().map(of).collect::<Vec<f64>>();
    let does_nothing = own == as_it_is;
    let figure = |of: fn(&Outcome) -> f64, measured: f64| match does_nothing {
        true => Interval { median: measured, low: measured, high: measured },
        false => adjusted(&all(own, of), &all(as_it_is, of), measured),
    };
    let completion_s = figure(Outcome::mean_s, gain.measured_completion_s);
    let change = completion_s.map(|seconds| seconds / gain.measured_completion_s - 1.0);
    // Without a measured round trip the change is that of the simulations.
    let trip = gain.measured_rtt_ms.unwrap_or(gain.simulated_rtt_ms.median);
    let rtt_ms = figure(|outcome| outcome.rtt_ms, trip);
    let rtt_change = rtt_ms.map(|ms| ms / trip - 1.0);
    let verdict = Verdict::of(&change);
    let trip_text = format!("round trip {}", percent(&rtt_change));
    let times = format!(
        "{:.2} s in place of {:.2} s, {}",
        completion_s.median,
        gain.measured_completion_s,
        percent(&change)
    );
    let name = remedy.name();
    let sentence = match verdict {
        Verdict::Gain => format!("{name}: transfers take {times}; {trip_text}"),
        Verdict::Loss => format!("{name}: transfers would take longer: {times}; {trip_text}"),
        Verdict::Nothing => format!("{name}: no certain gain of time: {times}; {trip_text}"),
    };
    RemedyGain {
        remedy,
        completion_s,
        completion_change: change,
        rtt_ms: gain.measured_rtt_ms.map(|_| rtt_ms),
        rtt_change,
        verdict,
        unfinished: own.iter().map(|outcome| outcome.unfinished).sum(),
        sentence,
    }
}

fn summary(plan: &Plan, remedies: &[RemedyGain]) -> String {
    let gains = remedies.iter().filter(|own| own.verdict == Verdict::Gain);
    let best = gains.min_by(|a, b| a.completion_change.median.total_cmp(&b.completion_change.median));
    if let Some(best) = best {
        if best.completion_change.median > -SMALL {
            let percent = -100.0 * best.completion_change.median;
            return format!(
                "little to gain in completion time: {percent:.0}% at most, by {}",
                best.remedy.name()
            );
        }
        return format!("most is gained by {}", best.sentence);
    }
    let why = match plan.cause {
        "application" => "the application decides when data are sent",
        "handshake" => "most of the time passes before the first data",
        "policer" => "a policer decides the rate",
        "queue" => "the path is full, and carries no more",
        "pause" => "the path pauses",
        _ => "no remedy shortens this limit",
    };
    let shorter = remedies.iter().filter(|own| own.rtt_change.high < 0.0);
    let shorter = shorter.min_by(|a, b| a.rtt_change.median.total_cmp(&b.rtt_change.median));
    let trips = shorter.map_or_else(String::new, |own| {
        format!("; {} shortens the round trip by {:.0}%", own.remedy.name(), -100.0 * own.rtt_change.median)
    });
    format!("nothing to gain in completion time: TCP is {}: {why}{trips}", plan.verdict)
}
