//! A mobile device: the rate control and the pacer that its connections share, and the round robin among
//! them. `memory` divides the memory among devices, `reserve` finds how much is stored ahead of a radio, and
//! `past_windows` keeps which devices take data past their windows.

pub(super) mod memory;
pub(super) mod past_windows;
mod reserve;

use crate::accelerator::DeviceSnapshot;
use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::context::Ahead;
use crate::accelerator::flow::to_client::overshoot::PastWindow;
use crate::accelerator::flow::to_client::path::DevicePath;
use crate::accelerator::machine::device::memory::PathNeed;
use crate::accelerator::machine::device::reserve::Reserve;
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::index::Keyed;
use crate::accelerator::machine::timers::Alarm;
use crate::accelerator::pacing::Spacing;
use crate::accelerator::rate::RateController;
use crate::accelerator::rate::losses::fading::Fading;
use crate::accelerator::rate::sample::AckSample;
use paceline_net::{Bytes, Duration, Instant};
use std::collections::VecDeque;
use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};

/// Time that a pacer which was called late may catch up. Chosen: a few ticks of a driver.
const PACING_CREDIT: Duration = Duration::from_millis(2);
/// Bytes that may be sent at once after a pause: the initial window of RFC 3390. Short responses need no
/// pacing timer.
const INITIAL_BURST: Bytes = Bytes(4380);
/// Lifetime of a path MTU: the path to a device may change (RFC 1191, section 6.3; RFC 8201, section 5.3).
const PATH_MTU_LIFETIME: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(in crate::accelerator) struct Device {
    pub address: IpAddr,
    pub control: RateController,
    /// Another spacing than the rate control's, if there is one.
    pub spacing: Option<Box<Spacing>>,
    /// Connections with something to send, in the order of their turns.
    pub backlog: VecDeque<u32>,
    pub flows: usize,
    /// Connections that are not [transparent](crate::accelerator::flow::Flow::is_transparent). The others
    /// need no share of the buffer.
    pub active: usize,
    /// Connections that are [backlogged](crate::accelerator::flow::Flow::is_backlogged).
    pub backlogged: usize,
    /// Bytes stored for it, bookkeeping included.
    pub held: u64,
    pub in_flight: u64,
    /// Longest round trip between here and the servers of its connections, from their handshakes.
    pub server_rtt: Duration,
    /// Bytes that its path needs.
    pub need: PathNeed,
    pub reserve: Reserve,
    /// Whether it takes data past its window.
    pub past_window: PastWindow,
    /// Bytes that wait for its radio or are in flight, and connections with such bytes.
    pub queued: u64,
    pub queueing: usize,
    /// Bytes acknowledged to servers that it has not acknowledged.
    pub exposure: u64,
    /// Whether more may be acknowledged early.
    pub early_acks: bool,
    /// While draining: since when its exposure is 0 and none of its connections is backlogged.
    pub detachable_since: Option<Instant>,
    pub alarm: Alarm,
    pub fading: Fading,
    /// Whether it was found to share a queue with others.
    pub shares_queue: bool,
    /// Lost bytes that the rate control has not been told: ACKs that deliver nothing report losses as well.
    pub unreported_lost: u64,
    /// The same of bytes that were sent past the client's window.
    pub unreported_lost_beyond: u64,
    /// Bytes of TCP options and payload that the path allows, as its connections have found out, and until
    /// when that holds (RFC 8201, section 5.2: a path MTU is shared by the connections).
    longest: u32,
    longest_until: Instant,
    /// In the machine's queue of devices with something to send.
    pub ready: bool,
    next_send_at: Instant,
    delivered: u64,
    /// Samples are application limited until this many bytes are delivered; 0 for not application limited
    /// (`app_limited` of draft-cheng-iccrg-delivery-rate-estimation).
    app_limited_until: u64,
}

impl Keyed for Device {
    type Key = IpAddr;
    fn key(&self) -> IpAddr {
        self.address
    }
}

/// The key of a device: its IPv4 address, or the /64 of its IPv6 address, which belongs to it alone.
pub(in crate::accelerator) fn device_key(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX)).into(),
    }
}

impl Device {
    /// `past_window` comes from its earlier connections.
    pub fn new(address: IpAddr, config: &AcceleratorConfig, past_window: PastWindow) -> Self {
        Self {
            address,
            control: RateController::new(&config.control),
            spacing: Spacing::new(config),
            backlog: VecDeque::new(),
            flows: 0,
            active: 0,
            backlogged: 0,
            held: 0,
            in_flight: 0,
            server_rtt: Duration::ZERO,
            need: PathNeed::default(),
            reserve: Reserve::default(),
            past_window,
            queued: 0,
            queueing: 0,
            exposure: 0,
            early_acks: true,
            detachable_since: None,
            alarm: Alarm::default(),
            fading: Fading::default(),
            shares_queue: false,
            unreported_lost: 0,
            unreported_lost_beyond: 0,
            longest: u32::MAX,
            longest_until: Instant::MAX,
            ready: false,
            next_send_at: Instant::ZERO,
            delivered: 0,
            app_limited_until: 1,
        }
    }
    /// Reads each cache line that packets need.
    pub fn prefetch(&self) {
        self.control.prefetch();
        black_box((self.held, self.fading, self.delivered, self.ready));
    }
    /// Payload bytes that it has acknowledged. Of a client without SACK, segments that arrive twice count
    /// twice.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Bytes of TCP options and payload that the path allows for a new connection.
    pub fn longest(&mut self, now: Instant) -> u32 {
        if now >= self.longest_until {
            (self.longest, self.longest_until) = (u32::MAX, Instant::MAX);
        }
        self.longest
    }
    /// A connection has found out the path MTU.
    pub fn limit_to(&mut self, now: Instant, longest: u32) {
        if longest < self.longest {
            (self.longest, self.longest_until) = (longest, now + PATH_MTU_LIFETIME);
        }
    }
    /// Updates the totals with the present amounts of one of its connections.
    pub fn charge(&mut self, entry: &mut FlowEntry) {
        let FlowEntry { flow, charged, counted_active, counted_backlogged, .. } = entry;
        let (held, in_flight) = (flow.held(), flow.to_client().in_flight());
        self.held = self.held + held - charged.held;
        self.in_flight = self.in_flight + in_flight - charged.in_flight;
        (charged.held, charged.in_flight) = (held, in_flight);
        let active = !flow.is_transparent();
        self.active = self.active + usize::from(active) - usize::from(*counted_active);
        *counted_active = active;
        let backlogged = flow.is_backlogged();
        self.backlogged = self.backlogged + usize::from(backlogged) - usize::from(*counted_backlogged);
        *counted_backlogged = backlogged;
    }
    /// The same for the bytes that wait for the radio or are in flight.
    pub fn charge_queued(&mut self, entry: &mut FlowEntry) {
        let before = std::mem::replace(&mut entry.charged.queued, entry.flow.queued());
        let after = entry.charged.queued;
        self.queued = self.queued + after - before;
        self.queueing = self.queueing + usize::from(after > 0) - usize::from(before > 0);
    }
    /// One of its connections was removed.
    pub fn release(&mut self, slot: u32, entry: &FlowEntry) {
        let charged = &entry.charged;
        self.held -= charged.held;
        self.in_flight -= charged.in_flight;
        self.exposure -= charged.exposure;
        self.queued -= charged.queued;
        self.queueing -= usize::from(charged.queued > 0);
        self.flows -= 1;
        self.active -= usize::from(entry.counted_active);
        self.backlogged -= usize::from(entry.counted_backlogged);
        self.backlog.retain(|other| *other != slot);
    }
    pub fn snapshot(&self) -> DeviceSnapshot {
        DeviceSnapshot {
            address: self.address,
            flows: self.flows,
            held: self.held,
            in_flight: self.in_flight,
            delivered: self.delivered(),
            control: self.control.snapshot(),
            shares_queue: self.shares_queue,
        }
    }
    /// When the pacer allows the next packet.
    pub fn next_send_at(&self) -> Instant {
        self.next_send_at
    }
    /// The pacer allows no packet before this time.
    pub fn hold(&mut self, until: Instant) {
        self.next_send_at = self.next_send_at.max(until);
    }
    /// The path as its connections see it.
    pub fn path(&self) -> DevicePath<'_> {
        DevicePath { control: &self.control, in_flight: self.in_flight }
    }
    /// Whether the rate control lets one more segment be in flight.
    pub fn has_room(&self, segment: u32) -> bool {
        self.in_flight.saturating_add(u64::from(segment)) <= self.control.window()
    }
    /// The path, which bounds the data stored ahead of the radio. The published control has no such bound,
    /// unless the operator gives one.
    pub fn ahead(&self, config: &AcceleratorConfig) -> Option<Ahead> {
        let (window, most) = (self.control.bounded_window(), config.most_stored);
        (window.is_some() || most.is_some()).then(|| Ahead {
            window: window.unwrap_or_else(|| self.control.useful_window(false)),
            capacity: self.control.expected().max(self.need.capacity()),
            measured: self.control.capacity_in(Duration::from_secs(1)) > 0,
            reserve: self.reserve.time(),
            starting: self.control.is_in_startup(),
            busy: self.queueing as u64,
            queued: self.queued,
            most,
        })
    }
    /// A packet was sent that counts for `bytes`, with `in_flight_before` bytes in flight.
    pub fn on_send(&mut self, now: Instant, bytes: u64, in_flight_before: u64) {
        // Round trips shorter than the pacer's pauses leave nothing in flight in most pauses. The device is
        // not idle then: otherwise there would never be a delivery-rate sample.
        let after_idle = in_flight_before == 0 && self.app_limited_until > 0;
        if after_idle {
            // Everything in flight at that time has arrived or is lost, so the samples from now on are of new
            // data or of retransmissions, and there is enough of either.
            self.app_limited_until = 0;
        }
        self.control.on_send(now, after_idle);
        self.fading.on_send(now, after_idle);
        let spaced = self.spacing.as_mut();
        let next = spaced.and_then(|own| own.on_sent(now, bytes, &self.control, in_flight_before + bytes));
        if let Some(at) = next {
            self.next_send_at = at;
            return;
        }
        let rate = self.control.rate();
        let credit = PACING_CREDIT.max(rate.time_to_send(INITIAL_BURST));
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.next_send_at = self.next_send_at.max(earliest) + rate.time_to_send(Bytes(bytes));
    }
    /// Data of a server that had been waiting for its window arrived, with nothing left to send.
    pub fn on_empty(&mut self, now: Instant, server_rtt: Duration) {
        // While the rate control looks for the capacity, the window grows faster than a server can follow.
        if self.control.is_in_startup() {
            return;
        }
        self.reserve.on_empty(now, (self.in_flight, self.control.window()), server_rtt);
    }
    /// The window had room, and there was nothing to send: samples are application limited.
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
        if let Some(spacing) = &mut self.spacing {
            spacing.on_ack(now, sample.rtt, sample.lost + sample.lost_beyond_window > 0);
        }
        self.need.update(now, &self.control, self.server_rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a packet.
    const WIRE: u64 = 7240;

    fn unknown_device() -> Device {
        Device::new(Ipv6Addr::LOCALHOST.into(), &AcceleratorConfig::default(), PastWindow::Unknown)
    }
    /// Drives a path of 4 Gb/s with a driver tick of 250 us and unlimited data: only the rate control limits
    /// the rate.
    fn drive(device: &mut Device, ticks: std::ops::Range<u64>, rtt: impl Fn(u64) -> Duration) {
        for tick in ticks {
            let now = Instant::from_nanos(250_000 * tick);
            // The queue takes 4 Gb/s for one tick.
            let mut sent = 0;
            while device.next_send_at() <= now && sent < 125_000 {
                device.on_send(now, WIRE, device.in_flight);
                device.in_flight += WIRE;
                sent += WIRE;
            }
            let bytes = std::mem::take(&mut device.in_flight);
            if bytes > 0 {
                let rtt = rtt(tick);
                device.on_ack(now + Duration::from_micros(20), ack(now, bytes, rtt, 0));
            }
        }
    }
    fn ack(sent_at: Instant, bytes: u64, rtt: Duration, lost: u64) -> AckSample {
        AckSample {
            delivered: bytes,
            rtt: Some(rtt),
            sent_at: Some(sent_at),
            lost,
            lost_beyond_window: 0,
            opened: 0,
            client_window: 0,
            in_flight: 0,
            app_limited: false,
            fading: false,
            others_share: false,
            marked: false,
            others_lose: false,
            without_sack: false,
        }
    }

    // keeps: accelerator.estimate
    #[test]
    fn round_trips_shorter_than_the_pacers_pauses_do_not_limit_the_rate() {
        let mut device = unknown_device();
        let stalled = |tick| (1000..1010).contains(&tick);
        // A pause of the machine in between changes nothing.
        let rtt = |tick| if stalled(tick) { Duration::from_millis(300) } else { Duration::from_micros(20) };
        drive(&mut device, 1..8_000, rtt);
        let rate = device.control.rate().0;
        assert!(rate > 3_500_000_000, "{rate} bit/s of 4 Gb/s");
    }

    /// All data in flight at the end of a transfer is lost, but for a few bytes: its retransmissions are not
    /// application limited.
    #[test]
    fn retransmissions_of_the_last_flight_find_the_rate() {
        let mut device = unknown_device();
        device.in_flight = 100_000_000;
        device.on_idle();
        device.in_flight = 0;
        for ms in (1..=200).step_by(10) {
            let now = Instant::from_millis(ms);
            device.on_ack(now, ack(now, 500, Duration::from_micros(20), 1_000_000));
        }
        assert!(device.control.rate().0 < 2_000_000, "{}", device.control.rate().0);
        drive(&mut device, 1_000..5_000, |_| Duration::from_micros(20));
        let rate = device.control.rate().0;
        assert!(rate > 3_500_000_000, "{rate} bit/s of 4 Gb/s");
    }
}
