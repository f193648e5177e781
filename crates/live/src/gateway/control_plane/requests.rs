//! What a worker is asked from outside, and what it answers. It looks between turns, every 10 ms or more often.

use super::capture::Tap;
use crate::gateway::config::GatewayConfig;
use crate::gateway::counter::CounterValues;
use paceline_net::{Duration, FlowKey};
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot, Histogram};
use paceline_pep::ack_filter::Holdout;
use paceline_pep::{AcceleratorStats, accelerator};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A part of a list, and from where to go on if there may be more.
pub type Page<T> = (Vec<T>, Option<u32>);
/// Entries of a page: what a worker tells in much less than a tick.
pub const PAGE: u32 = 1024;

/// What a worker is asked.
pub enum WorkerRequest {
    /// Stop without harm: no connection is taken in, and when all have been delivered what was acknowledged for them,
    /// or after this time, the worker ends.
    Drain(Duration),
    /// Step aside: no connection is taken in, those that are here are let go as by [`WorkerRequest::Drain`] in this time, and then
    /// the kernel has everything. Without a time, come back.
    Aside(Option<Duration>),
    /// Stop now: what is exposed is reset.
    Abort,
    /// Tell what is going on.
    Snapshot(Sender<Snapshot>),
    /// Tell of connections, from a place on.
    Flows(u32, Sender<Page<FlowSnapshot>>),
    /// Tell of devices, from a place on.
    Devices(u32, Sender<Page<DeviceSnapshot>>),
    /// Tell whether a connection (key from server to mobile) is here.
    Knows(FlowKey, Sender<bool>),
    /// Take over what may change at run time.
    Configure(Arc<GatewayConfig>),
    /// Filter the ACKs of other connections than these.
    HoldOut(Holdout),
    /// Copy a connection's packets.
    Capture(Tap),
}

/// Lateness up to 1 us, 2 us, and so on.
pub type Lateness = Histogram<1000>;

/// What a worker tells.
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
    /// Bytes held.
    pub held: u64,
    /// Round-trip times of the mobile segment, in ns.
    pub round_trips: accelerator::Times,
    /// What of them is above the connection's shortest, in ns.
    pub queue_delays: accelerator::Times,
    /// Rates towards devices, in b/s.
    pub rates: accelerator::Rates,
    /// How late the worker woke for its turns, in ns.
    pub lateness: Lateness,
    /// The ACK filter was found to do harm, and is switched off.
    pub filter_stopped: bool,
}

impl Snapshot {
    /// Takes the histograms over from a machine's books.
    pub fn add_histograms(&mut self, stats: &AcceleratorStats) {
        self.round_trips.add(&stats.round_trips);
        self.queue_delays.add(&stats.queue_delays);
        self.rates.add(&stats.rates);
    }
    /// Adds what another worker tells.
    pub fn add(&mut self, part: Self) {
        self.counters.add(&part.counters);
        self.flow_count += part.flow_count;
        self.openings += part.openings;
        self.exposure += part.exposure;
        self.held += part.held;
        self.round_trips.add(&part.round_trips);
        self.queue_delays.add(&part.queue_delays);
        self.rates.add(&part.rates);
        self.lateness.add(&part.lateness);
    }
}
