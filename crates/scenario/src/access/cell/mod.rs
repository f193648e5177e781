//! Table `[cell]`: one cell of LTE or NR, in FDD or TDD. [`Nr`] is the table `[cell.nr]`, [`Pattern`] the
//! slots of TDD, [`AckFilter`] the filter in the stations' uplink buffers, [`CellPlan`] the carrier that
//! follows from the keys.
//!
//! Timers and counters of RLC, PDCP, MAC and random access have the names and the values of TS 36.331 v15.6.0
//! §6.3.2 (RLC-Config, PDCP-Config, MAC-MainConfig, RACH-ConfigCommon, PRACH-Config) in LTE and of TS 38.331
//! v16.4.1 §6.3.2 in NR.

mod ack_filter;
mod allowed;
mod lead;
mod nr;
mod pattern;
mod plan;
#[cfg(test)]
mod plan_tests;
mod proactive;

pub use ack_filter::AckFilter;
pub(crate) use allowed::check;
pub use lead::{GnbName, Lead, Lte};
pub use nr::{ConfiguredGrant, McsTableName, Nr};
pub use pattern::{CommonPeriod, Pattern};
pub use plan::CellPlan;
pub use proactive::ProactiveGrant;

use crate::limits;
use paceline_net::units::Hertz;
use paceline_net::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[cell]`: one cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Cell {
    /// Radio access technology. Default: NR where a key or a bandwidth is written that only NR has.
    #[serde(skip_serializing_if = "RatName::is_lte")]
    pub rat: RatName,
    /// Division of the carrier between both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplex: Option<DuplexMode>,
    /// Carrier frequency of NR, for its range FR1 or FR2 (TS 38.101-1 Table 5.1-1); propagation follows from
    /// `[deployment]`. Defaults: in bands n78 and n1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency: Option<Hertz>,
    /// Numerology of NR: 0 to 3 are subcarriers of 15, 30, 60 and 120 kHz (TS 38.211 Table 4.2-1). Defaults:
    /// those of most networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numerology: Option<u8>,
    /// Subcarrier spacing of NR, in place of `numerology`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subcarrier_spacing: Option<Hertz>,
    /// Slots of one TDD period of NR: a letter D, S, U or F per slot, then downlink, guard and uplink symbols
    /// of special slots if not 10:2:2; or tdd-UL-DL-ConfigurationCommon (TS 38.331 §6.3.2) as one or two
    /// tables with `period`, `downlink_slots`, `downlink_symbols`, `uplink_slots` and `uplink_symbols`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Uplink-downlink configuration of TDD in LTE (TS 36.211 Table 4.2-2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tdd_configuration: Option<u8>,
    /// Special subframe configuration of TDD in LTE (TS 36.211 Table 4.2-1). Default: 10:2:2 symbols, as of
    /// `pattern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub special_subframe: Option<u8>,
    /// HARQ-ACKs of several subframes in one uplink subframe, in TDD of LTE (TS 36.213 §7.3). Default: the
    /// mode that repeats fewer blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_mode: Option<AckModeName>,
    /// Base station whose leads the cell has: from a decision to the slot on the air.
    pub gnb: GnbName,
    /// Channel bandwidth of the downlink (TS 36.104 Table 5.6-1), in TDD of both directions.
    pub bandwidth: Hertz,
    /// Channel bandwidth of the uplink in FDD. Default: that of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_bandwidth: Option<Hertz>,
    /// Uplink resource blocks that PUCCH takes.
    pub pucch_prb: u16,
    /// Scheduler of the downlink.
    pub scheduler: Scheduler,
    /// Scheduler of the uplink. Default: that of the downlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_scheduler: Option<Scheduler>,
    /// Most downlink assignments in a TTI. Default: half of the 80 CCEs of 20 MHz, at aggregation level 4.
    pub downlink_grants: usize,
    /// Most uplink grants in a TTI.
    pub uplink_grants: usize,
    /// Most transmissions of a transport block, the first included; 4 is usual.
    pub max_harq_tx: u32,
    /// Whether stations can send 64QAM (UE category 5 and some later ones).
    pub uplink_64qam: bool,
    /// RLC t-Reordering. Below four HARQ round trips (32 ms), blocks count as lost that HARQ still
    /// retransmits.
    pub t_reordering: Duration,
    /// RLC mode of the stations' data.
    pub rlc: RlcMode,
    /// RLC AM t-PollRetransmit. Defaults of this and the next four keys: srsRAN 4G, QCI 9; OAI has 50 ms, 16,
    /// infinity, 8 and 25 ms.
    pub t_poll_retransmit: Duration,
    /// RLC AM pollPDU; 0 for infinity.
    pub poll_pdu: u32,
    /// RLC AM pollByte; 0 for infinity.
    pub poll_byte: Bytes,
    /// RLC AM maxRetxThreshold. srsRAN has 32 in the downlink.
    pub max_retx_threshold: u32,
    /// RLC AM t-StatusProhibit.
    pub t_status_prohibit: Duration,
    /// Time from a radio-link failure to the selection of a cell, ahead of random access. Default: below the
    /// 150 ms that TS 36.133 §6.1 allows for a known cell.
    pub cell_selection: Duration,
    /// Time for RRC connection re-establishment and reconfiguration, after contention resolution. Default:
    /// within the 15 ms that TS 36.331 §11.2 allows a station for each.
    pub reestablishment_signalling: Duration,
    /// PDCP discardTimer. Default: infinity, as in OAI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard_timer: Option<Duration>,
    /// Time from the end of a transmission until layer 2 has its data. Default in NR: N1/2 symbols (TS 38.214
    /// Table 5.3-1), rounded up.
    pub decode_delay: Duration,
    /// Whether an outer loop corrects the MCS so that 10% of the first transmissions fail.
    pub outer_loop: bool,
    /// Period of the CQI report (TS 36.213 Table 7.2.2-1A).
    pub cqi_period: Duration,
    /// Age of a CQI report at its first use.
    pub cqi_delay: Duration,
    /// Buffer of the eNB for each station.
    pub downlink_buffer: Bytes,
    /// Uplink buffer of each station.
    pub uplink_buffer: Bytes,
    /// Period of scheduling request occasions on PUCCH (TS 36.213 Table 10.1.5-1); in TDD a multiple of the
    /// pattern's.
    pub sr_period: Duration,
    /// sr-ProhibitTimer; in NR, where `cell.nr.sr_prohibit_timer` is left out.
    pub sr_prohibit: u64,
    /// Probability that the eNB detects a scheduling request; TS 36.104 §8.3 requires 0.99.
    pub sr_detection: f64,
    /// dsr-TransMax: scheduling requests without a grant before a random access. Default of srsRAN.
    pub dsr_trans_max: u32,
    /// Whether stations start without a connection: random access when a station first has data or is paged,
    /// and 6 resource blocks for the PRACH in its subframes. Else the PRACH takes none, since preambles are
    /// rare.
    pub initial_access: bool,
    /// Time from contention resolution until a new connection carries data. Default: about the 35 ms that TS
    /// 36.331 §11.2 allows a station for set-up, security and reconfiguration, and the messages in between.
    pub connection_setup: Duration,
    /// prach-ConfigIndex, preamble format 0 (TS 36.211 Table 5.7.1-2). Default of srsRAN: subframe 1 of every
    /// frame.
    pub prach_config_index: u8,
    /// numberOfRA-Preambles: preambles for contention. Default of OAI and ns-3.
    pub ra_preambles: u64,
    /// preambleTransMax. Default of srsRAN.
    pub preamble_trans_max: u32,
    /// ra-ResponseWindowSize. Default of srsRAN and OAI.
    pub ra_response_window: Duration,
    /// Most random access responses, each with a grant, in a TTI. Default of TR 37.868.
    pub ra_responses: usize,
    /// Backoff parameter in random access responses (TS 36.321 Table 7.2-1). Default of TR 37.868.
    pub backoff_indicator: Duration,
    /// mac-ContentionResolutionTimer. Default of OAI and TR 37.868.
    pub contention_resolution_timer: Duration,
    /// maxHARQ-Msg3Tx. Default of srsRAN and OAI.
    pub max_harq_msg3_tx: u32,
    /// periodicBSR-Timer.
    pub periodic_bsr_timer: Duration,
    /// retxBSR-Timer.
    pub retx_bsr_timer: Duration,
    /// Grant that answers a scheduling request. Default: room for a BSR and one ACK.
    pub sr_grant: Bytes,
    /// Grants that stations get without a scheduling request. If left out, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proactive_grant: Option<ProactiveGrant>,
    /// Keys that only LTE has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lte: Option<Lte>,
    /// Keys that only NR has. Defaults without a source of their own are those of srsRAN_Project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr: Option<Nr>,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            rat: RatName::Lte,
            duplex: None,
            frequency: None,
            numerology: None,
            subcarrier_spacing: None,
            pattern: None,
            tdd_configuration: None,
            special_subframe: None,
            ack_mode: None,
            gnb: GnbName::default(),
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
            proactive_grant: None,
            lte: None,
            nr: None,
        }
    }
}

impl Cell {
    /// Sets the technology that follows from the written keys where the file does not state it: NR with keys
    /// that only NR has or a bandwidth that only NR has, unless there are keys that only LTE has.
    pub(crate) fn follow_keys(&mut self, given: &dyn Fn(&str) -> bool) {
        let of_nr_alone = |width: Hertz| NR_BANDWIDTHS_MHZ.iter().any(|mhz| width.0 == mhz * 1_000_000);
        let of_nr = self.pattern.is_some()
            || self.numerology.is_some()
            || self.subcarrier_spacing.is_some()
            || self.frequency.is_some()
            || self.nr.is_some()
            || [Some(self.bandwidth), self.uplink_bandwidth].into_iter().flatten().any(of_nr_alone);
        let of_lte =
            self.tdd_configuration.is_some() || self.special_subframe.is_some() || self.ack_mode.is_some();
        if of_nr && !of_lte && !given("cell.rat") {
            self.rat = RatName::Nr;
        }
    }
    /// Completes the keys that were left out and whose defaults depend on the technology. `given` is true for
    /// the keys of the file.
    pub(crate) fn resolve(&mut self, given: &dyn Fn(&str) -> bool) {
        let by_keys = self.pattern.is_some() || self.tdd_configuration.is_some();
        let tdd = self.duplex.map_or(by_keys, |duplex| duplex == DuplexMode::Tdd);
        if self.rat == RatName::Lte {
            if tdd {
                self.duplex = Some(DuplexMode::Tdd);
                self.special_subframe.get_or_insert(7);
            }
            return;
        }
        self.duplex = Some(if tdd { DuplexMode::Tdd } else { DuplexMode::Fdd });
        let usual = Hertz(if tdd { 3_500_000_000 } else { 2_100_000_000 });
        let frequency = *self.frequency.get_or_insert(usual);
        if self.subcarrier_spacing.is_none() {
            let chosen = match (frequency.0 > 7_125_000_000, tdd) {
                (true, _) => 3,
                (false, true) => 1,
                // 15 kHz reaches 50 MHz (TS 38.101-1 Table 5.3.2-1).
                (false, false) => u8::from(self.bandwidth.0 > 50_000_000),
            };
            self.numerology.get_or_insert(chosen);
        }
        if !given("cell.decode_delay") {
            // One slot: N1/2 is at most 10 of its 14 symbols (TS 38.214 Table 5.3-1).
            self.decode_delay = Duration::from_nanos(1_000_000 >> self.mu().unwrap_or(0));
        }
        let nr = self.nr.get_or_insert_default();
        if !given("cell.nr.gnb_slots") {
            nr.gnb_slots = self.gnb.reaction_slots();
        }
    }
    /// The carrier of a cell of a loaded scenario.
    pub fn plan(&self) -> CellPlan {
        CellPlan::of(self).expect("the scenario was checked")
    }
    /// Numerology of an NR cell; none where the spacing is not allowed.
    fn mu(&self) -> Option<u8> {
        let of_spacing = |spacing: Hertz| SPACINGS_KHZ.iter().position(|khz| spacing.0 == khz * 1000);
        match self.subcarrier_spacing {
            Some(spacing) => of_spacing(spacing).map(|mu| mu as u8),
            None => Some(self.numerology.unwrap_or(0)),
        }
    }
}

/// Bandwidths that NR has and LTE does not (TS 38.101-1 and -2 Table 5.3.2-1; TS 36.104 Table 5.6-1).
const NR_BANDWIDTHS_MHZ: [u64; 13] = [25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100, 200, 400];

/// Subcarrier spacings of numerologies 0 to 3 (TS 38.211 Table 4.2-1).
const SPACINGS_KHZ: [u64; 4] = [15, 30, 60, 120];

/// Radio access technology.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RatName {
    /// LTE (TS 36.300).
    #[default]
    Lte,
    /// NR (TS 38.300).
    Nr,
}

impl RatName {
    // Signature of serde's `skip_serializing_if`.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_lte(&self) -> bool {
        *self == Self::Lte
    }
}

/// Division of the carrier between both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DuplexMode {
    /// A carrier of its own for each direction.
    Fdd,
    /// One carrier, whose slots alternate.
    Tdd,
}

/// Sharing of an uplink subframe by the HARQ-ACKs of several subframes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckModeName {
    /// One answer for all: a failed block repeats all.
    Bundling,
    /// One answer for each subframe; not in configuration 5.
    Multiplexing,
}

/// Sharing of the resource blocks of a TTI among stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The longest waiting station first: equal shares.
    RoundRobin,
    /// The station with the most bits per resource block over its recent rate first.
    ProportionalFair,
    /// The station with the most bits per resource block first.
    MaxCi,
}

/// RLC mode (TS 36.322).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RlcMode {
    /// Unacknowledged mode: no retransmission of blocks that HARQ gave up.
    Um,
    /// Acknowledged mode: RLC retransmits them.
    Am,
}

#[cfg(test)]
mod tests {
    use super::RatName;
    use crate::load;

    #[test]
    fn the_technology_follows_from_the_written_keys() {
        for (keys, rat) in [
            ("", RatName::Lte),
            ("bandwidth = \"10 MHz\"", RatName::Lte),
            ("tdd_configuration = 1", RatName::Lte),
            ("pattern = \"DDDSU\"", RatName::Nr),
            ("numerology = 0", RatName::Nr),
            ("subcarrier_spacing = \"30 kHz\"", RatName::Nr),
            ("frequency = \"3.5 GHz\"", RatName::Nr),
            ("bandwidth = \"100 MHz\"\npattern = \"DDDSU\"", RatName::Nr),
            ("bandwidth = \"40 MHz\"", RatName::Nr),
            ("bandwidth = \"100 MHz\"", RatName::Nr),
            ("uplink_bandwidth = \"25 MHz\"", RatName::Nr),
            ("nr = { layers = 2 }", RatName::Nr),
        ] {
            let scenario = load("test.toml", &format!("[cell]\n{keys}\n[[station]]\n"), &[]);
            let scenario = scenario.unwrap_or_else(|error| panic!("{keys}: {error}"));
            assert_eq!(scenario.cell().unwrap().rat, rat, "{keys}");
            assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario, "{keys}");
        }
        for (keys, parts) in [
            ("rat = \"lte\"\npattern = \"DDDSU\"", ["cell.pattern", "rat = \"nr\""]),
            ("tdd_configuration = 1\npattern = \"DDDSU\"", ["cell.pattern", "rat = \"nr\""]),
            ("rat = \"lte\"\nbandwidth = \"100 MHz\"", ["cell.bandwidth", "rat = \"nr\""]),
        ] {
            let error = load("test.toml", &format!("[cell]\n{keys}\n[[station]]\n"), &[]).unwrap_err();
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
        }
    }

    #[test]
    fn rlc_and_pdcp_take_the_values_of_the_standard() {
        let with = |set: &str| load("test.toml", "[cell]\nrlc = \"am\"\n[[station]]\n", &[set.to_owned()]);
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
