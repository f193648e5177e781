//! Connections of other kinds: opened from the server's side, many and short, in super-packets.

mod bed;

use bed::*;
use paceline_net::Bytes;
use paceline_pep::accelerator::{AcceleratorConfig, Side};

/// As FTP in active mode does.
#[test]
fn connections_opened_by_the_server_are_accelerated() {
    let mut bed = Bed::new(AcceleratorConfig::default());
    let options = bed.syn_options();
    let mut syn = bed.server_packet(0, SYN, 0, |tcp| tcp.options = options);
    bed.server_gives(syn.clone());
    bed.wait(10);
    let answer = bed.client_packet(0, Some(1), SYN.with(ACK), 0, |tcp| tcp.options = options);
    bed.client_gives(answer.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![syn], vec![answer]));
    bed.echo = [bed.clock; 2];
    syn = bed.server_packet(1, ACK, 0, |_| ());
    bed.server_gives(syn);
    let end = bed.send(1, 5);
    bed.wait(20);
    assert_eq!((bed.acked(), bed.data().len()), (Some(end), 5));
}

#[test]
fn thousands_of_short_connections_leave_nothing_behind() {
    let config = AcceleratorConfig { max_openings: 64, max_flows: 8, ..AcceleratorConfig::default() };
    let mut bed = Bed::new(config);
    for n in 0..3_000u16 {
        bed.key.dst_port = 2_000 + n;
        (bed.client_next, bed.server_isn, bed.client_isn) = (1, u32::from(n) << 20, u32::from(n) << 18);
        bed.handshake();
        let request = bed.client_packet(1, Some(1), ACK, 200, |_| ());
        bed.client_gives(request);
        bed.client_next = 201;
        let end = bed.send(1, 2);
        let last = bed.server_packet(end, FIN, 300, |_| ());
        bed.server_gives(last);
        bed.wait(15);
        bed.ack(end + 301);
        let fin = bed.client_packet(201, Some(end + 301), FIN, 0, |_| ());
        bed.client_gives(fin);
        bed.client_next = 202;
        let ack = bed.server_packet(end + 301, ACK, 0, |_| ());
        bed.server_gives(ack);
        bed.clear();
    }
    assert_eq!((bed.accelerator.flow_count(), bed.accelerator.held(), bed.accelerator.exposure()), (0, 0, 0));
    assert_eq!((bed.stats().flows, bed.stats().flows_ended), (3_000, 3_000));
    assert!(bed.accelerator.opening_count() <= 64);
    bed.wait(10_000);
    assert!(bed.to_client.is_empty() && bed.to_server.is_empty());
}

#[test]
fn super_packets_come_in_and_go_out_whole() {
    let config = AcceleratorConfig { super_packet: Bytes(65_000), ..AcceleratorConfig::default() };
    let mut bed = Bed::open_with(config, |_| ());
    bed.clear();
    // A round trip of 10 ms at a window of 14,600 bytes is paced at a burst of one segment a tick; a fast path
    // opens it.
    let mut off = 1;
    let mut largest = (0, 0);
    for _ in 0..60 {
        let packet = bed.server_data(off, 60_000);
        bed.accelerator.input(bed.now, Side::Server, packet);
        off += 60_000;
        for _ in 0..10 {
            let now = bed.now;
            if bed.accelerator.next_timer().is_some_and(|at| at <= now) {
                bed.accelerator.handle_timeout(now);
            }
            while let Some(sent) = bed.accelerator.poll_transmit(now) {
                let len = sent.packet.tcp_header().unwrap().payload_len;
                if sent.side == Side::Mobile && len > 0 {
                    assert_eq!(sent.segment > 0, len > SEGMENT, "a super-packet says how to cut it");
                    largest = largest.max((len, sent.segment));
                    bed.to_client.push(sent.packet);
                }
            }
            bed.wait(1);
        }
        let have = bed.data().iter().map(|(off, len)| off + u64::from(*len)).max().unwrap_or(1);
        bed.clear();
        bed.ack(have);
    }
    assert!(largest.0 >= 4 * SEGMENT && largest.1 == SEGMENT, "{largest:?}");
    assert_eq!(bed.stats().conflicts, 0);
}
