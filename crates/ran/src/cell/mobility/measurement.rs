//! Measurements for handover: RSRP with the filter of layer 3 (TS 36.331 §5.5.3.2, TS 38.331 §5.5.3.2) and
//! event A3 (§5.5.4.4 of both): a neighbour becomes better than the serving cell by an offset.
//!
//! A sample is the mean RSRP, by path loss and shadowing: the measurement of layer 1 averages fast fading.
//! Left out: errors of measurement, offsets per cell, and the loss of the report and of the command.

use crate::slot::{Slot, SlotSpan};

/// Parameters of measurements and of event A3.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EventA3 {
    /// a3-Offset in dB.
    pub offset_db: f64,
    /// Hysteresis in dB.
    pub hysteresis_db: f64,
    /// timeToTrigger.
    pub time_to_trigger: SlotSpan,
    /// filterCoefficient k: a sample counts with the weight 1 / 2^(k/4).
    pub filter_coefficient: u8,
    /// Time between samples.
    pub period: SlotSpan,
    /// Time from the trigger to the handover command: report, decision and preparation of the target.
    pub preparation: SlotSpan,
}

/// The measurements of a station.
#[derive(Clone, Debug, Default)]
pub(super) struct Measurements {
    /// Filtered RSRP of each cell in dB.
    filtered: Vec<f64>,
    /// The slot since which the entering condition of a cell is fulfilled.
    entered_at: Vec<Option<Slot>>,
    last: Option<Slot>,
}

impl Measurements {
    /// Samples of all cells in dB; returns the best cell for which event A3 is triggered. Samples that do not
    /// follow the last ones after a period begin anew.
    pub fn sample(&mut self, slot: Slot, event: &EventA3, serving: usize, rsrp_db: &[f64]) -> Option<usize> {
        if self.last.is_none_or(|last| last + event.period < slot) || self.filtered.len() != rsrp_db.len() {
            self.filtered = rsrp_db.to_vec();
            self.entered_at = vec![None; rsrp_db.len()];
        }
        self.last = Some(slot);
        let weight = libm::exp2(-f64::from(event.filter_coefficient) / 4.0);
        for (filtered, sample) in self.filtered.iter_mut().zip(rsrp_db) {
            *filtered += weight * (sample - *filtered);
        }
        let own_db = self.filtered[serving] + event.offset_db;
        for (cell, entered_at) in self.entered_at.iter_mut().enumerate() {
            let (above_db, hysteresis_db) = (self.filtered[cell] - own_db, event.hysteresis_db);
            if cell == serving || above_db + hysteresis_db < 0.0 {
                *entered_at = None;
            } else if above_db - hysteresis_db > 0.0 && entered_at.is_none() {
                *entered_at = Some(slot);
            }
        }
        let triggered = |cell: &usize| {
            self.entered_at[*cell].is_some_and(|entered| slot.since(entered) >= event.time_to_trigger)
        };
        let best = |a: &usize, b: &usize| self.filtered[*a].total_cmp(&self.filtered[*b]);
        (0..rsrp_db.len()).filter(triggered).max_by(best)
    }
    /// Another cell serves the station: conditions begin anew.
    pub fn on_cell_changed(&mut self) {
        self.entered_at.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: EventA3 = EventA3 {
        offset_db: 3.0,
        hysteresis_db: 1.0,
        time_to_trigger: SlotSpan(160),
        filter_coefficient: 0,
        period: SlotSpan(40),
        preparation: SlotSpan(0),
    };

    /// The slot of the first trigger and its cell; cell 1 has `rsrp_db(slot)` relative to cell 0.
    fn triggered(event: EventA3, rsrp_db: impl Fn(u64) -> f64) -> Option<(u64, usize)> {
        let mut measurements = Measurements::default();
        (0..50).map(|at| 40 * at).find_map(|slot| {
            let samples = [-80.0, -80.0 + rsrp_db(slot), -90.0];
            Some((slot, measurements.sample(Slot(slot), &event, 0, &samples)?))
        })
    }

    #[test]
    fn a_neighbour_triggers_after_the_time_to_trigger_above_offset_and_hysteresis() {
        assert_eq!(triggered(EVENT, |_| 4.1), Some((160, 1)));
        assert_eq!(triggered(EVENT, |_| 3.9), None, "between the entering and the leaving condition");
        assert_eq!(triggered(EVENT, |slot| if slot < 400 { 0.0 } else { 5.0 }), Some((560, 1)));
    }

    #[test]
    fn the_hysteresis_keeps_a_condition_that_was_entered_and_the_leaving_condition_ends_it() {
        assert_eq!(triggered(EVENT, |slot| if slot == 0 { 4.1 } else { 2.1 }), Some((160, 1)));
        assert_eq!(triggered(EVENT, |slot| if slot == 80 { 1.9 } else { 4.1 }), Some((280, 1)));
    }

    #[test]
    fn the_filter_of_layer_3_halves_a_step_with_coefficient_4() {
        // A step from 0 to 6 dB at slot 40: 3, 4.5, ... dB; the second exceeds 4 dB.
        let event = EventA3 { filter_coefficient: 4, ..EVENT };
        assert_eq!(triggered(event, |slot| if slot == 0 { 0.0 } else { 6.0 }), Some((80 + 160, 1)));
    }
}
