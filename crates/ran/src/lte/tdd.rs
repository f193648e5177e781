//! LTE in TDD: the distances between assignment, HARQ-ACK, grant, PUSCH and PHICH of configurations 0 to 6,
//! and the bundling of HARQ-ACKs.
//!
//! The subframes themselves are [`SlotPattern::lte`]. Tables: `lte_tdd_dl_ack_k.csv` (TS 36.213 Table
//! 10.1.3.1-1), `lte_tdd_ul_grant_k.csv` (Table 8-2), `lte_tdd_ul_phich_k.csv` (Tables 9.1.2-1 and 8.3-1).
//! Round trips and numbers of processes follow from them. Left out: subframe bundling (ttiBundling), the
//! channel selection of multiplexing, in which some combinations of NACK and no answer share a code.

use paceline_net::SlotPattern;
use std::sync::LazyLock;

/// Subframes of a frame (TS 36.211 §4).
pub(super) const SUBFRAMES: u8 = 10;
/// Subframes from a HARQ-ACK to the eNB's retransmission. Chosen: four, the least that the numbers of
/// processes of TS 36.213 Table 7-1 leave, and the distance of FDD.
const ENB_SUBFRAMES: u8 = 4;

/// Distances in subframes of one uplink-downlink configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Distances {
    configuration: u8,
    /// Subframes D, S or U; the split of the special subframe does not count.
    pattern: SlotPattern,
    acked: [Vec<u8>; SUBFRAMES as usize],
    grants: [Vec<u8>; SUBFRAMES as usize],
    phich: [Option<u8>; SUBFRAMES as usize],
}

/// How the HARQ-ACKs of several subframes share one uplink subframe (TS 36.213 §7.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckMode {
    /// One answer: ACK if all blocks are decoded.
    Bundling,
    /// One answer for each of up to four subframes.
    Multiplexing,
}

/// An answer to one or several blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// All blocks are decoded.
    Ack,
    /// A block is not decoded.
    Nack,
    /// No answer is sent: the station knows that it missed an assignment, or received none.
    None,
}

static TABLE: LazyLock<[Distances; 7]> = LazyLock::new(|| std::array::from_fn(|i| Distances::read(i as u8)));

impl Distances {
    /// The distances of configuration 0 to 6.
    pub fn of(configuration: u8) -> Option<&'static Self> {
        TABLE.get(usize::from(configuration))
    }
    /// The distances of a pattern whose subframes are those of a configuration, with any special subframe.
    pub fn of_pattern(pattern: &SlotPattern) -> Option<&'static Self> {
        let same = |own: &SlotPattern| {
            own.slot() == pattern.slot()
                && own
                    .slots()
                    .iter()
                    .map(|kind| kind.letter())
                    .eq(pattern.slots().iter().map(|kind| kind.letter()))
        };
        TABLE.iter().find(|distances| same(&distances.pattern))
    }
    /// The configuration, 0 to 6.
    pub fn configuration(&self) -> u8 {
        self.configuration
    }
    /// Whether a subframe has downlink symbols: D or S.
    pub fn is_down(&self, subframe: u8) -> bool {
        self.pattern.kind(u64::from(subframe)).down > 0
    }
    /// Whether a subframe carries PUSCH: U.
    pub fn is_up(&self, subframe: u8) -> bool {
        self.pattern.kind(u64::from(subframe)).down == 0
    }
    /// The set K of an uplink subframe: its HARQ-ACKs are those of the PDSCHs so many subframes before, in
    /// the order of the standard.
    pub fn acked(&self, subframe: u8) -> &[u8] {
        &self.acked[usize::from(subframe % SUBFRAMES)]
    }
    /// Subframes from a PDSCH to its HARQ-ACK; none in an uplink subframe.
    pub fn ack_delay(&self, subframe: u8) -> Option<u8> {
        (1..=13).find(|k| self.acked(subframe + k).contains(k))
    }
    /// Subframes from grants (DCI 0) in a subframe to their PUSCHs. Configuration 0 has two, by the UL index.
    pub fn grants(&self, subframe: u8) -> &[u8] {
        &self.grants[usize::from(subframe % SUBFRAMES)]
    }
    /// Subframes from a PUSCH to its PHICH; none in a downlink subframe.
    pub fn phich_delay(&self, subframe: u8) -> Option<u8> {
        self.phich[usize::from(subframe % SUBFRAMES)]
    }
    /// Subframes from a PDSCH to its earliest retransmission.
    pub fn downlink_round_trip(&self, subframe: u8) -> Option<u8> {
        let earliest = self.ack_delay(subframe)? + ENB_SUBFRAMES;
        (earliest..).find(|span| self.is_down(subframe + span))
    }
    /// Subframes from a PUSCH to its retransmission by PHICH, which is synchronous (TS 36.213 §8). In
    /// configuration 0, a PHICH in subframe 1 or 6, or one for subframe 4 or 9 (I_PHICH 1, §9.1.2), has the
    /// larger distance.
    pub fn uplink_round_trip(&self, subframe: u8) -> Option<u8> {
        let phich = self.phich_delay(subframe)?;
        let at = (subframe + phich) % 5;
        let delays = self.grants(subframe + phich);
        let late = at == 1 || subframe % 5 == 4;
        Some(phich + if late { *delays.last()? } else { *delays.first()? })
    }
    /// Number of downlink HARQ processes: subframes with downlink in the longest round trip (TS 36.213 Table
    /// 7-1).
    pub fn downlink_processes(&self) -> usize {
        let trip = |from| Some((from, self.downlink_round_trip(from)?));
        self.processes(trip, |subframe| self.is_down(subframe))
    }
    /// Number of uplink HARQ processes: uplink subframes in the longest round trip (TS 36.213 Table 8-1).
    pub fn uplink_processes(&self) -> usize {
        self.processes(|from| Some((from, self.uplink_round_trip(from)?)), |subframe| self.is_up(subframe))
    }
    /// Whether a mode exists: more than four subframes in one set allow bundling alone (TS 36.213 §7.3: no
    /// multiplexing in configuration 5).
    pub fn allows(&self, mode: AckMode) -> bool {
        mode == AckMode::Bundling || self.acked.iter().all(|set| set.len() <= 4)
    }

    fn processes(&self, trip: impl Fn(u8) -> Option<(u8, u8)>, counts: impl Fn(u8) -> bool) -> usize {
        let windows = (0..SUBFRAMES).filter_map(trip);
        windows.map(|(from, span)| (from..from + span).filter(|at| counts(*at)).count()).max().unwrap_or(0)
    }
    fn read(configuration: u8) -> Self {
        let mut distances = Self {
            configuration,
            pattern: SlotPattern::lte(configuration, 7).expect("configurations 0 to 6"),
            acked: Default::default(),
            grants: Default::default(),
            phich: [None; SUBFRAMES as usize],
        };
        for fields in rows(configuration, include_str!("../../data/lte_tdd_dl_ack_k.csv")) {
            distances.acked[usize::from(fields[0][0])].clone_from(&fields[1]);
        }
        for fields in rows(configuration, include_str!("../../data/lte_tdd_ul_grant_k.csv")) {
            let delays = fields[1].iter().chain(&fields[3]);
            distances.grants[usize::from(fields[0][0])] = delays.copied().collect();
        }
        for fields in rows(configuration, include_str!("../../data/lte_tdd_ul_phich_k.csv")) {
            distances.phich[usize::from(fields[0][0])] = Some(fields[1][0]);
        }
        distances
    }
}

/// The bundled answer to the assignments that a station received in the subframes of one set, each with its
/// downlink assignment index (1 to 4) and whether its block was decoded. Fewer assignments than the last
/// index counts mean that one was missed, and then there is no answer (TS 36.213 §7.3).
pub fn bundle(received: &[(u8, bool)]) -> Answer {
    let Some((index, _)) = received.last() else { return Answer::None };
    if (received.len() as u8 - 1) % 4 + 1 != *index {
        return Answer::None;
    }
    if received.iter().all(|(_, decoded)| *decoded) { Answer::Ack } else { Answer::Nack }
}

/// The multiplexed answers of one set: one for each subframe, of which `received` has the decoding result or
/// none without an assignment (TS 36.213 §7.3).
pub fn multiplex(received: &[Option<bool>]) -> impl Iterator<Item = Answer> {
    received.iter().map(|block| match block {
        None => Answer::None,
        Some(true) => Answer::Ack,
        Some(false) => Answer::Nack,
    })
}

/// PRBs whose column of the transport block size table a PDSCH of `n_prb` PRBs has in a special subframe with
/// `dwpts` downlink symbols; none where DwPTS carries no PDSCH, in configurations 0 and 5 (TS 36.213 §7.1.7).
pub fn dwpts_tbs_prbs(n_prb: u8, dwpts: u8) -> Option<u8> {
    let eighths = match dwpts {
        0..=3 => return None,
        4..=6 => 3,
        _ => 6,
    };
    Some(((u16::from(n_prb) * eighths / 8) as u8).max(1))
}

/// Rows of a file for a configuration; fields are lists of numbers with spaces between them.
fn rows(configuration: u8, text: &str) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let numbers = |field: &str| field.split(' ').filter_map(|number| number.parse().ok()).collect();
    let lists = lines.map(move |line| line.split(',').map(numbers).collect::<Vec<Vec<u8>>>());
    lists.filter(move |fields| fields[0] == [configuration]).map(|mut fields| fields.split_off(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::SlotKind;

    fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
        let rows = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        rows.map(|line| line.split(',').collect())
    }

    #[test]
    fn numbers_of_processes_are_those_of_the_standard() {
        for fields in lines(include_str!("../../data/lte_tdd_config.csv")) {
            let configuration: u8 = fields[0].parse().unwrap();
            let distances = Distances::of(configuration).unwrap();
            assert_eq!(distances.configuration, configuration);
            assert_eq!(distances.downlink_processes().to_string(), fields[12], "{fields:?}");
            assert_eq!(distances.uplink_processes().to_string(), fields[13], "{fields:?}");
            for subframe in 0..10 {
                let letter = fields[2 + usize::from(subframe)];
                assert_eq!(distances.pattern.kind(u64::from(subframe)).letter().to_string(), letter);
                assert_eq!(distances.is_up(subframe), letter == "U");
            }
        }
        assert_eq!(Distances::of(7), None);
        for (configuration, special) in
            (0..7).flat_map(|configuration| (0..=10).map(move |s| (configuration, s)))
        {
            let pattern = SlotPattern::lte(configuration, special).unwrap();
            assert_eq!(Distances::of_pattern(&pattern), Distances::of(configuration));
        }
        assert_eq!(Distances::of_pattern(&SlotPattern::from_letters("DSUUU", 0).unwrap()), None);
    }

    #[test]
    fn every_row_of_the_downlink_round_trips_holds() {
        let mut count = 0;
        for fields in lines(include_str!("../../data/lte_tdd_dl_harq_rtt.csv")) {
            let [configuration, subframe] = [0, 1].map(|i| fields[i].parse().unwrap());
            let distances = Distances::of(configuration).unwrap();
            assert_eq!(distances.ack_delay(subframe).unwrap().to_string(), fields[3], "{fields:?}");
            assert_eq!(distances.downlink_round_trip(subframe).unwrap().to_string(), fields[4], "{fields:?}");
            count += 1;
        }
        assert_eq!(count, 47);
    }

    #[test]
    fn every_row_of_the_uplink_round_trips_holds() {
        for fields in lines(include_str!("../../data/lte_tdd_ul_phich_k.csv")) {
            let [configuration, subframe] = [0, 1].map(|i| fields[i].parse().unwrap());
            let distances = Distances::of(configuration).unwrap();
            let trip = distances.uplink_round_trip(subframe).unwrap();
            assert!(fields[4].split(' ').any(|span| span == trip.to_string()), "{fields:?} {trip}");
            assert!(
                distances.is_up(subframe + trip),
                "{fields:?}: a retransmission is in an uplink subframe"
            );
            let phich = (subframe + distances.phich_delay(subframe).unwrap()) % 10;
            assert_eq!(phich.to_string(), fields[3]);
            assert!(distances.is_down(phich));
        }
        // Configuration 0 walks through its six uplink subframes.
        let walk = (0..6).scan(2, |at, _| {
            *at = (*at + Distances::of(0)?.uplink_round_trip(*at)?) % 10;
            Some(*at)
        });
        assert_eq!(walk.collect::<Vec<u8>>(), [3, 4, 7, 8, 9, 2]);
    }

    #[test]
    fn every_downlink_subframe_has_one_answer_and_every_uplink_subframe_a_grant() {
        for distances in TABLE.iter() {
            for subframe in 0..10 {
                assert_eq!(distances.ack_delay(subframe).is_some(), distances.is_down(subframe));
                let grants = (0..10).flat_map(|at| distances.grants(at).iter().map(move |k| (at + k) % 10));
                assert_eq!(grants.filter(|at| *at == subframe).count() > 0, distances.is_up(subframe));
            }
            let answers: usize = distances.acked.iter().map(Vec::len).sum();
            assert_eq!(answers, (0..10).filter(|at| distances.is_down(*at)).count());
        }
    }

    #[test]
    fn bundles_are_acknowledged_only_if_complete() {
        assert_eq!(bundle(&[(1, true), (2, true)]), Answer::Ack);
        assert_eq!(bundle(&[(1, true), (2, false)]), Answer::Nack);
        // The assignment with index 2 was missed.
        assert_eq!(bundle(&[(1, true), (3, true)]), Answer::None);
        assert_eq!(bundle(&[]), Answer::None);
        // The index counts modulo 4.
        assert_eq!(bundle(&[1, 2, 3, 4, 1].map(|index| (index, true))), Answer::Ack);
        let answers: Vec<Answer> = multiplex(&[Some(true), None, Some(false)]).collect();
        assert_eq!(answers, [Answer::Ack, Answer::None, Answer::Nack]);
        let allowed = TABLE.iter().filter(|distances| distances.allows(AckMode::Multiplexing));
        assert_eq!(allowed.map(|distances| distances.configuration).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6]);
    }

    #[test]
    fn special_subframes_have_the_symbols_of_the_table() {
        let carries: Vec<bool> = lines(include_str!("../../data/lte_tdd_special_subframe.csv"))
            .map(|fields| {
                let [special, down, guard, up] = [0, 1, 2, 3].map(|i| fields[i].parse().unwrap());
                let kind = SlotPattern::lte(2, special).unwrap().kind(1);
                assert_eq!((kind, kind.guard()), (SlotKind { down, up }, guard));
                dwpts_tbs_prbs(50, down).is_some()
            })
            .collect();
        assert_eq!((carries[0], carries[5]), (false, false));
        assert_eq!(carries.iter().filter(|carries| **carries).count(), 9);
        assert_eq!(
            [dwpts_tbs_prbs(50, 10), dwpts_tbs_prbs(50, 6), dwpts_tbs_prbs(1, 10)],
            [Some(37), Some(18), Some(1)]
        );
    }
}
