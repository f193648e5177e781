//! When a draining machine lets go of a connection.

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::device::Device;
use paceline_net::{Duration, Instant};

/// While draining, the connections of a device stay for this long after none of them is backlogged. Meanwhile
/// the round trips that their servers measure, and so the servers' timeouts, become those of the whole path.
/// Chosen: a few round trips.
const DETACH_DELAY: Duration = Duration::from_secs(1);

/// Whether a connection may be detached while the machine drains. The connections of a device are detached
/// together, when no byte is exposed and none is backlogged: the first ones would else fill the radio's queue
/// ahead of the other ones' stored data.
pub(super) fn may_detach(now: Instant, flow: &Flow, device: &mut Device) -> bool {
    if flow.has_sacked() {
        return false; // the server fills the gap in a round trip
    }
    if flow.is_idle(now) {
        return true;
    }
    if device.exposure > 0 {
        device.detachable_since = None; // of an earlier drain that was cancelled
        return false;
    }
    if device.backlogged > 0 {
        return false;
    }
    let since = *device.detachable_since.get_or_insert(now);
    now.since(since) >= DETACH_DELAY && !flow.has_pending_reset()
}
