//! Tables `[cell]` and `[ack_filter]`: one LTE FDD cell and the ACK filter in the stations' uplink buffers.
//!
//! Timers and counters of RLC, PDCP, MAC and random access have the names and the values of TS 36.331 v15.6.0
//! §6.3.2 (RLC-Config, PDCP-Config, MAC-MainConfig, RACH-ConfigCommon, PRACH-Config).

use super::limits::{
    self, Allowed, Limit, Section, key, numbers, one_of, one_of_ms, quantities, relation, steps_or_one_of_ms,
    whole_ms,
};
use paceline_net::units::Hertz;
use paceline_net::{Bytes, Duration};
use paceline_pep::Scheme;
use paceline_ran::resource_blocks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[cell]`: one LTE FDD cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Cell {
    /// Channel bandwidth of the downlink (TS 36.104 Table 5.6-1).
    pub bandwidth: Hertz,
    /// Channel bandwidth of the uplink. If left out, that of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_bandwidth: Option<Hertz>,
    /// Uplink resource blocks that PUCCH takes.
    pub pucch_prb: u16,
    /// Scheduler of the downlink.
    pub scheduler: Scheduler,
    /// Scheduler of the uplink. If left out, that of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_scheduler: Option<Scheduler>,
    /// Largest number of downlink assignments in a TTI. 20 MHz with three PDCCH symbols has 80 CCEs: half of
    /// them for each direction, at aggregation level 4, make 10.
    pub downlink_grants: usize,
    /// Largest number of uplink grants in a TTI.
    pub uplink_grants: usize,
    /// Transmissions of a transport block, the first included, before HARQ gives up. The usual value is 4.
    pub max_harq_tx: u32,
    /// Whether stations can send 64QAM (UE category 5 and some later ones).
    pub uplink_64qam: bool,
    /// RLC t-Reordering. A timer shorter than four HARQ round trips (32 ms) takes transport blocks for lost
    /// that HARQ still retransmits.
    pub t_reordering: Duration,
    /// RLC mode of the stations' data.
    pub rlc: RlcMode,
    /// RLC AM t-PollRetransmit. Defaults of this and the following four keys: srsRAN 4G, QCI 9. OAI has 50
    /// ms, 16 PDUs, no limit in bytes, 8 and 25 ms.
    pub t_poll_retransmit: Duration,
    /// RLC AM pollPDU; 0 for infinity.
    pub poll_pdu: u32,
    /// RLC AM pollByte; 0 for infinity.
    pub poll_byte: Bytes,
    /// RLC AM maxRetxThreshold. srsRAN has 32 in the downlink.
    pub max_retx_threshold: u32,
    /// RLC AM t-StatusProhibit.
    pub t_status_prohibit: Duration,
    /// Time from a radio-link failure until the station has selected its cell again. Random access and
    /// `reestablishment_signalling` follow. Chosen: TS 36.133 §6.1 allows 150 ms for a known cell, and the
    /// time to read its system information.
    pub cell_selection: Duration,
    /// Time for RRC connection re-establishment and reconfiguration, after contention resolution. Chosen.
    pub reestablishment_signalling: Duration,
    /// PDCP discardTimer. If left out, infinity, as in OAI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard_timer: Option<Duration>,
    /// Time from the end of a transmission until layer 2 has its data.
    pub decode_delay: Duration,
    /// Whether an outer loop corrects the choice of MCS so that 10% of the first transmissions fail.
    pub outer_loop: bool,
    /// Period of the CQI report (TS 36.213 Table 7.2.2-1A).
    pub cqi_period: Duration,
    /// Age of a CQI report when the scheduler uses it first.
    pub cqi_delay: Duration,
    /// Size of the eNB's buffer for each station.
    pub downlink_buffer: Bytes,
    /// Size of the uplink buffer in each station.
    pub uplink_buffer: Bytes,
    /// Period of the scheduling request occasions on PUCCH (TS 36.213 Table 10.1.5-1).
    pub sr_period: Duration,
    /// sr-ProhibitTimer, in scheduling request periods.
    pub sr_prohibit: u64,
    /// Probability that the eNB detects a scheduling request. TS 36.104 §8.3 requires 0.99 on PUCCH.
    pub sr_detection: f64,
    /// dsr-TransMax: scheduling requests without a grant, after which the station starts a random access.
    /// srsRAN has 64.
    pub dsr_trans_max: u32,
    /// Whether stations start without a connection. A station then accesses at random when it first has data,
    /// or when it is paged for downlink data, and the PRACH takes 6 resource blocks of its subframes. If
    /// false, stations start connected, and the PRACH takes no resource blocks, since preambles are rare.
    pub initial_access: bool,
    /// Time from contention resolution until a new connection carries data: RRC and security set-up. Chosen.
    pub connection_setup: Duration,
    /// prach-ConfigIndex, preamble format 0 (TS 36.211 Table 5.7.1-2). srsRAN has 3: subframe 1 of every
    /// frame.
    pub prach_config_index: u8,
    /// numberOfRA-Preambles: preambles of the contention-based random access. OAI and ns-3 have 52 of 64.
    pub ra_preambles: u64,
    /// preambleTransMax. srsRAN has 10.
    pub preamble_trans_max: u32,
    /// ra-ResponseWindowSize. srsRAN and OAI have 10 ms.
    pub ra_response_window: Duration,
    /// Largest number of random access responses, each with a grant, in a TTI of a cell. TR 37.868 has 3.
    pub ra_responses: usize,
    /// Backoff parameter in the random access responses (TS 36.321 Table 7.2-1). TR 37.868 has 20 ms.
    pub backoff_indicator: Duration,
    /// mac-ContentionResolutionTimer. OAI and TR 37.868 have 48 ms.
    pub contention_resolution_timer: Duration,
    /// maxHARQ-Msg3Tx. srsRAN and OAI have 4.
    pub max_harq_msg3_tx: u32,
    /// periodicBSR-Timer.
    pub periodic_bsr_timer: Duration,
    /// retxBSR-Timer.
    pub retx_bsr_timer: Duration,
    /// Size of the grant that answers a scheduling request. The default has room for a BSR and one ACK.
    pub sr_grant: Bytes,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            bandwidth: Hertz(20_000_000),
            uplink_bandwidth: None,
            pucch_prb: 4,
            scheduler: Scheduler::RoundRobin,
            uplink_scheduler: None,
            downlink_grants: 10,
            uplink_grants: 10,
            max_harq_tx: 4,
            uplink_64qam: false,
            t_reordering: Duration::from_millis(50),
            rlc: RlcMode::Um,
            t_poll_retransmit: Duration::from_millis(120),
            poll_pdu: 64,
            poll_byte: Bytes(750_000),
            max_retx_threshold: 16,
            t_status_prohibit: Duration::from_millis(50),
            cell_selection: Duration::from_millis(50),
            reestablishment_signalling: Duration::from_millis(25),
            discard_timer: None,
            decode_delay: Duration::from_millis(2),
            outer_loop: false,
            cqi_period: Duration::from_millis(5),
            cqi_delay: Duration::from_millis(6),
            downlink_buffer: Bytes(1_000_000),
            uplink_buffer: Bytes(256_000),
            sr_period: Duration::from_millis(10),
            sr_prohibit: 0,
            sr_detection: 1.0,
            dsr_trans_max: 64,
            initial_access: false,
            connection_setup: Duration::from_millis(50),
            prach_config_index: 3,
            ra_preambles: 52,
            preamble_trans_max: 10,
            ra_response_window: Duration::from_millis(10),
            ra_responses: 3,
            backoff_indicator: Duration::from_millis(20),
            contention_resolution_timer: Duration::from_millis(48),
            max_harq_msg3_tx: 4,
            periodic_bsr_timer: Duration::from_millis(5),
            retx_bsr_timer: Duration::from_millis(320),
            sr_grant: Bytes(80),
        }
    }
}

impl Section for Cell {
    fn limits() -> Vec<Limit<Self>> {
        let rlc_timer = |low: u64, more: &[u64]| {
            steps_or_one_of_ms(low, 250, 5, &[&[300, 350, 400, 450, 500], more].concat())
        };
        let detected = |share: &f64| *share > 0.0 && *share <= 1.0;
        let in_fours = |count: &u64| (4..=64).contains(count) && count.is_multiple_of(4);
        let buffer = || quantities("2000 B", "1 GiB");
        vec![
            key!(bandwidth, bandwidths()),
            key!(uplink_bandwidth?, bandwidths()),
            relation!(pucch_prb, "less than the resource blocks of the uplink", Self::pucch_fits)
                .message(Self::pucch_allowed)
                .unit("resource blocks"),
            key!(downlink_grants, numbers(1..=40).unit("assignments")),
            key!(uplink_grants, numbers(1..=40).unit("grants")),
            key!(max_harq_tx, numbers(1..=8).unit("transmissions")),
            key!(t_reordering, whole_ms(0..=200)),
            key!(decode_delay, whole_ms(0..=10)),
            key!(cqi_period, whole_ms(1..=160)),
            key!(cqi_delay, whole_ms(0..=40)),
            key!(t_poll_retransmit, rlc_timer(5, &[800, 1000, 2000, 4000])),
            key!(t_status_prohibit, rlc_timer(0, &[800, 1000, 1200, 1600, 2000, 2400])),
            key!(poll_pdu, one_of(&[0, 4, 8, 16, 32, 64, 128, 256]).unit("PDUs")),
            key!(poll_byte, poll_bytes()),
            key!(max_retx_threshold, one_of(&[1, 2, 3, 4, 6, 8, 16, 32]).unit("retransmissions")),
            key!(cell_selection, whole_ms(0..=10_000)),
            key!(reestablishment_signalling, whole_ms(0..=10_000)),
            key!(discard_timer?, one_of_ms(&[50, 100, 150, 300, 500, 750, 1500])),
            key!(downlink_buffer, buffer()),
            key!(uplink_buffer, buffer()),
            key!(sr_period, one_of_ms(&[1, 2, 5, 10, 20, 40, 80])),
            key!(sr_prohibit, numbers(0..=7).unit("scheduling request periods")),
            key!(
                periodic_bsr_timer,
                one_of_ms(&[5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560])
            ),
            key!(retx_bsr_timer, one_of_ms(&[320, 640, 1280, 2560, 5120, 10240])),
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
    /// Resource blocks of the uplink; 0 if its bandwidth is not allowed.
    fn uplink_prb(&self) -> u16 {
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

fn prb(bandwidth: Hertz) -> Option<u16> {
    bandwidth.0.is_multiple_of(1000).then(|| resource_blocks(bandwidth.0 / 1000)).flatten()
}

fn bandwidths() -> Allowed<Hertz> {
    Allowed::new("1.4, 3, 5, 10, 15 or 20 MHz", |bandwidth| prb(*bandwidth).is_some())
}

/// pollByte in kB, as in TS 36.331; 0 for infinity.
const POLL_KB: [u64; 15] = [0, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000];

fn poll_bytes() -> Allowed<Bytes> {
    let list = POLL_KB.map(|kb| kb.to_string()).join(", ");
    Allowed::new(format!("one of {list} kB; 0 is infinity"), |bytes: &Bytes| {
        POLL_KB.iter().any(|kb| Bytes(kb * 1000) == *bytes)
    })
}

/// Sharing of the resource blocks of a TTI among stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The station that has waited longest comes first; stations get equal shares.
    RoundRobin,
    /// The station with the largest ratio of bits per resource block to its recent rate comes first.
    ProportionalFair,
    /// The station with the most bits per resource block comes first.
    MaxCi,
}

/// RLC mode (TS 36.322).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RlcMode {
    /// Unacknowledged mode: RLC does not retransmit a transport block that HARQ gave up.
    Um,
    /// Acknowledged mode: RLC retransmits it.
    Am,
}

/// Table `[ack_filter]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct AckFilter {
    /// The scheme: the ACKs that are discarded, and when. RATIO is a share, T a number of ACKs.
    pub scheme: Scheme,
    /// S_header of the scheme `hybrid-opt`: TCP/IP, PDCP, RLC and MAC headers of a data segment. The
    /// published experiment has 58 B.
    pub header: Bytes,
}

impl Default for AckFilter {
    fn default() -> Self {
        Self { scheme: Scheme::Basic, header: Bytes(58) }
    }
}

impl Section for AckFilter {
    fn limits() -> Vec<Limit<Self>> {
        vec![key!(header, quantities("1 B", "1000 B"))]
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::load;

    #[test]
    fn rlc_and_pdcp_take_the_values_of_the_standard() {
        let with = |set: &str| load("test.toml", "[[station]]\n", &[set.to_owned()]);
        for good in [
            "cell.rlc=am",
            "cell.t_poll_retransmit=5 ms",
            "cell.t_poll_retransmit=4000 ms",
            "cell.t_status_prohibit=0 ms",
            "cell.t_status_prohibit=2400 ms",
            "cell.poll_pdu=0",
            "cell.poll_pdu=256",
            "cell.poll_byte=25 kB",
            "cell.poll_byte=0 B",
            "cell.max_retx_threshold=32",
            "cell.discard_timer=1500 ms",
        ] {
            let scenario = with(good).unwrap_or_else(|error| panic!("{good}: {error}"));
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{good}");
        }
        for (bad, part) in [
            ("cell.rlc=tm", "um"),
            ("cell.t_poll_retransmit=0 ms", "one of 5, 10"),
            ("cell.t_poll_retransmit=255 ms", "one of 5, 10"),
            ("cell.t_status_prohibit=4000 ms", "one of 0, 5"),
            ("cell.poll_pdu=5", "4, 8, 16"),
            ("cell.poll_byte=25 KiB", "infinity"),
            ("cell.max_retx_threshold=5", "1, 2, 3, 4, 6"),
            ("cell.discard_timer=200 ms", "50, 100, 150"),
            ("cell.cell_selection=11 s", "0 to 10000 ms"),
            ("cell.reestablishment_signalling=1500 us", "0 to 10000 ms, whole"),
        ] {
            let error = with(bad).expect_err(bad).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
