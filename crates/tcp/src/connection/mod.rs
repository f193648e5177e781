//! One connection, from its SYN to its end.
//!
//! Packets and timeouts enter in `endpoint`, which runs the handshake (`handshake`) and, once the peer's SYN
//! has arrived, hands segments to the `established` connection: the acknowledgment to the sender, the data to
//! the receiver. A poll returns, in this order: SYN, held ACK, data, probe, pure ACK. `keepalive` probes an
//! idle connection; `refusal` answers segments without a connection; `relay` is the interface of a relay
//! above the endpoint.

pub mod endpoint;
mod established;
mod handshake;
mod keepalive;
mod refusal;
mod relay;
