//! RLC acknowledged mode and the discard timer, through the interface of the cell.

use crate::common::*;
use paceline_net::{Bytes, DropReason, Duration, Instant, Node, Output, Packet, Stream};
use paceline_ran::{AmConfig, CORE, Cell, CellConfig, RlcConfig, Slot, SlotSpan, station_port};

const AM: AmConfig = AmConfig {
    t_poll_retransmit: SlotSpan(120),
    poll_pdu: Some(64),
    poll_byte: Some(750_000),
    max_retx_threshold: 16,
    t_status_prohibit: SlotSpan(50),
};

fn am_config() -> CellConfig {
    CellConfig { rlc: RlcConfig::Am(AM), ..config() }
}

#[test]
fn a_lone_station_fills_the_peak_transport_block() {
    let mut cell = Cell::new(am_config(), vec![station(0, 25.0, 25.0, 0.0)], 1);
    let (down, up) = saturate(&mut cell)[0];
    let up_bits = u64::from(paceline_ran::lte::tbs::transport_block_bits(19, 96));
    assert!(down * 8 <= 75_376_000 && down * 8 > 75_376_000 * 97 / 100, "{down}");
    assert!(up * 8 <= up_bits * 1000 && up * 8 > up_bits * 1000 * 95 / 100, "{up}");
    assert_eq!((cell.downlink(0).rlc_retransmissions, cell.uplink(0).rlc_retransmissions), (0, 0));
}

#[test]
fn slots_in_which_the_window_holds_data_back_are_counted() {
    let stalls = |sr_detection| {
        let mut config = am_config();
        config.access.sr_detection = sr_detection;
        config.access.sr_period = SlotSpan(80); // 64 requests before random access
        let mut cell = Cell::new(config, vec![station(0, 25.0, 25.0, 0.0)], 1);
        for ms in 0..1000 {
            let now = Instant::from_millis(ms);
            while cell.downlink_queue(0) < Bytes(100_000) {
                cell.handle_packet(now, CORE, packet(SERVER, address(0), 1400));
            }
            drain(&mut cell, now);
        }
        (cell.downlink(0).window_stalls.0, cell.uplink(0).status_pdus)
    };
    assert_eq!(stalls(1.0).0, 0, "reports arrive long before 512 PDUs are sent");
    let (slots, reports) = stalls(0.0);
    // 512 PDUs of one slot each; later slots are free for a retransmission that polls each 120 slots.
    assert_eq!(reports, 0);
    assert!((1000 - 512 - 20..=1000 - 512).contains(&slots), "{slots}");
}

#[test]
fn status_pdus_take_no_transport_blocks_of_their_own() {
    let blocks = |rlc| {
        let mut cell = Cell::new(CellConfig { rlc, ..config() }, vec![station(0, 25.0, 25.0, 0.0)], 1);
        saturate(&mut cell);
        let (down, up) = (cell.downlink(0), cell.uplink(0));
        (
            (down.status_pdus, up.status_pdus),
            (down.transport_blocks, up.transport_blocks),
            (down.bytes_out, up.bytes_out),
        )
    };
    let (none, um_blocks, um_bytes) = blocks(RlcConfig::Um);
    let (status, am_blocks, am_bytes) = blocks(RlcConfig::Am(AM));
    assert_eq!(none, (0, 0));
    assert!(status.0 >= 10 && status.1 >= 10, "{status:?}");
    assert_eq!(um_blocks, am_blocks);
    assert!(
        um_bytes.0 - am_bytes.0 < 20_000 && um_bytes.1 - am_bytes.1 < 20_000,
        "{um_bytes:?} {am_bytes:?}"
    );
}

#[test]
fn blocks_lost_by_harq_are_retransmitted_by_rlc() {
    for seed in 0..5 {
        let config = CellConfig { max_harq_tx: 1, downlink_buffer: Bytes(1 << 24), ..am_config() };
        let mut cell = Cell::new(config, vec![station(0, 12.0, 6.0, 3.0)], seed);
        let mut out = Vec::new();
        for ms in 0..1500 {
            let now = Instant::from_millis(ms);
            out.extend(drain(&mut cell, now));
            cell.handle_packet(now, CORE, packet(SERVER, address(0), ms as u32 % 1400));
            cell.handle_packet(now, station_port(0), packet(address(0), SERVER, ms as u32 % 200));
        }
        out.extend(drain(&mut cell, Instant::from_millis(8000)));
        for (port, modulus) in [(station_port(0), 1400), (CORE, 200)] {
            let lens: Vec<u32> = out
                .iter()
                .filter_map(|(_, output)| match output {
                    Output::Transmit(p, packet) if *p == port => Some(packet.len - 40),
                    Output::Transmit(..) => None,
                    other => panic!("seed {seed}: {other:?}"),
                })
                .collect();
            assert!(lens.iter().copied().eq((0..1500).map(|ms| ms % modulus)), "seed {seed}: in order, once");
        }
        for stats in [cell.downlink(0), cell.uplink(0)] {
            assert!(stats.transport_blocks_lost > 10 && stats.rlc_retransmissions > 10, "{stats:?}");
        }
        assert_eq!(cell.poll_timeout(), None, "seed {seed}: the cell sleeps");
    }
}

#[test]
fn an_idle_cell_sleeps() {
    let mut cell = Cell::new(am_config(), (0..5).map(|i| station(i, 20.0, 15.0, 3.0)).collect(), 1);
    assert_eq!(cell.poll_timeout(), None);
    let now = Instant::from_millis(7);
    cell.handle_packet(now, station_port(2), packet(address(2), SERVER, 10));
    cell.handle_packet(now, CORE, packet(SERVER, address(3), 10));
    let out = drain(&mut cell, Instant::from_millis(5000));
    assert_eq!(out.len(), 2);
    assert_eq!(cell.poll_timeout(), None, "after the last report there is nothing to do");
    assert!(cell.active_slots() < 100, "{}", cell.active_slots());
    assert_eq!((cell.downlink(2).status_pdus, cell.uplink(3).status_pdus), (1, 1));
}

#[test]
fn a_link_without_status_reports_fails_and_is_reestablished() {
    let mut at_once = 0;
    for seed in 0..200 {
        let am = AmConfig { t_poll_retransmit: SlotSpan(20), max_retx_threshold: 4, ..AM };
        let mut config = CellConfig { rlc: RlcConfig::Am(am), ..config() };
        // No scheduling request is detected: downlink data arrive, status reports never do.
        config.access.sr_detection = 0.0;
        let mut cell = Cell::new(config, vec![station(0, 20.0, 15.0, 0.0)], seed);
        cell.handle_packet(Instant::ZERO, CORE, packet(SERVER, address(0), 100));
        let out = drain(&mut cell, Instant::from_millis(99));
        assert!(matches!(out[..], [(at, Output::Transmit(..))] if at == start(Slot(3))));
        assert_eq!(cell.downlink(0).radio_link_failures, 0);
        // Transmission at 0, retransmissions at 20, 40, 60 and 80; the next expiry fails the link.
        let now = Instant::from_nanos(100_500_000);
        drain(&mut cell, now);
        assert_eq!((cell.downlink(0).radio_link_failures, cell.downlink(0).rlc_retransmissions), (1, 4));
        assert!(!cell.connected(0));
        cell.handle_packet(now, CORE, packet(SERVER, address(0), 100));
        let out = drain(&mut cell, Instant::from_millis(250));
        // A cell is selected at 150, the PRACH is in subframe 1: response at 154, Msg3 at 160, Msg4 at 164,
        // processed at 168, re-established at 193. Preambles that are not detected cost 20 each.
        let attempts = cell.access(0).preambles;
        let back = Slot(193 + 20 * (attempts - 1));
        at_once += u64::from(attempts == 1);
        if back >= Slot(240) {
            continue;
        }
        // The second packet was not numbered and stayed in the buffer.
        let sent = start(back + SlotSpan(3));
        assert!(matches!(out[..], [(at, Output::Transmit(..))] if at == sent), "seed {seed}: {out:?}");
        let access = cell.access(0);
        assert_eq!(
            (access.reestablishments, access.reestablishment_slots.0),
            (1, back.0 - 100),
            "seed {seed}"
        );
        assert_eq!(
            (access.contention_resolutions, access.contention_resolution_slots.0),
            (1, back.0 - 25 - 150),
            "seed {seed}"
        );
        let stats = cell.downlink(0);
        assert_eq!(
            (stats.packets_in, stats.packets_out, stats.dropped.total()),
            (2, 2, 0),
            "all were delivered"
        );
        assert_conserved(&cell, seed);
    }
    // 1 - 1/e of 200 is 126, with a standard deviation of 7.
    assert!((105..=147).contains(&at_once), "{at_once}");
}

#[test]
fn a_radio_link_failure_drops_packets_in_transit() {
    let config = CellConfig {
        max_harq_tx: 1,
        cqi_period: SlotSpan(40),
        rlc: RlcConfig::Am(AmConfig { t_poll_retransmit: SlotSpan(20), max_retx_threshold: 1, ..AM }),
        ..config()
    };
    let mut stream = Stream::new(1, "load");
    let mut cell = Cell::new(config, vec![station(0, 5.0, 0.0, 8.0)], 1);
    let mut failed = 0;
    for ms in 0..4000 {
        let now = Instant::from_millis(ms);
        for (_, output) in drain(&mut cell, now) {
            failed += u64::from(matches!(output, Output::Drop(_, DropReason::RadioLinkFailure)));
        }
        cell.handle_packet(now, CORE, packet(SERVER, address(0), stream.below(1000) as u32));
        assert_conserved(&cell, 1);
    }
    let stats = cell.downlink(0);
    assert!(stats.radio_link_failures > 3 && failed > 3, "{failed} {stats:?}");
    assert_eq!(
        stats.dropped.of(DropReason::RadioLinkFailure)
            + cell.uplink(0).dropped.of(DropReason::RadioLinkFailure),
        failed
    );
}

#[test]
fn the_discard_timer_is_exact_to_a_slot() {
    // At -30 dB nothing can be sent in either direction.
    let up = || packet(address(0), SERVER, 10);
    let down = || packet(SERVER, address(0), 10);
    type Make<'a> = &'a dyn Fn() -> Packet;
    for rlc in [RlcConfig::Um, RlcConfig::Am(AM)] {
        for (port, make) in [(CORE, &down as Make), (station_port(0), &up as Make)] {
            for (arrival, slot) in [(2_500_000, 53), (3_000_000, 53), (3_000_001, 54)] {
                let config = CellConfig { rlc, discard_timer: Some(Duration::from_millis(50)), ..config() };
                let mut cell = Cell::new(config, vec![station(0, -30.0, -30.0, 0.0)], 1);
                cell.handle_packet(Instant::from_nanos(arrival), port, make());
                let out = drain(&mut cell, Instant::from_millis(500));
                assert!(
                    matches!(out[..], [(at, Output::Drop(_, DropReason::PdcpDiscard))] if at == start(Slot(slot))),
                    "{arrival}: {out:?}"
                );
                assert_conserved(&cell, arrival);
            }
        }
    }
}

#[test]
fn a_packet_sent_in_part_is_not_discarded() {
    let config = CellConfig { discard_timer: Some(Duration::from_millis(50)), ..am_config() };
    let mut cell = Cell::new(config, vec![station(0, 25.0, 25.0, 0.0)], 1);
    for _ in 0..400 {
        cell.handle_packet(Instant::ZERO, CORE, packet(SERVER, address(0), 1400));
    }
    drain(&mut cell, Instant::from_millis(500));
    let stats = cell.downlink(0);
    // 50 blocks of 75,376 bits before the timer expires, and the packet that the last of them begins.
    let sent = 50 * 75_376 / 8 / 1445 + 1;
    assert!(stats.packets_out.abs_diff(sent) <= 1, "{} of {sent}", stats.packets_out);
    assert_eq!(stats.packets_out + stats.dropped.of(DropReason::PdcpDiscard), 400);
}
