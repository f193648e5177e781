//! What a relay asks of the two endpoints between which it passes bytes on, as the application above both: see
//! [`Source::Relay`](crate::Source::Relay). Offsets count payload bytes from the start of the stream.

use crate::endpoint::Endpoint;
use paceline_net::Instant;

impl Endpoint {
    /// Payload bytes that have arrived in order.
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
    /// Reads what has arrived, up to `offset`. The endpoint is to be polled afterwards.
    pub fn read_to(&mut self, now: Instant, offset: u64) {
        if let Some(connection) = self.connection_mut(now) {
            connection.receiver.read_to(now, offset);
        }
    }
    /// Writes up to `offset` and, if that is the `end`, closes. The endpoint is to be polled afterwards.
    pub fn write_to(&mut self, now: Instant, offset: u64, end: bool) {
        if let Some(connection) = self.connection_mut(now) {
            connection.sender.app.write_to(offset, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Endpoint, EndpointConfig, Source};
    use paceline_net::{Bytes, Duration, Instant, Node, Output, Port};

    /// Carries packets between two endpoints, 5 ms each way, until `until`; `relay` is called in between.
    fn carry(
        now: &mut Instant,
        until: Instant,
        ends: &mut [Endpoint; 2],
        mut relay: impl FnMut(Instant, &mut Endpoint),
    ) {
        let mut flying: Vec<(Instant, usize, paceline_net::Packet)> = Vec::new();
        while *now < until {
            for (index, end) in ends.iter_mut().enumerate() {
                if end.poll_timeout().is_some_and(|at| at <= *now) {
                    end.handle_timeout(*now);
                }
                while let Some(output) = end.poll_output(*now) {
                    if let Output::Transmit(_, packet) = output {
                        flying.push((*now + Duration::from_millis(5), 1 - index, packet));
                    }
                }
            }
            let (due, rest) = flying.into_iter().partition(|(at, _, _)| *at <= *now);
            flying = rest;
            for (_, to, packet) in due {
                ends[to].handle_packet(*now, Port(0), packet);
            }
            relay(*now, &mut ends[1]);
            *now += Duration::from_millis(1);
        }
    }

    #[test]
    fn a_relay_reads_what_it_wants_and_writes_what_it_has() {
        let (a, b) = ("198.18.0.1:1".parse().unwrap(), "198.18.0.2:2".parse().unwrap());
        let config =
            EndpointConfig { receive_buffer: Bytes(20_000), autotune: false, ..EndpointConfig::new(b, a) };
        let mut ends = [
            Endpoint::connect(EndpointConfig::new(a, b), Source::File(Bytes(100_000))),
            Endpoint::listen(config, Source::Relay),
        ];
        let mut now = Instant::ZERO;
        carry(&mut now, Instant::from_millis(500), &mut ends, |_, _| {});
        // Nothing was read: the buffer is full, and the peer waits.
        assert!((18_000..=20_000).contains(&ends[1].readable()), "{}", ends[1].readable());
        carry(&mut now, Instant::from_millis(900), &mut ends, |now, relay| relay.read_to(now, 30_000));
        assert!((48_000..=50_000).contains(&ends[1].readable()), "{}", ends[1].readable());
        carry(&mut now, Instant::from_millis(6_000), &mut ends, |now, relay| {
            relay.read_to(now, u64::MAX);
            relay.write_to(now, 3_000, false);
        });
        assert_eq!((ends[1].readable(), ends[1].peer_closed()), (100_000, true));
        assert_eq!(
            (ends[0].readable(), ends[0].peer_closed()),
            (3_000, false),
            "what was written, and no FIN"
        );
        carry(&mut now, Instant::from_millis(9_000), &mut ends, |now, relay| {
            relay.write_to(now, 5_000, true)
        });
        assert_eq!((ends[0].readable(), ends[0].peer_closed()), (5_000, true));
        assert_eq!(ends[1].acknowledged(), 5_000);
    }
}
