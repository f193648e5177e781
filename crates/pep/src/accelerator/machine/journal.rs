//! What a crash must not lose: for each exposed connection, where both ends stand, so that they can be reset.
//!
//! Left out: where the records are stored, and how often.

use crate::accelerator::flow::Flow;
use crate::accelerator::{FlowRecord, Side};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, FlowKey, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

impl Flow {
    pub fn record(&self) -> FlowRecord {
        let timestamps = self.agreed.timestamps;
        FlowRecord {
            key: self.key,
            client_expects: self.seq(self.una),
            client_sent: self.seq(self.nxt),
            server_expects: self.uplink.una,
            server_acked: self.seq(self.acked),
            client_timestamp: timestamps.then_some(self.uplink.timestamp),
            server_timestamp: timestamps.then_some(self.server_timestamp),
        }
    }
}

impl FlowRecord {
    /// A reset for each end, numbered as RFC 5961, section 3.2 wants it.
    pub(in crate::accelerator) fn resets(&self) -> [(Side, Packet); 2] {
        let to_client = reset(
            self.key,
            self.client_expects,
            self.server_expects,
            self.server_timestamp,
            self.client_timestamp,
        );
        let to_server = reset(
            self.key.reversed(),
            self.server_expects,
            self.server_acked,
            self.client_timestamp,
            self.server_timestamp,
        );
        [(Side::Mobile, to_client), (Side::Server, to_server)]
    }
}

fn reset(key: FlowKey, seq: SeqNumber, ack: SeqNumber, val: Option<u32>, ecr: Option<u32>) -> Packet {
    let ip = IpHeader { src: key.src, dst: key.dst, traffic_class: 0, hop_limit: 64, special: false };
    let timestamps = val.zip(ecr).map(|(val, ecr)| Timestamps { val, ecr });
    let tcp = TcpHeader {
        src_port: key.src_port,
        dst_port: key.dst_port,
        seq,
        ack,
        flags: TcpFlags::RST.with(TcpFlags::ACK),
        window: 0,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload_len: 0,
    };
    rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
}
