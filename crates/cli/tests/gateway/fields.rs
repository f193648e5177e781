//! Header fields of the frames that the gateway makes, beside those that the Linux at the ends sends.

use crate::common::parse_json;
use crate::common::testbed::{INTERFACES, SERVER, SERVER6, Testbed, counter};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Flags of the TCP header (RFC 9293, section 3.1).
const FIN: u16 = 1;
const SYN: u16 = 2;
const PSH: u16 = 8;
const ACK: u16 = 16;
const URG: u16 = 32;
/// Classes of the server's and the client's sockets. Chosen: two different ones.
const SERVER_CLASS: u8 = 0x28;
const CLIENT_CLASS: u8 = 0x48;
/// The ECN field, and its codepoint ECT(0) (RFC 3168).
const ECN: u8 = 3;
const ECT: u8 = 2;
/// Don't Fragment (RFC 791).
const DF: u16 = 0x4000;

/// A header, as `fields.py` prints it.
#[derive(Deserialize, Clone, Debug)]
struct Header {
    outgoing: bool,
    class: u8,
    id: Option<u16>,
    fragment: Option<u16>,
    label: Option<u32>,
    hops: u8,
    seq: u32,
    ack: u32,
    flags: u16,
    window: u16,
    urgent: u16,
    stamps: Option<(u32, u32)>,
    payload: u32,
    right: bool,
}

impl Header {
    fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload + u32::from(self.flags & FIN))
    }
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
    fn urgent_end(&self) -> Option<u32> {
        self.has(URG).then(|| self.seq.wrapping_add(self.urgent.into()))
    }
}

/// The headers that Linux sent, and those that reached the other end, without the handshake, which passes.
struct Direction {
    linux: Vec<Header>,
    arrived: Vec<Header>,
}

impl Direction {
    fn new(sender: &[Header], receiver: &[Header]) -> Self {
        let part = |all: &[Header], outgoing| -> Vec<Header> {
            all.iter().filter(|own| own.outgoing == outgoing && !own.has(SYN)).cloned().collect()
        };
        Self { linux: part(sender, true), arrived: part(receiver, false) }
    }
    fn values<T: Ord>(&self, value: impl Fn(&Header) -> T) -> BTreeSet<T> {
        self.linux.iter().map(value).collect()
    }
    /// Fields that hold for every segment.
    fn check_all(&self) {
        let fragments = self.values(|own| own.fragment);
        let (hops, labels) = (self.values(|own| own.hops), self.values(|own| own.label));
        let (windows, acks) = (self.values(|own| own.window), self.values(|own| own.ack));
        let stamps = self.values(|own| own.stamps.map(|own| own.0));
        let mut latest = 0;
        for own in &self.arrived {
            assert!(own.right, "checksums: {own:?}");
            assert!(fragments.contains(&own.fragment), "fragmentation: {own:?}");
            assert!(hops.contains(&own.hops) && labels.contains(&own.label), "{own:?}");
            assert!(stamps.contains(&own.stamps.map(|own| own.0)), "TSval: {own:?}");
            let stamp = own.stamps.map_or(0, |own| own.0);
            assert!(stamp >= latest, "TSval goes back: {own:?}");
            latest = stamp;
        }
        assert!(!windows.is_empty() && !acks.is_empty());
    }
    /// Datagrams have different identifications, and those with payload count up, as Linux's do. Up to three
    /// pass the gateway, and may have one of its numbers.
    fn check_identifications(&self) {
        for (who, all) in [("Linux", &self.linux), ("the gateway", &self.arrived)] {
            let ids: Vec<u16> = all.iter().filter_map(|own| own.id).collect();
            let different: BTreeSet<u16> = ids.iter().copied().collect();
            assert!(different.len() + 3 >= ids.len(), "{who}: {ids:?}");
            let data: Vec<u16> = all.iter().filter(|own| own.payload > 0).filter_map(|own| own.id).collect();
            let steps = data.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            assert!(steps.clone().all(|step| (1..100).contains(&step)), "{who}: {data:?}");
        }
    }
}

/// `discovery`: the server discovers the path MTU, so its datagrams have DF.
fn compare(address: &str, discovery: bool) {
    let Some(testbed) = Testbed::new(&["python3", "ethtool", "sysctl"]) else { return };
    testbed.dir.write("fields.py", include_str!("../common/fields.py"));
    for (namespace, device) in [
        (&testbed.client, "cli0"),
        (&testbed.server, "srv0"),
        (&testbed.middlebox, "mob"),
        (&testbed.middlebox, "srv"),
    ] {
        testbed.shell(namespace, &format!("ethtool -K {device} tso off gso off gro off tx off"));
    }
    for end in [&testbed.client, &testbed.server] {
        testbed.shell(end, "sysctl -qw net.ipv4.tcp_ecn=1");
    }
    testbed.shell(&testbed.server, &format!("sysctl -qw net.ipv4.ip_no_pmtu_disc={}", u8::from(!discovery)));
    let gateway = testbed.gateway(INTERFACES);
    let mut server = testbed.serve("server", 9000, &format!("python3 fields.py srv0 serve {SERVER_CLASS}"));
    let client = testbed.shell(&testbed.client, &format!("python3 fields.py cli0 {address} {CLIENT_CLASS}"));
    let read = |text: &str| -> Vec<Header> { serde_json::from_value(parse_json(text)).expect("headers") };
    let (client, server) = (read(&client.stdout), read(&server.finish().stdout));
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "early-acks") > 0, "{counters}");

    let down = Direction::new(&server, &client);
    down.check_all();
    down.check_identifications();
    let (windows, acks) = (down.values(|own| own.window), down.values(|own| own.ack));
    let (pushed, urgent) = (
        down.linux.iter().filter(|own| own.has(PSH)).map(Header::end).collect::<BTreeSet<_>>(),
        down.values(Header::urgent_end),
    );
    for own in &down.arrived {
        let ecn = if own.payload > 0 { ECT } else { 0 };
        assert_eq!(own.class, SERVER_CLASS | ecn, "{own:?}");
        assert!(windows.contains(&own.window) && acks.contains(&own.ack), "{own:?}");
        assert!(!own.has(PSH) || pushed.contains(&own.end()), "PSH: {own:?}");
        assert!(urgent.contains(&own.urgent_end()), "URG: {own:?}");
    }
    let df = if discovery { DF } else { 0 };
    assert!(down.linux.iter().all(|own| own.fragment.is_none_or(|field| field == df)));
    // Linux sends data again without ECT (RFC 3168, section 6.1.5).
    let marks = |own: &Header| own.class & ECN;
    assert!(down.linux.iter().all(|own| marks(own) == 0 || own.payload > 0 && marks(own) == ECT));
    assert!(down.linux.iter().any(|own| marks(own) == ECT));
    let data = || down.arrived.iter().filter(|own| own.payload > 0);
    assert!(data().any(|own| own.has(URG)) && data().filter(|own| own.has(PSH)).count() > 1);
    // Not the last one to arrive, which on a busy machine may have been sent again.
    let first = data().next().map_or(0, Header::end);
    let last = data().max_by_key(|own| own.end().wrapping_sub(first) as i32).map(Header::end);
    assert!(data().any(|own| Some(own.end()) == last && own.has(PSH)));

    let up = Direction::new(&client, &server);
    up.check_all();
    up.check_identifications();
    for own in &up.arrived {
        let ecn = if own.payload > 0 { ECT } else { 0 };
        assert_eq!((own.class, own.flags & !(PSH | FIN)), (CLIENT_CLASS | ecn, ACK), "{own:?}");
    }
}

// keeps: accelerator.header-fields
#[test]
fn made_segments_have_the_header_fields_that_linux_fills() {
    compare(SERVER, true);
}

#[test]
fn made_segments_of_ipv6_have_the_header_fields_that_linux_fills() {
    compare(SERVER6, true);
}

#[test]
fn made_segments_may_be_fragmented_where_the_servers_may() {
    compare(SERVER, false);
}
