//! The parts of the mean one-way latencies of an idle cell, each with the clause or the key that decides it,
//! and those of the path beside the cell.

use crate::scenario::{self, CellPlan, Scenario};
use paceline_net::Duration;
use paceline_ran::Rat;
use paceline_ran::nr::timing::latency::{self, Preparation};
use serde::Serialize;

/// A part of a latency.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Term {
    /// `downlink` or `uplink`; the uplink is the first PUSCH after a scheduling request.
    pub direction: &'static str,
    /// The part, in words.
    pub part: &'static str,
    /// Its mean.
    pub mean_ms: f64,
    /// The clause, or the key.
    pub source: String,
}

/// The terms within the cell, in the order of time.
pub(super) fn of(plan: &CellPlan, cell: &scenario::Cell, times: Preparation, sr: u64) -> Vec<Term> {
    let (timing, lead) = (&plan.timing, cell.lead());
    let slot_ms = 1000.0 * plan.numerology.slot_seconds();
    let nr = matches!(plan.rat, Rat::Nr(_));
    let table = if nr { "cell.nr" } else { "cell.lte" };
    let stated = cell.stated_leads();
    let key = |name: &str, is_stated: bool| match is_stated {
        true => format!("{table}.{name}"),
        false => format!("cell.gnb = \"{}\"", cell.gnb.name()),
    };
    let clause = |of_nr: &str, of_lte: &str| if nr { of_nr } else { of_lte }.to_owned();
    let decoding = clause("TS 38.214 Table 5.3-1, N1/2; in runs cell.decode_delay", "cell.decode_delay");
    let slot = clause("TS 38.211 Table 4.3.2-1", "TS 36.211 \u{a7}4.1");
    let (scheduling_ms, radio_ms) = (f64::from(lead.slots) * slot_ms, lead.radio.as_millis_f64());
    let no_lead = scheduling_ms + radio_ms == 0.0;
    let none = Preparation { before: 0.0, after: 0.0 };
    let wait_ms = latency::downlink(timing, none).mean_ms - slot_ms;
    let pattern = match plan.pattern() {
        Some(_) => {
            clause("cell.pattern (TS 38.213 \u{a7}11.1)", "cell.tdd_configuration (TS 36.211 Table 4.2-2)")
        }
        None => slot.clone(),
    };
    let occasion = (0..).find(|slot| timing.is_up(*slot)).expect("an uplink slot");
    let decision = timing.decision(occasion);
    let pusch = timing.pusch_after(decision);
    let grant = (decision..pusch)
        .rev()
        .find(|slot| timing.grants(*slot).iter().any(|k2| slot + u64::from(*k2) == pusch));
    let grant = grant.unwrap_or(decision);
    let reaction = u64::from(timing.gnb());
    let for_pdcch = grant - occasion - 1 - reaction - timing.lead().0;
    let before = if nr { "TS 38.214 Table 6.4-1, N2/2" } else { "" };
    let row = |direction, part, mean_ms, source: String| Term { direction, part, mean_ms, source };
    let slots = |count: u64| count as f64 * slot_ms;
    let (down, up) = ("downlink", "uplink");
    let k2 = clause("cell.nr.min_k2 (TS 38.214 \u{a7}6.1.2.1)", "TS 36.213 \u{a7}8");
    let mut terms = vec![
        row(down, "scheduling lead", scheduling_ms, key("scheduling_lead", stated.0.is_some())),
        row(down, "radio lead", radio_ms, key("radio_lead", stated.1.is_some())),
        row(
            down,
            "preparation without a lead",
            times.before * slot_ms * f64::from(u8::from(no_lead)),
            before.into(),
        ),
        row(down, "wait for a slot of the downlink", wait_ms, pattern.clone()),
        row(down, "slot on the air", slot_ms, slot.clone()),
        row(down, "decoding", times.after * slot_ms, decoding.clone()),
        row(up, "preparation", times.before * slot_ms, before.into()),
        row(up, "wait for a scheduling request", sr as f64 / 2.0 * slot_ms, "cell.sr_period".into()),
        row(up, "slot of the scheduling request", slot_ms, slot.clone()),
        row(
            up,
            "decoding of the request",
            slots(reaction),
            clause("cell.nr.gnb_slots", "TS 36.213 \u{a7}7.3"),
        ),
        row(
            up,
            "leads of the grant",
            slots(timing.lead().0),
            key("scheduling_lead and radio_lead, in whole slots", stated != (None, None)),
        ),
        row(up, "wait for a slot of the grant", slots(for_pdcch), pattern),
        row(up, "grant to PUSCH", slots(pusch - grant), k2),
        row(up, "slot on the air", slot_ms, slot),
        row(up, "decoding", times.after * slot_ms, decoding),
    ];
    terms.retain(|term| term.mean_ms > 0.0);
    terms
}

/// The terms beside the cell, which are no part of its latencies: the stack of the first group, and
/// the hops of the core.
pub(super) fn outside(scenario: &Scenario) -> Vec<Term> {
    let mut terms = Vec::new();
    for direction in ["downlink", "uplink"] {
        let mut add = |part, time: Duration, source: String| {
            if time > Duration::ZERO {
                terms.push(Term { direction, part, mean_ms: time.as_millis_f64(), source });
            }
        };
        if let Some(group) = scenario.stations.first() {
            add("stack of the station", group.processing, "station.processing".into());
        }
        for (index, hop) in scenario.core.hops.iter().enumerate() {
            add("hop of the core", hop.delay, format!("core.hops.{index}.delay"));
        }
    }
    terms
}
