//! Resets of a client that may be a router's. Linux's conntrack takes data past the client's window for
//! invalid; a router that translates addresses then answers them itself, with the reset of a host that has no
//! such connection: no ACK flag, and as number the acknowledgment of the data. The client knows nothing of it
//! and goes on. So such a reset waits for a sign of life. Any acceptable segment of the client is one, and
//! probes ask for one; without one, the reset is the client's.

use paceline_net::{Duration, Instant, Packet};

/// Probes after the first one. Chosen: a radio may lose a probe or its answer.
const MORE_PROBES: u8 = 2;

#[derive(Debug)]
pub(in crate::accelerator) struct DoubtfulReset {
    packet: Packet,
    probes: u8,
    next_at: Instant,
}

/// The state of a reset whose timer has expired.
#[derive(Debug)]
pub(in crate::accelerator) enum Doubt {
    /// Another probe is to be sent.
    Probe,
    /// The reset is the client's.
    Over(Packet),
}

impl DoubtfulReset {
    /// A reset has arrived, and a probe was sent that is answered within `wait`.
    pub fn new(now: Instant, packet: Packet, wait: Duration) -> Box<Self> {
        Box::new(Self { packet, probes: MORE_PROBES, next_at: now + wait })
    }
    pub fn next_at(&self) -> Instant {
        self.next_at
    }
    /// The timer expires.
    pub fn on_timer(mut self: Box<Self>, now: Instant, wait: Duration) -> (Option<Box<Self>>, Doubt) {
        if self.probes == 0 {
            return (None, Doubt::Over(self.packet));
        }
        self.probes -= 1;
        self.next_at = now + wait;
        (Some(self), Doubt::Probe)
    }
}
