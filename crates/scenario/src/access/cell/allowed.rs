//! The values that the keys of `[cell]` may have, in LTE and in NR.

use super::plan::{CellPlan, SR_SLOTS};
use super::{Cell, RatName, SPACINGS_KHZ};
use crate::limits::{
    self, Allowed, Limit, Problem, Section, key, numbers, one_of, one_of_ms, quantities, relation,
    steps_or_one_of_ms, whole_ms,
};
use paceline_net::units::Hertz;
use paceline_net::{Bytes, Duration};
use paceline_ran::resource_blocks;

/// Checks the table, its inner tables, and what follows from several keys.
pub(crate) fn check(cell: &Cell) -> Result<(), Problem> {
    if let Some(grant) = &cell.proactive_grant {
        limits::check("cell.proactive_grant", grant)?;
    }
    if let Some(lte) = &cell.lte {
        limits::check("cell.lte", lte)?;
    }
    if let Some(nr) = &cell.nr {
        limits::check("cell.nr", nr)?;
        nr.configured_grant.iter().try_for_each(|grant| limits::check("cell.nr.configured_grant", grant))?;
    }
    CellPlan::of(cell).map(|_| ())
}

/// `by_rat!(KEY, ALLOWED IN LTE, ALLOWED IN NR)`: a limit of a key; `KEY?` where it may be left out.
macro_rules! by_rat {
    ($key:ident, $lte:expr, $nr:expr) => {
        Limit::either(
            stringify!($key),
            |cell: &Cell| Some(&cell.$key),
            |cell| cell.rat == RatName::Lte,
            ("LTE", $lte),
            ("NR", $nr),
        )
    };
    ($key:ident?, $lte:expr, $nr:expr) => {
        Limit::either(
            stringify!($key),
            |cell: &Cell| cell.$key.as_ref(),
            |cell| cell.rat == RatName::Lte,
            ("LTE", $lte),
            ("NR", $nr),
        )
    };
}

impl Section for Cell {
    fn computed_defaults() -> Vec<(&'static str, String)> {
        [
            ("rat", "`nr` with a key or bandwidth that only NR has, else `lte`"),
            ("duplex", "`tdd` with `pattern` or `tdd_configuration`, else `fdd`"),
            ("frequency", "3.5 GHz in TDD, 2.1 GHz in FDD (nr)"),
            ("numerology", "0 in FDD, 1 in TDD of FR1, 3 in FR2 (nr)"),
            ("special_subframe", "7 (lte in TDD)"),
            ("ack_mode", "`multiplexing`; `bundling` in configuration 5 (lte in TDD)"),
            ("decode_delay", "2 ms (lte); one slot (nr)"),
        ]
        .map(|(key, text)| (key, text.to_owned()))
        .into()
    }
    fn limits() -> Vec<Limit<Self>> {
        let rlc_timer = |low: u64, more: &[u64]| {
            steps_or_one_of_ms(low, 250, 5, &[&[300, 350, 400, 450, 500], more].concat())
        };
        let subframes = [5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560];
        let detected = |share: &f64| *share > 0.0 && *share <= 1.0;
        let in_fours = |count: &u64| (4..=64).contains(count) && count.is_multiple_of(4);
        let buffer = || quantities("2000 B", "1 GiB");
        vec![
            key!(numerology?, numbers(0..=3)),
            key!(subcarrier_spacing?, spacings()),
            key!(tdd_configuration?, numbers(0..=6)),
            key!(special_subframe?, numbers(0..=9)),
            by_rat!(bandwidth, bandwidths(), nr_bandwidths()),
            by_rat!(uplink_bandwidth?, bandwidths(), nr_bandwidths()),
            relation!(pucch_prb, "less than the resource blocks of the uplink", Self::pucch_fits)
                .message(Self::pucch_allowed)
                .unit("resource blocks"),
            key!(downlink_grants, numbers(1..=40).unit("assignments")),
            key!(uplink_grants, numbers(1..=40).unit("grants")),
            key!(max_harq_tx, numbers(1..=8).unit("transmissions")),
            key!(t_reordering, whole_ms(0..=200)),
            by_rat!(decode_delay, whole_ms(0..=10), quantities("0 ms", "10 ms")),
            key!(cqi_period, whole_ms(1..=160)),
            key!(cqi_delay, whole_ms(0..=40)),
            key!(t_poll_retransmit, rlc_timer(5, &[800, 1000, 2000, 4000])),
            key!(t_status_prohibit, rlc_timer(0, &[800, 1000, 1200, 1600, 2000, 2400])),
            key!(poll_pdu, one_of(&[0, 4, 8, 16, 32, 64, 128, 256]).unit("PDUs")),
            key!(poll_byte, poll_bytes()),
            key!(max_retx_threshold, one_of(&[1, 2, 3, 4, 6, 8, 16, 32]).unit("retransmissions")),
            key!(cell_selection, whole_ms(0..=10_000)),
            key!(reestablishment_signalling, whole_ms(0..=10_000)),
            by_rat!(
                discard_timer?,
                one_of_ms(&[50, 100, 150, 300, 500, 750, 1500]),
                one_of_ms(&[10, 20, 30, 40, 50, 60, 75, 100, 150, 200, 250, 300, 500, 750, 1500])
            ),
            key!(downlink_buffer, buffer()),
            key!(uplink_buffer, buffer()),
            by_rat!(sr_period, one_of_ms(&[1, 2, 5, 10, 20, 40, 80]), sr_periods()),
            key!(sr_prohibit, numbers(0..=7).unit("scheduling request periods")),
            by_rat!(periodic_bsr_timer, one_of_ms(&subframes), one_of_ms(&[&[1][..], &subframes].concat())),
            by_rat!(
                retx_bsr_timer,
                one_of_ms(&[320, 640, 1280, 2560, 5120, 10240]),
                one_of_ms(&[10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240])
            ),
            key!(sr_grant, quantities("7 B", "2000 B").note(" (7 B are a BSR and a byte of data)")),
            key!(sr_detection, Allowed::new("more than 0, at most 1", detected)),
            key!(dsr_trans_max, one_of(&[4, 8, 16, 32, 64]).unit("requests")),
            key!(connection_setup, whole_ms(0..=10_000)),
            key!(prach_config_index, numbers(0..=15)),
            key!(ra_preambles, Allowed::new("4 to 64 in steps of 4", in_fours).unit("preambles")),
            key!(preamble_trans_max, one_of(&[3, 4, 5, 6, 7, 8, 10, 20, 50, 100, 200]).unit("preambles")),
            key!(ra_response_window, one_of_ms(&[2, 3, 4, 5, 6, 7, 8, 10])),
            key!(ra_responses, numbers(1..=16).unit("responses")),
            key!(backoff_indicator, one_of_ms(&[0, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 960])),
            key!(contention_resolution_timer, one_of_ms(&[8, 16, 24, 32, 40, 48, 56, 64])),
            key!(max_harq_msg3_tx, numbers(1..=8).unit("transmissions")),
            relation!(
                prach_config_index,
                "other than 14 where initial_access is true and the PRACH leaves no resource blocks for data",
                Self::prach_leaves_blocks
            )
            .message(|_| "other than 14, which leaves this uplink no resource blocks for data".to_owned()),
        ]
    }
}

impl Cell {
    /// Resource blocks of an LTE uplink; 0 if its bandwidth is not allowed. The plan checks those of NR.
    fn uplink_prb(&self) -> u16 {
        if self.rat == RatName::Nr {
            return u16::MAX;
        }
        prb(self.uplink_bandwidth.unwrap_or(self.bandwidth)).unwrap_or(0)
    }
    fn pucch_fits(&self) -> bool {
        self.pucch_prb < self.uplink_prb()
    }
    fn pucch_allowed(&self) -> String {
        let prb = self.uplink_prb();
        format!("0 to {}, less than the uplink's {prb} resource blocks", prb.saturating_sub(1))
    }
    /// Whether PUSCH has at least 3 resource blocks. Index 14 has a PRACH of 6 resource blocks in every
    /// subframe.
    fn prach_leaves_blocks(&self) -> bool {
        let every_subframe = self.initial_access && self.prach_config_index == 14;
        !every_subframe || self.uplink_prb() >= self.pucch_prb + 6 + 3
    }
}

fn spacings() -> Allowed<Hertz> {
    let known = |spacing: &Hertz| SPACINGS_KHZ.iter().any(|khz| spacing.0 == khz * 1000);
    Allowed::new("15, 30, 60 or 120 kHz (TS 38.211 Table 4.2-1)", known)
}

fn nr_bandwidths() -> Allowed<Hertz> {
    let whole = |bandwidth: &Hertz| bandwidth.0.is_multiple_of(1_000_000) && bandwidth.0 > 0;
    Allowed::new("5 to 400 MHz, as the numerology allows (TS 38.101-1 and -2 Table 5.3.2-1)", whole)
}

/// Whole slots are checked with the numerology, by the plan.
fn sr_periods() -> Allowed<Duration> {
    let list: Vec<String> = SR_SLOTS.iter().map(ToString::to_string).collect();
    Allowed::new(format!("{} slots (TS 38.331 SchedulingRequestResourceConfig)", list.join(", ")), |_| true)
}

fn prb(bandwidth: Hertz) -> Option<u16> {
    bandwidth.0.is_multiple_of(1000).then(|| resource_blocks(bandwidth.0 / 1000)).flatten()
}

fn bandwidths() -> Allowed<Hertz> {
    Allowed::new("1.4, 3, 5, 10, 15 or 20 MHz; others with rat = \"nr\"", |bandwidth| {
        prb(*bandwidth).is_some()
    })
}

/// pollByte in kB, as in TS 36.331; 0 for infinity.
const POLL_KB: [u64; 15] = [0, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000];

fn poll_bytes() -> Allowed<Bytes> {
    let list = POLL_KB.map(|kb| kb.to_string()).join(", ");
    Allowed::new(format!("one of {list} kB; 0 is infinity"), |bytes: &Bytes| {
        POLL_KB.iter().any(|kb| Bytes(kb * 1000) == *bytes)
    })
}
