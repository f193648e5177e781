//! Values that follow from the configuration of a cell and do not change: slots, timing, sizes of PRBs, and
//! the resources per slot.

use super::CellConfig;
use crate::adaptation::LinkAdaptation;
use crate::duplex::{Direction, Duplex};
use crate::lte::tdd::{AckMode, Distances};
use crate::mcs::PrbSize;
use crate::rat::Rat;
use crate::slot::{Slot, SlotClock, SlotSpan};
use crate::timing::Timing;
use paceline_net::Instant;
use paceline_net::tdd::SYMBOLS_PER_SLOT;

/// The configuration and the values that follow from it. The parts of a cell read them.
pub(in crate::cell) struct Carrier {
    pub config: CellConfig,
    pub adaptation: LinkAdaptation,
    pub clock: SlotClock,
    pub timing: Timing,
    /// Whether HARQ-ACKs of the downlink are bundled.
    pub bundling: bool,
    /// The uplink-downlink configuration of LTE TDD.
    pub tdd_configuration: Option<u8>,
    /// Size of a PRB of PUSCH.
    pub pusch_size: PrbSize,
}

impl Carrier {
    /// # Panics
    /// If the configuration has distances between messages or a mode of HARQ-ACKs that are not allowed.
    pub fn new(config: CellConfig) -> Self {
        let timing = config.rat.timing(config.numerology, &config.duplex);
        let distances = lte_tdd(&config);
        let pusch_prb = config.pusch_prbs().len() as u16;
        let pusch_size = config.rat.prb_size(Direction::Up, SYMBOLS_PER_SLOT);
        Self {
            adaptation: LinkAdaptation::new(&config.rat, (config.downlink_prb, pusch_prb)),
            clock: SlotClock::new(config.numerology),
            timing: timing.expect("the configuration has allowed distances"),
            bundling: distances.is_some() && config.ack_mode == AckMode::Bundling,
            tdd_configuration: distances.map(Distances::configuration),
            pusch_size: pusch_size.expect("reference signals and overhead leave resource elements in a slot"),
            config,
        }
    }
    /// The time at which a slot starts.
    pub fn start(&self, slot: Slot) -> Instant {
        self.clock.start(slot)
    }
    /// PRBs of PDSCH and of the uplink per slot of one cell: the mean over all slots, of which a direction
    /// has a part in TDD.
    pub fn resource_blocks(&self) -> (f64, f64) {
        let CellConfig { rat, numerology, duplex, downlink_prb, uplink_prb, .. } = &self.config;
        let downlink = self.mean_per_slot(|slot| {
            let size = rat.prb_size(Direction::Down, duplex.symbols(slot, Direction::Down));
            size.map_or(0, |_| u64::from(rat.pdsch_prbs(*numerology, slot, *downlink_prb).len()))
        });
        let of_uplink = |slot| if duplex.has(slot, Direction::Up) { u64::from(*uplink_prb) } else { 0 };
        (downlink, self.mean_per_slot(of_uplink))
    }
    /// Largest number of uplink grants per slot of one cell: the mean over all slots.
    pub fn uplink_grants(&self) -> f64 {
        let most = self.config.uplink_grants as u64;
        self.mean_per_slot(|slot| if self.timing.granted_by(slot).next().is_some() { most } else { 0 })
    }
    fn mean_per_slot(&self, number: impl Fn(Slot) -> u64) -> f64 {
        let repeat = match &self.config.rat {
            Rat::Lte => SlotSpan(1),
            Rat::Nr(nr) => nr.ssb_period,
        };
        let slots = repeat.0 * self.config.duplex.period() as u64;
        let sum: u64 = (0..slots).map(|slot| number(Slot(slot))).sum();
        sum as f64 / slots as f64
    }
}

/// The distances of an LTE TDD cell, which has an allowed mode of HARQ-ACKs.
fn lte_tdd(config: &CellConfig) -> Option<&'static Distances> {
    let (Rat::Lte, Duplex::Tdd(pattern)) = (&config.rat, &config.duplex) else { return None };
    let distances = Distances::of_pattern(pattern)?;
    let (mode, allowed) = (config.ack_mode, distances.allows(config.ack_mode));
    assert!(allowed, "{mode:?} is not allowed in {pattern} (TS 36.213 §7.3)");
    Some(distances)
}
