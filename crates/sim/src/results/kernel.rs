//! Connections of real programs in an emulation: their packets at the station, and the readings of the
//! kernels at both ends.

use serde::{Deserialize, Serialize};

/// One connection of a real station, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelConnection {
    /// Index of the station.
    pub station: usize,
    /// Index of the connection within the station, in the order of their first packets.
    pub connection: usize,
    /// Address and port of the end on the servers' side.
    pub server: String,
    /// Port of the station's end.
    pub station_port: u16,
    /// Time of the first packet at the station, seconds.
    pub first_packet_s: f64,
    /// Time of the last packet at the station, seconds.
    pub last_packet_s: f64,
    /// Payload bytes from the server that the station has acknowledged.
    pub downloaded: u64,
    /// Payload bytes of the station that were acknowledged.
    pub uploaded: u64,
    /// Reading of the kernel at the server's end; empty where the server is on another host.
    pub server_end: KernelEnd,
    /// Reading of the kernel at the station's end.
    pub station_end: KernelEnd,
}

/// Last reading of one end of a connection (`TCP_INFO` of Linux). Figures that were not read are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelEnd {
    /// Congestion control, by the kernel's name.
    pub congestion_control: Option<String>,
    /// Segments with payload sent, retransmissions included.
    pub segments: Option<u64>,
    /// Segments retransmitted.
    pub retransmissions: Option<u64>,
    /// Smoothed round-trip time, ms; none before its first measurement.
    pub srtt_ms: Option<f64>,
    /// Smallest round-trip time, ms; none before its first measurement.
    pub min_rtt_ms: Option<f64>,
}
