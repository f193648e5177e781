//! The window that a receiver advertises: the whole buffer from the start, or, as in Linux
//! (`tcp_rcv_space_adjust`), 64 KiB at first and more as the application reads more in a round-trip time, up
//! to the buffer.

use crate::config::EndpointConfig;
use paceline_net::{Duration, Instant};

/// First window of a receiver with automatic tuning (Linux: half of the default `tcp_rmem`).
const INITIAL_BYTES: u64 = 65_536;
/// Largest window field (RFC 9293 §3.1).
const MAX_FIELD: u64 = 65_535;

/// The advertised window. Its right edge never moves back (RFC 9293 §3.8.6.2.2).
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    shift: u8,
    /// Largest window that the buffer and the window scale allow, in bytes like all sizes here.
    limit: u64,
    /// Largest window allowed so far (Linux `window_clamp`); grows once per round-trip time.
    clamp: u64,
    /// Current window (Linux `rcv_ssthresh`); grows to the clamp with each segment.
    size: u64,
    /// RCV.NXT + RCV.WND as advertised.
    edge: u64,
    /// Largest number of bytes read in one round-trip time (Linux `rcvq_space.space`).
    space: u64,
    /// Bytes read before the current round trip, and its start.
    read_before: u64,
    round_start: Instant,
    rtt: Option<Duration>,
    /// The latest TSecr of the peer.
    last_echo: Option<u32>,
    autotune: bool,
}

impl ReceiveWindow {
    pub fn new(config: &EndpointConfig, shift: u8) -> Self {
        let limit = config.receive_buffer.0.min(MAX_FIELD << shift);
        let size = if config.autotune { limit.min(INITIAL_BYTES) } else { limit };
        Self {
            shift,
            limit,
            clamp: size,
            size,
            edge: size.min(MAX_FIELD),
            space: (u64::from(config.initial_window) * u64::from(config.segment_size)).max(1),
            read_before: 0,
            round_start: Instant::ZERO,
            rtt: None,
            last_echo: None,
            autotune: config.autotune,
        }
    }
    /// The window of a SYN, which is never scaled.
    pub fn unscaled(config: &EndpointConfig) -> u16 {
        let size = if config.autotune {
            config.receive_buffer.0.min(INITIAL_BYTES)
        } else {
            config.receive_buffer.0
        };
        size.min(MAX_FIELD) as u16
    }
    /// Offset of the first byte beyond the advertised window.
    pub fn edge(&self) -> u64 {
        self.edge
    }
    pub fn size(&self) -> u64 {
        self.size
    }
    /// The window field of a segment that acknowledges up to `rcv_nxt`, with `unread` bytes in the buffer;
    /// rounded up so that the right edge does not move back. `segment_size` is the payload of the peer's full
    /// segments.
    pub fn advertise(&mut self, rcv_nxt: u64, unread: u64, segment_size: u32) -> u16 {
        let wanted = self.free(unread, segment_size).max(self.edge.saturating_sub(rcv_nxt));
        let field = wanted.div_ceil(1 << self.shift).min(MAX_FIELD);
        self.edge = self.edge.max(rcv_nxt + (field << self.shift));
        field as u16
    }
    /// Free bytes in the buffer; 0 if they are less than a segment (RFC 9293 §3.8.6.2.2).
    fn free(&self, unread: u64, segment_size: u32) -> u64 {
        let free = self.size.saturating_sub(unread);
        let least = u64::from(segment_size).min(self.size / 2);
        if unread > 0 && free < least { 0 } else { free }
    }
    /// Whether reading has freed enough space for a window update: at least twice the advertised window,
    /// which is at most half of the buffer (Linux `__tcp_cleanup_rbuf`).
    pub fn needs_update(&self, rcv_nxt: u64, unread: u64, segment_size: u32) -> bool {
        let advertised = self.edge.saturating_sub(rcv_nxt);
        let free = self.free(unread, segment_size);
        2 * advertised <= self.size && free > 0 && free >= 2 * advertised
    }
    /// The smoothed round-trip time measured by the receiver.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
    /// A segment with data echoed the timestamp `echo`, `ms` milliseconds after that left. An echo counts
    /// once, since a peer without newer timestamp repeats it. A shorter round-trip time replaces the smoothed
    /// one (Linux since 6.16), a longer one has the weight 1/8.
    pub fn on_echo(&mut self, echo: u32, ms: u32) {
        if self.last_echo.replace(echo) == Some(echo) {
            return;
        }
        let sample = Duration::from_millis(u64::from(ms.max(1)));
        self.rtt = Some(self.rtt.map_or(sample, |rtt| sample.min((rtt * 7 + sample) / 8)));
    }
    /// A segment of `payload` bytes arrived, and the application has read up to `read_to`.
    pub fn on_progress(&mut self, now: Instant, read_to: u64, payload: u32) {
        if !self.autotune {
            return;
        }
        let segment = u64::from(payload);
        self.size = self.clamp.min(self.size + 2 * segment);
        let Some(rtt) = self.rtt else { return };
        if now.since(self.round_start) < rtt {
            return;
        }
        let read = read_to.saturating_sub(self.read_before);
        if read > self.space {
            // Twice the bytes read, for a sender that doubles per round trip, plus twice the growth since the
            // last one.
            let room = 2 * read;
            let growth = u128::from(room) * u128::from(read - self.space) / u128::from(self.space);
            let wanted = u128::from(room) + 2 * growth;
            self.clamp = self.clamp.max(wanted.min(u128::from(self.limit)) as u64);
            self.space = read;
        }
        self.read_before = read_to;
        self.round_start = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Bytes;

    fn config(buffer: u64, autotune: bool) -> EndpointConfig {
        let address = "198.18.0.1:80".parse().unwrap();
        EndpointConfig { receive_buffer: Bytes(buffer), autotune, ..EndpointConfig::new(address, address) }
    }

    #[test]
    fn a_fixed_window_is_advertised_at_once() {
        let config = config(1 << 20, false);
        let mut window = ReceiveWindow::new(&config, config.scale_shift());
        assert_eq!(u64::from(window.advertise(0, 0, 1448)) << config.scale_shift(), 1 << 20);
    }

    #[test]
    fn a_tuned_window_grows_as_the_application_reads_up_to_the_buffer() {
        let config = config(4 << 20, true);
        let mut window = ReceiveWindow::new(&config, config.scale_shift());
        window.on_echo(7, 100);
        let (mut received, mut cwnd, mut sizes) = (0, 14_480, Vec::new());
        for round in 1..=12 {
            for _ in 0..cwnd / 1448 {
                received += 1448;
                window.on_progress(Instant::from_millis(round * 100), received, 1448);
            }
            sizes.push(window.size());
            cwnd = (2 * cwnd).min(window.size());
        }
        assert!(sizes.is_sorted() && sizes[0] == 65_536, "{sizes:?}");
        assert_eq!(sizes.last(), Some(&(4 << 20)));
    }

    #[test]
    fn an_echo_counts_once_and_a_shorter_rtt_counts_at_once() {
        let config = config(4 << 20, true);
        let mut window = ReceiveWindow::new(&config, config.scale_shift());
        let mut rtt_after = |echo, ms| {
            window.on_echo(echo, ms);
            window.rtt().unwrap().as_millis()
        };
        assert_eq!([rtt_after(1, 80), rtt_after(1, 160), rtt_after(1, 20)], [80, 80, 80]);
        assert_eq!([rtt_after(2, 160), rtt_after(3, 40), rtt_after(3, 400)], [90, 40, 40]);
    }

    #[test]
    fn unread_data_closes_the_window_and_reading_updates_it_when_it_doubles() {
        let config = config(10_000, false);
        let mut window = ReceiveWindow::new(&config, 0);
        assert_eq!(window.advertise(0, 0, 1000), 10_000);
        assert_eq!(window.advertise(6000, 6000, 1000), 4000);
        assert_eq!(window.advertise(9500, 9500, 1000), 500); // advertised before
        assert_eq!(window.advertise(10_000, 10_000, 1000), 0);
        assert!(!window.needs_update(10_000, 9500, 1000)); // less than a segment
        assert!(window.needs_update(10_000, 9000, 1000));
        assert_eq!(window.advertise(10_000, 9000, 1000), 1000);
        assert!(!window.needs_update(10_000, 8500, 1000) && window.needs_update(10_000, 8000, 1000));
    }

    #[test]
    fn the_edge_never_moves_back() {
        let config = config(100_000, false);
        let mut window = ReceiveWindow::new(&config, 7);
        let mut last = 0;
        for rcv_nxt in [0, 100, 1448, 50_000, 50_001, 99_999] {
            let edge = rcv_nxt + (u64::from(window.advertise(rcv_nxt, 0, 1448)) << 7);
            assert!(edge >= last && edge >= rcv_nxt + 100_000);
            last = edge;
        }
    }
}
