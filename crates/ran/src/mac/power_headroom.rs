//! Power headroom reports (PHR, TS 36.321 §5.4.6): when a station sends one, and the PRB limit that the eNB
//! derives.
//!
//! A report states how far the power of its own transmission stays below the maximum, in steps of 1 dB. From
//! it the eNB computes the number of PRBs at which the station reaches its maximum power; TPC commands after
//! the report shift that number. Before the first report the number is not limited. dl-PathlossChange
//! triggers a report when the path loss has changed; that takes stations whose path loss changes during a
//! run.

use crate::decibel::{from_db, to_db};
use crate::radio::power_control::HeadroomTable;
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// Parameters of PHR-Config (TS 36.331 §6.3.2); times in slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HeadroomConfig {
    /// periodicPHR-Timer; none for infinity.
    pub periodic: Option<SlotSpan>,
    /// prohibitPHR-Timer.
    pub prohibit: SlotSpan,
    /// dl-PathlossChange in dB; none for infinity.
    pub path_loss_change_db: Option<f64>,
}

/// The power headroom control element, and the number of PRBs of the transmission that it refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadroomReport {
    /// Reported value 0..=63 of `table`.
    pub index: u8,
    pub table: HeadroomTable,
    pub n_prb: u16,
}

impl HeadroomReport {
    /// The headroom in dB above the lowest of LTE, -23 dB: what the counters add up.
    pub fn counted_db(&self) -> u64 {
        (self.table.headroom_db(self.index) + 23.0).max(0.0) as u64
    }
}

/// The station's reporting timers. Configuration itself triggers the first report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadroomTimers {
    /// Slot of the last report and the path loss in dB at that time.
    last: Option<(Slot, f64)>,
}

impl HeadroomTimers {
    /// Whether a block of `slot` carries a report.
    pub fn due(&self, slot: Slot, config: &HeadroomConfig, path_loss_db: f64) -> bool {
        let Some((at, then_db)) = self.last else { return true };
        let age = slot.since(at);
        let changed =
            config.path_loss_change_db.is_some_and(|change| (path_loss_db - then_db).abs() > change);
        config.periodic.is_some_and(|periodic| age >= periodic) || changed && age >= config.prohibit
    }
    pub fn on_report(&mut self, slot: Slot, path_loss_db: f64) {
        self.last = Some((slot, path_loss_db));
    }
}

/// TPC commands that the eNB stores one by one. Chosen: more commands than are sent while HARQ delays a
/// report.
const MAX_COMMANDS: usize = 256;

/// The eNB's estimate of a station's power headroom.
#[derive(Clone, Debug)]
pub(crate) struct HeadroomEstimate {
    /// Headroom in dB of a transmission in one PRB, and the slot of the report.
    one_prb_db: Option<(f64, Slot)>,
    /// TPC commands after the report, each with the slot in which it takes effect, and their sum in dB.
    commands: VecDeque<(Slot, f64)>,
    commanded_db: f64,
    /// The last result of [`Self::remaining_db`] less a command: in dB, and as a ratio.
    last_ratio: (f64, f64),
}

impl Default for HeadroomEstimate {
    fn default() -> Self {
        Self { one_prb_db: None, commands: VecDeque::new(), commanded_db: 0.0, last_ratio: (0.0, 1.0) }
    }
}

impl HeadroomEstimate {
    /// The eNB decoded a report whose block was first sent in `sent_at`. An older one than the last is
    /// ignored.
    pub fn on_report(&mut self, report: HeadroomReport, sent_at: Slot) {
        if self.one_prb_db.is_some_and(|(_, last)| last > sent_at) {
            return;
        }
        let one_prb = report.table.headroom_db(report.index) + to_db(f64::from(report.n_prb));
        self.one_prb_db = Some((one_prb, sent_at));
        self.commands.retain(|(at, _)| *at > sent_at);
        self.commanded_db = self.commands.iter().map(|(_, db)| db).sum();
    }
    /// The eNB sends a TPC command that takes effect in `sent_at`.
    pub fn on_command(&mut self, sent_at: Slot, db: f64) {
        if db != 0.0 {
            self.commands.push_back((sent_at, db));
            self.commanded_db += db;
            if self.commands.len() > MAX_COMMANDS {
                self.commands.pop_front();
            }
        }
    }
    /// The largest number of PRBs up to `limit` within the estimated power, after a TPC command of
    /// `command_db`.
    pub fn max_prbs(&mut self, limit: u16, command_db: f64) -> u16 {
        let remaining_db = self.remaining_db() - command_db.max(0.0);
        if self.last_ratio.0 != remaining_db {
            self.last_ratio = (remaining_db, from_db(remaining_db));
        }
        (self.last_ratio.1 + 1e-9).clamp(1.0, f64::from(limit)) as u16
    }
    /// The TPC command in dB for a power that is `missing_db` too low. A command upwards leaves the power of
    /// one PRB.
    pub fn command_db(&self, missing_db: f64) -> f64 {
        let closest = command_db(missing_db);
        if closest <= 0.0 {
            return closest;
        }
        [3.0, 1.0].into_iter().find(|step| *step <= closest.min(self.remaining_db())).unwrap_or(0.0)
    }
    /// Headroom in dB of a transmission in one PRB, after all commands.
    fn remaining_db(&self) -> f64 {
        self.one_prb_db.map_or(f64::INFINITY, |(one_prb, _)| one_prb - self.commanded_db)
    }
}

/// The accumulated TPC command in dB (TS 36.213 Table 5.1.1.1-2: -1, 0, 1 or 3) closest to `missing_db`.
fn command_db(missing_db: f64) -> f64 {
    match missing_db {
        x if x >= 2.0 => 3.0,
        x if x >= 0.5 => 1.0,
        x if x <= -0.5 => -1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::PowerControl;
    use crate::radio::power_control::{PuschTransmission, headroom_index};

    #[test]
    fn headroom_reports_follow_configuration_timers_and_path_loss_change() {
        let config = HeadroomConfig {
            periodic: Some(SlotSpan(100)),
            prohibit: SlotSpan(20),
            path_loss_change_db: Some(3.0),
        };
        let mut timers = HeadroomTimers::default();
        assert!(timers.due(Slot(7), &config, 110.0), "configuration triggers");
        timers.on_report(Slot(7), 110.0);
        assert!(!timers.due(Slot(106), &config, 110.0) && timers.due(Slot(107), &config, 110.0));
        assert!(!timers.due(Slot(26), &config, 114.0) && timers.due(Slot(27), &config, 114.0));
        assert!(!timers.due(Slot(50), &config, 113.0), "more than the change");
        let never = HeadroomConfig { periodic: None, path_loss_change_db: None, ..config };
        assert!(!timers.due(Slot(1_000_000), &never, 150.0));
    }

    #[test]
    fn the_prb_limit_is_that_of_the_power_formula_within_half_a_decibel() {
        let control =
            PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -80.0, alpha: 0.8, delta_mcs: false };
        for loss in 90..140 {
            for n_prb in [1, 4, 25, 96] {
                let grant = PuschTransmission::open_loop(n_prb, f64::from(loss));
                let index = headroom_index(control.headroom_db(&grant));
                if index == 0 || index == 63 {
                    continue;
                }
                let mut known = HeadroomEstimate::default();
                assert_eq!(known.max_prbs(100, 0.0), 100, "no report yet");
                known.on_report(
                    HeadroomReport { index, n_prb: n_prb as u16, table: HeadroomTable::Lte },
                    Slot(5),
                );
                // Half a step is a factor of 1.122.
                let exact = from_db(23.0 + 80.0 - 0.8 * f64::from(loss));
                let (low, high) = ((exact / 1.123).clamp(1.0, 100.0), (exact * 1.123).clamp(1.0, 100.0));
                let limit = f64::from(known.max_prbs(100, 0.0));
                assert!(limit + 1.0 > low && limit <= high, "{loss}: {limit} of {exact}");
            }
        }
    }

    #[test]
    fn tpc_commands_after_the_report_shift_the_prb_limit() {
        let mut known = HeadroomEstimate::default();
        // 10 dB with 10 PRBs: 20 dB with one.
        known.on_report(HeadroomReport { index: 33, n_prb: 10, table: HeadroomTable::Lte }, Slot(5));
        assert_eq!(known.max_prbs(110, 0.0), 100);
        known.on_command(Slot(9), 3.0);
        known.on_command(Slot(10), 1.0);
        assert_eq!(known.max_prbs(110, 0.0), 39, "16 dB");
        known.on_report(HeadroomReport { index: 23, n_prb: 10, table: HeadroomTable::Lte }, Slot(4));
        assert_eq!(known.max_prbs(110, 0.0), 39, "an older report");
        // The report includes the first command: 0 dB with ten PRBs, and 1 dB less.
        known.on_report(HeadroomReport { index: 23, n_prb: 10, table: HeadroomTable::Lte }, Slot(9));
        assert_eq!(known.max_prbs(110, 0.0), 7);
        assert_eq!((known.command_db(9.0), known.command_db(-9.0)), (3.0, -1.0));
        assert_eq!(known.max_prbs(110, 3.0), 3, "9 dB and 3 dB less");
        known.on_report(HeadroomReport { index: 25, n_prb: 1, table: HeadroomTable::Lte }, Slot(13));
        assert_eq!((known.command_db(9.0), known.max_prbs(110, 0.0)), (1.0, 1), "2 dB are left");
        known.on_report(HeadroomReport { index: 10, n_prb: 1, table: HeadroomTable::Lte }, Slot(14));
        assert_eq!((known.max_prbs(110, 0.0), known.command_db(1.0)), (1, 0.0));
    }

    #[test]
    fn tpc_commands_are_those_of_the_table() {
        let missing = [-9.0, -0.5, -0.4, 0.0, 0.4, 0.5, 1.9, 2.0, 9.0];
        assert_eq!(missing.map(command_db), [-1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0, 3.0]);
    }
}
