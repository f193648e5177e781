//! A mobile device: the rate control and the pacing that its connections share, and the round robin among them.

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::machine::index::Keyed;
use crate::accelerator::machine::timers::Alarm;
use crate::accelerator::rate::RateController;
use crate::accelerator::rate::fading::Fading;
use crate::accelerator::rate::sample::AckSample;
use paceline_net::{Bytes, Duration, Instant};
use std::collections::VecDeque;
use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};

/// A pacer that was called late may catch up by this, or by a few segments.
const CATCH_UP: Duration = Duration::from_millis(2);
/// What may leave at once after a pause: an initial window as RFC 3390 has it. An answer so short need not wait, nor a
/// timer be set for each of its segments.
const BUCKET: Bytes = Bytes(4380);

/// The path to a device may change: what is known of its MTU is found out anew after so long (RFC 1191, section 6.3; RFC
/// 8201, section 5.3).
const PATH_KNOWN_FOR: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(in crate::accelerator) struct Device {
    pub address: IpAddr,
    pub control: RateController,
    /// Connections with something to send, the next first.
    pub backlog: VecDeque<u32>,
    pub flows: usize,
    /// Those of them that have something on the way: the others need no part of its buffer.
    pub busy: usize,
    /// Those of them that are [behind](crate::accelerator::flow::Flow::is_behind).
    pub behind: usize,
    /// Bytes held for it, bookkeeping included.
    pub held: u64,
    pub in_flight: u64,
    /// Bytes acknowledged to servers that it has not acknowledged.
    pub exposure: u64,
    /// While the machine is being stopped: since when its exposure is 0 and none of its connections is behind.
    pub settled_since: Option<Instant>,
    pub alarm: Alarm,
    pub fading: Fading,
    /// Bytes found lost that the control was not told of: acknowledgments that deliver nothing tell of losses as well.
    pub lost: u64,
    /// Bytes of TCP's options and payload that fit on the way to it, as far as its connections have found out, and until when
    /// that counts: one path is theirs (RFC 8201, section 5.2).
    longest: u32,
    longest_until: Instant,
    /// Whether it waits for its turn.
    pub ready: bool,
    next_send_at: Instant,
    delivered: u64,
    /// Until so much is delivered, samples tell of the source, not of the path.
    app_limited_until: u64,
}

impl Keyed for Device {
    type Key = IpAddr;
    fn key(&self) -> IpAddr {
        self.address
    }
}

/// The device of an address: an IPv6 device owns its /64.
pub(in crate::accelerator) fn device_key(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX)).into(),
    }
}

impl Device {
    pub fn new(address: IpAddr, config: &AcceleratorConfig) -> Self {
        Self {
            address,
            control: RateController::new(&config.control),
            backlog: VecDeque::new(),
            flows: 0,
            busy: 0,
            behind: 0,
            held: 0,
            in_flight: 0,
            exposure: 0,
            settled_since: None,
            alarm: Alarm::default(),
            fading: Fading::default(),
            lost: 0,
            longest: u32::MAX,
            longest_until: Instant::MAX,
            ready: false,
            next_send_at: Instant::ZERO,
            delivered: 0,
            app_limited_until: 1,
        }
    }
    /// Reads each of its cache lines, as far as packets do.
    pub fn look_at(&self) {
        self.control.prefetch();
        black_box((self.held, self.fading, self.delivered, self.ready));
    }
    /// Payload bytes that it has acknowledged; of a client without SACK, what arrives twice counts twice.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// What fits on the way to it when a connection begins.
    pub fn longest(&mut self, now: Instant) -> u32 {
        if now >= self.longest_until {
            (self.longest, self.longest_until) = (u32::MAX, Instant::MAX);
        }
        self.longest
    }
    /// A connection has found out what fits.
    pub fn limit_to(&mut self, now: Instant, longest: u32) {
        if longest < self.longest {
            (self.longest, self.longest_until) = (longest, now + PATH_KNOWN_FOR);
        }
    }
    /// When the pacer lets the next packet go.
    pub fn next_send_at(&self) -> Instant {
        self.next_send_at
    }
    /// Bytes that fit into flight.
    pub fn room(&self) -> u64 {
        self.room_in(self.control.window())
    }
    /// The same in a window of so many bytes.
    pub fn room_in(&self, window: u64) -> u64 {
        // A lone segment always fits, however large.
        let least = if self.in_flight == 0 { 1 << 16 } else { 0 };
        window.saturating_sub(self.in_flight).max(least)
    }
    /// Payload bytes of one burst.
    pub fn burst(&self, tick: Duration, segment: u32) -> u32 {
        let bytes = u128::from(self.control.rate().0) * u128::from(tick.as_nanos()) / 8_000_000_000;
        u32::try_from(bytes).unwrap_or(u32::MAX).max(segment)
    }
    pub fn on_send(&mut self, now: Instant, bytes: u64, in_flight_before: u64) {
        // Where round trips are shorter than the pacer's pauses, nothing is in flight in most of them: that is no
        // idleness, or there would be no stretch to take the rate from.
        let after_idle = in_flight_before == 0 && self.app_limited_until > 0;
        if after_idle {
            // What was on its way then has arrived or is lost. While that is sent again there is enough to send.
            self.app_limited_until = 0;
        }
        self.control.on_send(now, after_idle);
        let rate = self.control.rate();
        let credit = CATCH_UP.max(rate.time_to_send(BUCKET));
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.next_send_at = self.next_send_at.max(earliest) + rate.time_to_send(Bytes(bytes));
    }
    /// There was room in flight and nothing to fill it with.
    pub fn on_idle(&mut self) {
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
    }
    pub fn on_ack(&mut self, now: Instant, mut sample: AckSample) {
        self.delivered += sample.delivered;
        sample.in_flight = self.in_flight;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        sample.app_limited = self.app_limited_until > 0;
        self.control.on_ack(now, &sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: u64 = 7240;

    /// Round trips of 20 us, a driver that comes every 250 us, and always something to send, for ticks from one to another:
    /// nothing but the rate control limits what a path of 4 Gb/s takes.
    fn drive(device: &mut Device, ticks: std::ops::Range<u64>, rtt: impl Fn(u64) -> Duration) {
        for tick in ticks {
            let now = Instant::from_nanos(250_000 * tick);
            // What a queue of 4 Gb/s takes in a tick.
            let mut sent = 0;
            while device.next_send_at() <= now && sent < 125_000 {
                device.on_send(now, WIRE, device.in_flight);
                device.in_flight += WIRE;
                sent += WIRE;
            }
            let bytes = std::mem::take(&mut device.in_flight);
            if bytes > 0 {
                let rtt = rtt(tick);
                device.on_ack(now + Duration::from_micros(20), answer(now, bytes, rtt, 0));
            }
        }
    }
    fn answer(sent_at: Instant, bytes: u64, rtt: Duration, lost: u64) -> AckSample {
        AckSample {
            delivered: bytes,
            rtt: Some(rtt),
            sent_at: Some(sent_at),
            lost,
            in_flight: 0,
            app_limited: false,
            fading: false,
            without_sack: false,
        }
    }

    #[test]
    fn round_trips_shorter_than_the_pacers_pauses_do_not_hold_the_rate_down() {
        let mut device = Device::new(Ipv6Addr::LOCALHOST.into(), &AcceleratorConfig::default());
        let stalled = |tick| (1000..1010).contains(&tick);
        // Also after the machine stood still for a moment.
        let rtt = |tick| if stalled(tick) { Duration::from_millis(300) } else { Duration::from_micros(20) };
        drive(&mut device, 1..8_000, rtt);
        let rate = device.control.rate().0;
        assert!(rate > 3_500_000_000, "{rate} bit/s of 4 Gb/s");
    }

    /// All that was on its way when there was nothing more to send is lost, a little is delivered by chance, and what is sent
    /// again is as much as there is: that is not too little to send.
    #[test]
    fn repetitions_of_what_was_lost_when_nothing_more_was_there_find_the_rate() {
        let mut device = Device::new(Ipv6Addr::LOCALHOST.into(), &AcceleratorConfig::default());
        device.in_flight = 100_000_000;
        device.on_idle();
        device.in_flight = 0;
        for ms in (1..=200).step_by(10) {
            let now = Instant::from_millis(ms);
            device.on_ack(now, answer(now, 500, Duration::from_micros(20), 1_000_000));
        }
        assert!(device.control.rate().0 < 2_000_000, "{}", device.control.rate().0);
        drive(&mut device, 1_000..5_000, |_| Duration::from_micros(20));
        let rate = device.control.rate().0;
        assert!(rate > 3_500_000_000, "{rate} bit/s of 4 Gb/s");
    }
}
