//! The state of the stations for a picture while a run goes on. Apart from the readings that results are
//! computed from: a view may be taken at any time, or never, and changes nothing.

use super::reading::read_station;
use crate::model::Model;
use paceline_net::Instant;

/// The stations at one time.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Simulated time.
    pub at: Instant,
    /// The stations, in their order.
    pub stations: Vec<StationView>,
}

/// A station at one time. Bytes transferred and ACKs count from the start of the run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StationView {
    /// Payload bytes that one end acknowledged to the other so far, both directions.
    pub acknowledged: u64,
    /// Smoothed round-trip time of the first connection, ms; none before its first measurement.
    pub srtt_ms: Option<f64>,
    /// Congestion windows of the servers' endpoints, summed, bytes.
    pub cwnd: u64,
    /// Bytes in the eNB's downlink buffer, or in the downlink queue of a link.
    pub downlink_queue: u64,
    /// Bytes in the station's uplink buffer, or in the uplink queue of a link.
    pub uplink_queue: u64,
    /// Pure ACKs that the ACK filter discarded so far.
    pub acks_discarded: u64,
    /// Pure ACKs sent so far.
    pub acks_sent: u64,
}

impl View {
    pub(crate) fn of(model: &Model) -> Self {
        let station = |index| {
            let reading = read_station(model, index);
            StationView {
                acknowledged: reading.counters.downloaded + reading.counters.uploaded,
                srtt_ms: reading.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
                cwnd: reading.cwnd_bytes.unwrap_or(0),
                downlink_queue: reading.downlink_queue_bytes,
                uplink_queue: reading.uplink_queue_bytes,
                acks_discarded: reading.counters.acks_discarded,
                acks_sent: reading.counters.acks_sent,
            }
        };
        Self { at: model.engine.now(), stations: (0..model.stations()).map(station).collect() }
    }
}
