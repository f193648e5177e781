//! Requests of the control plane to a worker, and their answers. A worker handles requests between two turns,
//! every 10 ms or more often.

use super::capture::Tap;
use crate::config::GatewayConfig;
use crate::counter::CounterValues;
use crate::datapath::socket::PacketSocket;
use crate::experiment::ExperimentStatus;
use crate::interfaces::mss_clamp::Clamp;
use paceline_net::{Duration, FlowKey};
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot, Histogram, Side};
use paceline_pep::ack_filter::Holdout;
use paceline_pep::{AcceleratorStats, accelerator};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A part of a list, and the position of the next page if there may be one.
pub type Page<T> = (Vec<T>, Option<u32>);
/// Positions of a list that a page covers. Chosen: takes a worker much less than a tick.
pub const PAGE: u32 = 1024;

/// A request to a worker.
pub enum WorkerRequest {
    /// Stop without harm: take no new connections, and end when all acknowledged data have been delivered, or
    /// after this time.
    Drain(Duration),
    /// Pause: take no new connections, detach the others as for [`WorkerRequest::Drain`] within this
    /// time, and then leave everything to the kernel. None: work normally again.
    Pause(Option<Duration>),
    /// Stop at once: connections with exposure are reset.
    Abort,
    /// Send counters, gauges and histograms.
    Snapshot(Sender<Snapshot>),
    /// Send a page of connections, from a position on.
    Flows(u32, Sender<Page<FlowSnapshot>>),
    /// Send a page of devices, from a position on.
    Devices(u32, Sender<Page<DeviceSnapshot>>),
    /// Send whether this worker has a connection (key from server to mobile).
    Knows(FlowKey, Sender<bool>),
    /// Take over a new configuration.
    Configure(Arc<GatewayConfig>),
    /// Lower the segment sizes of SYNs to this limit from now on.
    Clamp(Clamp),
    /// Do not filter the ACKs of these connections.
    HoldOut(Holdout),
    /// Copy a connection's packets to a capture.
    Capture(Tap),
    /// Use this socket for a side, whose interface is gone or has come back, and say so.
    Attach(Side, PacketSocket, Sender<()>),
}

/// A histogram of lateness; the first classes end at 1 us and 2 us.
pub type Lateness = Histogram<1000>;

/// Counters, gauges and histograms of a worker, or of all.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// All counters.
    pub counters: CounterValues,
    /// Connections being accelerated.
    pub flow_count: u64,
    /// Handshakes and connections without data that are remembered.
    pub openings: u64,
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub exposure: u64,
    /// Bytes buffered.
    pub held: u64,
    /// Devices that were found to share a queue.
    pub sharing_devices: u64,
    /// Round-trip times between gateway and devices, in ns.
    pub round_trips: accelerator::Times,
    /// Round-trip times less the connection's minimum, in ns.
    pub queue_delays: accelerator::Times,
    /// Times for which data had been stored when it was sent, in ns.
    pub ages: accelerator::Times,
    /// Sending rates towards devices, in b/s.
    pub rates: accelerator::Rates,
    /// How late the worker woke for its turns, in ns.
    pub lateness: Lateness,
    /// The ACK filter was found to do harm, and is switched off.
    pub filter_stopped: bool,
    /// The last experiment.
    pub experiment: Option<ExperimentStatus>,
}

impl Snapshot {
    /// Adds the histograms of an accelerator.
    pub fn add_histograms(&mut self, stats: &AcceleratorStats) {
        self.round_trips.add(&stats.round_trips);
        self.queue_delays.add(&stats.queue_delays);
        self.ages.add(&stats.ages);
        self.rates.add(&stats.rates);
    }
    /// Adds another worker's snapshot.
    pub fn add(&mut self, part: Self) {
        self.counters.add(&part.counters);
        self.flow_count += part.flow_count;
        self.openings += part.openings;
        self.exposure += part.exposure;
        self.held += part.held;
        self.sharing_devices += part.sharing_devices;
        self.round_trips.add(&part.round_trips);
        self.queue_delays.add(&part.queue_delays);
        self.ages.add(&part.ages);
        self.rates.add(&part.rates);
        self.lateness.add(&part.lateness);
    }
}
