//! The measured figures: what others measured, in which cell, and by which of our figures each is judged. No
//! parameter of a cell was chosen for a row; where a setting is not published, the row says so.

use super::measures::Measure;

/// A row: figures that were measured in one cell.
pub struct Published {
    /// Number of the row.
    pub id: &'static str,
    /// The setting, in words.
    pub setting: &'static str,
    /// The source.
    pub statement: &'static str,
    /// The figures.
    pub figures: &'static [Figure],
    /// The cause of the differences, or the reason why nothing is compared.
    pub cause: &'static str,
}

/// A measured figure.
pub struct Figure {
    /// Name within the row.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// The measured value; none where an interval was published.
    pub value: Option<f64>,
    /// The interval in which ours must be.
    pub spread: Option<(f64, f64)>,
    /// Name of the part of ours; empty for none.
    pub part: &'static str,
    /// Our figure in it.
    pub measure: Measure,
}

const fn near(
    name: &'static str,
    unit: &'static str,
    value: f64,
    within: f64,
    part: &'static str,
    measure: Measure,
) -> Figure {
    let spread = Some((cut(value - within), cut(value + within)));
    Figure { name, unit, value: Some(value), spread, part, measure }
}
/// A value without the digits that subtraction adds.
const fn cut(value: f64) -> f64 {
    ((value * 1e4 + 0.5) as i64) as f64 / 1e4
}
const fn between(
    name: &'static str,
    unit: &'static str,
    spread: (f64, f64),
    part: &'static str,
    measure: Measure,
) -> Figure {
    Figure { name, unit, value: None, spread: Some(spread), part, measure }
}
const fn alone(name: &'static str, unit: &'static str, value: f64) -> Figure {
    Figure { name, unit, value: Some(value), spread: None, part: "", measure: Measure::Nothing }
}

/// A percentile of a drive's throughput; the spread is 15%.
const fn quantile(name: &'static str, value: f64, part: &'static str, percent: u8) -> Figure {
    near(name, MBPS, value, 0.15 * value, part, Measure::Second(percent))
}

const MBPS: &str = "Mb/s";
const MS: &str = "ms";
const OAI: &str = "OpenAirInterface, doc/kpi.md (302dce7), O-RAN 7.2 radio";
const NUWINS: &str = "Ghoshal et al., CoNEXT 2025";
const GONG: &str = "Gong et al. 2025, aygong/srsRAN_Project_Low_Latency (a5b5c73)";
const FITTED: &str = "generated drives (generated:drive-nsa and others): mean SINR, load and spectrum are fitted \
                      to these quantiles, spread and correlation of the SINR and handovers are those of \
                      uccmisl/5Gdataset; TCP and its queue are not fitted";

/// All rows, by the numbers of the collection.
pub const ROWS: [Published; 20] = [
    Published {
        id: "1",
        setting: "NR, n78, 30 kHz, DDDSU 10:2:2, downlink",
        statement: OAI,
        figures: &[
            near("40 MHz, 1 layer", MBPS, 158.0, 7.9, "oai-down-40-1", Measure::Goodput),
            near("40 MHz, 2 layers", MBPS, 315.0, 15.75, "oai-down-40-2", Measure::Goodput),
            near("100 MHz, 1 layer", MBPS, 412.0, 20.6, "oai-down-100-1", Measure::Goodput),
            near("100 MHz, 2 layers", MBPS, 820.0, 41.0, "oai-down-100-2", Measure::Goodput),
        ],
        cause: "the highest MCS of 256QAM in every slot; SINR 45 dB, since the radio stands two metres away",
    },
    Published {
        id: "1b",
        setting: "the same, 4 layers",
        statement: OAI,
        figures: &[near("100 MHz, 4 layers", MBPS, 1400.0, 70.0, "oai-down-100-4", Measure::Goodput)],
        cause: "the model's layers are alike and have the SINR of the link, which is high here; four layers \
                between antennas two metres apart are not, so that the measured MCS is lower. The channel \
                matrix is not modelled",
    },
    Published {
        id: "2",
        setting: "the same radio, DDSUU 6:4:4, uplink",
        statement: OAI,
        figures: &[
            near("40 MHz, 1 layer", MBPS, 79.0, 7.9, "oai-up-40-1", Measure::Upload),
            near("40 MHz, 2 layers", MBPS, 118.0, 11.8, "oai-up-40-2", Measure::Upload),
            near("100 MHz, 1 layer", MBPS, 180.0, 18.0, "oai-up-100-1", Measure::Upload),
            near("100 MHz, 2 layers", MBPS, 250.0, 25.0, "oai-up-100-2", Measure::Upload),
        ],
        cause: "the MCS table and the SINR of the uplink are not published: 79 Mb/s needs 256QAM, whose \
                ceiling in the model is 93 Mb/s, and 180 Mb/s is that of 64QAM, which these runs have. Two \
                layers have 1.4 times the rate of one when measured and twice in the model, which has no \
                channel matrix and no smaller power of each antenna",
    },
    Published {
        id: "3",
        setting: "NR, FR2, 200 MHz, 120 kHz, DDDSU, downlink",
        statement: "OpenAirInterface, doc/kpi.md (302dce7), MicroAmp radio",
        figures: &[
            near("1 layer", MBPS, 500.0, 50.0, "fr2-1", Measure::Goodput),
            near("2 layers", MBPS, 890.0, 89.0, "fr2-2", Measure::Goodput),
        ],
        cause: "64QAM at its highest MCS in every slot; the phase noise of a radio at 28 GHz bounds the \
                measured SINR, and its phase-tracking reference signals (TS 38.214 §5.1.6.3) take resource \
                elements. Neither is modelled",
    },
    Published {
        id: "3b",
        setting: "the same, ping with a grant in every period",
        statement: "OpenAirInterface, doc/kpi.md (302dce7), ulsch_max_frame_inactivity = 0",
        figures: &[near("round trip", MS, 4.53, 0.7, "fr2-ping", Measure::Rtt)],
        cause: "the radio has six slots of lead, 0.75 ms; the stacks of host, modem and core, whose times are \
                not published, are not in ours",
    },
    Published {
        id: "4",
        setting: "NR, n78, 20 MHz, DDSU 8:6:0, SR every 2 ms, K1 = K2 = 2, one-way delays",
        statement: GONG,
        figures: &[
            near("downlink, radio lead 3 slots", MS, 3.59, 0.5, "gong-3-down", Measure::There),
            near("downlink, radio lead 1 slot", MS, 2.64, 0.5, "gong-1-down", Measure::There),
        ],
        cause: "leads of the paper, a slot of the pattern, a slot on the air, one of decoding; the stacks of \
                host and modem, whose times are not published, are not in ours",
    },
    Published {
        id: "4b",
        setting: "the same, uplink by a scheduling request",
        statement: GONG,
        figures: &[
            near("uplink, radio lead 3 slots", MS, 7.44, 0.5, "gong-3-up", Measure::There),
            near("uplink, radio lead 1 slot", MS, 7.46, 0.5, "gong-1-up", Measure::There),
        ],
        cause: "the lead does not change the uplink, as measured: the grant waits for its slot of the pattern \
                in both cases. Ours is lower by the same 1.5 ms in both, a time outside of the slots: row 5, \
                without requests, is lower by 1.2 ms. station.processing has such a time, for which there is \
                no published value",
    },
    Published {
        id: "4c",
        setting: "the same, round trip of a ping",
        statement: "Gong et al. 2025; the sums of the one-way delays",
        figures: &[
            near("radio lead 3 slots", MS, 11.03, 0.5, "gong-3-up", Measure::Rtt),
            near("radio lead 1 slot", MS, 10.10, 0.5, "gong-1-up", Measure::Rtt),
        ],
        cause: "the uplink of row 4b; and ours is a ping whose answer follows its request at once, at one phase \
                of the pattern, where a downlink of random phase waits 0.4 ms longer",
    },
    Published {
        id: "5",
        setting: "the same without requests: a grant in every uplink slot, leads 0 and 1 slot",
        statement: "Gong et al. 2025, a picture: uplink about even from 2.2 to 4.2 ms, downlink's mode 2.0 ms",
        figures: &[
            near("uplink, width from 5% to 95%", MS, 1.8, 0.2, "gong-unasked-up", Measure::ThereWidth),
            near("uplink, least", MS, 2.2, 0.5, "gong-unasked-up", Measure::ThereLeast),
            near("downlink, median", MS, 2.0, 0.5, "gong-unasked-down", Measure::ThereMedian),
        ],
        cause: "the width is the period of the pattern, as measured; the least uplink is lower by the time \
                outside of the slots of row 4b",
    },
    Published {
        id: "6",
        setting: "NR, n78, DDDSU of 2.5 ms, small uplink packets, OpenAirInterface at both ends",
        statement: "samiemostafavi/edaf: a retransmission costs 7.5 ms, segmentation steps of 2.5 ms",
        figures: &[
            near(
                "HARQ round trip of the uplink, mean",
                MS,
                7.5,
                0.0,
                "oai-segments",
                Measure::UplinkHarqMean,
            ),
            near("the same, largest", MS, 7.5, 0.0, "oai-segments", Measure::UplinkHarqMax),
            near("step of segmentation", MS, 2.5, 0.0, "oai-segments", Measure::SegmentStep),
        ],
        cause: "the gNB decides six slots ahead, K2 is six or more, and the pattern has one uplink slot",
    },
    Published {
        id: "7",
        setting: "NR, ping every 100 ms, whose interval drifts against an SR period of 20 ms",
        statement: "srsRAN_Project issue 501: the round trip falls about 1 ms a ping, then jumps back by 15 to 20",
        figures: &[
            between("fall from ping to ping, median", MS, (0.9, 1.1), "srsran-drift", Measure::Fall),
            between("jump, median", MS, (14.0, 20.0), "srsran-drift", Measure::Jump),
        ],
        cause: "the drift of 1 ms a ping is an input, from the figure; the jump is the SR period less one step",
    },
    Published {
        id: "8",
        setting: "NR, DDDDDDDSUU, from an SR to the ping's reply on PDSCH in the gNB's log",
        statement: "srsRAN_Project issue 603: 5 to 6 ms",
        figures: &[between(
            "SR decoded to PDSCH processed",
            MS,
            (4.5, 6.5),
            "srsran-log",
            Measure::LogSrToReply,
        )],
        cause: "the log's pattern is read from its slots: uplink in 8 and 9 of 10, K2 = 2; PDSCH is logged \
                where the radio gets it, a radio lead before the air. Spread: a slot",
    },
    Published {
        id: "9",
        setting: "NR, campus network, standalone, downlink one way",
        statement: "Rischke et al. 2021: 95% in 4 to 10 ms, core up to 0.4 ms",
        figures: &[
            between("2.5%", MS, (4.0, 10.0), "", Measure::Nothing),
            between("97.5%", MS, (4.0, 10.0), "", Measure::Nothing),
        ],
        cause: "not compared: pattern, leads and load of that vendor's cell are not in the collection",
    },
    Published {
        id: "10",
        setting: "NR, commercial mmWave, physical layer, least",
        statement: "PAM 2023",
        figures: &[alone("downlink", MS, 0.09), alone("uplink", MS, 0.76)],
        cause: "not compared: these are least times between messages in a modem's log, and the instants \
                between which they were taken are not in the collection; a slot of 120 kHz has 0.125 ms",
    },
    Published {
        id: "11",
        setting: "NR, drives, NSA and SA: round trips of pings above their 5th percentile",
        statement: NUWINS,
        figures: &[
            near("NSA, median", MS, 25.1, 3.8, "drive-nsa-ping", Measure::RttAbove5(50)),
            near("NSA, 95%", MS, 93.2, 14.0, "drive-nsa-ping", Measure::RttAbove5(95)),
            near("SA, median", MS, 28.5, 4.3, "drive-sa-ping", Measure::RttAbove5(50)),
            near("SA, 95%", MS, 57.1, 8.6, "drive-sa-ping", Measure::RttAbove5(95)),
        ],
        cause: "ours has requests, grants and handovers. The measured quantiles are those of a drive across \
                the United States: of distances to servers too, and of sleep between pings (C-DRX)",
    },
    Published {
        id: "12",
        setting: "NR, drives, NSA and SA: TCP",
        statement: NUWINS,
        figures: &[
            quantile("down NSA, 10%", 36.0, "drive-nsa", 10),
            quantile("down NSA, median", 197.0, "drive-nsa", 50),
            quantile("down NSA, 90%", 536.0, "drive-nsa", 90),
            quantile("down SA, 10%", 48.0, "drive-sa", 10),
            quantile("down SA, median", 320.0, "drive-sa", 50),
            quantile("down SA, 90%", 834.0, "drive-sa", 90),
            quantile("up NSA, 10%", 3.3, "drive-nsa-up", 10),
            quantile("up NSA, median", 31.0, "drive-nsa-up", 50),
            quantile("up NSA, 90%", 91.0, "drive-nsa-up", 90),
            quantile("up SA, 10%", 4.6, "drive-sa-up", 10),
            quantile("up SA, median", 36.0, "drive-sa-up", 50),
            quantile("up SA, 90%", 89.0, "drive-sa-up", 90),
        ],
        cause: FITTED,
    },
    Published {
        id: "13",
        setting: "drives: throughput by band",
        statement: "mssn/INFOCOM23-5GMeas (a3c064b)",
        figures: &[
            quantile("below 6 GHz, 10%", 16.5, "drive-5g", 10),
            quantile("below 6 GHz, median", 75.0, "drive-5g", 50),
            quantile("below 6 GHz, 90%", 242.0, "drive-5g", 90),
            quantile("LTE, 10%", 2.0, "drive-lte", 10),
            quantile("LTE, median", 14.0, "drive-lte", 50),
            quantile("LTE, 90%", 94.0, "drive-lte", 90),
            quantile("mmWave, 10%", 17.7, "drive-mmwave", 10),
            quantile("mmWave, median", 102.0, "drive-mmwave", 50),
            quantile("mmWave, 90%", 293.0, "drive-mmwave", 90),
        ],
        cause: FITTED,
    },
    Published {
        id: "14",
        setting: "ping during downloads, 5G and LTE, driving",
        statement: "uccmisl/5Gdataset",
        figures: &[alone("5G, 95% less 5%", MS, 28.0), alone("LTE, 95% less 5%", MS, 38.0)],
        cause: "not compared: rate and buffer of the downloads beside the pings are not published, and a \
                ping behind a full buffer measures these",
    },
    Published {
        id: "15",
        setting: "LTE downlink flows limited by the receive window",
        statement: "Huang et al. 2013",
        figures: &[near("share", "%", 52.6, 7.9, "lte-windows", Measure::Unfilled)],
        cause: "ours is the share of seconds in which a window of 128 KiB leaves a tenth of the rate or more, \
                with a round trip of 68 ms and the rates of row 13: sources of three networks. The windows of \
                the phones are not in the collection",
    },
    Published {
        id: "16",
        setting: "handover interruption, NSA and SA, median",
        statement: NUWINS,
        figures: &[
            near("NSA", MS, 20.0, 5.0, "handover-nsa", Measure::Interruption),
            between("SA", MS, (40.0, 50.0), "handover-sa", Measure::Interruption),
        ],
        cause: "handover.kind has interruptions that were chosen for these medians; random access, which \
                follows, is simulated",
    },
];
