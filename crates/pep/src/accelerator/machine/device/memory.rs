//! The division of the memory among devices and connections.
//!
//! A device may hold a quarter of the memory that no other device holds, after the dynamic threshold of
//! Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches" (1998). So n
//! devices that hold as much as they can have 1/(n + 3) of the memory each, and a part is free for the next
//! one: of many next ones, each gets a packet of the last 64th, until all memory is in use. Within this
//! limit, the connections of a device together may hold twice what the path needs on both sides.

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::rate::RateController;
use paceline_net::{Duration, Instant};

/// A device may hold the memory that others leave, divided by this. Chosen: four times the path of 1 Gb/s and
/// 80 ms in the default memory of the simulator, behind `SHARE_DIVISOR` and `GROWTH`.
const DEVICE_DIVISOR: u64 = 4;
/// The windows of a device's connections together are at most its limit divided by this. Chosen: the windows
/// of the first connections are granted while these are few, and would fill the buffer alone. A segment that
/// arrives at a full buffer is refused, which costs its server a timeout.
const SHARE_DIVISOR: u64 = 8;
/// Bytes that the connections of a device may hold whatever the path needs: the buffer of Liu and Lee (2011).
const LEAST_BYTES: u64 = 2 << 20;
/// Smallest share of a connection. Chosen: a few segments keep a connection going.
const MIN_SHARE_BYTES: u64 = 8 << 10;
/// Multiple of the bytes in flight that a path needs. Chosen: while the window doubles in a round trip, the
/// data for the next round trip has to be stored already.
const GROWTH: u64 = 2;
/// Time constant of the decay of the need. Chosen: longer than the fades and the probes of a radio.
const NEED_DECAY: Duration = Duration::from_secs(10);
/// At most the memory divided by this is exposed. Chosen: the rest holds data not acknowledged early.
const EXPOSURE_DIVISOR: u64 = 2;
/// The memory divided by this is for devices that hold nothing. Chosen: room for ten packets in each MiB, too
/// little to lower the throughput of the others.
const RESERVE_DIVISOR: u64 = 64;
/// Longest round trip to a server for which memory is granted. Chosen: that of a geostationary satellite,
/// with a margin; a server may delay its answer as it likes.
pub(in crate::accelerator) const MAX_SERVER_RTT: Duration = Duration::from_millis(800);

/// Bytes that a device may hold, where all other devices hold `held`.
pub(in crate::accelerator) fn device_limit(config: &AcceleratorConfig, held: u64) -> u64 {
    (config.memory.0.saturating_sub(held) / DEVICE_DIVISOR).min(config.device_buffer.0)
}

/// Whether a device with a `limit` that holds `own` of `all` bytes gets no more. The last packet may exceed
/// the memory.
pub(in crate::accelerator) fn is_full(config: &AcceleratorConfig, all: u64, own: u64, limit: u64) -> bool {
    let memory = config.memory.0;
    let most = if own > 0 { memory - memory / RESERVE_DIVISOR } else { memory };
    own > limit || all >= most
}

/// Bytes that each of a device's `busy` connections may hold beyond its client's acknowledgments. `limit` is
/// the device's.
pub(in crate::accelerator) fn share(
    config: &AcceleratorConfig,
    need: PathNeed,
    busy: usize,
    limit: u64,
) -> u64 {
    let all = need.bytes.max(LEAST_BYTES).min(limit / SHARE_DIVISOR);
    (all / busy.max(1) as u64).max(MIN_SHARE_BYTES).min(config.flow_buffer.0)
}

/// Bytes for which the path to a device has use: those in flight on both sides, and the growth; and the bytes
/// that it takes in a second. Both are maxima that decay. While the share shrinks faster than the client
/// acknowledges, the server gets no ACKs. And a radio that becomes fast again needs what is stored, because
/// the server's next bytes arrive a round trip later.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct PathNeed {
    bytes: u64,
    capacity: u64,
    at: Instant,
}

impl PathNeed {
    /// The rate control has a new estimate; `server_rtt` is the round trip to the servers.
    pub fn update(&mut self, now: Instant, control: &RateController, server_rtt: Duration) {
        let in_flight = control.bounded_window().unwrap_or(0).saturating_add(control.capacity_in(server_rtt));
        let age = now.since(self.at);
        self.bytes = decayed(self.bytes, age, NEED_DECAY).max(GROWTH.saturating_mul(in_flight));
        // While the control looks for the capacity, a burst may have been measured.
        let capacity = if control.is_in_startup() { 0 } else { control.capacity_in(Duration::from_secs(1)) };
        self.capacity = decayed(self.capacity, age, NEED_DECAY).max(capacity);
        self.at = now;
    }
    /// Bytes that the path has lately taken in a second, and may soon take again.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

/// The rest of a maximum after `age`.
fn decayed(value: u64, age: Duration, time_constant: Duration) -> u64 {
    let (age, all) = (age.min(time_constant).as_nanos(), time_constant.as_nanos());
    value - (u128::from(value) * u128::from(age) / u128::from(all)) as u64
}

/// Bytes that may be acknowledged early in addition, where `exposure` bytes are exposed.
pub(in crate::accelerator) fn exposure_room(config: &AcceleratorConfig, exposure: u64) -> u64 {
    (config.memory.0 / EXPOSURE_DIVISOR).saturating_sub(exposure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Bytes;

    #[test]
    fn greedy_devices_converge_to_equal_parts_and_leave_some_memory_free() {
        let config = AcceleratorConfig { memory: Bytes(1 << 30), ..AcceleratorConfig::default() };
        for devices in [1, 10, 40] {
            let mut held = vec![0u64; devices];
            for _ in 0..8_000 {
                for device in 0..devices {
                    let limit = device_limit(&config, held.iter().sum::<u64>() - held[device]);
                    // A device takes up to 64 KiB each turn, and is not made to give any back.
                    held[device] += limit.saturating_sub(held[device]).min(64 << 10);
                }
            }
            let part = (1u64 << 30) / (devices as u64 - 1 + DEVICE_DIVISOR);
            let (least, most) = (*held.iter().min().unwrap(), *held.iter().max().unwrap());
            assert!(least >= part - (1 << 20) && most <= part + (1 << 20), "{devices}: {least} to {most}");
            assert!(held.iter().sum::<u64>() < 1 << 30);
        }
    }

    #[test]
    fn a_device_has_two_mebibytes_before_its_path_is_measured() {
        let config = AcceleratorConfig::default();
        let (limit, need) = (device_limit(&config, 0), PathNeed::default());
        assert_eq!(share(&config, need, 1, limit), LEAST_BYTES);
        assert_eq!(share(&config, need, 4, limit), LEAST_BYTES / 4);
        assert_eq!(share(&config, need, 4, 0), MIN_SHARE_BYTES);
        let small = AcceleratorConfig { device_buffer: Bytes(4 << 20), ..config };
        assert_eq!(share(&small, need, 4, device_limit(&small, 0)), (4 << 20) / 8 / 4);
    }
}
