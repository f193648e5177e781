//! Power headroom reports: when a station sends one (TS 36.321 §5.4.6), and what the eNB makes of it.
//!
//! A report says how far the power of its own block stays below the maximum, in steps of 1 dB. The eNB derives the
//! resource blocks at which a station comes to its limit; TPC commands since then move it. Before the first report
//! it knows no limit. dl-PathlossChange triggers when the path loss that power control compensates has changed,
//! which takes stations that move.

use crate::decibel::{from_db, to_db};
use crate::radio::power_control::headroom_of_index;
use crate::slot::Tti;
use std::collections::VecDeque;

/// Timers of PHR-Config (TS 36.331), in TTIs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HeadroomConfig {
    /// periodicPHR-Timer; none for infinity.
    pub periodic: Option<u64>,
    /// prohibitPHR-Timer.
    pub prohibit: u64,
    /// dl-PathlossChange in dB; none for infinity.
    pub path_loss_change_db: Option<f64>,
}

/// The control element, and the allocation it speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headroom {
    /// Reported value 0..=63.
    pub index: u8,
    /// Resource blocks of the transmission.
    pub blocks: u8,
}

/// The station's side: configuration itself triggers a first report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadroomTimers {
    /// When the last report was sent, and the path loss then.
    last: Option<(Tti, f64)>,
}

impl HeadroomTimers {
    /// Whether a report is to go into a block of `tti`.
    pub fn due(&self, tti: Tti, config: &HeadroomConfig, path_loss_db: f64) -> bool {
        let Some((at, then_db)) = self.last else { return true };
        let age = tti.since(at);
        let changed =
            config.path_loss_change_db.is_some_and(|change| (path_loss_db - then_db).abs() > change);
        config.periodic.is_some_and(|periodic| age >= periodic) || changed && age >= config.prohibit
    }
    /// A report was sent.
    pub fn on_report(&mut self, tti: Tti, path_loss_db: f64) {
        self.last = Some((tti, path_loss_db));
    }
}

/// Commands that the eNB remembers one by one: more than HARQ can delay a report by.
const REMEMBERED: usize = 256;

/// The eNB's side.
#[derive(Clone, Debug)]
pub(crate) struct KnownHeadroom {
    /// Headroom in dB of a transmission in one resource block, and when the report was sent.
    one_block_db: Option<(f64, Tti)>,
    /// TPC commands since then, by the TTI in which they take effect, and their sum.
    commands: VecDeque<(Tti, f64)>,
    commanded_db: f64,
    /// What was left last in dB, and as a ratio.
    left: (f64, f64),
}

impl Default for KnownHeadroom {
    fn default() -> Self {
        Self { one_block_db: None, commands: VecDeque::new(), commanded_db: 0.0, left: (0.0, 1.0) }
    }
}

impl KnownHeadroom {
    /// A report of a block first sent in `sent_at`.
    pub fn on_report(&mut self, report: Headroom, sent_at: Tti) {
        if self.one_block_db.is_some_and(|(_, last)| last > sent_at) {
            return; // HARQ has delayed it
        }
        let one_block = headroom_of_index(report.index) + to_db(f64::from(report.blocks));
        self.one_block_db = Some((one_block, sent_at));
        self.commands.retain(|(at, _)| *at > sent_at);
        self.commanded_db = self.commands.iter().map(|(_, db)| db).sum();
    }
    /// A command goes out that takes effect in `sent_at`.
    pub fn on_command(&mut self, sent_at: Tti, db: f64) {
        if db != 0.0 {
            self.commands.push_back((sent_at, db));
            self.commanded_db += db;
            if self.commands.len() > REMEMBERED {
                self.commands.pop_front();
            }
        }
    }
    /// Most resource blocks up to `limit` that the power allows after this command, as far as the eNB knows.
    pub fn max_blocks(&mut self, limit: u8, command_db: f64) -> u8 {
        let left_db = self.left_db() - command_db.max(0.0);
        if self.left.0 != left_db {
            self.left = (left_db, from_db(left_db));
        }
        (self.left.1 + 1e-9).clamp(1.0, f64::from(limit)) as u8
    }
    /// The command for what is missing: none upwards that would leave no power for one block.
    pub fn command_db(&self, missing_db: f64) -> f64 {
        let wanted = command_db(missing_db);
        if wanted <= 0.0 {
            return wanted;
        }
        [3.0, 1.0].into_iter().find(|step| *step <= wanted.min(self.left_db())).unwrap_or(0.0)
    }
    /// Headroom of a transmission in one block.
    fn left_db(&self) -> f64 {
        self.one_block_db.map_or(f64::INFINITY, |(one_block, _)| one_block - self.commanded_db)
    }
}

/// The TPC command in dB of a grant (TS 36.213 Table 5.1.1.1-2, accumulated) that comes closest to what is missing.
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
    use crate::radio::power_control::{Grant, headroom_index};

    #[test]
    fn reports_come_first_then_by_timer_and_by_path_loss() {
        let config = HeadroomConfig { periodic: Some(100), prohibit: 20, path_loss_change_db: Some(3.0) };
        let mut timers = HeadroomTimers::default();
        assert!(timers.due(Tti(7), &config, 110.0), "configuration triggers");
        timers.on_report(Tti(7), 110.0);
        assert!(!timers.due(Tti(106), &config, 110.0) && timers.due(Tti(107), &config, 110.0));
        assert!(!timers.due(Tti(26), &config, 114.0) && timers.due(Tti(27), &config, 114.0));
        assert!(!timers.due(Tti(50), &config, 113.0), "more than the change");
        let never = HeadroomConfig { periodic: None, path_loss_change_db: None, ..config };
        assert!(!timers.due(Tti(1_000_000), &never, 150.0));
    }

    #[test]
    fn the_limit_is_that_of_the_power_formula_within_the_steps_of_a_report() {
        let control = PowerControl { pcmax_dbm: 23.0, p0_dbm: -80.0, alpha: 0.8, delta_mcs: false };
        for loss in 90..140 {
            for blocks in [1, 4, 25, 96] {
                let grant = Grant::open_loop(blocks, f64::from(loss));
                let index = headroom_index(control.headroom_db(&grant));
                if index == 0 || index == 63 {
                    continue;
                }
                let mut known = KnownHeadroom::default();
                assert_eq!(known.max_blocks(100, 0.0), 100, "nothing is known");
                known.on_report(Headroom { index, blocks: blocks as u8 }, Tti(5));
                // Half a step is a factor of 1.122.
                let exact = from_db(23.0 + 80.0 - 0.8 * f64::from(loss));
                let (low, high) = ((exact / 1.123).clamp(1.0, 100.0), (exact * 1.123).clamp(1.0, 100.0));
                let limit = f64::from(known.max_blocks(100, 0.0));
                assert!(limit + 1.0 > low && limit <= high, "{loss}: {limit} of {exact}");
            }
        }
    }

    #[test]
    fn commands_after_the_report_move_the_limit() {
        let mut known = KnownHeadroom::default();
        // 10 dB with 10 blocks: 20 dB with one.
        known.on_report(Headroom { index: 33, blocks: 10 }, Tti(5));
        assert_eq!(known.max_blocks(110, 0.0), 100);
        known.on_command(Tti(9), 3.0);
        known.on_command(Tti(10), 1.0);
        assert_eq!(known.max_blocks(110, 0.0), 39, "16 dB");
        known.on_report(Headroom { index: 23, blocks: 10 }, Tti(4));
        assert_eq!(known.max_blocks(110, 0.0), 39, "an older report");
        // It knows of the first command already: 0 dB with ten blocks, and 1 dB less.
        known.on_report(Headroom { index: 23, blocks: 10 }, Tti(9));
        assert_eq!(known.max_blocks(110, 0.0), 7);
        assert_eq!((known.command_db(9.0), known.command_db(-9.0)), (3.0, -1.0));
        assert_eq!(known.max_blocks(110, 3.0), 3, "9 dB and 3 dB less");
        known.on_report(Headroom { index: 25, blocks: 1 }, Tti(13));
        assert_eq!((known.command_db(9.0), known.max_blocks(110, 0.0)), (1.0, 1), "2 dB are left");
        known.on_report(Headroom { index: 10, blocks: 1 }, Tti(14));
        assert_eq!((known.max_blocks(110, 0.0), known.command_db(1.0)), (1, 0.0));
    }

    #[test]
    fn commands_are_those_of_the_table() {
        let missing = [-9.0, -0.5, -0.4, 0.0, 0.4, 0.5, 1.9, 2.0, 9.0];
        assert_eq!(missing.map(command_db), [-1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0, 3.0]);
    }
}
