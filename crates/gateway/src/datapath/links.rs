//! The link headers of connections: a packet that the accelerator makes leaves with the link header of the
//! last packet that arrived in its direction. The same holds for the encapsulation, so that after a handover
//! the packets go into the newest tunnel of their direction.
//!
//! The tunnel towards a device becomes known with the next packet from the servers' side, of which there is
//! none if the gateway has all data of a transfer already. A tunnel is doubtful after a change of the base
//! station's address, and after a silence of both sides (the device was idle, and has a new tunnel once it is
//! paged). Then the gateway probes the server when it sends into the tunnel; the answer shows the new one.
//!
//! The table is bounded and has a recent and an older half; when the recent half is full, it becomes the
//! older one, and the connections of the former older half are forgotten, except those that the accelerator
//! has.

use super::frame::Link;
use paceline_net::{Duration, FlowKey, HashKey, Instant};
use paceline_pep::accelerator::Side;
#[allow(clippy::disallowed_types)]
// keyed with a secret, since outsiders choose the entries; the order of iteration does not matter
use std::collections::HashMap;

/// Time between two probes of a server. Chosen: Linux answers one such segment in 500 ms
/// (tcp_invalid_ratelimit).
const PROBE_INTERVAL: Duration = Duration::from_millis(600);
/// Silence of both sides after which the tunnel is doubtful. Chosen: longer than the round trip of a loaded
/// radio, and shorter than the timers by which devices become idle (10 s and more).
const SILENCE: Duration = Duration::from_secs(1);

#[derive(Clone)]
struct Entry {
    /// By the side where the packets leave.
    links: [Option<Link>; 2],
    /// The uplink tunnel has changed since the last downlink packet.
    moved: bool,
    /// The last packet of either side, and the last probe.
    heard_at: Instant,
    probed_at: Instant,
}

#[allow(clippy::disallowed_types)]
type Entries = HashMap<FlowKey, Entry, HashKey>;

/// Link headers by connection (key from server to mobile).
pub struct Links {
    recent: Entries,
    older: Entries,
    key: HashKey,
    limit: usize,
}

impl Links {
    /// An empty table, whose halves have up to `limit` connections each.
    pub fn new(limit: usize, seed: u64) -> Self {
        let key = HashKey::new(seed);
        Self { recent: Entries::with_hasher(key), older: Entries::with_hasher(key), key, limit }
    }
    /// Changes the limit.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    /// Records that packets of the connection leave by `side` with this header. False if other packets of
    /// these addresses and ports are in another network (VLAN): the two connections cannot be distinguished
    /// then. A SYN opens a new connection, which may be in another network, unless `is_accelerated` is true
    /// for the old one.
    pub fn learn(
        &mut self,
        now: Instant,
        (key, syn): (FlowKey, bool),
        side: Side,
        link: Link,
        is_accelerated: impl Fn(&FlowKey) -> bool,
    ) -> bool {
        if let Some(entry) = self.recent.get_mut(&key) {
            if entry.learn(now, side, &link) {
                return true;
            }
            let is_new = syn && !is_accelerated(&key);
            if is_new {
                *entry = Entry::new(now);
            }
            return is_new && entry.learn(now, side, &link);
        }
        if self.recent.len() >= self.limit {
            let recent = std::mem::replace(&mut self.recent, Entries::with_hasher(self.key));
            let older = std::mem::replace(&mut self.older, recent);
            self.recent.extend(older.into_iter().filter(|(key, _)| is_accelerated(key)));
        }
        let mut entry = self.older.remove(&key).unwrap_or_else(|| Entry::new(now));
        let consistent = entry.learn(now, side, &link);
        self.recent.insert(key, entry);
        consistent
    }
    /// The link header for a packet that leaves by `side`, if it is known.
    pub fn find(&self, key: &FlowKey, side: Side) -> Option<Link> {
        self.recent.get(key).or_else(|| self.older.get(key))?.links[side as usize].clone()
    }
    /// Whether the tunnel towards the device is doubtful and a probe of the server is due, which the caller
    /// sends.
    pub fn take_probe(&mut self, key: &FlowKey, now: Instant) -> bool {
        let Some(entry) = self.recent.get_mut(key).or_else(|| self.older.get_mut(key)) else { return false };
        let doubtful = entry.moved || now.since(entry.heard_at) >= SILENCE;
        let due = doubtful && now.since(entry.probed_at) >= PROBE_INTERVAL;
        if due {
            entry.probed_at = now;
        }
        due
    }
}

impl Entry {
    fn new(now: Instant) -> Self {
        Self { links: [None, None], moved: false, heard_at: now, probed_at: Instant::ZERO }
    }
    fn learn(&mut self, now: Instant, side: Side, link: &Link) -> bool {
        self.heard_at = now;
        if side == Side::Mobile {
            self.moved = false;
        }
        let known = &mut self.links[side as usize];
        if known.as_ref() == Some(link) {
            return true;
        }
        let endpoint = |link: &Link| link.tunnel().map(|tunnel| tunnel.endpoint().to_vec());
        let moved = known.as_ref().is_some_and(|known| endpoint(known) != endpoint(link));
        let is_same_network = |known: &Link| {
            known.networks().eq(link.networks()) && known.tunnel().is_some() == link.tunnel().is_some()
        };
        if !self.links.iter().flatten().all(is_same_network) {
            return false;
        }
        if moved && side == Side::Server {
            self.moved = true;
        }
        self.links[side as usize] = Some(link.clone());
        true
    }
}
