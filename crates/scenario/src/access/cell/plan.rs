//! The carrier of a `[cell]` table: its slots, PRBs, block sizes and timing, resolved from the keys. The cell
//! is built from this plan, and `paceline cell show` prints it. Combinations that 3GPP forbids are errors
//! with the clause.

use super::{AckModeName, Cell, DuplexMode, Nr, RatName, RlcMode};
use crate::limits::Problem;
use paceline_net::units::Hertz;
use paceline_net::{Duration, SlotPattern};
use paceline_ran::lte::prach;
use paceline_ran::lte::tdd::{AckMode, Distances};
use paceline_ran::nr::carrier::{self, FrequencyRange};
use paceline_ran::nr::mcs::McsTable;
use paceline_ran::nr::timing::processing::Capability;
use paceline_ran::nr::timing::{SlotTiming, TimingError};
use paceline_ran::{
    ConfiguredGrant, Duplex, NrConfig, Numerology, PdcpSn, Rat, SlotClock, SlotSpan, resource_blocks,
};

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
    /// Division of the carrier, with the slots of one period of TDD.
    pub duplex: Duplex,
    /// Sharing of an uplink subframe by HARQ-ACKs in LTE TDD.
    pub ack_mode: AckMode,
    /// Downlink PRBs.
    pub downlink_prb: u16,
    /// Uplink PRBs, those of PUCCH included.
    pub uplink_prb: u16,
    /// Uplink PRBs of PUCCH.
    pub pucch_prb: u16,
    /// Distances between assignment, acknowledgment, grant and transmission.
    pub timing: SlotTiming,
    /// The radio technology with its parameters.
    pub rat: Rat,
    /// Highest uplink MCS of LTE (TS 36.213 Table 8.6.1-1).
    pub max_uplink_mcs: u8,
    /// Bandwidth of the uplink in MHz.
    pub uplink_mhz: f64,
    /// Range of the carrier frequency; none in LTE.
    pub range: Option<FrequencyRange>,
}

impl CellPlan {
    /// The slots of one period of TDD; none in FDD.
    pub fn pattern(&self) -> Option<&SlotPattern> {
        match &self.duplex {
            Duplex::Fdd => None,
            Duplex::Tdd(pattern) => Some(pattern),
        }
    }
    /// The plan of a table whose single keys were checked, and whose defaults were completed.
    pub(crate) fn of(cell: &Cell) -> Result<Self, Problem> {
        match cell.rat {
            RatName::Lte => lte(cell),
            RatName::Nr => nr(cell, cell.nr.as_ref().unwrap_or(&Nr::default())),
        }
    }
}

fn lte(cell: &Cell) -> Result<CellPlan, Problem> {
    let of_nr = "left out with rat = \"lte\"; rat = \"nr\" has it";
    refuse("cell.frequency", cell.frequency.as_ref(), of_nr)?;
    refuse("cell.numerology", cell.numerology.as_ref(), of_nr)?;
    refuse("cell.subcarrier_spacing", cell.subcarrier_spacing.as_ref(), of_nr)?;
    let pattern = "left out with rat = \"lte\", whose slots are those of tdd_configuration (TS 36.211 §4.2); rat = \"nr\" has it";
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
        refuse("cell.ack_mode", cell.ack_mode.map(|_| "given").as_ref(), allowed)?;
    }
    let fdd = (Duplex::Fdd, SlotTiming::lte_fdd(), AckMode::Multiplexing);
    let (duplex, timing, ack_mode) = if tdd { lte_tdd(cell)? } else { fdd };
    let prb = |hertz: Hertz| resource_blocks(hertz.0 / 1000).expect("bandwidths are checked before");
    Ok(CellPlan {
        numerology: Numerology::LTE,
        duplex,
        ack_mode,
        downlink_prb: prb(cell.bandwidth),
        uplink_prb: prb(cell.uplink_bandwidth.unwrap_or(cell.bandwidth)),
        pucch_prb: cell.pucch_prb,
        timing,
        rat: Rat::Lte,
        max_uplink_mcs: max_uplink_mcs(cell),
        uplink_mhz: cell.uplink_bandwidth.unwrap_or(cell.bandwidth).0 as f64 / 1e6,
        range: None,
    })
}

fn max_uplink_mcs(cell: &Cell) -> u8 {
    if cell.uplink_64qam { 28 } else { 20 }
}

fn lte_tdd(cell: &Cell) -> Result<(Duplex, SlotTiming, AckMode), Problem> {
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
    if !cell.sr_period.as_millis().is_multiple_of(half) {
        let reason = format!(
            "in TDD configuration {configuration}, {half} ms and its multiples are allowed: an occasion stands in \
             an uplink subframe (TS 36.213 §10.1.5)"
        );
        return Err(Problem::because("cell.sr_period", cell.sr_period, reason));
    }
    let indices: Vec<u8> = prach::tdd_indices(configuration).collect();
    if !indices.contains(&cell.prach_config_index) {
        let reason = format!(
            "in TDD configuration {configuration}, {} have an occasion (TS 36.211 Table 5.7.1-4)",
            list(&indices)
        );
        return Err(Problem::because("cell.prach_config_index", cell.prach_config_index, reason));
    }
    let ack_mode = ack_mode(cell, configuration, distances)?;
    Ok((Duplex::Tdd(pattern), SlotTiming::lte_tdd(distances), ack_mode))
}

fn ack_mode(cell: &Cell, configuration: u8, distances: &Distances) -> Result<AckMode, Problem> {
    let multiplexing = distances.allows(AckMode::Multiplexing);
    match cell.ack_mode {
        Some(AckModeName::Multiplexing) if !multiplexing => {
            let reason = format!("configuration {configuration} has bundling alone (TS 36.213 §7.3)");
            Err(Problem::because("cell.ack_mode", "multiplexing", reason))
        }
        Some(AckModeName::Bundling) => Ok(AckMode::Bundling),
        None if !multiplexing => Ok(AckMode::Bundling),
        Some(AckModeName::Multiplexing) | None => Ok(AckMode::Multiplexing),
    }
}

fn nr(cell: &Cell, nr: &Nr) -> Result<CellPlan, Problem> {
    let of_lte = "left out with rat = \"nr\"";
    refuse("cell.lte", cell.lte.as_ref().map(|_| &"{ .. }"), of_lte)?;
    refuse("cell.tdd_configuration", cell.tdd_configuration.as_ref(), of_lte)?;
    refuse("cell.special_subframe", cell.special_subframe.as_ref(), of_lte)?;
    refuse("cell.ack_mode", cell.ack_mode.map(|_| "given").as_ref(), of_lte)?;
    if let (Some(numerology), Some(_)) = (cell.numerology, cell.subcarrier_spacing) {
        return Err(Problem::because(
            "cell.numerology",
            numerology,
            "give it or subcarrier_spacing, not both",
        ));
    }
    let numerology = cell.mu().and_then(Numerology::new).expect("numerologies are checked before");
    let frequency = cell.frequency.expect("the default was completed");
    let range = FrequencyRange::of_ghz(frequency.0 as f64 / 1e9).ok_or_else(|| {
        let reason =
            "allowed: 410 MHz to 7125 MHz (FR1) and 24250 MHz to 52600 MHz (FR2) (TS 38.101-1 Table 5.1-1)";
        Problem::because("cell.frequency", frequency, reason)
    })?;
    let tdd = cell.duplex == Some(DuplexMode::Tdd);
    if range == FrequencyRange::Fr2 && !tdd {
        let reason = "bands of FR2 are TDD: give pattern (TS 38.101-2 Table 5.2-1)";
        return Err(Problem::because("cell.duplex", "\"fdd\"", reason));
    }
    let duplex = match (tdd, &cell.pattern) {
        (true, Some(pattern)) => Duplex::Tdd(pattern.slots(numerology.mu())?),
        (true, None) => {
            let reason = "needs pattern, such as \"DDDSU\" (TS 38.331 tdd-UL-DL-ConfigurationCommon)";
            return Err(Problem::because("cell.duplex", "\"tdd\"", reason));
        }
        (false, given) => {
            refuse("cell.pattern", given.as_ref(), "left out with duplex = \"fdd\"")?;
            Duplex::Fdd
        }
    };
    let prb = |key: &str, bandwidth: Hertz| {
        let mhz = (bandwidth.0 / 1_000_000) as u32;
        carrier::resource_blocks(range, mhz, numerology)
            .map_err(|error| Problem::because(key, bandwidth, error))
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
    let fr1 = nr.capability == 1 || range == FrequencyRange::Fr1;
    let allowed = "1 in FR2 (TS 38.214 Tables 5.3-2 and 6.4-2)";
    Problem::unless(fr1, "cell.nr.capability", nr.capability, allowed)?;
    let of_lte =
        "left at 3 with rat = \"nr\", whose PRACH has one occasion in every frame (TS 38.211 §6.3.3.2)";
    let index = cell.prach_config_index;
    Problem::unless(index == Cell::default().prach_config_index, "cell.prach_config_index", index, of_lte)?;
    let of_lte =
        "left out with rat = \"nr\", whose stations follow cell.nr.uplink_mcs_table (TS 38.214 §6.1.4.1)";
    Problem::unless(!cell.uplink_64qam, "cell.uplink_64qam", cell.uplink_64qam, of_lte)?;
    let mut config = nr_config(nr, cell.rlc, numerology);
    let lead = cell.lead();
    config.lead = SlotSpan(u64::from(lead.slots)) + SlotClock::new(numerology).span(lead.radio);
    let timing = nr_timing(nr, &config, numerology, &duplex)?;
    check_periods(cell, nr, numerology, timing.period() as u64)?;
    check_beams(nr, range, frequency)?;
    check_grant(nr, uplink_prb - cell.pucch_prb)?;
    Ok(CellPlan {
        numerology,
        duplex,
        ack_mode: AckMode::Multiplexing,
        downlink_prb,
        uplink_prb,
        pucch_prb: cell.pucch_prb,
        timing,
        rat: Rat::Nr(config),
        max_uplink_mcs: max_uplink_mcs(cell),
        uplink_mhz: cell.uplink_bandwidth.unwrap_or(cell.bandwidth).0 as f64 / 1e6,
        range: Some(range),
    })
}

/// The keys of `[cell.nr]` in slots.
fn nr_config(nr: &Nr, rlc: RlcMode, numerology: Numerology) -> NrConfig {
    let default_reordering = Duration::from_millis(if rlc == RlcMode::Am { 500 } else { 100 });
    let clock = SlotClock::new(numerology);
    NrConfig {
        downlink_table: nr.mcs_table.into(),
        uplink_table: nr.uplink_mcs_table.into(),
        downlink_layers: nr.layers,
        uplink_layers: nr.uplink_layers,
        downlink_antennas: nr.antennas,
        uplink_antennas: nr.uplink_antennas,
        pdcch_symbols: nr.pdcch_symbols,
        dmrs_re: nr.dmrs_re,
        overhead_re: nr.x_overhead,
        ssb_beams: nr.ssb_beams,
        ssb_period: clock.span(nr.ssb_period),
        capability: if nr.capability == 2 { Capability::Two } else { Capability::One },
        min_k1: nr.min_k1,
        min_k2: nr.min_k2,
        stated_k1: nr.k1.clone(),
        gnb_slots: nr.gnb_slots,
        downlink_processes: nr.harq_processes,
        configured_grant: nr.configured_grant.as_ref().map(|grant| ConfiguredGrant {
            period: clock.span(grant.period),
            prbs: grant.prb,
            mcs: grant.mcs,
        }),
        sdap_header: nr.sdap_header,
        pdcp_sn: if nr.pdcp_sn == 12 { PdcpSn::Twelve } else { PdcpSn::Eighteen },
        pdcp_reordering: Some(nr.pdcp_t_reordering.unwrap_or(default_reordering)),
        ..NrConfig::new(numerology)
    }
}

/// The distances of the slots.
fn nr_timing(
    nr: &Nr,
    config: &NrConfig,
    numerology: Numerology,
    duplex: &Duplex,
) -> Result<SlotTiming, Problem> {
    let timing = config.slot_timing(numerology, duplex).map_err(|error| match (&error, &nr.k1) {
        (TimingError::EarlyK2 { .. } | TimingError::Late { name: "K2", .. }, _) => {
            Problem::because("cell.nr.min_k2", nr.min_k2, error)
        }
        (TimingError::EarlyK1 { k1, .. }, _) if *k1 == nr.min_k1 => {
            Problem::because("cell.nr.min_k1", nr.min_k1, error)
        }
        (_, Some(k1)) => Problem::because("cell.nr.k1", list(k1), error),
        (_, None) => Problem::because("cell.nr.min_k1", nr.min_k1, error),
    })?;
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
    let slot = SlotClock::new(numerology).duration(SlotSpan(1));
    let listed = |key: &str, period: Duration, list: &[u64], clause: &str| {
        if slots(period).is_some_and(|count| list.contains(&count)) {
            return Ok(());
        }
        let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
        let reason = format!("allowed are {} slots of {slot} ({clause})", texts.join(", "));
        Err(Problem::because(key, period, reason))
    };
    listed("cell.sr_period", cell.sr_period, &SR_SLOTS, "TS 38.331 SchedulingRequestResourceConfig")?;
    if slots(cell.sr_period).is_some_and(|count| !count.is_multiple_of(pattern)) {
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
    if slots(grant.period).is_some_and(|count| !count.is_multiple_of(pattern)) {
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
