//! Path MTU discovery on the mobile segment (RFC 1191, RFC 8201).

use crate::accelerator::flow::connection::Connection;

/// Smaller path MTUs are not accepted, in bytes: Linux's `ip_rt_min_pmtu` for IPv4, the minimum of RFC 8200
/// for IPv6.
const MIN_MTU_V4: u32 = 552;
const MIN_MTU_V6: u32 = 1280;
/// Bytes of the IP and TCP headers without options.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;

/// Payload of the segments of a connection whose packets have at most `mtu` bytes.
pub(super) fn segment_of(connection: &Connection, mtu: u32) -> u32 {
    let v4 = connection.key.src.is_ipv4();
    let headers = if v4 { HEADERS_V4 } else { HEADERS_V6 } + connection.option_bytes();
    mtu.max(if v4 { MIN_MTU_V4 } else { MIN_MTU_V6 }) - headers
}
