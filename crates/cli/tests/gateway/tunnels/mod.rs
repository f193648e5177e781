//! Connections inside GTP-U tunnels and PPPoE sessions, and packets that have to pass unchanged.

mod connections;
mod gtpu;
mod packets;
mod peers;
mod segment_sizes;
mod ssh;
mod unchanged;
