//! The time for which data is stored ahead of the radio. More than keeps the radio busy until the server's
//! next data arrive would only grow old: an application reads it later than without the accelerator.
//!
//! The window that the server sees holds the bytes in flight to the client, and the bytes that the radio
//! takes in a round trip to the server and the time in which the server reacts. The connections of a device
//! share that: each may use the bytes that the others leave, and has an equal part at least.

use crate::accelerator::flow::context::{Ahead, Context};
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::views::ClientState;
use paceline_net::{Duration, Instant};

/// Smallest window of a connection, in bytes. Chosen: a few segments keep a connection going.
const LEAST_BYTES: u64 = 8 << 10;
/// Bytes stored before anything is measured. Chosen: the window of a client at the beginning of a connection
/// (64 KiB in Linux), which is in flight without the accelerator too.
const FIRST_BYTES: u64 = 64 << 10;

impl Ahead {
    /// Time in which the radio takes so many bytes.
    pub fn time_to_send(&self, bytes: u64) -> Duration {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.capacity.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
    /// Bytes that are stored for a connection whose server is `rtt` away.
    fn stored(&self, rtt: Duration) -> u64 {
        let time = self.most.unwrap_or(rtt + self.reserve);
        let bytes = u128::from(self.capacity) * u128::from(time.as_nanos()) / 1_000_000_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        // While the window doubles in a round trip, the data for the next one has to be here already.
        let bytes = if self.starting && self.most.is_none() { bytes.max(self.window) } else { bytes };
        if self.measured { bytes } else { bytes.max(FIRST_BYTES) }
    }
}

impl FromServer {
    /// Data up to `end` arrived.
    pub(super) fn note_window_use(&mut self, now: Instant, end: u64, segment: u32) {
        let rtt = self.server_rtt.get().unwrap_or_default();
        self.window_use.on_data(now, rtt, self.edge, (end, u64::from(segment)));
    }
    /// Whether the server's last data was all that it might send.
    pub fn fills_window(&self) -> bool {
        self.window_use.is_full()
    }
    /// The round trip to the server, if it is known.
    pub fn server_rtt(&self) -> Option<Duration> {
        self.server_rtt.get()
    }
    /// The offset to which the server's window reaches: that of the memory, unless data would be stored for
    /// longer than it may.
    pub(super) fn reach(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        let to_client = client.to_client;
        let rtt = self.server_rtt.get();
        // The losses of a client without SACK are found by the duplicate ACKs for data beyond them: such a
        // client needs more data the more it loses.
        let bounded = |ahead: &Ahead| ahead.most.is_some() || rtt.is_some() && to_client.uses_sack();
        let Some(ahead) = cx.ahead.filter(bounded) else { return self.window_limit(cx, client) };
        let segment = u64::from(to_client.segment());
        let stored = ahead.stored(rtt.unwrap_or_default()).max(2 * segment);
        let all = ahead.window.saturating_add(stored);
        // All before this offset has arrived, or is lost and is sent again in place of new data.
        let from = to_client.nxt() - to_client.in_flight();
        let own = self.store.next().saturating_sub(from);
        let left = all.saturating_sub(ahead.queued.saturating_sub(own));
        // The window field has units: less than two of them could be none.
        let least = LEAST_BYTES.max(2 << client.connection.negotiated.client_shift).max(2 * segment);
        let part = left.max(all / ahead.busy.max(1)).max(least);
        // Data that the client's window keeps from the radio is not stored for it.
        let client_edge = to_client.nxt().max(to_client.window().edge());
        (from + part).min(client_edge.saturating_add(stored.max(least))).min(self.window_limit(cx, client))
    }
}
