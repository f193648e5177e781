//! The report of a client's ACK to its device: deliveries, losses and round trips.

use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::shared::Shared;
use crate::accelerator::rate::sample::{AckSample, LossSample};
use paceline_net::Instant;

/// Devices that were found to share a queue, from which the losses of others are taken for those of the same
/// queue. Chosen: one alone may be wrong.
const MIN_SHARING: u32 = 2;

/// Reports an ACK of a connection's client to its device's rate control and detection of fading.
pub(super) fn on_delivery(
    now: Instant,
    entry: &mut FlowEntry,
    device: &mut Device,
    shared: &mut Shared,
    delivery: &Delivery,
) {
    let FlowEntry { flow, charged, .. } = entry;
    let rtt = flow.to_client().rtt();
    let in_flight = flow.to_client().in_flight();
    device.in_flight = device.in_flight + in_flight - charged.in_flight;
    charged.in_flight = in_flight;
    if delivery.black_hole {
        device.limit_to(now, flow.longest());
    }
    let losses = LossSample {
        delivered: delivery.bytes,
        lost: delivery.lost,
        lost_beyond_window: delivery.lost_beyond_window,
        lost_in_runs: delivery.lost_in_runs,
        spurious: delivery.spurious,
        skipped: delivery.skipped,
    };
    let capacity_in = |time| device.control.capacity_in(time);
    device.fading.on_ack(now, rtt.srtt().unwrap_or_default(), capacity_in, &losses);
    if let Some(sample) = delivery.rtt {
        shared.stats.on_rtt(sample, rtt.min(), device.control.rate());
    }
    device.unreported_lost += delivery.lost;
    device.unreported_lost_beyond += delivery.lost_beyond_window;
    if delivery.bytes > 0 {
        let sample = AckSample {
            delivered: delivery.bytes,
            lost: std::mem::take(&mut device.unreported_lost),
            lost_beyond_window: std::mem::take(&mut device.unreported_lost_beyond),
            opened: delivery.opened,
            client_window: flow.to_client().window().size(),
            rtt: delivery.rtt,
            sent_at: delivery.sent_at,
            in_flight: device.in_flight,
            app_limited: false,
            fading: flow.to_client().is_fading(),
            without_sack: !flow.uses_sack(),
            others_share: shared.sharing >= MIN_SHARING + u32::from(device.shares_queue),
            marked: delivery.marked,
            others_lose: shared.lossy.others(now, device.address),
        };
        device.on_ack(now, sample);
        if device.control.loses_much() {
            shared.lossy.note(now, device.address);
        }
        let shares = device.control.shares_queue();
        shared.sharing = shared.sharing + u32::from(shares) - u32::from(device.shares_queue);
        device.shares_queue = shares;
    }
}
