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

/// Time in which a server reacts to a window update, beside the round trip: its scheduler's and its network
/// device's delay, and that of the batches here. Chosen: several ticks of Linux.
const REACTION: Duration = Duration::from_millis(10);
/// A round trip to the server may be longer than that of the handshake by one part in this many. Chosen: long
/// packets and a busy server take longer than a SYN.
const RTT_DIVISOR: u64 = 4;
/// Smallest window of a connection, in bytes. Chosen: a few segments keep a connection going.
const LEAST_BYTES: u64 = 8 << 10;

impl Ahead {
    /// Bytes of all connections, where those of one are stored for `time`.
    fn bytes(&self, time: Duration) -> u64 {
        let stored = u128::from(self.capacity) * u128::from(time.as_nanos()) / 1_000_000_000;
        self.window.saturating_add(u64::try_from(stored).unwrap_or(u64::MAX))
    }
}

impl FromServer {
    /// Bytes beyond the client's acknowledgment to which the window reaches.
    pub(super) fn window(&self, cx: &Context<'_>, client: ClientState<'_>) -> u64 {
        let Some(ahead) = cx.ahead else { return cx.share };
        let rtt = self.ack_hold.server_rtt();
        let all = ahead.bytes(ahead.most.unwrap_or(rtt + rtt / RTT_DIVISOR + REACTION));
        let own = self.store.next().saturating_sub(client.to_client.una());
        let left = all.saturating_sub(ahead.queued.saturating_sub(own));
        // The window field has units: less than two of them could be none.
        let (unit, segment) = (client.connection.negotiated.client_shift, client.to_client.segment());
        let least = LEAST_BYTES.max(2 << unit).max(u64::from(2 * segment));
        left.max(all / ahead.busy.max(1)).max(least).min(cx.share)
    }
}
