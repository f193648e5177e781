//! Rows of the connections of an emulation's real stations.

use super::columns::row;
use super::csv::Decimals;
use crate::results::kernel::KernelConnection;
use crate::results::run::RunResult;

row! {
    /// A row of `kernel_connections.csv`.
    pub(super) struct KernelConnectionRow {
        seed: u64,
        station: usize,
        connection: usize,
        server: String,
        station_port: u16,
        first_packet_s: Decimals<6>,
        last_packet_s: Decimals<6>,
        downloaded: u64,
        uploaded: u64,
        server_congestion_control: Option<String>,
        server_segments: Option<u64>,
        server_retransmissions: Option<u64>,
        server_srtt_ms: Option<Decimals<3>>,
        server_min_rtt_ms: Option<Decimals<3>>,
        server_busy_s: Option<Decimals<3>>,
        server_receive_window_s: Option<Decimals<3>>,
        server_send_buffer_s: Option<Decimals<3>>,
        server_window: Option<u64>,
        station_congestion_control: Option<String>,
        station_segments: Option<u64>,
        station_retransmissions: Option<u64>,
        station_srtt_ms: Option<Decimals<3>>,
        station_min_rtt_ms: Option<Decimals<3>>,
        station_busy_s: Option<Decimals<3>>,
        station_receive_window_s: Option<Decimals<3>>,
        station_send_buffer_s: Option<Decimals<3>>,
        station_window: Option<u64>,
        verdict: Option<String>,
    }
}

impl KernelConnectionRow {
    pub(super) fn new(run: &RunResult, c: &KernelConnection) -> Self {
        let (server, station) = (c.server_end.clone(), c.station_end.clone());
        Self {
            seed: run.seed,
            station: c.station,
            connection: c.connection,
            server: c.server.clone(),
            station_port: c.station_port,
            first_packet_s: Decimals(c.first_packet_s),
            last_packet_s: Decimals(c.last_packet_s),
            downloaded: c.downloaded,
            uploaded: c.uploaded,
            server_congestion_control: server.congestion_control,
            server_segments: server.segments,
            server_retransmissions: server.retransmissions,
            server_srtt_ms: server.srtt_ms.map(Decimals),
            server_min_rtt_ms: server.min_rtt_ms.map(Decimals),
            server_busy_s: server.busy_s.map(Decimals),
            server_receive_window_s: server.receive_window_s.map(Decimals),
            server_send_buffer_s: server.send_buffer_s.map(Decimals),
            server_window: server.window,
            station_congestion_control: station.congestion_control,
            station_segments: station.segments,
            station_retransmissions: station.retransmissions,
            station_srtt_ms: station.srtt_ms.map(Decimals),
            station_min_rtt_ms: station.min_rtt_ms.map(Decimals),
            station_busy_s: station.busy_s.map(Decimals),
            station_receive_window_s: station.receive_window_s.map(Decimals),
            station_send_buffer_s: station.send_buffer_s.map(Decimals),
            station_window: station.window,
            verdict: c.verdict.clone(),
        }
    }
}
