//! The kernel program and its twin in pep give equal decisions on the same frames: connections with data,
//! losses, odd flags and options, tags and tunnels, and malformed bytes. Seeds are printed on failure.
//!
//! `PACELINE_POLICE_FRAMES` sets the number of frames (`make police-twin` runs ten million).

use paceline_live::police::{Bench, PoliceConfig};
use paceline_live::tcx::Hook;
use paceline_net::Stream;
use paceline_pep::ack_policer::{
    Flow, Frame, FrameKey, Limit, Limiter, Link, Mode, Policy, Reason, judge, parse,
};
use std::collections::BTreeMap;

const SYN: u16 = 0x002;
const ACK: u16 = 0x010;
/// Frames in CI.
const FRAMES: u64 = 30_000;
/// Bytes of a frame that are given to a test run: more than its headers have.
const TEST_FRAME: usize = 240;
/// Connections at once.
const CONNECTIONS: usize = 12;

/// The twin with its table, as `Policer` has one for packets.
struct Twin {
    config: PoliceConfig,
    flows: BTreeMap<FrameKey, (Flow, Limiter)>,
    aggregate: Limiter,
}

impl Twin {
    fn police(&mut self, frame: &Frame, now: u64) -> Reason {
        let (policy, per_flow) = (self.config.policy, self.config.per_flow);
        let published = policy.mode == Mode::Published;
        if frame.segment.flags & SYN != 0 || (published && per_flow) {
            self.flows.entry(frame.key).or_default();
        }
        match self.flows.get_mut(&frame.key) {
            Some((flow, own)) => {
                let limiter = if per_flow { own } else { &mut self.aggregate };
                judge(flow, limiter, &policy, now, &frame.segment)
            }
            None if published && !per_flow => {
                judge(&mut Flow::default(), &mut self.aggregate, &policy, now, &frame.segment)
            }
            None if frame.segment.is_pure_ack() => Reason::MidStream,
            None => Reason::NotAck,
        }
    }
    fn observe(&mut self, frame: &Frame, now: u64) {
        if self.config.policy.mode == Mode::Published {
            return;
        }
        let key = frame.key.reversed();
        if frame.segment.flags & SYN != 0 {
            self.flows.entry(key).or_default();
        }
        if let Some((flow, _)) = self.flows.get_mut(&key) {
            flow.on_data_direction(now, &frame.segment);
        }
    }
}

/// One connection as a generator of frames.
#[derive(Clone, Default)]
struct Connection {
    id: u8,
    v6: bool,
    /// Ethertypes and tags in front of the IP header.
    link: Vec<u16>,
    gtp: bool,
    syn_sent: bool,
    syn_answered: bool,
    /// Sequence numbers behind the data sent and acknowledged.
    sent: u32,
    acked: u32,
    client_seq: u32,
    timestamps: bool,
}

impl Connection {
    fn new(id: u8, rng: &mut Stream) -> Self {
        let v6 = rng.chance(0.4);
        let (kind, ppp) = if v6 { (0x86dd, 0x0057) } else { (0x0800, 0x0021) };
        let link = match rng.below(6) {
            0 => vec![0x8100, 0x2005, kind],
            1 => vec![0x88a8, 7, 0x8100, 9, kind],
            2 => vec![0x8864, 0x1100, 77, 0, ppp],
            _ => vec![kind],
        };
        let sent = rng.next_u64() as u32;
        let client_seq = rng.next_u64() as u32;
        let gtp = !v6 && rng.chance(0.2);
        let timestamps = rng.chance(0.6);
        Self { id, v6, link, gtp, sent, acked: sent, client_seq, timestamps, ..Self::default() }
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
        let flags = ACK | if rng.chance(0.03) { rng.below(0x1000) as u16 & !SYN } else { 0 };
        if rng.chance(0.5) {
            let segments = 1 + if rng.chance(0.1) { rng.below(8) as u32 } else { 0 };
            let payload = 1448 * segments;
            let seq = if rng.chance(0.004) { self.acked } else { self.sent };
            let push = if rng.chance(0.05) { 8 } else { 0 };
            let frame = self.frame(false, seq, self.client_seq, flags | push, 500, payload, rng);
            if seq == self.sent {
                self.sent = seq.wrapping_add(payload);
            }
            return (false, frame, if segments > 1 { 1448 } else { 0 });
        }
        let outstanding = self.sent.wrapping_sub(self.acked);
        let ack = match rng.below(200) {
            0 => self.acked, // a duplicate
            1 => self.acked.wrapping_sub(1448),
            _ => self.acked.wrapping_add(2896.min(outstanding)),
        };
        if ack.wrapping_sub(self.acked) as i32 > 0 {
            self.acked = ack;
        }
        let window = if rng.chance(0.02) { rng.below(65_536) as u16 } else { 60_000 };
        let payload = if rng.chance(0.02) { 1 + rng.below(500) as u32 } else { 0 };
        let seq = if rng.chance(0.01) { self.client_seq.wrapping_sub(1) } else { self.client_seq };
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
            options.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        if rng.chance(0.01) {
            options.extend([1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        if rng.chance(0.01) {
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
        if self.gtp {
            let mut gtp =
                vec![0x34, 255, 0, 0, 0, 0, 0, if up { 1 } else { 2 }, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
            gtp.extend(ip);
            let mut udp = vec![0x08, 0x68, 0x08, 0x68, 0, 0, 0, 0];
            udp.extend(gtp);
            ip = self.ip(up, 17, 0, &udp);
        }
        let mut frame = vec![2; 12];
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

/// Runs `frames` frames; the number of dropped ACKs.
fn compare(seed: u64, frames: u64) -> u64 {
    let mut rng = Stream::new(seed, "police");
    let mode = if rng.chance(0.75) { Mode::Safe } else { Mode::Published };
    let policy = Policy { mode, limit: limit(&mut rng), max_segments: 1 + rng.below(32) as u32 };
    let per_flow = rng.chance(0.7);
    let config =
        PoliceConfig { policy, per_flow, direction: Hook::Ingress, gtp: rng.chance(0.5), exempt: Vec::new() };
    let bench = Bench::new(&config).expect("the programs load");
    let (gtp, mut twin) =
        (config.gtp, Twin { config, flows: BTreeMap::new(), aggregate: Limiter::default() });
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|id| Connection::new(id as u8, &mut rng)).collect();
    let (mut now, mut dropped) = (1_000_000_000, 0);
    for at in 0..frames {
        now += if rng.chance(0.001) { rng.below(300_000_000) } else { rng.below(200_000) };
        let which = rng.below(CONNECTIONS as u64) as usize;
        if rng.chance(0.0005) {
            connections[which] = Connection::new(which as u8, &mut rng);
        }
        let (up, mut frame, super_segment) = connections[which].next(&mut rng);
        frame.truncate(TEST_FRAME); // a test run takes a page; the payload itself is not read
        if rng.chance(0.03) {
            for _ in 0..1 + rng.below(4) {
                let byte = 12 + rng.below(frame.len().min(120) as u64 - 12) as usize;
                frame[byte] = rng.next_u64() as u8;
            }
            if rng.chance(0.3) {
                // A test run refuses a frame that is shorter than its IP header.
                frame.truncate(54 + rng.below(frame.len().max(55) as u64 - 54) as usize);
            }
        }
        let parsed = parse(Link::Ethernet, &frame, gtp, super_segment);
        let place = || format!("seed {seed}, frame {at} ({:02x?}...)", &frame[..frame.len().min(100)]);
        if up {
            let expected = parsed.as_ref().map(|frame| twin.police(frame, now));
            let reason = bench
                .police(&frame, now, super_segment)
                .unwrap_or_else(|error| panic!("{}: {error}", place()));
            assert_eq!(reason, expected.map(|reason| reason as u8), "{expected:?}: {}", place());
            dropped += u64::from(expected == Some(Reason::Dropped));
        } else {
            if let Some(frame) = &parsed {
                twin.observe(frame, now);
            }
            bench.observe(&frame, now, super_segment).unwrap_or_else(|error| panic!("{}: {error}", place()));
        }
    }
    assert_eq!(bench.flows().expect("a table"), twin.flows.len(), "seed {seed}: connections");
    dropped
}

#[test]
fn the_kernel_program_decides_as_its_twin() {
    if let Some(problem) = paceline_live::probe::police() {
        let required = std::env::var_os("PACELINE_REQUIRE_PRIVILEGED").is_some();
        assert!(!required, "{problem}");
        eprintln!("skipped: {problem}");
        return;
    }
    let frames = std::env::var("PACELINE_POLICE_FRAMES").ok();
    let frames: u64 = frames.map_or(FRAMES, |text| text.parse().expect("a number of frames"));
    let runs = 12.max(frames / 100_000);
    let mut dropped = 0;
    for seed in 0..runs {
        dropped += compare(seed, frames / runs);
    }
    eprintln!("{frames} frames in {runs} runs: equal; {dropped} ACKs dropped");
    assert!(dropped > frames / 100, "only {dropped} ACKs dropped");
}
