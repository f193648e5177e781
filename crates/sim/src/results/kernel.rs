//! Connections of real programs in an emulation: their packets at the station, and the readings of the
//! kernels at both ends.

use paceline_net::words::{bit_rate, bytes, ms, percent};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The largest limit of the end that sent more, in words; none where the kernel was not read.
    #[serde(default)]
    pub verdict: Option<String>,
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
    /// Time with data that were not yet acknowledged, s.
    pub busy_s: Option<f64>,
    /// Part of it in which the peer's receive window was full, s.
    pub receive_window_s: Option<f64>,
    /// Part of it in which the send buffer was full, s.
    pub send_buffer_s: Option<f64>,
    /// Receive window of the peer, bytes.
    pub window: Option<u64>,
}

impl KernelConnection {
    /// The verdict on this connection, for [`Self::verdict`].
    pub fn verdict_of(&self) -> Option<String> {
        Sums::of(self).map(|sums| sums.verdict())
    }
    /// Station, number of its connections that the kernel was read of, and the verdict on them.
    pub fn verdicts(connections: &[Self]) -> Vec<(usize, usize, String)> {
        let mut stations = BTreeMap::<usize, (usize, Sums)>::new();
        for connection in connections {
            let Some(sums) = Sums::of(connection) else { continue };
            let (count, all) = stations.entry(connection.station).or_default();
            *count += 1;
            all.add(&sums);
        }
        stations.into_iter().map(|(station, (count, sums))| (station, count, sums.verdict())).collect()
    }
}

/// Times of the ends that sent more, over connections: seconds.
#[derive(Default)]
struct Sums {
    lifetime: f64,
    busy: f64,
    receive_window: f64,
    send_buffer: f64,
    bytes: u64,
    segments: u64,
    retransmissions: u64,
    /// The largest receive window, bytes, and the round-trip time times the lifetime, ms s.
    window: u64,
    rtt: f64,
}

impl Sums {
    fn of(connection: &KernelConnection) -> Option<Self> {
        let (end, bytes) = if connection.downloaded >= connection.uploaded {
            (&connection.server_end, connection.downloaded)
        } else {
            (&connection.station_end, connection.uploaded)
        };
        let busy = end.busy_s?;
        // The kernel counts in ticks of some milliseconds.
        let lifetime = (connection.last_packet_s - connection.first_packet_s).max(busy);
        Some(Self {
            lifetime,
            busy,
            receive_window: end.receive_window_s.unwrap_or(0.0),
            send_buffer: end.send_buffer_s.unwrap_or(0.0),
            bytes,
            segments: end.segments.unwrap_or(0),
            retransmissions: end.retransmissions.unwrap_or(0),
            window: end.window.unwrap_or(0),
            rtt: end.srtt_ms.unwrap_or(0.0) * lifetime,
        })
    }
    fn add(&mut self, other: &Self) {
        self.lifetime += other.lifetime;
        self.busy += other.busy;
        self.receive_window += other.receive_window;
        self.send_buffer += other.send_buffer;
        self.bytes += other.bytes;
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.window = self.window.max(other.window);
        self.rtt += other.rtt;
    }
    fn verdict(&self) -> String {
        let lifetime = self.lifetime.max(f64::MIN_POSITIVE);
        let rate = self.bytes as f64 * 8.0 / lifetime;
        let rtt = self.rtt / lifetime;
        let path = (self.busy - self.receive_window - self.send_buffer).max(0.0);
        let limits = [
            (path, "limited by the congestion window"),
            (self.receive_window, "limited by the receive window"),
            (self.send_buffer, "limited by the send buffer"),
            (self.lifetime - self.busy, "without data to send"),
        ];
        let largest = limits.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let (index, (time, name)) = largest.expect("there are limits");
        let reason = match index {
            0 => {
                let again = percent(self.retransmissions as f64 / self.segments.max(1) as f64);
                format!("{} at {}, {again} of the segments sent again", bit_rate(rate), ms(rtt))
            }
            1 if self.window > 0 && rtt > 0.0 => {
                let most = bit_rate(self.window as f64 * 8.0 / (rtt / 1e3));
                format!("{} at {} is {most}", bytes(self.window as f64), ms(rtt))
            }
            1 | 2 => format!("{} at {}", bit_rate(rate), ms(rtt)),
            _ => format!("it wrote {}", bit_rate(rate)),
        };
        format!("{name} {} of the time ({reason})", percent(time / lifetime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(station: usize, times: [f64; 3], is_upload: bool) -> KernelConnection {
        let [busy, receive_window, send_buffer] = times;
        let end = KernelEnd {
            busy_s: Some(busy),
            receive_window_s: Some(receive_window),
            send_buffer_s: Some(send_buffer),
            segments: Some(1000),
            retransmissions: Some(20),
            srtt_ms: Some(40.0),
            window: Some(60_000),
            ..KernelEnd::default()
        };
        let (downloaded, uploaded) = if is_upload { (1000, 12_500_000) } else { (12_500_000, 1000) };
        let mut own =
            KernelConnection { station, downloaded, uploaded, last_packet_s: 10.0, ..Default::default() };
        *(if is_upload { &mut own.station_end } else { &mut own.server_end }) = end;
        own
    }

    #[test]
    fn the_largest_limit_of_the_sending_end_is_named() {
        for (times, verdict) in [
            (
                [9.5, 0.5, 0.0],
                "limited by the congestion window 90% of the time (10 Mb/s at 40 ms, 2% of the segments sent again)",
            ),
            ([10.0, 8.0, 1.0], "limited by the receive window 80% of the time (60 kB at 40 ms is 12 Mb/s)"),
            ([10.0, 1.0, 6.0], "limited by the send buffer 60% of the time (10 Mb/s at 40 ms)"),
            ([3.0, 1.0, 0.0], "without data to send 70% of the time (it wrote 10 Mb/s)"),
        ] {
            for is_upload in [false, true] {
                assert_eq!(connection(0, times, is_upload).verdict_of().as_deref(), Some(verdict));
            }
        }
        let unread = KernelConnection { server_end: KernelEnd::default(), ..connection(0, [1.0; 3], false) };
        assert_eq!(unread.verdict_of(), None);
    }

    #[test]
    fn the_connections_of_a_station_have_one_verdict() {
        let list = [
            connection(2, [10.0, 0.0, 0.0], false),
            connection(0, [10.0, 9.0, 0.0], false),
            connection(2, [10.0, 10.0, 0.0], true),
            connection(2, [10.0, 1.0, 0.0], false),
        ];
        let verdicts = KernelConnection::verdicts(&list);
        let found: Vec<(usize, usize)> = verdicts.iter().map(|own| (own.0, own.1)).collect();
        assert_eq!(found, [(0, 1), (2, 3)]);
        assert!(
            verdicts[1].2.starts_with("limited by the congestion window 63% of the time"),
            "{verdicts:?}"
        );
    }
}
