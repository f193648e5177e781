//! The time for which data is stored ahead of the radio. More than keeps the radio busy until the server's
//! next data arrive would only grow old: an application reads it later than without the accelerator.
//!
//! The window that the server sees holds the bytes in flight to the client, and the bytes that the radio
//! takes in a round trip to the server and the time in which the server reacts. The connections of a device
//! share that: each may use the bytes that the others leave, and has an equal part at least.

use crate::accelerator::flow::context::{Ahead, Context};
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::views::ClientState;
use paceline_net::Duration;

/// Time in which a server reacts to a window update beside the round trip: its scheduler's and its network
/// device's delay, and that of the batches here. Chosen: a few ticks of Linux; while a server takes longer,
/// the radio sends from its own queue, which the rate control keeps.
const REACTION: Duration = Duration::from_millis(3);
/// Part of the round trip by which the next one may be longer. Chosen: bursts in the core network.
const RTT_DIVISOR: u64 = 4;
/// Part of the queue that the rate control keeps for a radio whose rate varies, which is stored as well:
/// until the control knows that the radio takes more, its window leaves no more to the server. Chosen: on
/// generated traces more gained nothing.
const VARIATION_DIVISOR: u64 = 2;
/// Smallest window of a connection, in bytes. Chosen: a few segments keep a connection going.
const LEAST_BYTES: u64 = 8 << 10;
/// Bytes stored before anything is measured. Chosen: the window of a client at the beginning of a connection
/// (64 KiB in Linux), which is in flight without the accelerator too.
const FIRST_BYTES: u64 = 64 << 10;

impl Ahead {
    /// Bytes that are stored for a connection whose server is `rtt` away.
    fn stored(&self, rtt: Duration) -> u64 {
        let derived = || rtt * crate::knob!("AGE_M", 125) / 100 + Duration::from_micros(crate::knob!("AGE_R", 3_000)) + self.variation * crate::knob!("AGE_TD", 50) / 100;
        let time = self.most.unwrap_or_else(derived);
        let bytes = u128::from(self.capacity) * u128::from(time.as_nanos()) / 1_000_000_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if self.measured { bytes } else { bytes.max(FIRST_BYTES) }
    }
}

impl FromServer {
    /// The offset to which the connection's part of the buffer reaches. Bytes beyond a hole that the client
    /// has extend it, up to one share: else one hole would close the window until its retransmission is
    /// acknowledged.
    pub(super) fn reach(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        let to_client = client.to_client;
        let from = to_client.una() + to_client.arrived_bytes().min(cx.share);
        let rtt = self.server_rtt.get();
        let Some(ahead) = cx.ahead.filter(|ahead| ahead.most.is_some() || rtt.is_some()) else {
            return from + cx.share;
        };
        let segment = u64::from(to_client.segment());
        let stored = ahead.stored(rtt.unwrap_or_default()).max(2 * segment);
        let all = ahead.window.saturating_add(stored);
        let own = self.store.next().saturating_sub(to_client.una());
        let left = all.saturating_sub(ahead.queued.saturating_sub(own));
        // The window field has units: less than two of them could be none.
        let least = LEAST_BYTES.max(2 << client.connection.negotiated.client_shift).max(2 * segment);
        let part = left.max(all / ahead.busy.max(1)).max(least).min(cx.share);
        // Data that the client's window keeps from the radio is not stored for it.
        let client_edge = to_client.nxt().max(to_client.window().edge());
        (from + part).min(client_edge.saturating_add(stored.max(least)))
    }
}
