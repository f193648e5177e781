//! The explanation of arbitrary packets: it never panics, and the shares of each connection sum to 1.

use paceline_explain::{Explainer, Taken};
use paceline_import::capture::stream::{Captured, DataLink};

const LINKS: [DataLink; 5] =
    [DataLink::RAW, DataLink::ETHERNET, DataLink::LINUX_SLL, DataLink::LINUX_SLL2, DataLink::NULL];

/// The first byte is the link type. Each packet has its captured length, a step of time and bytes.
pub fn run(bytes: &[u8]) {
    let mut explainer = Explainer::new(Taken::Unknown);
    let Some((link, mut rest)) = bytes.split_first() else { return };
    let link = LINKS[usize::from(*link) % LINKS.len()];
    let mut at_ns = 1u64 << 40;
    while let [len, step, tail @ ..] = rest {
        let (data, next) = tail.split_at(usize::from(*len).min(tail.len()));
        let ns = 1u64 << (step & 0x1f);
        at_ns = if step & 0x80 == 0 { at_ns + ns } else { at_ns.saturating_sub(ns) };
        let len = data.len() as u32 + u32::from(step & 0x60) * 40;
        explainer.on_packet(&Captured { interface: 0, link, at_ns, data, len });
        rest = next;
    }
    for connection in explainer.finish(None).connections {
        let sum: f64 = connection.cause_shares.values().iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{connection:?}");
    }
}
