//! The records of an event trace, in one format for simulator, emulator and gateway.
//!
//! Names and fields follow qlog (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events) where it
//! has them: `metrics_updated`, `congestion_state_updated`, `packet_dropped`, `trigger`; as there, times are
//! in ms and rates in b/s. Left out: qlog's file header, and its omission of fields that have not changed.

use crate::node::DropReason;
use crate::packet::FlowKey;
use crate::time::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// An event: a line of the file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record {
    /// Time since the start, ms.
    pub time_ms: f64,
    /// Index of the station; none of a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<usize>,
    /// The connection in the direction of its sender, as `SOURCE:PORT-DESTINATION:PORT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Name and data.
    #[serde(flatten)]
    pub detail: Detail,
}

/// Name and data of an event.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "name", content = "data")]
pub enum Detail {
    /// State of RFC 9293 §3.3.2.
    #[serde(rename = "tcp:connection_state_updated")]
    ConnectionState(StateChange),
    /// State of the congestion control.
    #[serde(rename = "tcp:congestion_state_updated")]
    CongestionState(StateChange),
    /// Quantities of a sender.
    #[serde(rename = "tcp:metrics_updated")]
    Tcp(TcpMetrics),
    /// Retransmissions, with the occasions of recovery since the last reading.
    #[serde(rename = "tcp:segments_retransmitted")]
    Retransmitted(Recovery),
    /// Every byte of a finite transfer is acknowledged.
    #[serde(rename = "tcp:transfer_completed")]
    TransferCompleted {},
    /// The connection is given up.
    #[serde(rename = "tcp:connection_closed")]
    ConnectionClosed {
        /// `unanswered`.
        trigger: &'static str,
    },
    /// Senders of the kernel at the servers of a real station.
    #[serde(rename = "kernel:metrics_updated")]
    Kernel {
        /// Congestion windows, summed, bytes.
        congestion_window: u64,
        /// Of the first connection, ms.
        smoothed_rtt: Option<f64>,
    },
    /// A packet ended at a node.
    #[serde(rename = "network:packet_dropped")]
    PacketDropped {
        /// The reason.
        trigger: &'static str,
        /// Bytes with the IP header.
        length: u32,
    },
    /// The ACK filter discarded a pure ACK.
    #[serde(rename = "ack_filter:ack_discarded")]
    AckDiscarded {
        /// Its acknowledgment number.
        acknowledgment: Option<u32>,
    },
    /// An ACK policer dropped a pure ACK.
    #[serde(rename = "ack_policer:ack_dropped")]
    AckPoliced {
        /// Its acknowledgment number.
        acknowledgment: Option<u32>,
    },
    /// Scheduling requests were sent.
    #[serde(rename = "radio:scheduling_requested")]
    SchedulingRequested {
        /// Requests.
        requests: u64,
        /// Times that all of dsr-TransMax requests had no answer.
        failures: u64,
    },
    /// Waits for a grant ended.
    #[serde(rename = "radio:granted")]
    Granted {
        /// Number of waits.
        waits: u64,
        /// Mean time from the trigger of the request to the grant, ms.
        wait: f64,
    },
    /// Steps of random access.
    #[serde(rename = "radio:random_access")]
    RandomAccess {
        /// Procedures started.
        started: u64,
        /// Procedures completed.
        completed: u64,
        /// Preambles sent.
        preambles: u64,
        /// Of these, chosen by another station as well.
        collisions: u64,
    },
    /// Transport blocks were sent again.
    #[serde(rename = "radio:harq_retransmitted")]
    HarqRetransmitted {
        /// `downlink` or `uplink`.
        direction: &'static str,
        /// Number of retransmissions.
        retransmissions: u64,
    },
    /// A handover was commanded, or a station selected a cell after a radio-link failure.
    #[serde(rename = "radio:handover_started")]
    HandoverStarted {
        /// The former serving cell.
        from_cell: usize,
        /// The new one.
        to_cell: usize,
        /// `a3`, `scripted` or `link-failure`.
        trigger: String,
    },
    /// Service in the new cell began, or the handover failed.
    #[serde(rename = "radio:handover_ended")]
    HandoverEnded {
        /// The former serving cell.
        from_cell: usize,
        /// The new one.
        to_cell: usize,
        /// `served` or `failed`.
        outcome: String,
        /// Time without service, ms.
        interruption: Option<f64>,
        /// Packets that ended with the source's path.
        dropped_packets: u64,
        /// Packets that the source forwarded.
        forwarded_packets: u64,
    },
    /// One direction of a pair changed its path.
    #[serde(rename = "sidelink:path_switched")]
    PathSwitched {
        /// `to-station` or `to-peer`.
        direction: String,
        /// The new path.
        path: String,
        /// CQI of the direct link.
        direct_cqi: u8,
        /// CQI of the sender's uplink.
        uplink_cqi: u8,
        /// Packets of the former path that were dropped.
        dropped_packets: u64,
    },
    /// State of the accelerator's rate control.
    #[serde(rename = "accelerator:state_updated")]
    AcceleratorState(StateChange),
    /// Quantities of an accelerated connection and of its device's rate control.
    #[serde(rename = "accelerator:metrics_updated")]
    Accelerator(AcceleratorMetrics),
}

/// A change of state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StateChange {
    /// The former state; none at the first reading.
    pub old: Option<String>,
    /// The new state.
    pub new: String,
}

/// Quantities of a TCP sender.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TcpMetrics {
    /// Bytes.
    pub congestion_window: u64,
    /// Slow start threshold, bytes; none while it is infinite.
    pub ssthresh: Option<u64>,
    /// Bytes estimated to be in the network.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time, ms.
    pub smoothed_rtt: Option<f64>,
    /// Smallest round-trip time, ms.
    pub min_rtt: Option<f64>,
    /// b/s; none without pacing.
    pub pacing_rate: Option<u64>,
}

/// Retransmissions, and the occasions of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Recovery {
    /// Segments sent again.
    pub segments: u64,
    /// Recoveries that acknowledgments started.
    pub fast_recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub tail_loss_probes: u64,
    /// Reductions that were undone as spurious.
    pub undone_reductions: u64,
}

/// Quantities of an accelerated connection, and of the rate control that the connections of a device share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AcceleratorMetrics {
    /// Bytes that may be in flight to the device; none of the published control, which has no window.
    pub congestion_window: Option<u64>,
    /// Bytes sent to the device and not acknowledged by it.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time of the mobile segment, ms.
    pub smoothed_rtt: Option<f64>,
    /// Its minimum, ms.
    pub min_rtt: Option<f64>,
    /// Sending rate towards the device, b/s.
    pub pacing_rate: u64,
    /// Estimated capacity, b/s.
    pub capacity: u64,
    /// Queueing delay that is kept, ms.
    pub target_delay: f64,
    /// Bytes acknowledged to the server that the device has not acknowledged.
    pub exposure: u64,
    /// Bytes stored, bookkeeping included.
    pub held: u64,
    /// Payload bytes that the device has acknowledged.
    pub delivered: u64,
    /// `server`, `memory`, `client-window` or `radio`.
    pub limit: String,
}

/// Changes of accelerated connections between readings.
#[derive(Default, Debug)]
pub struct AcceleratorChanges(BTreeMap<String, (String, AcceleratorMetrics)>);

impl AcceleratorChanges {
    /// The events by which a connection differs from its last reading.
    pub fn read(&mut self, flow: &str, state: &str, metrics: AcceleratorMetrics) -> Vec<Detail> {
        let before = self.0.insert(flow.to_owned(), (state.to_owned(), metrics.clone()));
        let (old, known) = before.unzip();
        let mut changes = Vec::new();
        if old.as_deref() != Some(state) {
            changes.push(Detail::AcceleratorState(StateChange { old, new: state.to_owned() }));
        }
        if known.as_ref() != Some(&metrics) {
            changes.push(Detail::Accelerator(metrics));
        }
        changes
    }
}

impl Record {
    /// An event of a run.
    pub fn at(at: Instant, station: Option<usize>, flow: Option<FlowKey>, detail: Detail) -> Self {
        let time_ms = at.since(Instant::ZERO).as_millis_f64();
        Self { time_ms, station, flow: flow.map(|key| flow_name(&key)), detail }
    }
}

/// A connection's name in a trace, as `paceline gateway flows` has it.
pub fn flow_name(key: &FlowKey) -> String {
    let [src, dst] = [(key.src, key.src_port), (key.dst, key.dst_port)].map(SocketAddr::from);
    format!("{src}-{dst}")
}

/// A time in ms.
pub fn ms(time: Option<Duration>) -> Option<f64> {
    time.map(Duration::as_millis_f64)
}

impl DropReason {
    /// Its name in an event trace.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ActiveQueueManagement => "active-queue-management",
            Self::AckFiltered => "ack-filtered",
            Self::AckPoliced => "ack-policed",
            Self::HarqFailed => "harq-failed",
            Self::RlcReassembly => "rlc-reassembly",
            Self::PdcpReordering => "pdcp-reordering",
            Self::PdcpDiscard => "pdcp-discard",
            Self::RadioLinkFailure => "radio-link-failure",
            Self::NoRoute => "no-route",
            Self::LinkLoss => "link-loss",
            Self::PathSwitch => "path-switch",
        }
    }
}
