//! The time series: what is read off each station at every sample, and the file it is written as. Bytes, ACKs and
//! packets count from the start of the run; MCS are means over the blocks since the sample before.

use super::Summary;
use paceline_net::Instant;
use std::fmt::Write;

/// One moment of one station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Which station.
    pub station: usize,
    /// Payload acknowledged so far, bytes.
    pub downloaded: u64,
    /// Congestion windows of its connections together, bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time of its first connection, ms; zero before the first sample.
    pub srtt_ms: f64,
    /// Bytes waiting in the eNB.
    pub downlink_queue: u64,
    /// Bytes waiting in its uplink buffer.
    pub uplink_queue: u64,
    /// ACKs sent so far.
    pub acks_sent: u64,
    /// Sum of the times of a link's downlink packets from arrival to last byte sent, so far, ns.
    pub queued_ns: u64,
    /// Their number.
    pub link_sent: u64,
    /// Bytes that the downlink of a link can have carried so far; none for a cell.
    pub capacity: Option<u64>,
    /// Mean MCS index of the downlink transport blocks first sent since the sample before; none without a block.
    pub downlink_mcs: Option<f64>,
    /// The same of its uplink.
    pub uplink_mcs: Option<f64>,
}

impl Summary {
    /// `timeseries.csv`.
    pub fn timeseries_csv(&self) -> String {
        let header = "seed,time_s,station,downloaded,cwnd,srtt_ms,downlink_queue,uplink_queue,acks_sent,link_queued_ns,link_sent,link_capacity,downlink_mcs,uplink_mcs\n";
        let mcs = |mean: Option<f64>| mean.map_or(String::new(), |mcs| format!("{mcs:.3}"));
        let mut csv = String::from(header);
        for (run, s) in self.runs.iter().flat_map(|run| run.samples.iter().map(move |s| (run, s))) {
            let _ = writeln!(
                csv,
                "{},{:.3},{},{},{},{:.3},{},{},{},{},{},{},{},{}",
                run.seed,
                s.at.as_secs_f64(),
                s.station,
                s.downloaded,
                s.cwnd,
                s.srtt_ms,
                s.downlink_queue,
                s.uplink_queue,
                s.acks_sent,
                s.queued_ns,
                s.link_sent,
                s.capacity.map_or(String::new(), |bytes| bytes.to_string()),
                mcs(s.downlink_mcs),
                mcs(s.uplink_mcs)
            );
        }
        csv
    }
}
