//! The kernel program and the policer in Rust give equal decisions on the same frames: connections with data,
//! losses, odd flags and options, tags and tunnels, exempt networks, links without a link header, and
//! malformed bytes. Seeds are printed on failure.
//!
//! Left out: tags that the device has taken out of the frame. A test run's context may not set them
//! (`vlan_present` must be 0); `crates/cli/tests/police/lifetime.rs` sends such frames through a device.
//!
//! `PACELINE_POLICE_FRAMES` sets the number of frames (`make police-equivalence` runs ten million).

use ipnet::IpNet;
use paceline_linux::bpf::tcx::Hook;
use paceline_net::Stream;
use paceline_pep::ack_policer::{
    FirstHeader, FramePolicer, Limit, Mode, PolicerConfig, Policy, Reason, parse,
};
use paceline_police::{Bench, PoliceConfig, Via};

const SYN: u16 = 0x002;
const ACK: u16 = 0x010;
/// Frames in CI.
const FRAMES: u64 = 240_000;
/// Bytes of a frame that are given to a test run: more than its headers have.
const TEST_FRAME: usize = 240;
/// Connections at once.
const CONNECTIONS: usize = 12;
const FEW: usize = 2;
/// Connections in the kernel program's table (police.bpf.c).
const MAX_FLOWS: usize = 131_072;

/// One connection as a generator of frames.
#[derive(Clone, Default)]
struct Connection {
    id: u8,
    v6: bool,
    /// Ethertypes and tags in front of the IP header.
    link: Vec<u16>,
    /// TEIDs of both directions, up first; 0 outside GTP-U.
    teids: [u8; 2],
    syn_sent: bool,
    syn_answered: bool,
    /// Sequence numbers behind the data sent and acknowledged.
    sent: u32,
    acked: u32,
    client_seq: u32,
    timestamps: bool,
    /// The client's clock, and how many of its ticks the server's echo is behind.
    tick: u32,
    lag: u32,
    /// Divides the chances of duplicates, retransmissions and odd fields: gaps grow with the segments that
    /// are acknowledged without a sign of loss.
    calm: f64,
}

impl Connection {
    fn new(id: u8, calm: f64, on: FirstHeader, rng: &mut Stream) -> Self {
        let v6 = rng.chance(0.4);
        let (kind, ppp) = if v6 { (0x86dd, 0x0057) } else { (0x0800, 0x0021) };
        let link = match rng.below(6) {
            0 => vec![0x8100, 0x2005, kind],
            1 => vec![0x88a8, 7, 0x8100, 9, kind],
            2 => vec![0x8864, 0x1100, 77, 0, ppp],
            _ => vec![kind],
        };
        let link = if on == FirstHeader::Ip { Vec::new() } else { link };
        let sent = rng.next_u64() as u32;
        let client_seq = rng.next_u64() as u32;
        let gtp = !v6 && rng.chance(0.3);
        let teids = if gtp { [1 + rng.below(3) as u8, 4 + rng.below(3) as u8] } else { [0, 0] };
        // Subscribers with equal addresses and ports in different tunnels.
        let id = if gtp && rng.chance(0.6) { 200 } else { id };
        let timestamps = rng.chance(0.6);
        let (tick, lag) = (rng.next_u64() as u32, rng.below(6) as u32);
        let acked = sent;
        Self { id, v6, link, teids, sent, acked, client_seq, timestamps, tick, lag, calm, ..Self::default() }
    }

    /// The next frame, and whether it is in the policed direction.
    fn next(&mut self, rng: &mut Stream) -> (bool, Vec<u8>, u32) {
        if !self.syn_sent {
            self.syn_sent = true;
            let flags = if rng.chance(0.1) { SYN | 0x1c0 } else { SYN };
            let seq = self.client_seq;
            self.client_seq = seq.wrapping_add(1);
            return (true, self.frame(true, seq, 0, flags, 65_535, 0, rng), 0);
        }
        if !self.syn_answered {
            self.syn_answered = true;
            let flags = if rng.chance(0.05) { SYN | ACK | 0x80 } else { SYN | ACK };
            let frame = self.frame(false, self.sent, self.client_seq, flags, 65_535, 0, rng);
            self.sent = self.sent.wrapping_add(1);
            return (false, frame, 0);
        }
        self.tick = self.tick.wrapping_add(u32::from(rng.chance(0.4)));
        let flags = ACK | if rng.chance(0.03 / self.calm) { rng.below(0x1000) as u16 & !SYN } else { 0 };
        let outstanding = self.sent.wrapping_sub(self.acked);
        if rng.chance(0.5) || (self.calm > 1.0 && outstanding == 0) {
            let segments = 1 + if rng.chance(0.1) { rng.below(8) as u32 } else { 0 };
            let payload = 1448 * segments;
            let seq = if rng.chance(0.004 / self.calm) { self.acked } else { self.sent };
            let push = if rng.chance(0.05) { 8 } else { 0 };
            let frame = self.frame(false, seq, self.client_seq, flags | push, 500, payload, rng);
            if seq == self.sent {
                self.sent = seq.wrapping_add(payload);
            }
            return (false, frame, if segments > 1 { 1448 } else { 0 });
        }
        let ack = if rng.chance(0.005 / self.calm) {
            self.acked // a duplicate
        } else if rng.chance(0.005 / self.calm) {
            self.acked.wrapping_sub(1448)
        } else {
            self.acked.wrapping_add(2896.min(outstanding))
        };
        if ack.wrapping_sub(self.acked) as i32 > 0 {
            self.acked = ack;
        }
        let window = if rng.chance(0.02 / self.calm) { rng.below(65_536) as u16 } else { 60_000 };
        let payload = if rng.chance(0.02 / self.calm) { 1 + rng.below(500) as u32 } else { 0 };
        let seq =
            if rng.chance(0.01 / self.calm) { self.client_seq.wrapping_sub(1) } else { self.client_seq };
        let frame = self.frame(true, seq, ack, flags, window, payload, rng);
        if seq == self.client_seq {
            self.client_seq = seq.wrapping_add(payload);
        }
        (true, frame, 0)
    }

    #[allow(clippy::too_many_arguments)] // the fields of a header
    fn frame(
        &self,
        up: bool,
        seq: u32,
        ack: u32,
        flags: u16,
        window: u16,
        payload: u32,
        rng: &mut Stream,
    ) -> Vec<u8> {
        let mut options = Vec::new();
        if flags & SYN != 0 {
            options.extend([2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 1, 1]);
        }
        if self.timestamps {
            let lag = if rng.chance(0.1) { rng.below(30) as u32 } else { self.lag };
            let stamps = if up { [self.tick, 7] } else { [7, self.tick.wrapping_sub(lag)] };
            options.extend([1, 1, 8, 10]);
            stamps.iter().for_each(|stamp| options.extend(stamp.to_be_bytes()));
        }
        if rng.chance(0.01 / self.calm) {
            options.extend([1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        if rng.chance(0.01 / self.calm) {
            options
                .extend([[30, 4, 0, 0], [253, 2, 1, 1], [5, 0, 0, 0], [0, 9, 9, 9]][rng.below(4) as usize]);
        }
        let ports = if up { [40_000 + u16::from(self.id), 443] } else { [443, 40_000 + u16::from(self.id)] };
        let mut tcp = Vec::new();
        ports.iter().for_each(|port| tcp.extend(port.to_be_bytes()));
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        let offset = (5 + options.len() as u16 / 4) << 12;
        tcp.extend((offset | flags).to_be_bytes());
        tcp.extend(window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.resize(tcp.len() + payload as usize, 0x55);
        let ecn = if rng.chance(0.01) { 1 } else { 0 };
        let mut ip = self.ip(up, 6, ecn, &tcp);
        let teid = self.teids[usize::from(!up)];
        if teid != 0 {
            let teid = if rng.chance(0.003 / self.calm) { rng.below(8) as u8 } else { teid };
            let mut gtp = vec![0x34, 255, 0, 0, 0, 0, 0, teid, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
            gtp.extend(ip);
            let mut udp = vec![0x08, 0x68, 0x08, 0x68, 0, 0, 0, 0];
            udp.extend(gtp);
            ip = self.ip(up, 17, 0, &udp);
        }
        let mut frame = vec![2; if self.link.is_empty() { 0 } else { 12 }];
        self.link.iter().for_each(|word| frame.extend(word.to_be_bytes()));
        frame.extend(ip);
        frame
    }

    fn ip(&self, up: bool, protocol: u8, ecn: u8, rest: &[u8]) -> Vec<u8> {
        let len = rest.len() as u16;
        let (client, server) = ([10, 0, 0, self.id], [192, 0, 2, 1]);
        let (src, dst) = if up { (client, server) } else { (server, client) };
        let mut bytes = Vec::new();
        if self.v6 {
            bytes.extend([0x60, ecn << 4, 0, 0]);
            bytes.extend(len.to_be_bytes());
            bytes.extend([protocol, 64]);
            for end in [src, dst] {
                bytes.extend([0x20; 12]);
                bytes.extend(end);
            }
        } else {
            bytes.extend([0x45, ecn]);
            bytes.extend((len + 20).to_be_bytes());
            bytes.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
            bytes.extend(src);
            bytes.extend(dst);
        }
        bytes.extend(rest);
        bytes
    }
}

fn limit(rng: &mut Stream) -> Limit {
    match rng.below(3) {
        0 => Limit::Share(rng.below(65_537) as u32),
        1 => Limit::Rate { bytes_per_s: 1 + rng.below(100_000), burst: 52 + rng.below(10_000) },
        _ => Limit::PerRtt(rng.below(20) as u32),
    }
}

/// A policer without exempt networks.
fn config(policy: Policy) -> PoliceConfig {
    let (per_flow, direction, gtp, exempt, dry_run) = (true, Hook::Ingress, false, Vec::new(), false);
    PoliceConfig { policy, per_flow, direction, gtp, exempt, dry_run, via: Via::Auto }
}

/// Networks of some of the connections, in every fourth run.
fn exempt(rng: &mut Stream) -> Vec<IpNet> {
    let networks =
        ["10.0.0.1/32", "10.0.0.200/32", "2020:2020:2020:2020:2020:2020:a00:2/127", "0.0.0.0/0", "::/0"];
    let mut exempt = Vec::new();
    if rng.chance(0.25) {
        for network in networks {
            if rng.chance(if network.ends_with("/0") { 0.1 } else { 0.5 }) {
                exempt.push(network.parse().expect("a network"));
            }
        }
    }
    exempt
}

/// Runs `frames` frames; the mode and the number of dropped ACKs. Every second run is of few connections that
/// last long and rarely show a loss.
fn compare(seed: u64, frames: u64) -> (Mode, u64) {
    let mut rng = Stream::new(seed, "police");
    let mode = if rng.chance(0.75) { Mode::Safe } else { Mode::Published };
    let policy = Policy { mode, limit: limit(&mut rng), max_segments: 1 + rng.below(32) as u32 };
    let per_flow = rng.chance(0.7);
    let gtp = rng.chance(0.5);
    let on = if rng.chance(0.3) { FirstHeader::Ip } else { FirstHeader::Ethernet };
    let config = PoliceConfig { exempt: exempt(&mut rng), per_flow, gtp, ..config(policy) };
    let bench = Bench::new(&config, on).expect("the programs load");
    let mut policer = FramePolicer::new(PolicerConfig { policy, per_flow });
    let (calm, count) = if seed.is_multiple_of(2) { (100.0, FEW) } else { (1.0, CONNECTIONS) };
    let mut connections: Vec<_> =
        (0..count).map(|id| Connection::new(id as u8, calm, on, &mut rng)).collect();
    let (mut now, mut dropped) = (1_000_000_000, 0);
    for at in 0..frames {
        now += if rng.chance(0.001 / calm) { rng.below(300_000_000) } else { rng.below(200_000) };
        let which = rng.below(count as u64) as usize;
        if rng.chance(0.0005 / f64::min(calm, 5.0)) {
            connections[which] = Connection::new(which as u8, calm, on, &mut rng);
        }
        let (up, mut frame, super_segment) = connections[which].next(&mut rng);
        frame.truncate(TEST_FRAME); // a test run takes a page; the payload itself is not read
        if rng.chance(0.03 / calm) {
            for _ in 0..1 + rng.below(4) {
                let byte = 12 + rng.below(frame.len().min(120) as u64 - 12) as usize;
                frame[byte] = rng.next_u64() as u8;
            }
            if rng.chance(0.3) {
                // A test run refuses a frame that is shorter than its IP header.
                frame.truncate(54 + rng.below(frame.len().max(55) as u64 - 54) as usize);
            }
        }
        let parsed = parse(on, &frame, gtp, super_segment);
        let place = || format!("seed {seed}, frame {at} ({:02x?}...)", &frame[..frame.len().min(100)]);
        if up {
            let expected = parsed.as_ref().map(|frame| match config.exempts(&frame.key) {
                true => Reason::Exempt,
                false => policer.police(frame, now),
            });
            let reason = bench
                .police(&frame, now, super_segment)
                .unwrap_or_else(|error| panic!("{}: {error}", place()));
            assert_eq!(reason, expected.map(|reason| reason as u8), "{expected:?}: {}", place());
            dropped += u64::from(expected == Some(Reason::Dropped));
        } else {
            if let Some(frame) = &parsed {
                policer.observe(frame, now);
            }
            bench.observe(&frame, now, super_segment).unwrap_or_else(|error| panic!("{}: {error}", place()));
        }
    }
    assert_eq!(bench.flows().expect("a table"), policer.flows(), "seed {seed}: connections");
    (mode, dropped)
}

/// Whether this host can run the programs.
fn can_police() -> bool {
    let problem = paceline_police::problem();
    if let Some(problem) = &problem {
        let required = std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_some();
        assert!(!required, "{problem}");
        eprintln!("skipped: {problem}");
    }
    problem.is_none()
}

/// The table of the Rust form takes no more when it is full, and the kernel's makes room: they differ by
/// design. Bounds of the kernel's are checked alone.
#[test]
fn a_flood_of_connections_makes_room_and_drops_nothing_wrongly() {
    if !can_police() {
        return;
    }
    let mut rng = Stream::new(1, "flood");
    let policy = Policy { mode: Mode::Safe, limit: Limit::Share(65_536), max_segments: 16 };
    let bench = Bench::new(&config(policy), FirstHeader::Ethernet).expect("the programs load");
    let mut now = 1_000_000_000;
    let transfer = |now: &mut u64, rng: &mut Stream| {
        let mut one = Connection { link: vec![0x0800], calm: 1e9, ..Connection::default() };
        let mut reasons = Vec::new();
        for _ in 0..4000 {
            *now += 100_000;
            let (up, mut frame, segment) = one.next(rng);
            frame.truncate(TEST_FRAME);
            match up {
                true => reasons.push(bench.police(&frame, *now, segment).unwrap()),
                false => bench.observe(&frame, *now, segment).unwrap(),
            }
        }
        (one, reasons)
    };
    let dropped = |reasons: &[Option<u8>]| {
        reasons.iter().filter(|reason| **reason == Some(Reason::Dropped as u8)).count()
    };
    let (mut one, reasons) = transfer(&mut now, &mut rng);
    assert!(dropped(&reasons) > 50, "{}", dropped(&reasons));
    let mut syn = Connection { link: vec![0x0800], calm: 1e9, ..Connection::default() }
        .frame(true, 1, 0, SYN, 65_535, 0, &mut rng);
    for flood in 0..MAX_FLOWS as u32 * 2 {
        syn[26..30].copy_from_slice(&(0x0b00_0000 + flood).to_be_bytes()); // the source address
        bench.police(&syn, now, 0).unwrap();
    }
    let flows = bench.flows().unwrap();
    assert!((MAX_FLOWS / 2..=MAX_FLOWS).contains(&flows), "{flows}");
    let mut made_room = 0;
    for _ in 0..200 {
        now += 100_000;
        let (up, mut frame, segment) = one.next(&mut rng);
        frame.truncate(TEST_FRAME);
        if up {
            let reason = bench.police(&frame, now, segment).unwrap();
            assert_ne!(reason, Some(Reason::Dropped as u8), "its state is gone");
            made_room += u32::from(reason == Some(Reason::MidStream as u8));
        } else {
            bench.observe(&frame, now, segment).unwrap();
        }
    }
    assert!(made_room > 20, "{made_room}");
    // Some connections have no handshake.
    let most = (0..8).map(|_| dropped(&transfer(&mut now, &mut rng).1)).max();
    assert!(most > Some(50), "new connections are policed: {most:?}");
}

#[test]
fn the_kernel_program_decides_as_its_twin() {
    if !can_police() {
        return;
    }
    let frames = std::env::var("PACELINE_POLICE_FRAMES").ok();
    let frames: u64 = frames.map_or(FRAMES, |text| text.parse().expect("a number of frames"));
    let runs = 12.max(frames / 100_000);
    let mut dropped = [0, 0];
    for seed in 0..runs {
        let (mode, count) = compare(seed, frames / runs);
        dropped[mode as usize] += count;
    }
    eprintln!(
        "{frames} frames in {runs} runs: equal; {dropped:?} ACKs dropped by safe and published policers"
    );
    assert!(dropped.iter().all(|count| *count > frames / 1000), "only {dropped:?} ACKs dropped");
}
