//! The senders of stations' connections by the side of a proxy, and the use of the stations' path.
//!
//! Without a proxy, a connection has one sender over the whole path. A proxy makes two: the application's own
//! end on the one side, and the proxy's sender on the other. If the proxy's sender mostly waits for data, the
//! own end limits the connection, otherwise the proxy's sender does.

use super::senders::SenderSums;
use super::shares::RadioDelays;
use crate::counters::{ConnectionReading, Counters, EndReading, Proxy, SenderReading, StationReading};
use paceline_net::Duration;
use serde::{Deserialize, Serialize};

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Between the servers and the proxy.
    Server,
    /// Between the proxy and the stations.
    Radio,
}

impl Side {
    /// The word of tables and sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Radio => "radio",
        }
    }
}

/// Senders of one or more stations' connections, and the stations' path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StationSenders {
    /// The applications' ends.
    pub(crate) ends: SenderSums,
    /// The proxy's senders; empty without a proxy.
    pub(crate) relays: SenderSums,
    /// Lifetime of uploads through a proxy, of which the ends are on the radio side.
    relayed_uploads: Duration,
    pub(crate) path: PathUse,
}

/// The senders of one connection.
pub(crate) struct ConnectionSenders {
    pub ends: SenderSums,
    pub relays: SenderSums,
    relayed_upload: bool,
}

impl ConnectionSenders {
    /// Sums of one connection of a station whose packets have these counters, over the whole run.
    pub fn new(connection: &ConnectionReading, station: &Counters) -> Self {
        let radio = RadioDelays::new(station);
        let ConnectionReading { senders, relays, .. } = connection;
        let relayed = relays.iter().any(|relay| !relay.times.life().is_zero());
        if !relayed {
            let (ends, relays) = (SenderSums::of_connection(senders, &radio), SenderSums::default());
            return Self { ends, relays, relayed_upload: false };
        }
        let life = |sender: Option<&SenderReading>| sender.map_or(Duration::ZERO, |own| own.times.life());
        let relayed_upload = life(senders.get(1)) > life(senders.first());
        let (near, far) = (radio, RadioDelays::default());
        let (of_ends, of_relays) = if relayed_upload { (near, far) } else { (far, near) };
        let relays: Vec<SenderReading> = relays.iter().map(|relay| measured(relay, station)).collect();
        Self {
            ends: SenderSums::of_connection(senders, &of_ends),
            relays: SenderSums::of_connection(&relays, &of_relays),
            relayed_upload,
        }
    }
    /// The sums of the sender whose round-trip time includes the radio.
    pub fn over_radio(&self) -> &SenderSums {
        if self.relays.any() && !self.relayed_upload { &self.relays } else { &self.ends }
    }
}

/// A sender of the proxy. That of an accelerator counts no segments: the figures are those of the station's
/// packets at the proxy.
fn measured(relay: &SenderReading, station: &Counters) -> SenderReading {
    if relay.segments > 0 {
        return relay.clone();
    }
    SenderReading {
        segments: station.segments,
        retransmissions: station.retransmissions,
        rtt_ns: station.rtt_ns,
        rtt_samples: station.rtt_samples,
        ..relay.clone()
    }
}

impl StationSenders {
    /// Adds a connection.
    pub(crate) fn add_connection(&mut self, connection: &ConnectionSenders) {
        self.ends.add(&connection.ends);
        if connection.relays.any() {
            self.relays.add(&connection.relays);
        }
        if connection.relayed_upload {
            self.relayed_uploads += connection.ends.times.life();
        }
    }
    /// Adds the senders of other stations.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ends.add(&other.ends);
        self.relays.add(&other.relays);
        self.relayed_uploads += other.relayed_uploads;
        self.path.add(&other.path);
    }
    /// The side of the applications' ends, if there is a proxy between them.
    pub(crate) fn side_of_ends(&self) -> Option<Side> {
        let uploads = self.relayed_uploads + self.relayed_uploads >= self.ends.times.life();
        self.relays.any().then_some(if uploads { Side::Radio } else { Side::Server })
    }
    /// Sums of the senders whose round-trip time includes the radio.
    pub(crate) fn over_radio(&self) -> &SenderSums {
        if self.side_of_ends() == Some(Side::Server) { &self.relays } else { &self.ends }
    }
}

/// Use of the paths of several stations, and the packets lost on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PathUse {
    stations: f64,
    /// Sums over the stations of the shares of time or capacity that are used: downlink, uplink, hops before
    /// the proxy or all hops, hops behind the proxy.
    shares: [f64; 4],
    /// Sums over the stations of the shares of time in which a full window of RLC AM held data back:
    /// downlink, uplink.
    stalls: [f64; 2],
    pub is_link: bool,
    pub proxy: Option<Proxy>,
    /// Packets dropped by full queues of hops before the proxy and behind it.
    pub wired_drops: [u64; 2],
    /// Packets dropped by full queues of the downlink and, of a link, of the uplink.
    pub queue_drops: u64,
    pub radio_losses: u64,
}

impl PathUse {
    /// Mean shares over the stations that are used.
    pub fn downlink(&self) -> f64 {
        self.share(0)
    }
    pub fn uplink(&self) -> f64 {
        self.share(1)
    }
    pub fn before_proxy(&self) -> f64 {
        self.share(2)
    }
    pub fn behind_proxy(&self) -> f64 {
        self.share(3)
    }
    /// Mean shares of time in which a full window of RLC AM held data back: downlink, uplink.
    pub fn window_stalls(&self) -> [f64; 2] {
        self.stalls.map(|sum| if self.stations > 0.0 { sum / self.stations } else { 0.0 })
    }
    fn share(&self, index: usize) -> f64 {
        if self.stations > 0.0 { self.shares[index] / self.stations } else { 0.0 }
    }
    fn add(&mut self, other: &Self) {
        self.stations += other.stations;
        self.shares.iter_mut().zip(other.shares).for_each(|(sum, share)| *sum += share);
        self.stalls.iter_mut().zip(other.stalls).for_each(|(sum, share)| *sum += share);
        self.is_link |= other.is_link;
        self.proxy = self.proxy.or(other.proxy);
        self.wired_drops.iter_mut().zip(other.wired_drops).for_each(|(sum, drops)| *sum += drops);
        self.queue_drops += other.queue_drops;
        self.radio_losses += other.radio_losses;
    }
}

/// The use of each station's path over `life`, the time for which the run had connections.
pub(crate) fn path_uses(
    stations: &[StationReading],
    end: &EndReading,
    link_capacity_bytes: Option<u64>,
    life: Duration,
) -> Vec<PathUse> {
    let of_life = |busy: Duration| share(busy.as_nanos() as f64, life.as_nanos() as f64);
    let cell_of = |station: usize| end.cells.as_ref().map(|cells| cells[station].serving);
    let of_cell = |station: usize, prbs: fn(&Counters) -> u64, all: f64| {
        let same = |(other, _): &(usize, &StationReading)| cell_of(*other) == cell_of(station);
        let used: u64 = stations.iter().enumerate().filter(same).map(|(_, of)| prbs(&of.counters)).sum();
        let slots = life.as_secs_f64() * end.radio.slots_per_second;
        share(used as f64, all / end.radio.cells.max(1) as f64 * slots)
    };
    let of_link = |station: usize| {
        let (own, all) = (stations[station].link_capacity_bytes?, link_capacity_bytes?);
        let bytes = |of: &StationReading| of.counters.link_bytes;
        let used = if own == all { stations.iter().map(bytes).sum() } else { bytes(&stations[station]) };
        Some(share(used as f64, own as f64))
    };
    let uses = stations.iter().zip(&end.wired).enumerate().map(|(station, (reading, wired))| {
        let (c, link) = (&reading.counters, of_link(station));
        let radio = end.radio;
        PathUse {
            stations: 1.0,
            shares: [
                link.unwrap_or_else(|| of_cell(station, |c| c.downlink_prbs, radio.downlink_prbs)),
                link.map_or_else(|| of_cell(station, |c| c.uplink_prbs, radio.uplink_prbs), |_| 0.0),
                of_life(wired.busy[0]),
                of_life(wired.busy[1]),
            ],
            stalls: [c.downlink_window_stall_ns, c.uplink_window_stall_ns]
                .map(|ns| of_life(Duration::from_nanos(ns))),
            is_link: link.is_some(),
            proxy: end.proxy,
            wired_drops: wired.drops,
            queue_drops: c.downlink_queue_drops + c.uplink_queue_drops,
            radio_losses: c.radio_losses + c.pdcp_discards,
        }
    });
    uses.collect()
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}
