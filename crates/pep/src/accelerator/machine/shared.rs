//! The machine's state that all connections share. This state is one field of the machine, apart from the
//! tables, so that it can be borrowed together with a connection and its device.

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::to_client::overshoot::PastWindow;
use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::device::memory;
use crate::accelerator::machine::device::past_windows::PastWindows;
use crate::accelerator::stats::AcceleratorStats;
use crate::accelerator::{FlowRecord, Side, Transmission};
use paceline_net::{Duration, Instant, Packet};
use std::collections::VecDeque;
use std::net::IpAddr;

/// How long the losses of a device are those of the present. Chosen: some windows of `congestion`.
const LATELY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::accelerator) struct Shared {
    pub config: AcceleratorConfig,
    pub stats: AcceleratorStats,
    /// Packets to send.
    pub out: VecDeque<Transmission>,
    /// Bytes stored for all connections.
    pub held: u64,
    /// Bytes acknowledged early of all connections.
    pub exposure: u64,
    /// Draining, until this time at the latest.
    pub draining: Option<Instant>,
    /// Until then clients may have data that bypassed the machine.
    pub unseen_until: Instant,
    pub past_windows: PastWindows,
    /// Devices that were found to share a queue with others.
    pub sharing: u32,
    pub lossy: Lossy,
}

/// The devices that lost much last: two of them tell each device whether another one did.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Lossy([Option<(IpAddr, Instant)>; 2]);

impl Lossy {
    pub fn note(&mut self, now: Instant, device: IpAddr) {
        if self.0[0].is_none_or(|(last, _)| last != device) {
            self.0[1] = self.0[0];
        }
        self.0[0] = Some((device, now));
    }
    /// Whether another device has lost much lately.
    pub fn others(&self, now: Instant, device: IpAddr) -> bool {
        self.0.iter().flatten().any(|(other, at)| *other != device && now.since(*at) < LATELY)
    }
}

impl Shared {
    pub fn new(config: AcceleratorConfig) -> Self {
        Self {
            config,
            stats: AcceleratorStats::default(),
            out: VecDeque::new(),
            held: 0,
            exposure: 0,
            draining: None,
            unseen_until: Instant::ZERO,
            past_windows: PastWindows::default(),
            sharing: 0,
            lossy: Lossy::default(),
        }
    }
    /// Forwards a packet as it is.
    pub fn pass(&mut self, from: Side, packet: Packet) {
        self.out.push_back(Transmission::whole(from.other(), packet));
    }
    /// Resets both ends of a connection.
    pub fn reset(&mut self, record: &FlowRecord) {
        for (side, packet) in record.resets() {
            self.out.push_back(Transmission::whole(side, packet));
        }
        self.stats.flows_reset += 1;
    }
    /// A call of one of the device's connections has ended: takes over its findings on the device.
    pub fn note_past_window(&mut self, device: &mut Device, state: PastWindow) {
        if state != device.past_window {
            device.past_window = state;
            self.past_windows.set(device.address, state);
        }
    }
    /// The arguments of a call of one of the device's connections.
    pub fn context(&mut self, now: Instant, device: &Device) -> Context<'_> {
        let limit = memory::device_limit(&self.config, self.held - device.held);
        let exposure_room = memory::exposure_room(&self.config, self.exposure);
        Context {
            now,
            past_window: device.past_window,
            early_acks: self.draining.is_none(),
            unseen_packets: self.unseen_until > now,
            share: memory::share(&self.config, device.need, device.active, limit),
            ahead: device.ahead(&self.config),
            exposure_room: if device.early_acks { exposure_room } else { 0 },
            buffers_low: 4 * device.held > 3 * limit,
            buffers_full: memory::is_full(&self.config, self.held, device.held, limit),
            config: &self.config,
            stats: &mut self.stats,
            out: &mut self.out,
        }
    }
}
