//! Time division duplex: the slots of one period and the direction of their symbols.
//!
//! A [`SlotPattern`] comes from the shorthand of one letter per slot (`"DDDSU"`), from the numbers of
//! tdd-UL-DL-ConfigurationCommon (TS 38.331 §6.3.2, rules in TS 38.213 §11.1), or from an LTE configuration
//! (TS 36.211 §4.2). Symbols count 14 per slot, normal cyclic prefix. Left out: patterns of a single station
//! (tdd-UL-DL-ConfigurationDedicated), slot formats of DCI 2_0, extended cyclic prefix.

use crate::time::Duration;
use std::fmt;

/// Symbols of a slot with normal cyclic prefix (TS 38.211 Table 4.3.2-1, TS 36.211 §5.2.3).
pub const SYMBOLS_PER_SLOT: u8 = 14;
/// Periods in microseconds of dl-UL-TransmissionPeriodicity and its extension v1530 (TS 38.331 §6.3.2).
const PERIODS_US: [u64; 10] = [500, 625, 1000, 1250, 2000, 2500, 3000, 4000, 5000, 10_000];
/// The span in microseconds that whole periods fill (TS 38.213 §11.1).
const FRAMES_US: u64 = 20_000;
/// Symbols of a special slot whose split is not written. Chosen: downlink 10, guard 2, uplink 2 is the usual
/// split of `DDDSU` (examples of srsRAN_Project).
const DEFAULT_SPECIAL: SlotKind = SlotKind { down: 10, up: 2 };
/// Subframes of configurations 0 to 6 (TS 36.211 Table 4.2-2).
const LTE_SUBFRAMES: [&str; 7] =
    ["DSUUUDSUUU", "DSUUDDSUUD", "DSUDDDSUDD", "DSUUUDDDDD", "DSUUDDDDDD", "DSUDDDDDDD", "DSUUUDSUUD"];
/// Symbols of DwPTS and UpPTS in special subframe configurations 0 to 10, normal cyclic prefix in both
/// directions (TS 36.211 Table 4.2-1).
const LTE_SPECIAL: [(u8, u8); 11] =
    [(3, 1), (9, 1), (10, 1), (11, 1), (12, 1), (3, 2), (9, 2), (10, 2), (11, 2), (6, 2), (6, 6)];

/// The symbols of one slot: `down` downlink symbols first, `up` uplink symbols last, none of both between.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SlotKind {
    /// Number of downlink symbols.
    pub down: u8,
    /// Number of uplink symbols.
    pub up: u8,
}

impl SlotKind {
    /// A slot of downlink symbols alone, by definition 14.
    pub const DOWN: Self = Self { down: SYMBOLS_PER_SLOT, up: 0 };
    /// A slot of uplink symbols alone, by definition 14.
    pub const UP: Self = Self { down: 0, up: SYMBOLS_PER_SLOT };
    /// A slot of flexible symbols alone, by definition without a direction.
    pub const FLEXIBLE: Self = Self { down: 0, up: 0 };

    /// Number of symbols without a direction.
    pub const fn guard(self) -> u8 {
        SYMBOLS_PER_SLOT - self.down - self.up
    }
    /// The letter of the shorthand: `D`, `U`, `F` (no direction) or `S` (special).
    pub const fn letter(self) -> char {
        match (self.down, self.up) {
            (SYMBOLS_PER_SLOT, _) => 'D',
            (_, SYMBOLS_PER_SLOT) => 'U',
            (0, 0) => 'F',
            _ => 'S',
        }
    }
}

/// One pattern of tdd-UL-DL-ConfigurationCommon (TS 38.331 §6.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommonPattern {
    /// dl-UL-TransmissionPeriodicity.
    pub period: Duration,
    /// nrofDownlinkSlots.
    pub down_slots: u8,
    /// nrofDownlinkSymbols, in the slot after the downlink slots.
    pub down_symbols: u8,
    /// nrofUplinkSlots.
    pub up_slots: u8,
    /// nrofUplinkSymbols, in the slot before the uplink slots.
    pub up_symbols: u8,
}

/// The slots of one period; two patterns are joined into one period.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SlotPattern {
    slot_ns: u32,
    slots: Box<[SlotKind]>,
}

/// A pattern is not allowed or not readable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// The numerology has no slot length here.
    #[error("numerology {0}: allowed are 0 to 3, 15 to 120 kHz (TS 38.211 Table 4.2-1)")]
    Numerology(u8),
    /// The text of a carrier has no subcarrier spacing.
    #[error(
        "\"{0}\": write the slots and the subcarrier spacing, 15, 30, 60 or 120 kHz, such as \"DDDSU/30kHz\" or \
         \"DDDDDDDSUU 6:4:4/30kHz\""
    )]
    Carrier(String),
    /// The shorthand has a character that is no slot, or no slot at all.
    #[error(
        "pattern \"{0}\": write one letter D, S, U or F per slot, and the special slot's symbols if they are \
         not 10:2:2, such as \"DDDSU\" or \"DDDDDDDSUU 6:4:4\""
    )]
    Letters(String),
    /// The split of a special slot is not three numbers that sum to 14.
    #[error(
        "pattern \"{pattern}\": \"{split}\" is no split of a special slot: write downlink, guard and uplink \
         symbols that sum to 14, such as 10:2:2, once for all special slots or once for each"
    )]
    Split {
        /// The whole text.
        pattern: String,
        /// The refused part.
        split: String,
    },
    /// The directions alternate more often than two patterns can.
    #[error(
        "pattern \"{0}\": downlink, flexible and uplink symbols must follow in this order, in one pattern or \
         in two (TS 38.213 §11.1)"
    )]
    Order(String),
    /// A direction has no symbols.
    #[error("pattern \"{0}\": both directions need symbols: a slot D or S, and a slot U")]
    OneDirection(String),
    /// The period is none of the standard's.
    #[error(
        "a TDD period of {period} at {khz} kHz: allowed are {allowed}, one of them or two whose sum divides \
         20 ms (TS 38.331 dl-UL-TransmissionPeriodicity, TS 38.213 §11.1)"
    )]
    Period {
        /// The refused period.
        period: Duration,
        /// Subcarrier spacing.
        khz: u32,
        /// Periods that are whole numbers of slots.
        allowed: String,
    },
    /// Slots and symbols of a pattern exceed its period.
    #[error(
        "{0}: the downlink and uplink slots and symbols must fit into the {1} slots of the period; symbols \
         are 0 to 13 (TS 38.331 TDD-UL-DL-Pattern, TS 38.213 §11.1)"
    )]
    Sum(CommonPattern, u64),
    /// No such LTE configuration.
    #[error("LTE uplink-downlink configuration {0}: allowed are 0 to 6 (TS 36.211 Table 4.2-2)")]
    LteConfiguration(u8),
    /// No such special subframe configuration.
    #[error("LTE special subframe configuration {0}: allowed are 0 to 10 (TS 36.211 Table 4.2-1)")]
    LteSpecial(u8),
}

impl SlotPattern {
    /// Reads the shorthand for slots of a numerology: one letter per slot, then the split of the special
    /// slots, `"DDDSU"` or `"DDDSU 10:2:2"`. A split holds for all special slots, or there is one for each.
    pub fn from_letters(text: &str, numerology: u8) -> Result<Self, PatternError> {
        let slot_ns = slot_ns(numerology)?;
        let mut words = text.split_whitespace();
        let letters = words.next().ok_or_else(|| PatternError::Letters(text.into()))?;
        let splits = words.map(|word| split(text, word)).collect::<Result<Vec<_>, _>>()?;
        let special = letters.chars().filter(|letter| *letter == 'S').count();
        if splits.len() > 1 && splits.len() != special || special == 0 && !splits.is_empty() {
            let split = text.trim_start()[letters.len()..].trim().to_owned();
            return Err(PatternError::Split { pattern: text.into(), split });
        }
        let mut of_special = splits.iter().copied().cycle();
        let slots = letters.chars().map(|letter| match letter {
            'D' => Ok(SlotKind::DOWN),
            'U' => Ok(SlotKind::UP),
            'F' => Ok(SlotKind::FLEXIBLE),
            'S' => Ok(of_special.next().unwrap_or(DEFAULT_SPECIAL)),
            _ => Err(PatternError::Letters(text.into())),
        });
        let pattern = Self { slot_ns, slots: slots.collect::<Result<_, _>>()? };
        pattern.check_parts()?;
        pattern.with_both_directions()
    }
    /// A pattern with its subcarrier spacing: `"DDDSU/30kHz"`, `"DDDDDDDSUU 6:4:4/30kHz"`.
    pub fn from_carrier(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError::Carrier(text.into());
        let (letters, spacing) = text.rsplit_once('/').ok_or_else(wrong)?;
        let numerology = match spacing.trim().strip_suffix("kHz").map(str::trim) {
            Some("15") => 0,
            Some("30") => 1,
            Some("60") => 2,
            Some("120") => 3,
            _ => return Err(wrong()),
        };
        Self::from_letters(letters, numerology)
    }
    /// The pattern of tdd-UL-DL-ConfigurationCommon: `first`, and `second` if there is one.
    pub fn from_common(
        numerology: u8,
        first: CommonPattern,
        second: Option<CommonPattern>,
    ) -> Result<Self, PatternError> {
        let slot_ns = slot_ns(numerology)?;
        let (mut slots, mut sum) = (Vec::new(), Duration::ZERO);
        for part in std::iter::once(first).chain(second) {
            check_period(part.period, slot_ns)?;
            slots.extend(part.slots(part.period.as_nanos() / u64::from(slot_ns))?);
            sum += part.period;
        }
        check_sum(sum, slot_ns)?;
        Self { slot_ns, slots: slots.into() }.with_both_directions()
    }
    /// LTE configuration 0 to 6 with special subframe configuration 0 to 10: ten subframes of 1 ms.
    pub fn lte(configuration: u8, special: u8) -> Result<Self, PatternError> {
        let letters = LTE_SUBFRAMES.get(usize::from(configuration));
        let letters = letters.ok_or(PatternError::LteConfiguration(configuration))?;
        let split = LTE_SPECIAL.get(usize::from(special)).ok_or(PatternError::LteSpecial(special))?;
        let slots = letters.chars().map(|letter| match letter {
            'D' => SlotKind::DOWN,
            'U' => SlotKind::UP,
            _ => SlotKind { down: split.0, up: split.1 },
        });
        Ok(Self { slot_ns: slot_ns(0)?, slots: slots.collect() })
    }
    /// Length of a slot.
    pub const fn slot(&self) -> Duration {
        Duration::from_nanos(self.slot_ns as u64)
    }
    /// Length of the period.
    pub fn period(&self) -> Duration {
        self.slot() * self.slots.len() as u64
    }
    /// The slots of one period.
    pub fn slots(&self) -> &[SlotKind] {
        &self.slots
    }
    /// The slot with this number since the start of a period.
    pub fn kind(&self, index: u64) -> SlotKind {
        self.slots[(index % self.slots.len() as u64) as usize]
    }
    /// Share of the downlink in the symbols of a period, from 0 to 1.
    pub fn down_share(&self) -> f64 {
        self.share(|slot| slot.down)
    }
    /// Share of the uplink in the symbols of a period, from 0 to 1.
    pub fn up_share(&self) -> f64 {
        self.share(|slot| slot.up)
    }

    fn share(&self, symbols: impl Fn(&SlotKind) -> u8) -> f64 {
        let count: u32 = self.slots.iter().map(|slot| u32::from(symbols(slot))).sum();
        f64::from(count) / (self.slots.len() as f64 * f64::from(SYMBOLS_PER_SLOT))
    }
    /// Whether the slots are one pattern, or two of allowed periods.
    fn check_parts(&self) -> Result<(), PatternError> {
        check_sum(self.period(), self.slot_ns)?;
        let span = |count: usize| self.slot() * count as u64;
        let mut refused = Err(PatternError::Order(self.to_string()));
        for at in 1..=self.slots.len() {
            let (first, second) = self.slots.split_at(at);
            if !ordered(first) || !ordered(second) {
                continue;
            }
            let mut periods = [first, second].into_iter().filter(|part| !part.is_empty());
            refused = periods.try_for_each(|part| check_period(span(part.len()), self.slot_ns));
            if refused.is_ok() {
                break;
            }
        }
        refused
    }
    fn with_both_directions(self) -> Result<Self, PatternError> {
        let down = self.slots.iter().any(|slot| slot.down > 0);
        let up = self.slots.contains(&SlotKind::UP);
        if down && up { Ok(self) } else { Err(PatternError::OneDirection(self.to_string())) }
    }
}

impl CommonPattern {
    /// The slots of this pattern, whose period has `count` slots.
    fn slots(self, count: u64) -> Result<Vec<SlotKind>, PatternError> {
        let (down, up) = (u64::from(self.down_slots), u64::from(self.up_slots));
        let symbols = u64::from(self.down_symbols) + u64::from(self.up_symbols);
        let fits = match count.checked_sub(down + up) {
            None => false,
            Some(0) => symbols == 0,
            Some(1) => symbols <= u64::from(SYMBOLS_PER_SLOT),
            Some(_) => true,
        };
        if !fits || self.down_symbols.max(self.up_symbols) >= SYMBOLS_PER_SLOT {
            return Err(PatternError::Sum(self, count));
        }
        let kind = |index| match index {
            index if index < down => SlotKind::DOWN,
            index if index >= count - up => SlotKind::UP,
            index => SlotKind {
                down: if index == down { self.down_symbols } else { 0 },
                up: if index + 1 == count - up { self.up_symbols } else { 0 },
            },
        };
        Ok((0..count).map(kind).collect())
    }
}

impl fmt::Display for CommonPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { down_slots, down_symbols, up_slots, up_symbols, .. } = self;
        write!(f, "{down_slots} downlink slots and {down_symbols} symbols, ")?;
        write!(f, "{up_slots} uplink slots and {up_symbols} symbols")
    }
}

impl fmt::Display for SlotPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slots.iter().try_for_each(|slot| write!(f, "{}", slot.letter()))?;
        let mut special = self.slots.iter().filter(|slot| slot.letter() == 'S').peekable();
        let Some(first) = special.peek().copied() else { return Ok(()) };
        let same = special.clone().all(|slot| slot == first);
        let shown = if same { 1 } else { special.clone().count() };
        special.take(shown).try_for_each(|slot| write!(f, " {}:{}:{}", slot.down, slot.guard(), slot.up))
    }
}

/// Length in nanoseconds of a slot (TS 38.211 Table 4.3.2-1).
fn slot_ns(numerology: u8) -> Result<u32, PatternError> {
    if numerology > 3 { Err(PatternError::Numerology(numerology)) } else { Ok(1_000_000 >> numerology) }
}

/// Reads `"10:2:2"`, a part of the shorthand `pattern`.
fn split(pattern: &str, word: &str) -> Result<SlotKind, PatternError> {
    let numbers: Option<Vec<u8>> = word.split(':').map(|number| number.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[down, guard, up])
            if u32::from(down) + u32::from(guard) + u32::from(up) == u32::from(SYMBOLS_PER_SLOT)
                && down < SYMBOLS_PER_SLOT
                && up < SYMBOLS_PER_SLOT =>
        {
            Ok(SlotKind { down, up })
        }
        _ => Err(PatternError::Split { pattern: pattern.into(), split: word.into() }),
    }
}

/// Whether the symbols of these slots are downlink, then flexible, then uplink.
fn ordered(slots: &[SlotKind]) -> bool {
    let mut phase = 0;
    slots.iter().all(|slot| {
        [slot.down, slot.guard(), slot.up].into_iter().zip(0..).filter(|(count, _)| *count > 0).all(
            |(_, direction)| {
                let follows = direction >= phase;
                phase = direction;
                follows
            },
        )
    })
}

fn period_error(period: Duration, slot_ns: u32) -> PatternError {
    let whole = PERIODS_US.into_iter().filter(|us| (us * 1000).is_multiple_of(u64::from(slot_ns)));
    let texts: Vec<String> = whole.map(|us| format!("{}", us as f64 / 1000.0)).collect();
    PatternError::Period { period, khz: 15_000_000 / slot_ns, allowed: format!("{} ms", texts.join(", ")) }
}

fn check_period(period: Duration, slot_ns: u32) -> Result<(), PatternError> {
    let known = PERIODS_US.into_iter().any(|us| Duration::from_micros(us) == period);
    if known && period.as_nanos().is_multiple_of(u64::from(slot_ns)) {
        Ok(())
    } else {
        Err(period_error(period, slot_ns))
    }
}

fn check_sum(sum: Duration, slot_ns: u32) -> Result<(), PatternError> {
    if (FRAMES_US * 1000).is_multiple_of(sum.as_nanos()) { Ok(()) } else { Err(period_error(sum, slot_ns)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(numbers: [u8; 5], numerology: u8) -> CommonPattern {
        let [slots, down_slots, down_symbols, up_slots, up_symbols] = numbers;
        let period = Duration::from_nanos((u64::from(slots) * 1_000_000) >> numerology);
        CommonPattern { period, down_slots, down_symbols, up_slots, up_symbols }
    }

    #[test]
    fn every_row_of_the_patterns_has_its_period_and_shares() {
        let mut count = 0;
        for line in include_str!("../../ran/data/nr_tdd_patterns.csv").lines().skip(3) {
            let fields: Vec<&str> = line.split(',').collect();
            let text = format!("{} {}", fields[0], fields[3..6].join(":"));
            let pattern = SlotPattern::from_letters(&text, 1).unwrap();
            assert_eq!(pattern.to_string(), text);
            assert_eq!(pattern.period().as_millis_f64().to_string(), fields[2].trim_end_matches(".0"));
            for (share, expected) in [(pattern.down_share(), fields[6]), (pattern.up_share(), fields[7])] {
                assert!((share - expected.parse::<f64>().unwrap()).abs() <= 0.000_51, "{line} {share}");
            }
            count += 1;
        }
        assert_eq!(count, 10);
    }

    /// TS 38.101-4 Table A.1.2-2: 52 of 70 symbols are downlink and 16 uplink, in one period or in two.
    #[test]
    fn reference_patterns_fr1_30_have_their_symbols() {
        for (numbers, letters, guard) in
            [([10, 7, 6, 2, 4], "DDDDDDDSUU 6:4:4", 4), ([5, 3, 10, 1, 2], "DDDSU", 2)]
        {
            let pattern = SlotPattern::from_common(1, common(numbers, 1), None).unwrap();
            assert_eq!(pattern, SlotPattern::from_letters(letters, 1).unwrap());
            assert_eq!(format!("{:.4} {:.4}", pattern.down_share(), pattern.up_share()), "0.7429 0.2286");
            assert_eq!(pattern.slots().iter().map(|slot| slot.guard()).sum::<u8>(), guard);
        }
    }

    #[test]
    fn a_carrier_has_slots_and_subcarrier_spacing() {
        let slots = SlotPattern::from_carrier("DDDDDDDSUU 6:4:4/30kHz").unwrap();
        assert_eq!(slots, SlotPattern::from_letters("DDDDDDDSUU 6:4:4", 1).unwrap());
        assert_eq!(SlotPattern::from_carrier("DDDSU/60 kHz").unwrap().period(), Duration::from_micros(1250));
        for text in ["DDDSU", "DDDSU/30", "DDDSU/31kHz", "/30kHz", "DDDSX/30kHz"] {
            let error = SlotPattern::from_carrier(text).expect_err(text).to_string();
            assert!(error.contains("DDDSU"), "{text}: {error}");
        }
    }

    #[test]
    fn two_patterns_are_joined_into_one_period() {
        let (first, second) = (common([6, 3, 6, 2, 4], 1), common([4, 4, 0, 0, 0], 1));
        let pattern = SlotPattern::from_common(1, first, Some(second)).unwrap();
        assert_eq!(pattern.to_string(), "DDDSUUDDDD 6:4:4");
        assert_eq!(pattern.period(), Duration::from_millis(5));
        assert_eq!(pattern.kind(13), SlotKind { down: 6, up: 4 });
        let splits = SlotPattern::from_letters("DDDSUDDSUU 10:2:2 6:4:4", 1).unwrap();
        assert_eq!(splits.kind(7), SlotKind { down: 6, up: 4 });
        assert_eq!(splits.to_string(), "DDDSUDDSUU 10:2:2 6:4:4");
        // 3 ms alone does not divide 20 ms, with 2 ms it does.
        assert!(SlotPattern::from_common(1, first, None).unwrap_err().to_string().contains("divides 20 ms"));
    }

    #[test]
    fn flexible_slots_stand_between_the_directions() {
        let pattern = SlotPattern::from_common(1, common([10, 3, 5, 4, 2], 1), None).unwrap();
        assert_eq!(pattern.to_string(), "DDDSFSUUUU 5:9:0 0:12:2");
        assert_eq!(SlotPattern::from_letters(&pattern.to_string(), 1).unwrap(), pattern);
    }

    #[test]
    fn periods_follow_the_numerology() {
        // Whole slots: 0.625 ms at 120 kHz alone, 1.25 ms from 60 kHz on, 2.5 ms from 30 kHz on.
        for (us, lowest) in [(625, 3), (1250, 2), (2500, 1), (500, 1), (1000, 0), (5000, 0), (10_000, 0)] {
            for numerology in 0..=3 {
                let part = CommonPattern {
                    period: Duration::from_micros(us),
                    down_slots: 0,
                    down_symbols: 0,
                    up_slots: 1,
                    up_symbols: 0,
                };
                let result = SlotPattern::from_common(numerology, part, None);
                let period = matches!(result, Err(PatternError::Period { .. }));
                assert_eq!(period, numerology < lowest, "{us} us, numerology {numerology}");
            }
        }
        let error = SlotPattern::from_letters("DDSU", 0).map(|pattern| pattern.period());
        assert_eq!(error, Ok(Duration::from_millis(4)));
        let error = SlotPattern::from_letters("DDDDDSU", 0).unwrap_err().to_string();
        assert!(error.contains("7 ms at 15 kHz: allowed are 1, 2, 3, 4, 5, 10 ms"), "{error}");
    }

    #[test]
    fn forbidden_patterns_are_refused_with_the_clause() {
        for (text, part) in [
            ("DUDUDUDUDU", "TS 38.213 §11.1"),
            ("DDDXU", "one letter D, S, U or F"),
            ("", "one letter"),
            ("DDDSU 10:2:3", "sum to 14"),
            ("DDDSU 10:2", "sum to 14"),
            ("DDDDU 10:2:2", "sum to 14"),
            ("DDDDD", "both directions"),
            ("UUUUU", "both directions"),
            ("DDDSU 10:2:2 6:4:4", "sum to 14"),
            ("DDSU DDDU", "sum to 14"),
        ] {
            let error = SlotPattern::from_letters(text, 1).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for numbers in [[5, 3, 10, 2, 2], [5, 4, 10, 2, 2], [5, 3, 10, 1, 5], [5, 3, 14, 1, 0]] {
            let error = SlotPattern::from_common(1, common(numbers, 1), None).unwrap_err().to_string();
            assert!(error.contains("5 slots of the period") && error.contains("§11.1"), "{error}");
        }
        assert!(SlotPattern::from_letters("DDDSU", 4).unwrap_err().to_string().contains("0 to 3"));
    }

    #[test]
    fn lte_configurations_have_the_subframes_of_the_table() {
        for (configuration, [down, special, up]) in
            [[2, 2, 6], [4, 2, 4], [6, 2, 2], [6, 1, 3], [7, 1, 2], [8, 1, 1], [3, 2, 5]]
                .into_iter()
                .enumerate()
        {
            let pattern = SlotPattern::lte(configuration as u8, 7).unwrap();
            let count = |letter| pattern.slots().iter().filter(|slot| slot.letter() == letter).count();
            assert_eq!([count('D'), count('S'), count('U')], [down, special, up]);
            assert_eq!(pattern.period(), Duration::from_millis(10));
            assert_eq!(pattern.kind(1), SlotKind { down: 10, up: 2 });
        }
        assert!(SlotPattern::lte(7, 7).unwrap_err().to_string().contains("0 to 6 (TS 36.211 Table 4.2-2)"));
        assert!(SlotPattern::lte(0, 11).unwrap_err().to_string().contains("0 to 10 (TS 36.211 Table 4.2-1)"));
    }
}
