//! The interface of a relay, the application above two endpoints that passes bytes between them; see
//! [`Source::Relay`](crate::Source::Relay). Offsets count payload bytes from the start of the stream.

use super::endpoint::Endpoint;
use paceline_net::Instant;

impl Endpoint {
    /// Payload bytes that arrived in order.
    pub fn readable(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.receiver.readable())
    }
    /// Whether the peer has closed and everything before that has arrived.
    pub fn peer_closed(&self) -> bool {
        self.connection().is_some_and(|connection| connection.receiver.closed())
    }
    /// Payload bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.stats().bytes_acked
    }
    /// Reads the bytes that have arrived, up to `offset`. Poll the endpoint afterwards.
    pub fn read_to(&mut self, now: Instant, offset: u64) {
        if let Some(connection) = self.connection_mut(now) {
            connection.receiver.read_to(now, offset);
        }
    }
    /// Writes up to `offset`; with `end`, closes there. Poll the endpoint afterwards.
    pub fn write_to(&mut self, now: Instant, offset: u64, end: bool) {
        if let Some(connection) = self.connection_mut(now) {
            connection.sender.writer.write_to(offset, end);
        }
    }
}
