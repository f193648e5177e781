//! Table `[handover]`: changes of the serving cell in a deployment, radio link monitoring, and forwarding.

use crate::RatName;
use crate::limits::{
    self, Allowed, Limit, Problem, Section, key, numbers, one_of, one_of_ms, relation, whole_ms,
};
use paceline_net::Duration;
use paceline_net::units::Db;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[handover]`: without it, stations keep the cell that they have at the start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Handover {
    /// The cause of handovers.
    pub trigger: HandoverTrigger,
    /// Ascending times at which every station is handed over to the strongest other cell, with `trigger =
    /// "scripted"`; a handover under way keeps its target.
    pub times: Vec<Duration>,
    /// a3-Offset: by how much a neighbour must be stronger (TS 36.331 §5.5.4.4, TS 38.331 §5.5.4.4). Defaults
    /// here and below: common in the studies of TR 36.839.
    pub a3_offset: Db,
    /// hysteresis of event A3.
    pub hysteresis: Db,
    /// timeToTrigger.
    pub time_to_trigger: Duration,
    /// filterCoefficient k of layer 3: a sample weighs 1 / 2^(k/4).
    pub filter_coefficient: u8,
    /// Time between two samples of RSRP.
    pub measurement_period: Duration,
    /// Time from the trigger to the handover command: report, decision, preparation of the target.
    pub preparation: Duration,
    /// Whose handovers these are, which gives the default of `interruption`.
    pub kind: HandoverKind,
    /// Least time from the handover command to the first preamble in the target, without service except with
    /// `fate = "duplicate"`.
    pub interruption: Duration,
    /// Packets in RLC and HARQ of the source at the handover.
    pub fate: HandoverFate,
    /// Whether PDCP status reports (TS 36.323 §5.3, TS 38.323 §5.4.1) spare `fate = "forward"` packets that
    /// have arrived.
    pub status_report: bool,
    /// Whether blocks decoded before the reset of MAC are delivered.
    pub keep_harq: bool,
    /// Time of a downlink packet from source to target, over X2 or Xn.
    pub forward_delay: Duration,
    /// Time from service in the target until the core sends downlink packets there: a request, the changes,
    /// an answer.
    pub path_switch: Duration,
    /// Whether the target sends packets of the new path only after the end marker behind the last forwarded
    /// one (TS 36.300 §10.1.2.2).
    pub end_marker: bool,
    /// Mean SINR below which a link is out of sync (TS 36.133 §7.6.1, Q_out).
    pub q_out: Db,
    /// Mean SINR above which a link is in sync (Q_in).
    pub q_in: Db,
    /// "Out of sync" indications in a row that start T310.
    pub n310: u32,
    /// "In sync" indications in a row that stop T310.
    pub n311: u32,
    /// Time out of sync after which the radio link has failed, and the station re-establishes its connection
    /// in the strongest cell.
    pub t310: Duration,
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            trigger: HandoverTrigger::EventA3,
            times: Vec::new(),
            a3_offset: Db(2.0),
            hysteresis: Db(0.0),
            time_to_trigger: Duration::from_millis(160),
            filter_coefficient: 4,
            measurement_period: Duration::from_millis(40),
            preparation: Duration::from_millis(50),
            kind: HandoverKind::Lte,
            interruption: HandoverKind::Lte.interruption(),
            fate: HandoverFate::Forward,
            status_report: true,
            keep_harq: false,
            forward_delay: Duration::from_millis(5),
            path_switch: Duration::from_millis(20),
            end_marker: true,
            q_out: Db(-8.0),
            q_in: Db(-6.0),
            n310: 1,
            n311: 1,
            t310: Duration::from_secs(1),
        }
    }
}

/// Cause of handovers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum HandoverTrigger {
    /// Event A3: a neighbour is stronger by an offset.
    #[serde(rename = "a3")]
    EventA3,
    /// The times of `times`.
    #[serde(rename = "scripted")]
    Scripted,
    /// Cells change after radio-link failures alone.
    #[serde(rename = "none")]
    None,
}

/// Kind of a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverKind {
    /// LTE: 22 ms, T_interrupt for a known cell (TS 36.133 §5.1.2.1.2).
    Lte,
    /// Standalone NR: 12 ms, with which service is interrupted for 40 to 50 ms in the median, random access
    /// included, as measured (Ghoshal et al., CoNEXT 2025, fig. 14b).
    Sa,
    /// Non-standalone NR, a change of the LTE anchor: 0 ms, since random access alone takes 18 to 28 ms;
    /// measured: 20 ms in the median (the same).
    Nsa,
}

impl HandoverKind {
    /// Default of `interruption`.
    const fn interruption(self) -> Duration {
        match self {
            Self::Lte => Duration::from_millis(22),
            Self::Sa => Duration::from_millis(12),
            Self::Nsa => Duration::ZERO,
        }
    }
}

impl Handover {
    /// Completes the keys that were left out and whose defaults depend on others.
    pub(crate) fn resolve(&mut self, rat: RatName, given: &dyn Fn(&str) -> bool) {
        if !given("handover.kind") && rat == RatName::Nr {
            self.kind = HandoverKind::Sa;
        }
        if !given("handover.interruption") {
            self.interruption = self.kind.interruption();
        }
    }
}

/// Packets of the source at a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverFate {
    /// Lost; packets that wait above RLC are forwarded, as for UM bearers.
    Drop,
    /// The target sends unconfirmed packets again, in order, as for AM bearers.
    Forward,
    /// The source serves until random access in the target has succeeded; both have a copy (dual active
    /// protocol stack, TS 38.300 §9.2.3.2).
    Duplicate,
}

impl Section for Handover {
    fn computed_defaults() -> Vec<(&'static str, String)> {
        let text = |text: &str| text.to_owned();
        vec![
            ("kind", text("`\"lte\"` in LTE, `\"sa\"` in NR")),
            ("interruption", text("by `kind`: 22 ms for `\"lte\"`, 12 ms for `\"sa\"`, 0 ms for `\"nsa\"`")),
        ]
    }
    fn limits() -> Vec<Limit<Self>> {
        let ordered = |table: &Self| table.q_out.0 <= table.q_in.0;
        let db = || Allowed::new("-15 dB to 15 dB", |value: &Db| (-15.0..=15.0).contains(&value.0));
        let quality = || Allowed::new("-30 dB to 30 dB", |value: &Db| (-30.0..=30.0).contains(&value.0));
        let tens = |period: &Duration| {
            let ms = period.as_nanos() / 1_000_000;
            period.as_nanos().is_multiple_of(10_000_000) && (10..=1000).contains(&ms)
        };
        vec![
            key!(a3_offset, db()),
            key!(hysteresis, Allowed::new("0 dB to 15 dB", |value: &Db| (0.0..=15.0).contains(&value.0))),
            // TS 36.331 §6.3.5, TimeToTrigger.
            key!(
                time_to_trigger,
                one_of_ms(&[0, 40, 64, 80, 100, 128, 160, 256, 320, 480, 512, 640, 1024, 1280, 2560, 5120])
            ),
            key!(filter_coefficient, one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 19])),
            key!(measurement_period, Allowed::new("a multiple of 10 ms, 10 ms to 1 s", tens)),
            key!(preparation, whole_ms(0..=1000)),
            key!(interruption, whole_ms(0..=1000)),
            key!(forward_delay, whole_ms(0..=50)),
            key!(path_switch, whole_ms(0..=1000)),
            key!(q_out, quality()),
            key!(q_in, quality()),
            relation!(q_in, "at least q_out", ordered),
            key!(n310, one_of(&[1, 2, 3, 4, 6, 8, 10, 20])),
            key!(n311, one_of(&[1, 2, 3, 4, 5, 6, 8, 10])),
            key!(t310, one_of_ms(&[0, 50, 100, 200, 500, 1000, 2000])),
        ]
    }
}

/// Checks the table, and the keys that depend on each other.
pub(crate) fn check(table: &Handover, rat: RatName, beside_deployment: bool) -> Result<(), Problem> {
    limits::check("handover", table)?;
    let (other, allowed) = match rat {
        RatName::Lte => (HandoverKind::Sa, "lte or nsa in LTE"),
        RatName::Nr => (HandoverKind::Lte, "sa or nsa in NR"),
    };
    let name = if other == HandoverKind::Lte { "lte" } else { "sa" };
    Problem::unless(table.kind != other, "handover.kind", name, allowed)?;
    Problem::unless(
        beside_deployment,
        "handover",
        "a table",
        "a table beside [deployment], whose cells change",
    )?;
    let times: Vec<String> = table.times.iter().map(ToString::to_string).collect();
    let ascending = table.times.windows(2).all(|pair| pair[0] < pair[1]);
    let scripted = table.trigger == HandoverTrigger::Scripted;
    let allowed = "one or more ascending times with trigger = \"scripted\", and none otherwise";
    let fits = ascending && times.is_empty() != scripted;
    Problem::unless(fits, "handover.times", format!("[{}]", times.join(", ")), allowed)
}

/// Table `[[station.path]]`: a place on the way of a group of stations.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Place {
    /// Distance east of the middle site.
    pub x_m: f64,
    /// Distance north of the middle site.
    pub y_m: f64,
}

/// Largest distance from the middle site in m. Chosen: beyond the outer ring of 19 sites of the rural macro.
const FARTHEST_M: f64 = 20_000.0;

impl Section for Place {
    fn limits() -> Vec<Limit<Self>> {
        let metres = || numbers(-FARTHEST_M..=FARTHEST_M).unit("m");
        vec![key!(x_m, metres()), key!(y_m, metres())]
    }
}

/// Checks the way of a group of stations.
pub(crate) fn check_path(
    group: &str,
    path: &[Place],
    deployment: Option<&crate::Deployment>,
) -> Result<(), Problem> {
    let key = format!("{group}.path");
    let moves = path.is_empty() || deployment.is_some();
    Problem::unless(moves, &key, format!("{} places", path.len()), "left out without [deployment]")?;
    let outdoors = path.is_empty() || deployment.is_none_or(|deployment| !deployment.model.is_hall());
    let allowed = "left out in the indoor hotspot, whose hall the stations do not leave";
    Problem::unless(outdoors, &key, format!("{} places", path.len()), allowed)?;
    path.iter().enumerate().try_for_each(|(index, place)| limits::check(&format!("{key}.{index}"), place))
}

#[cfg(test)]
mod tests {
    use crate::load;

    const DRIVE: &str = "[deployment]\nserved_sites = 7\n[handover]\n[[station]]\n\
                         path = [{ x_m = -300.0, y_m = 0.0 }, { x_m = 300.0, y_m = 0.0 }]\n";

    #[test]
    fn a_scenario_with_every_key_is_read_again() {
        for set in [&[][..], &["handover.trigger=scripted", "handover.times=[\"5 s\", \"7 s\"]"]] {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            let scenario = load("drive.toml", DRIVE, &set).unwrap();
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        }
    }

    #[test]
    fn the_interruption_follows_from_the_kind_unless_it_is_stated() {
        let ms = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            let scenario = load("drive.toml", DRIVE, &set).unwrap();
            scenario.cells().unwrap().handover.as_ref().unwrap().interruption.as_millis()
        };
        assert_eq!(ms(&[]), 22);
        assert_eq!(ms(&["cell.rat=nr"]), 12);
        assert_eq!(ms(&["handover.kind=nsa"]), 0);
        assert_eq!(ms(&["handover.kind=nsa", "handover.interruption=7 ms"]), 7);
    }

    #[test]
    fn keys_that_do_not_fit_are_refused_with_what_is_allowed() {
        for (set, key) in [
            ("handover.trigger=sideways", "handover.trigger"),
            ("handover.trigger=scripted", "handover.times"),
            ("handover.times=[\"1 s\"]", "handover.times"),
            ("handover.time_to_trigger=161 ms", "handover.time_to_trigger"),
            ("handover.measurement_period=15 ms", "handover.measurement_period"),
            ("handover.filter_coefficient=10", "handover.filter_coefficient"),
            ("handover.forward_delay=51 ms", "handover.forward_delay"),
            ("handover.q_in=-9 dB", "handover.q_in"),
            ("handover.fate=keep", "handover.fate"),
            ("handover.kind=sa", "handover.kind"),
            ("handover.t310=3 s", "handover.t310"),
        ] {
            let error = load("drive.toml", DRIVE, &[set.to_owned()]).expect_err(set).to_string();
            assert!(error.contains(key), "{set}: {error}");
        }
        for (text, key) in [
            ("[handover]\n[[station]]\n", "handover"),
            ("[[station]]\npath = [{ x_m = 0.0, y_m = 0.0 }]\n", "station.0.path"),
            ("[deployment]\n[[station]]\npath = [{ x_m = 0.0, y_m = 30000.0 }]\n", "station.0.path.0.y_m"),
            ("[deployment]\n[[station]]\npath_returns = true\n", "station.0.path_returns"),
            (
                "[link.fixed]\ndownlink_rate = \"1 Mb/s\"\nuplink_rate = \"1 Mb/s\"\n[handover]\n[[station]]\n",
                "handover",
            ),
        ] {
            let error = load("drive.toml", text, &[]).expect_err(text).to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
