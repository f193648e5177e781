//! Contention-based random access, the station's side (TS 36.321 §5.1): a preamble on the PRACH (TS 36.211
//! §5.7, FDD), the response in its window, Msg3 with HARQ, contention resolution, backoff and further
//! attempts. The eNB's side is `cell/random_access`.
//!
//! The i-th preamble of a procedure is detected with probability `1 - e^-i` (TR 37.868 Table 6.2.2.1.1),
//! which models power ramping. Stations with the same preamble in the same occasion are detected as one: all
//! of them use the response, their Msg3s collide and none is decoded (no capture). Left out: preamble formats
//! 1 to 3, group B, dedicated preambles, timing advance, interference of preambles, release of idle
//! connections, and RRC's T300, T301 and T311: a station tries until it succeeds.

use crate::prb::PrbSet;
use crate::slot::{Slot, SlotSpan};
use crate::timing::RandomAccessTiming;
use paceline_net::Stream;

/// Parameters of random access; times in slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomAccessConfig {
    /// Whether stations have a connection at the start.
    pub connected_at_start: bool,
    /// Whether the PRACH is taken out of PUSCH. Otherwise it shares the PRBs of PUSCH without a loss.
    pub prach_reserved: bool,
    /// prach-ConfigIndex, 0..=15: preamble format 0 (TS 36.211 Table 5.7.1-2).
    pub prach_index: u8,
    /// numberOfRA-Preambles: the contention-based preambles.
    pub preambles: u64,
    /// preambleTransMax.
    pub max_preambles: u32,
    /// ra-ResponseWindowSize.
    pub response_window: SlotSpan,
    /// Largest number of random access responses per slot and cell.
    pub responses: usize,
    /// Backoff in each response.
    pub backoff: SlotSpan,
    /// mac-ContentionResolutionTimer.
    pub contention_timer: SlotSpan,
    /// maxHARQ-Msg3Tx.
    pub max_msg3_tx: u32,
    /// Signalling from contention resolution to the first user data of a new connection.
    pub setup: SlotSpan,
    /// Time from a radio-link failure to the selection of a cell.
    pub cell_selection: SlotSpan,
    /// Signalling of RRC connection re-establishment after contention resolution.
    pub reestablishment: SlotSpan,
}

/// Whether `slot` is a PRACH occasion of preamble format 0 (TS 36.211 Table 5.7.1-2, indices 0 to 15).
pub fn is_prach_occasion(prach_index: u8, slot: Slot) -> bool {
    let (subframe, even) = (slot.0 % 10, (slot.0 / 10).is_multiple_of(2));
    match prach_index {
        0 => even && subframe == 1,
        1 => even && subframe == 4,
        2 => even && subframe == 7,
        3 => subframe == 1,
        4 => subframe == 4,
        5 => subframe == 7,
        6 => subframe % 5 == 1,
        7 => subframe % 5 == 2,
        8 => subframe % 5 == 3,
        9 => subframe % 3 == 1,
        10 => subframe % 3 == 2,
        11 => subframe > 0 && subframe % 3 == 0,
        12 => subframe % 2 == 0,
        13 => subframe % 2 == 1,
        14 => true,
        15 => even && subframe == 9,
        _ => unreachable!("indices above 15 are refused"),
    }
}

/// Probability that the eNB detects the `transmission`-th preamble of a procedure, counted from 1 (TR
/// 37.868).
pub fn detection_probability(transmission: u32) -> f64 {
    1.0 - libm::exp(-f64::from(transmission))
}

/// The event that started a random access procedure (TS 36.300 §10.1.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Data without a connection.
    Initial,
    /// Scheduling requests without a grant: Msg3 carries the C-RNTI and a BSR.
    SchedulingRequest,
    Reestablishment,
    /// Access to the target cell of a handover.
    Handover,
}

/// The uplink grant in a random access response.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Msg3 {
    pub sent_at: Slot,
    pub prbs: PrbSet,
    /// Whether another station uses the same grant.
    pub collided: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// The next preamble goes out in the first occasion from this slot on.
    Ready(Slot),
    /// A preamble was sent in this slot; its response is awaited.
    AwaitingResponse(Slot),
    Granted(Msg3),
    /// Msg3 was sent in this HARQ process; mac-ContentionResolutionTimer runs.
    Contending {
        until: Slot,
        process: usize,
    },
    /// Contention is resolved; service begins in this slot.
    Resolved(Slot),
}

/// The result of checking the timers of a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    None,
    /// An attempt failed; another follows.
    Attempt,
    /// preambleTransMax attempts failed: a random access problem (TS 36.321 §5.1.4 and §5.1.5).
    Problem,
}

#[derive(Clone, Debug)]
pub(crate) struct Procedure {
    pub cause: Cause,
    pub started_at: Slot,
    step: Step,
    /// Preambles sent: PREAMBLE_TRANSMISSION_COUNTER less one.
    transmissions: u32,
    /// The backoff of the last response, in slots.
    backoff: SlotSpan,
    /// The downlink HARQ process that carries Msg4.
    pub msg4: Option<usize>,
}

impl Procedure {
    /// A procedure whose first preamble goes out no earlier than `at`.
    pub fn new(cause: Cause, at: Slot) -> Self {
        Self {
            cause,
            started_at: at,
            step: Step::Ready(at),
            transmissions: 0,
            backoff: SlotSpan(0),
            msg4: None,
        }
    }
    /// Sends a preamble in an occasion if one is due: its index, and the number of preambles sent so far.
    pub fn preamble(&mut self, slot: Slot, preambles: u64, draws: &mut Stream) -> Option<(u64, u32)> {
        if !matches!(self.step, Step::Ready(at) if at <= slot) {
            return None;
        }
        self.step = Step::AwaitingResponse(slot);
        self.transmissions += 1;
        Some((draws.below(preambles), self.transmissions))
    }
    /// Whether the station awaits the response to a preamble of `occasion`.
    pub fn awaits_response(&self, occasion: Slot) -> bool {
        self.step == Step::AwaitingResponse(occasion)
    }
    /// The station received a response PDU to its occasion, for whichever preamble.
    pub fn on_backoff(&mut self, backoff: SlotSpan) {
        self.backoff = backoff;
    }
    pub fn on_response(&mut self, grant: Msg3) {
        self.step = Step::Granted(grant);
    }
    /// The Msg3 that is sent for the first time in `slot`.
    pub fn msg3(&self, slot: Slot) -> Option<Msg3> {
        match self.step {
            Step::Granted(grant) if grant.sent_at == slot => Some(grant),
            _ => None,
        }
    }
    /// Msg3 was transmitted or retransmitted in this process: mac-ContentionResolutionTimer is restarted.
    pub fn on_msg3(&mut self, slot: Slot, process: usize, timer: SlotSpan) {
        let until = slot + timer;
        match &mut self.step {
            Step::Contending { until: running, .. } => *running = until,
            Step::Granted(_) => {
                self.step = Step::Contending { until, process };
            }
            _ => {}
        }
    }
    pub fn msg3_in(&self, process: usize) -> bool {
        matches!(self.step, Step::Contending { process: own, .. } if own == process)
    }
    /// Whether Msg3 was sent and contention is not resolved.
    pub fn contending(&self) -> bool {
        matches!(self.step, Step::Contending { .. })
    }
    /// Contention is resolved; service begins in `at`.
    pub fn resolve(&mut self, at: Slot) {
        self.step = Step::Resolved(at);
    }
    pub fn complete(&self, slot: Slot) -> bool {
        matches!(self.step, Step::Resolved(at) if at <= slot)
    }
    /// Checks the response window and mac-ContentionResolutionTimer. After a failed attempt the next preamble
    /// waits for a backoff drawn uniformly up to the last received one; after a problem the preamble count
    /// starts at zero.
    pub fn expire(
        &mut self,
        slot: Slot,
        config: &RandomAccessConfig,
        timing: &RandomAccessTiming,
        draws: &mut Stream,
    ) -> Expiry {
        let window = timing.window_start + config.response_window;
        let ready = match self.step {
            Step::AwaitingResponse(at) if slot >= at + window => {
                at + window - SlotSpan(1) + timing.next_attempt
            }
            Step::Contending { until, .. } if slot >= until => slot,
            _ => return Expiry::None,
        };
        self.step = Step::Ready(ready + SlotSpan(draws.below(self.backoff.0 + 1)));
        self.msg4 = None;
        if self.transmissions < config.max_preambles {
            return Expiry::Attempt;
        }
        self.transmissions = 0;
        Expiry::Problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::timing::RANDOM_ACCESS;

    const CONFIG: RandomAccessConfig = RandomAccessConfig {
        connected_at_start: false,
        prach_reserved: true,
        prach_index: 3,
        preambles: 52,
        max_preambles: 3,
        response_window: SlotSpan(10),
        responses: 3,
        backoff: SlotSpan(20),
        contention_timer: SlotSpan(48),
        max_msg3_tx: 4,
        setup: SlotSpan(50),
        cell_selection: SlotSpan(50),
        reestablishment: SlotSpan(25),
    };

    #[test]
    fn prach_occasions_are_those_of_the_table() {
        // TS 36.211 Table 5.7.1-2: subframes in an even and in an odd frame.
        let table: [(&[u64], &[u64]); 16] = [
            (&[1], &[]),
            (&[4], &[]),
            (&[7], &[]),
            (&[1], &[1]),
            (&[4], &[4]),
            (&[7], &[7]),
            (&[1, 6], &[1, 6]),
            (&[2, 7], &[2, 7]),
            (&[3, 8], &[3, 8]),
            (&[1, 4, 7], &[1, 4, 7]),
            (&[2, 5, 8], &[2, 5, 8]),
            (&[3, 6, 9], &[3, 6, 9]),
            (&[0, 2, 4, 6, 8], &[0, 2, 4, 6, 8]),
            (&[1, 3, 5, 7, 9], &[1, 3, 5, 7, 9]),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            (&[9], &[]),
        ];
        for (index, (even, odd)) in table.into_iter().enumerate() {
            let of = |frame: u64| -> Vec<u64> {
                (0..10)
                    .filter(|subframe| is_prach_occasion(index as u8, Slot(10 * frame + subframe)))
                    .collect()
            };
            assert_eq!((of(4), of(7)), (even.to_vec(), odd.to_vec()), "index {index}");
        }
    }

    #[test]
    fn an_attempt_without_response_is_repeated_after_window_and_backoff() {
        let mut draws = Stream::new(1, "test");
        let mut procedure = Procedure::new(Cause::Initial, Slot(5));
        assert_eq!(procedure.preamble(Slot(4), 52, &mut draws), None);
        for attempt in 1..=3 {
            let at = Slot(1000 * u64::from(attempt) + 1);
            let (preamble, transmission) = procedure.preamble(at, 52, &mut draws).unwrap();
            assert!(preamble < 52 && transmission == attempt);
            procedure.on_backoff(SlotSpan(20));
            assert_eq!(
                procedure.expire(at + SlotSpan(12), &CONFIG, &RANDOM_ACCESS, &mut draws),
                Expiry::None,
                "the window's last slot"
            );
            let expected = if attempt < 3 { Expiry::Attempt } else { Expiry::Problem };
            assert_eq!(procedure.expire(at + SlotSpan(13), &CONFIG, &RANDOM_ACCESS, &mut draws), expected);
            let Step::Ready(next) = procedure.step else { panic!("{procedure:?}") };
            assert!((at + SlotSpan(16)..=at + SlotSpan(36)).contains(&next), "{next:?}");
        }
        assert_eq!(
            procedure.preamble(Slot(9001), 52, &mut draws).unwrap().1,
            1,
            "the preamble count starts again"
        );
    }

    #[test]
    fn every_transmission_of_msg3_restarts_the_contention_timer() {
        let mut draws = Stream::new(1, "test");
        let mut procedure = Procedure::new(Cause::Initial, Slot(0));
        procedure.preamble(Slot(1), 52, &mut draws).unwrap();
        procedure.on_response(Msg3 { sent_at: Slot(10), prbs: PrbSet::range(2, 3), collided: true });
        assert!(procedure.msg3(Slot(9)).is_none() && procedure.msg3(Slot(10)).is_some());
        procedure.on_msg3(Slot(10), 2, CONFIG.contention_timer);
        procedure.on_msg3(Slot(18), 2, CONFIG.contention_timer);
        assert!(procedure.msg3_in(2) && !procedure.msg3_in(3));
        assert_eq!(procedure.expire(Slot(65), &CONFIG, &RANDOM_ACCESS, &mut draws), Expiry::None);
        assert_eq!(procedure.expire(Slot(66), &CONFIG, &RANDOM_ACCESS, &mut draws), Expiry::Attempt);
        // No backoff was received: the next preamble may go out at once.
        assert_eq!(procedure.step, Step::Ready(Slot(66)));
    }

    #[test]
    fn stations_of_one_occasion_collide_as_often_as_the_closed_form_says() {
        let mut draws = Stream::new(7, "collisions");
        for (preambles, stations) in [(52u64, 2usize), (52, 10), (64, 30), (8, 5), (4, 2), (64, 100)] {
            let rounds = 400_000 / stations;
            let mut collided = 0;
            for _ in 0..rounds {
                let mut chosen = [0usize; 64];
                for _ in 0..stations {
                    let mut procedure = Procedure::new(Cause::Initial, Slot(0));
                    chosen[procedure.preamble(Slot(0), preambles, &mut draws).unwrap().0 as usize] += 1;
                }
                collided += chosen.iter().filter(|count| **count > 1).sum::<usize>();
            }
            let share = collided as f64 / (rounds * stations) as f64;
            let expected = 1.0 - libm::pow(1.0 - 1.0 / preambles as f64, (stations - 1) as f64);
            assert!((share - expected).abs() < 0.01, "{preambles}, {stations}: {share} of {expected}");
        }
    }
}
