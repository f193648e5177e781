//! The carrier of a `[cell]` table: its slots, PRBs, block sizes and timing, resolved from the keys. The cell
//! is built from this plan, and `paceline cell show` prints it. What 3GPP forbids is refused with the clause.

use super::super::limits::Problem;
use super::{Cell, DuplexMode, Nr, RatName};
use paceline_net::units::Hertz;
use paceline_net::{Duration, SlotPattern};
use paceline_ran::lte::tdd::Distances;
use paceline_ran::nr::carrier::{self, FrequencyRange};
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::timing::{SlotTiming, TimingError};
use paceline_ran::{Numerology, SlotClock, resource_blocks};

/// Periods of scheduling requests in slots (TS 38.331 SchedulingRequestResourceConfig).
pub(super) const SR_SLOTS: [u64; 13] = [1, 2, 4, 5, 8, 10, 16, 20, 40, 80, 160, 320, 640];
/// Most values of dl-DataToUL-ACK (TS 38.331 PUCCH-Config).
const MOST_K1: usize = 8;
/// Periods of a configured grant in slots (TS 38.331 ConfiguredGrantConfig).
const GRANT_SLOTS: [u64; 22] =
    [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2560, 5120];

/// A carrier, with everything that follows from the keys of `[cell]` alone.
#[derive(Clone, PartialEq, Debug)]
pub struct CellPlan {
    /// Subcarrier spacing and length of a slot.
    pub numerology: Numerology,
    /// The slots of one period of TDD; none in FDD.
    pub pattern: Option<SlotPattern>,
    /// Downlink PRBs.
    pub downlink_prb: u16,
    /// Uplink PRBs, those of PUCCH included.
    pub uplink_prb: u16,
    /// Uplink PRBs of PUCCH.
    pub pucch_prb: u16,
    /// Distances between assignment, acknowledgment, grant and transmission.
    pub timing: SlotTiming,
    /// Block sizes and what they depend on.
    pub blocks: Blocks,
}

/// Block sizes of a radio access technology.
#[derive(Clone, PartialEq, Debug)]
pub enum Blocks {
    /// TS 36.213 §7.1.7; the control channels and reference signals are in the tables.
    Lte {
        /// Highest uplink MCS.
        max_uplink_mcs: u8,
    },
    /// TS 38.214 §5.1.3.2.
    Nr(NrBlocks),
}

/// Parameters of the block sizes of NR.
#[derive(Clone, PartialEq, Debug)]
pub struct NrBlocks {
    /// Range of the carrier frequency.
    pub range: FrequencyRange,
    /// Downlink MCS table and largest number of layers.
    pub downlink: (McsTable, u8),
    /// Uplink MCS table and largest number of layers.
    pub uplink: (McsTable, u8),
    /// PDCCH symbols at the start of a slot with downlink.
    pub pdcch_symbols: u8,
    /// Resource elements of demodulation reference signals per PRB of a block.
    pub dmrs_re: u8,
    /// xOverhead, in resource elements per PRB of a block.
    pub overhead_re: u8,
    /// Synchronization blocks in a burst.
    pub ssb_beams: u8,
    /// Period of the bursts in ms.
    pub ssb_period_ms: u32,
}

impl CellPlan {
    /// The plan of a table whose single keys were checked, and whose defaults were completed.
    pub(in crate::scenario) fn of(cell: &Cell) -> Result<Self, Problem> {
        match cell.rat {
            RatName::Lte => lte(cell),
            RatName::Nr => nr(cell, cell.nr.as_ref().unwrap_or(&Nr::default())),
        }
    }
}

fn lte(cell: &Cell) -> Result<CellPlan, Problem> {
    let of_nr = "left out with rat = \"lte\"";
    refuse("cell.frequency", cell.frequency.as_ref(), of_nr)?;
    refuse("cell.numerology", cell.numerology.as_ref(), of_nr)?;
    refuse("cell.subcarrier_spacing", cell.subcarrier_spacing.as_ref(), of_nr)?;
    let pattern = "left out with rat = \"lte\", whose slots are those of tdd_configuration (TS 36.211 §4.2)";
    refuse("cell.pattern", cell.pattern.as_ref(), pattern)?;
    refuse("cell.nr", cell.nr.as_ref().map(|_| &"{ .. }"), of_nr)?;
    let tdd = cell.duplex == Some(DuplexMode::Tdd);
    if tdd {
        let allowed = "left out in TDD, where both directions share the carrier";
        refuse("cell.uplink_bandwidth", cell.uplink_bandwidth.as_ref(), allowed)?;
    } else {
        let allowed = "left out with duplex = \"fdd\"";
        refuse("cell.tdd_configuration", cell.tdd_configuration.as_ref(), allowed)?;
        refuse("cell.special_subframe", cell.special_subframe.as_ref(), allowed)?;
    }
    let (pattern, timing) = if tdd { lte_tdd(cell)? } else { (None, SlotTiming::lte_fdd()) };
    let prb = |hertz: Hertz| resource_blocks(hertz.0 / 1000).expect("bandwidths are checked before");
    Ok(CellPlan {
        numerology: Numerology::LTE,
        pattern,
        downlink_prb: prb(cell.bandwidth),
        uplink_prb: prb(cell.uplink_bandwidth.unwrap_or(cell.bandwidth)),
        pucch_prb: cell.pucch_prb,
        timing,
        blocks: Blocks::Lte { max_uplink_mcs: if cell.uplink_64qam { 28 } else { 20 } },
    })
}

fn lte_tdd(cell: &Cell) -> Result<(Option<SlotPattern>, SlotTiming), Problem> {
    let Some(configuration) = cell.tdd_configuration else {
        let reason = "needs tdd_configuration, 0 to 6 (TS 36.211 Table 4.2-2)";
        return Err(Problem::because("cell.duplex", "\"tdd\"", reason));
    };
    let key = "cell.tdd_configuration";
    let distances = Distances::of(configuration);
    let distances = distances.ok_or_else(|| Problem::because(key, configuration, "allowed: 0 to 6"))?;
    let special = cell.special_subframe.unwrap_or(7);
    let pattern = SlotPattern::lte(configuration, special);
    let pattern = pattern.map_err(|error| Problem::because("cell.special_subframe", special, error))?;
    // Configurations 3 to 5 have uplink subframes in the first half of the frame alone.
    let half = if (3..=5).contains(&configuration) { 10 } else { 5 };
    if cell.sr_period.as_millis() % half != 0 {
        let reason = format!(
            "in TDD configuration {configuration}, {half} ms and its multiples are allowed: an occasion stands in \
             an uplink subframe (TS 36.213 §10.1.5)"
        );
        return Err(Problem::because("cell.sr_period", cell.sr_period, reason));
    }
    Ok((Some(pattern), SlotTiming::lte_tdd(distances)))
}

fn nr(cell: &Cell, nr: &Nr) -> Result<CellPlan, Problem> {
    let of_lte = "left out with rat = \"nr\"";
    refuse("cell.tdd_configuration", cell.tdd_configuration.as_ref(), of_lte)?;
    refuse("cell.special_subframe", cell.special_subframe.as_ref(), of_lte)?;
    if let (Some(numerology), Some(_)) = (cell.numerology, cell.subcarrier_spacing) {
        return Err(Problem::because("cell.numerology", numerology, "give it or subcarrier_spacing, not both"));
    }
    let numerology = cell.mu().and_then(Numerology::new).expect("numerologies are checked before");
    let frequency = cell.frequency.expect("the default was completed");
    let range = FrequencyRange::of_ghz(frequency.0 as f64 / 1e9).ok_or_else(|| {
        let reason = "allowed: 410 MHz to 7125 MHz (FR1) and 24250 MHz to 52600 MHz (FR2) (TS 38.101-1 Table 5.1-1)";
        Problem::because("cell.frequency", frequency, reason)
    })?;
    let tdd = cell.duplex == Some(DuplexMode::Tdd);
    if range == FrequencyRange::Fr2 && !tdd {
        let reason = "bands of FR2 are TDD: give pattern (TS 38.101-2 Table 5.2-1)";
        return Err(Problem::because("cell.duplex", "\"fdd\"", reason));
    }
    let prb = |key: &str, bandwidth: Hertz| {
        let mhz = (bandwidth.0 / 1_000_000) as u32;
        carrier::resource_blocks(range, mhz, numerology).map_err(|error| Problem::because(key, bandwidth, error))
    };
    let downlink_prb = prb("cell.bandwidth", cell.bandwidth)?;
    let uplink_prb = match (tdd, cell.uplink_bandwidth) {
        (false, Some(bandwidth)) => prb("cell.uplink_bandwidth", bandwidth)?,
        (true, given) => {
            let allowed = "left out in TDD, where both directions share the carrier";
            refuse("cell.uplink_bandwidth", given.as_ref(), allowed)?;
            downlink_prb
        }
        (false, None) => downlink_prb,
    };
    let allowed = format!("0 to {}, less than the uplink's {uplink_prb} resource blocks", uplink_prb - 1);
    Problem::unless(cell.pucch_prb < uplink_prb, "cell.pucch_prb", cell.pucch_prb, &allowed)?;
    let pattern = match (tdd, &cell.pattern) {
        (true, Some(pattern)) => Some(pattern.slots(numerology.mu())?),
        (true, None) => {
            let reason = "needs pattern, such as \"DDDSU\" (TS 38.331 tdd-UL-DL-ConfigurationCommon)";
            return Err(Problem::because("cell.duplex", "\"tdd\"", reason));
        }
        (false, given) => {
            refuse("cell.pattern", given.as_ref(), "left out with duplex = \"fdd\"")?;
            None
        }
    };
    let timing = nr_timing(nr, numerology, pattern.as_ref())?;
    check_periods(cell, nr, numerology, timing.period() as u64)?;
    check_beams(nr, range, frequency)?;
    check_grant(nr, uplink_prb - cell.pucch_prb)?;
    let blocks = NrBlocks {
        range,
        downlink: (nr.mcs_table.into(), nr.layers.min(nr.antennas)),
        uplink: (nr.uplink_mcs_table.into(), nr.uplink_layers.min(nr.uplink_antennas)),
        pdcch_symbols: nr.pdcch_symbols,
        dmrs_re: nr.dmrs_re,
        overhead_re: nr.x_overhead,
        ssb_beams: nr.ssb_beams,
        ssb_period_ms: nr.ssb_period.as_millis() as u32,
    };
    let (pucch_prb, blocks) = (cell.pucch_prb, Blocks::Nr(blocks));
    Ok(CellPlan { numerology, pattern, downlink_prb, uplink_prb, pucch_prb, timing, blocks })
}

/// The distances of the slots, with stated ones in place of the smallest.
fn nr_timing(nr: &Nr, numerology: Numerology, pattern: Option<&SlotPattern>) -> Result<SlotTiming, Problem> {
    let timing = match pattern {
        None => SlotTiming::fdd(numerology, nr.min_k1, nr.min_k2, nr.gnb_slots),
        Some(pattern) => SlotTiming::tdd(numerology, pattern, nr.min_k1, nr.min_k2, nr.gnb_slots),
    };
    let timing = timing.map_err(|error| match error {
        TimingError::EarlyK2 { .. } | TimingError::Late { name: "K2", .. } => {
            Problem::because("cell.nr.min_k2", nr.min_k2, error)
        }
        error => Problem::because("cell.nr.min_k1", nr.min_k1, error),
    })?;
    let timing = match &nr.k1 {
        None => timing,
        Some(k1) => timing.with_k1(pattern, k1).map_err(|error| Problem::because("cell.nr.k1", list(k1), error))?,
    };
    let mut distinct: Vec<u8> = (0..timing.period() as u64).filter_map(|slot| timing.k1(slot)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() > MOST_K1 {
        let reason = format!(
            "the pattern needs {} values of K1, {}: at most {MOST_K1} are allowed (TS 38.331 dl-DataToUL-ACK)",
            distinct.len(),
            list(&distinct)
        );
        return Err(Problem::because("cell.nr.min_k1", nr.min_k1, reason));
    }
    Ok(timing)
}

fn list(values: &[u8]) -> String {
    let texts: Vec<String> = values.iter().map(u8::to_string).collect();
    format!("[{}]", texts.join(", "))
}

/// Checks the periods that are whole numbers of slots.
fn check_periods(cell: &Cell, nr: &Nr, numerology: Numerology, pattern: u64) -> Result<(), Problem> {
    let slots = |period: Duration| {
        let clock = SlotClock::new(numerology);
        let span = clock.span(period);
        (clock.duration(span) == period).then_some(span.0)
    };
    let slot = SlotClock::new(numerology).duration(paceline_ran::SlotSpan(1));
    let listed = |key: &str, period: Duration, list: &[u64], clause: &str| {
        if slots(period).is_some_and(|count| list.contains(&count)) {
            return Ok(());
        }
        let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
        let reason = format!("allowed are {} slots of {slot} ({clause})", texts.join(", "));
        Err(Problem::because(key, period, reason))
    };
    listed("cell.sr_period", cell.sr_period, &SR_SLOTS, "TS 38.331 SchedulingRequestResourceConfig")?;
    if slots(cell.sr_period).is_some_and(|count| count % pattern != 0) {
        let reason = format!(
            "allowed are multiples of the pattern's {}: every occasion stands in an uplink slot (TS 38.213 \
             §9.2.4, §11.1)",
            slot * pattern
        );
        return Err(Problem::because("cell.sr_period", cell.sr_period, reason));
    }
    let Some(grant) = &nr.configured_grant else { return Ok(()) };
    let key = "cell.nr.configured_grant.period";
    listed(key, grant.period, &GRANT_SLOTS, "TS 38.331 ConfiguredGrantConfig")?;
    if slots(grant.period).is_some_and(|count| count % pattern != 0) {
        let reason = format!(
            "allowed are multiples of the pattern's {}: every PUSCH stands in an uplink slot (TS 38.213 §11.1)",
            slot * pattern
        );
        return Err(Problem::because(key, grant.period, reason));
    }
    Ok(())
}

fn check_beams(nr: &Nr, range: FrequencyRange, frequency: Hertz) -> Result<(), Problem> {
    // TS 38.213 §4.1: cases A and C to 3 GHz, above it, case D.
    let most = match range {
        FrequencyRange::Fr1 if frequency.0 <= 3_000_000_000 => 4,
        FrequencyRange::Fr1 => 8,
        FrequencyRange::Fr2 => 64,
    };
    let allowed = format!("1 to {most} at {frequency} (TS 38.213 §4.1)");
    Problem::unless(nr.ssb_beams <= most, "cell.nr.ssb_beams", nr.ssb_beams, &allowed)
}

fn check_grant(nr: &Nr, prb: u16) -> Result<(), Problem> {
    let Some(grant) = &nr.configured_grant else { return Ok(()) };
    let allowed = format!("1 to {prb}, the resource blocks of PUSCH");
    Problem::unless(grant.prb <= prb, "cell.nr.configured_grant.prb", grant.prb, &allowed)?;
    let rows = McsTable::from(nr.uplink_mcs_table).rows().len();
    let allowed = format!("0 to {}, the indices of uplink_mcs_table with a code rate", rows - 1);
    Problem::unless(usize::from(grant.mcs) < rows, "cell.nr.configured_grant.mcs", grant.mcs, &allowed)
}

/// Refuses a key that has a value.
fn refuse<T: std::fmt::Display>(key: &str, value: Option<&T>, allowed: &str) -> Result<(), Problem> {
    value.map_or(Ok(()), |value| Problem::unless(false, key, value, allowed))
}
