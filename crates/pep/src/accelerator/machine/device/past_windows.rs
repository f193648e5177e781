//! Devices of which it is known whether they take data past their windows. The knowledge outlasts a device's
//! connections: a refusal holds for good.

use crate::accelerator::flow::to_client::overshoot::PastWindow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Devices remembered; the oldest makes room. Chosen: more than a worker has devices at once, in some
/// megabytes.
const MAX_DEVICES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct PastWindows {
    known: BTreeMap<IpAddr, PastWindow>,
    /// In the order of their first entry.
    order: VecDeque<IpAddr>,
}

impl PastWindows {
    pub fn get(&self, device: IpAddr) -> PastWindow {
        self.known.get(&device).copied().unwrap_or_default()
    }
    pub fn set(&mut self, device: IpAddr, state: PastWindow) {
        if self.known.insert(device, state).is_some() {
            return;
        }
        self.order.push_back(device);
        if self.order.len() > MAX_DEVICES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_memory_of_devices_is_bounded_and_the_newest_are_kept() {
        let mut devices = PastWindows::default();
        let address = |n: usize| IpAddr::from(Ipv4Addr::from(n as u32));
        for n in 0..2 * MAX_DEVICES {
            devices.set(address(n), PastWindow::Taken);
            devices.set(address(n), PastWindow::Refused);
        }
        assert_eq!((devices.known.len(), devices.order.len()), (MAX_DEVICES, MAX_DEVICES));
        assert_eq!(devices.get(address(0)), PastWindow::Unknown);
        assert_eq!(devices.get(address(2 * MAX_DEVICES - 1)), PastWindow::Refused);
    }
}
