//! A mobile device: the rate control and the pacing that its connections share, and the round robin among them.

use super::config::AcceleratorConfig;
use super::control::{AckSample, Control};
use super::timers::Alarm;
use paceline_net::{Bytes, Duration, Instant};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

/// A pacer that was called late may catch up by this.
const CATCH_UP: Duration = Duration::from_millis(2);
/// Longest packet burst, in segments: what a radio's scheduler takes in one go anyway.
const MAX_BURST: u64 = 16;

#[derive(Debug)]
pub(super) struct Device {
    pub control: Control,
    /// Connections with something to send, the next first.
    pub backlog: VecDeque<u32>,
    pub flows: usize,
    /// Bytes held for it, bookkeeping included.
    pub held: u64,
    pub in_flight: u64,
    pub alarm: Alarm,
    /// Whether it waits for its turn.
    pub ready: bool,
    next_send_at: Instant,
    delivered: u64,
    /// Until so much is delivered, samples tell of the source, not of the path.
    app_limited_until: u64,
}

/// The device of an address: an IPv6 device owns its /64.
pub(super) fn device_key(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX)).into(),
    }
}

impl Device {
    pub fn new(config: &AcceleratorConfig) -> Self {
        Self {
            control: Control::new(&config.control),
            backlog: VecDeque::new(),
            flows: 0,
            held: 0,
            in_flight: 0,
            alarm: Alarm::default(),
            ready: false,
            next_send_at: Instant::ZERO,
            delivered: 0,
            app_limited_until: 0,
        }
    }
    /// When the pacer lets the next packet go.
    pub fn next_send_at(&self) -> Instant {
        self.next_send_at
    }
    /// Bytes that fit into flight.
    pub fn room(&self) -> u64 {
        // A lone segment always fits, however large.
        let least = if self.in_flight == 0 { 1 << 16 } else { 0 };
        self.control.window().saturating_sub(self.in_flight).max(least)
    }
    /// Payload bytes of one burst.
    pub fn burst(&self, tick: Duration, segment: u32) -> u32 {
        let segment = u64::from(segment);
        let bytes = u128::from(self.control.rate().0) * u128::from(tick.as_nanos()) / 8_000_000_000;
        (bytes as u64).clamp(segment, MAX_BURST * segment) as u32
    }
    pub fn on_send(&mut self, now: Instant, wire: u64, in_flight_before: u64) {
        self.control.on_send(now, in_flight_before);
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(CATCH_UP.as_nanos()));
        self.next_send_at = self.next_send_at.max(earliest) + self.control.rate().time_to_send(Bytes(wire));
    }
    /// There was room in flight and nothing to fill it with.
    pub fn on_idle(&mut self) {
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
    }
    pub fn on_ack(&mut self, now: Instant, mut sample: AckSample) {
        self.delivered += sample.bytes;
        sample.in_flight = self.in_flight;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        sample.app_limited = self.app_limited_until > 0;
        self.control.on_ack(now, &sample);
    }
}
