//! Path MTU discovery on the mobile segment (RFC 1191, RFC 8201): longer segments are cut and sent again.

use crate::accelerator::flow::connection::Connection;
use crate::accelerator::flow::to_client::ToClient;
use paceline_net::SeqNumber;

/// Smaller path MTUs are not accepted, in bytes: Linux's `ip_rt_min_pmtu` for IPv4, the minimum of RFC 8200
/// for IPv6.
const MIN_MTU_V4: u32 = 552;
const MIN_MTU_V6: u32 = 1280;
/// Bytes of the IP and TCP headers without options.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;

impl ToClient {
    /// A router reports that a packet with sequence number `seq` exceeds `mtu` bytes. The report is accepted
    /// only if the number is outstanding. Whether segments have become shorter.
    pub fn on_packet_too_big(&mut self, connection: &Connection, seq: SeqNumber, mtu: u32) -> bool {
        let una = self.una;
        let quoted = connection.offset(seq, una).is_some_and(|off| una <= off && off < self.nxt);
        let v4 = connection.key.src.is_ipv4();
        let headers = if v4 { HEADERS_V4 } else { HEADERS_V6 } + connection.option_bytes();
        let segment = mtu.max(if v4 { MIN_MTU_V4 } else { MIN_MTU_V6 }) - headers;
        if !quoted || segment >= self.segment {
            return false;
        }
        self.shorten(segment);
        true
    }
    /// Limits the payload of new segments. Another connection of the device has found the path MTU.
    pub fn limit_segment(&mut self, segment: u32) {
        self.segment = self.segment.min(segment);
    }
    /// Limits the payload of segments; longer ones in flight are lost.
    pub(super) fn shorten(&mut self, segment: u32) {
        self.segment = segment;
        self.scoreboard.lose_larger(segment);
    }
}
