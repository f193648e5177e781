//! Blocks of random sizes: their bytes are as many as the cell counts, and Wireshark dissects them.

use super::*;
use crate::cell::CapturedBlock;
use crate::mac::pdu::{BsrDue, Sender};
use crate::pdcp::PdcpConfig;
use crate::rlc::RlcConfig;
use crate::slot::{Slot, SlotClock, SlotSpan};
use paceline_net::{Bytes, DropTail, Instant, Packet, SduQueue, SeqNumber, Stream, TcpFlags, TcpHeader};
use std::io::Write;
use std::process::{Command, Stdio};

/// Blocks of a run. Chosen: some losses, reports and retransmissions.
const BLOCKS: u64 = 120;

fn modes() -> [(RlcConfig, NrPdcp, [&'static str; 2]); 4] {
    let clock = SlotClock::default();
    let pdcp = |sn, sdap_header| NrPdcp { sn, sdap_header, t_reordering: None };
    let um = |sn| RlcConfig::NrUm(nr::UmConfig { sn, ..nr::UmConfig::new(clock) });
    let am = |sn| {
        let config = nr::AmConfig::new(clock);
        let (poll_pdu, t_reassembly) = (Some(4), SlotSpan(6));
        RlcConfig::NrAm(nr::AmConfig { sn, poll_pdu, t_reassembly, max_retx_threshold: 99, ..config })
    };
    [
        (um(SnLength::Short), pdcp(PdcpSn::Twelve, false), ["UM, SN Len=6", "12-bit SN"]),
        (um(SnLength::Long), pdcp(PdcpSn::Eighteen, false), ["UM, SN Len=12", "18-bit SN"]),
        (am(SnLength::Short), pdcp(PdcpSn::Twelve, false), ["AM, SN Len=12", "12-bit SN"]),
        (am(SnLength::Long), pdcp(PdcpSn::Eighteen, false), ["AM, SN Len=18", "18-bit SN"]),
    ]
}

/// Uplink and downlink blocks of a bearer whose channel loses a fifth of the blocks.
fn blocks(mode: RlcConfig, config: NrPdcp, seed: u64) -> Vec<CapturedBlock> {
    let mut random = Stream::new(seed, "capture");
    let address = |host: u8| std::net::Ipv4Addr::new(198, 18, 0, host).into();
    let [mut down, mut up] = [0; 2].map(|_| Rlc::new(mode, SlotSpan(0)));
    let mut transmitters = [0; 2].map(|_| pdcp::Tx::new(PdcpConfig::Nr(config)));
    let mut buffers = [0; 2].map(|_| DropTail::new(Bytes(1 << 30)));
    let (mut out, mut captured) = (Vec::new(), Vec::new());
    for slot in 0..BLOCKS {
        for (at, direction) in [Direction::Down, Direction::Up].into_iter().enumerate() {
            let payload_len = if direction == Direction::Down { 1460 } else { random.below(200) as u32 };
            let seq = SeqNumber(1460 * slot as u32);
            let tcp = TcpHeader {
                src_port: 1,
                dst_port: 2,
                seq,
                payload_len,
                flags: TcpFlags::ACK,
                ..TcpHeader::default()
            };
            buffers[at].push(Instant::ZERO, Packet::tcp(address(1), address(2), tcp));
            let (rlc, reverse) = if at == 0 { (&mut down, &mut up) } else { (&mut up, &mut down) };
            let largest = [40, 300, 4000][random.below(3) as usize];
            let tbs = 10 + random.below(largest) as u32;
            let source = pdcp::Source {
                tx: &mut transmitters[at],
                buffer: &mut buffers[at],
                leg: pdcp::Leg::Main,
                now: Instant::ZERO,
            };
            let mut sender = Sender { rlc, reverse, source };
            let pdu = if direction == Direction::Down {
                sender.downlink_pdu(Slot(slot), tbs, Vec::new())
            } else {
                sender.uplink_pdu(Slot(slot), tbs, BsrDue::Periodic, None, Vec::new())
            };
            let encoded = encode(&pdu, sender.rlc, config, direction);
            assert_eq!(encoded.bytes.len() as u32, tbs, "seed {seed}: the cell counts other bytes: {pdu:?}");
            captured.push(CapturedBlock {
                station: 0,
                direction,
                slot: Slot(slot),
                process: 3,
                clock: SlotClock::default(),
                tdd: false,
                pdu: encoded,
            });
            let lost = random.chance(0.2);
            for element in pdu.sdus {
                match (lost, element.is_status()) {
                    (true, false) => sender.rlc.on_pdu_lost(element, |_| ()),
                    (true, true) => {}
                    (false, true) => sender.reverse.on_status(&element),
                    (false, false) => sender.rlc.receive(Slot(slot), element, &mut out),
                }
            }
            sender.rlc.check_timers(Slot(slot), || sender.source.waiting(), &mut out);
        }
    }
    captured
}

#[test]
fn the_bytes_of_a_block_are_as_many_as_the_cell_counts() {
    for (mode, config, _) in modes() {
        for seed in 0..10 {
            assert_eq!(blocks(mode, config, seed).len() as u64, 2 * BLOCKS);
            blocks(mode, NrPdcp { sdap_header: true, ..config }, seed);
        }
    }
}

/// A capture of raw IP (pcap, link type 101) with the blocks in UDP datagrams.
fn pcap(blocks: &[CapturedBlock]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    for block in blocks {
        let payload = block.mac_nr_over_udp().next().expect("a block has bytes");
        let mut ip = vec![0x45, 0];
        ip.extend((payload.len() as u16 + 28).to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, 0x27, 0x0f, 0x27, 0x0f]);
        ip.extend((payload.len() as u16 + 8).to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(payload);
        for word in
            [block.slot.0 as u32 / 1000, block.slot.0 as u32 % 1000 * 1000, ip.len() as u32, ip.len() as u32]
        {
            out.extend(word.to_le_bytes());
        }
        out.extend(ip);
    }
    out
}

/// Needs `tshark`; without it the test says so and ends.
#[test]
fn wireshark_dissects_mac_rlc_and_pdcp_without_a_malformed_frame() {
    for (mode, config, [rlc_type, pdcp_sn]) in modes() {
        let options = [
            format!("uat:drb_bearerconfig:\"LCID 4\",\"1\",\"{rlc_type}\",\"{rlc_type}\""),
            format!("rlc-nr.call_pdcp_for_ul_drb:{pdcp_sn}"),
            format!("rlc-nr.call_pdcp_for_dl_drb:{pdcp_sn}"),
        ];
        let mut tshark = Command::new("tshark");
        tshark.args(["-r", "-", "--enable-heuristic", "mac_nr_udp", "-T", "fields"]);
        tshark.args(["-e", "frame.protocols", "-e", "_ws.malformed"]);
        for option in &options {
            tshark.args(["-o", option]);
        }
        let running = tshark.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut running) = running else {
            println!("skipped: there is no tshark");
            return;
        };
        let capture = pcap(&blocks(mode, config, 1));
        let written = running.stdin.take().map(|mut stdin| stdin.write_all(&capture));
        assert!(written.is_some_and(|result| result.is_ok()), "tshark reads the capture");
        let output = running.wait_with_output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.lines().count() as u64, 2 * BLOCKS, "{rlc_type}");
        for line in lines.lines() {
            assert!(!line.contains("alformed") && line.contains("mac-nr"), "{rlc_type}: {line}");
        }
        let with = |text: &str| lines.lines().filter(|line| line.contains(text)).count();
        assert!(with("mac-nr:rlc-nr") > 150, "{rlc_type}: {lines}");
        assert!(with("pdcp-nr:ip:tcp") > 20, "{rlc_type}: {lines}");
    }
}
