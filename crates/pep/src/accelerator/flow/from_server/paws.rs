//! Old segments, told by their timestamps (RFC 7323, section 5): of the server, and of the client with an allowance for those
//! that overtook each other. A timestamp that was heard half an hour ago says nothing: the end's clock, if it ticks every
//! microsecond, as Linux's may, may be half round since. (Section 5.5 has 24 days, for milliseconds.)

use crate::accelerator::Side;
use crate::accelerator::flow::Flow;
use paceline_net::{Instant, TcpHeader, Timestamps};

/// Of the marks by which time is counted, which come round in half a year.
const SECONDS_PER_MARK: u64 = 256;
/// Linux has 2147 s (TCP_PAWS_WRAP). Counted from mark to mark this is at most 2048 s, and may be 1792 s.
const MARKS: u16 = 8;
/// Segments of the client that overtook each other differ by little; an old duplicate by more.
const OVERTAKEN: u32 = 1 << 16;

/// At which marks of the machine's time the ends' timestamps were renewed, by [`Side`].
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Renewed([u16; 2]);

impl Renewed {
    pub fn on(&mut self, now: Instant, side: Side) {
        self.0[side as usize] = mark(now);
    }
    /// Whether what is known of an end's clock says nothing any more.
    pub fn is_forgotten(self, now: Instant, side: Side) -> bool {
        mark(now).wrapping_sub(self.0[side as usize]) >= MARKS
    }
}

fn mark(now: Instant) -> u16 {
    (now.as_millis() / 1000 / SECONDS_PER_MARK) as u16
}

pub(in crate::accelerator) fn is_newer(timestamps: Timestamps, than: u32) -> bool {
    timestamps.val.wrapping_sub(than) as i32 >= 0
}

impl Flow {
    /// Whether a segment of the server is old.
    pub fn is_old(&self, now: Instant, tcp: &TcpHeader) -> bool {
        let newer = |timestamps| is_newer(timestamps, self.ts_recent);
        self.agreed.timestamps
            && !tcp.options.timestamps.is_none_or(newer)
            && !self.uplink.renewed.is_forgotten(now, Side::Server)
    }
    pub fn is_old_of_client(&self, now: Instant, tcp: &TcpHeader) -> bool {
        let recent = self.uplink.timestamp;
        let near = |timestamps: Timestamps| recent.wrapping_sub(timestamps.val) < OVERTAKEN;
        self.agreed.timestamps
            && !tcp.options.timestamps.is_none_or(|own| is_newer(own, recent) || near(own))
            && !self.is_clock_forgotten(now)
    }
    /// An acceptable segment of the server, at or below what was acknowledged (section 4.3), is the one to be echoed.
    pub fn renew(&mut self, now: Instant, tcp: &TcpHeader) {
        if let Some(timestamps) = tcp.options.timestamps {
            self.ts_recent = timestamps.val;
            self.uplink.renewed.on(now, Side::Server);
        }
    }
    /// Whether a timestamp of the client's would be needed that nobody knows. With its last one, a server that takes any after so
    /// long would find the next ones old.
    pub fn is_clock_forgotten(&self, now: Instant) -> bool {
        self.agreed.timestamps && self.uplink.renewed.is_forgotten(now, Side::Mobile)
    }
    /// The client's last real TSval, and the echo for the server.
    pub fn client_timestamps(&self) -> Option<Timestamps> {
        self.agreed.timestamps.then_some(Timestamps { val: self.uplink.timestamp, ecr: self.ts_recent })
    }
}
