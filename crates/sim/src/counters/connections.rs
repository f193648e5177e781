//! Reads the sums of every connection at the end of a run.

use crate::model::Model;
use crate::proxy::{AcceleratedSender, Relay};
use paceline_net::{Duration, Event, FlowKey, Instant};
use paceline_tcp::{Endpoint, LimitTimes};
use std::collections::BTreeMap;

/// One connection of a simulated station.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionReading {
    /// The ends whose sending counts: both, or the server alone where the station only sends a request.
    pub senders: Vec<SenderReading>,
    /// The senders of a proxy that relays the connection, towards the station and towards the server, as far
    /// as they have sent data. The sender of an accelerator has times, a window and bytes alone.
    pub relays: Vec<SenderReading>,
    /// Time at which the sender of a finite transfer had every byte acknowledged.
    pub completed_at: Option<Instant>,
    /// Time at which the receiver of a finite transfer had every byte.
    pub received_at: Option<Instant>,
}

/// One sender of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderReading {
    /// Time spent under each limit of the sender.
    pub times: LimitTimes,
    pub bytes_acked: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    pub rtt_ns: u64,
    pub rtt_samples: u64,
    /// Largest window that the receiver has offered, bytes; 0 for an end that sends nothing.
    pub window_bytes: u64,
    /// Size of the send buffer, bytes; 0 for an end that sends nothing.
    pub send_buffer_bytes: u64,
    /// Mean time for which an accelerator had stored data when it sent them.
    pub stored: Option<Duration>,
}

/// Connections of each station. Takes the engine's events.
pub(super) fn read(model: &mut Model) -> Vec<Vec<ConnectionReading>> {
    let events = model.engine.take_events();
    let completed: BTreeMap<FlowKey, Instant> = events
        .into_iter()
        .filter_map(|(at, event)| match event {
            Event::TransferComplete(key) => Some((key, at)),
            Event::ConnectionTimedOut(_) | Event::ServingCell(_) => None,
        })
        .collect();
    let model = &*model;
    let now = model.engine.now();
    let read = |station: usize| {
        let size = |flow| model.transfer_size(station, flow).map(|size| size.0);
        let flows = model.flows(station).into_iter().enumerate();
        let relays = |server: &Endpoint, host| relays(model, &server.flow_key(), host, now);
        let read = |(flow, (server, host))| ConnectionReading {
            relays: relays(server, host),
            ..connection(server, host, size(flow), &completed, now)
        };
        flows.map(read).collect()
    };
    (0..model.stations()).map(read).collect()
}

/// The senders of the proxy for a connection (key from server to station) that have sent data.
fn relays(model: &Model, key: &FlowKey, host: &Endpoint, now: Instant) -> Vec<SenderReading> {
    match model.pep().and_then(|pep| pep.relay(key, now)) {
        None => Vec::new(),
        Some(Relay::Split(mobile, wired)) => {
            let uploads = (!host.is_requester()).then(|| sender(wired, now));
            let relays = std::iter::once(sender(mobile, now)).chain(uploads);
            relays.filter(|relay| relay.segments > 0).collect()
        }
        Some(Relay::Accelerated(AcceleratedSender { times, window, stored })) => {
            let bytes_acked = host.stats().bytes_received;
            let own = SenderReading { times, window_bytes: window, bytes_acked, ..SenderReading::default() };
            vec![SenderReading { stored, ..own }]
        }
    }
}

fn connection(
    server: &Endpoint,
    host: &Endpoint,
    size: Option<u64>,
    completed: &BTreeMap<FlowKey, Instant>,
    now: Instant,
) -> ConnectionReading {
    let request = host.is_requester();
    let mut senders = vec![sender(server, now)];
    if !request {
        senders.push(sender(host, now));
    }
    let key = server.flow_key();
    let receivers = if request { vec![host] } else { vec![host, server] };
    let received = receivers.into_iter().map(Endpoint::stats).find(|s| Some(s.bytes_received) == size);
    ConnectionReading {
        senders,
        relays: Vec::new(),
        completed_at: completed.get(&key).or_else(|| completed.get(&key.reversed())).copied(),
        received_at: received.map(|stats| stats.received_at),
    }
}

fn sender(endpoint: &Endpoint, now: Instant) -> SenderReading {
    let (stats, times) = (endpoint.stats(), endpoint.limits(now));
    let sends = !times.life().is_zero();
    SenderReading {
        times,
        bytes_acked: stats.bytes_acked,
        segments: stats.segments_sent,
        retransmissions: stats.retransmitted_segments,
        timeouts: stats.timeouts,
        rtt_ns: stats.rtt_ns,
        rtt_samples: stats.rtt_samples,
        window_bytes: if sends { endpoint.snapshot().peer_window.0 } else { 0 },
        send_buffer_bytes: if sends { endpoint.send_buffer().0 } else { 0 },
        stored: None,
    }
}
