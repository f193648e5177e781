//! Safety on live traffic: data of the client, and its acknowledgments.

use crate::accelerator::test_bed::*;
use paceline_net::{SeqNumber, TcpHeader};
use paceline_pep::accelerator::{AcceleratorConfig, PaperParameters, RateControl, Side};

fn echo(tcp: &TcpHeader) -> u32 {
    tcp.options.timestamps.expect("timestamps were negotiated").ecr
}

/// TSecr of the acknowledged segment. Data of the client keeps its own TSecr:
/// Linux servers take the round-trip time for their receive window from it. An ACK of newly arrived data goes
/// ahead.
// keeps: accelerator.old-ack, accelerator.timestamps
#[test]
fn data_of_the_client_keeps_its_tsecr_and_an_ack_of_new_data_goes_ahead() {
    for batch in [false, true] {
        let mut bed = TestBed::open_cleared(|_| ());
        let off = bed.send(1, 1);
        bed.wait(25);
        bed.echo[0] = bed.clock.wrapping_sub(25);
        bed.ack(off);
        bed.wait(50);
        bed.clear();
        let new_data = bed.server_data(off, SEGMENT);
        if batch {
            bed.accelerator.input(bed.now, Side::Server, new_data);
        } else {
            bed.server_sends(new_data);
        }
        let data = bed.client_packet(bed.client_next, Some(off), ACK, SEGMENT, |_| ());
        let own = echo(&header(&data));
        bed.client_sends(data);
        let up: Vec<TcpHeader> = bed.taken_by_server().iter().map(header).collect();
        assert_eq!(up.iter().map(|tcp| tcp.payload_len).collect::<Vec<_>>(), [0, SEGMENT]);
        assert!(up.iter().all(|tcp| bed.offset(tcp.ack) == off + 1000));
        assert_eq!((echo(&up[0]), echo(&up[1])), (bed.clock, own));
        assert_ne!(own, bed.clock);
        // A segment without data carries the TSecr of the new data itself.
        bed.client_next += SEGMENT;
        let fin = bed.client_packet(bed.client_next, Some(off), FIN, 0, |_| ());
        bed.client_sends(fin);
        assert_eq!(echo(&header(&bed.to_server[0])), bed.clock);
    }
}

/// A client with a closed window drops every segment past it, ACKs of its own upload included.
/// After an overshoot such ACKs must not be numbered past the window.
// keeps: accelerator.window
#[test]
fn an_upload_is_acknowledged_while_the_clients_window_is_closed() {
    for remnant in [0, 496] {
        let window = (16_000 + remnant as u16) >> 4;
        let control = RateControl::Paper(PaperParameters::default());
        let published = AcceleratorConfig { control, ..AcceleratorConfig::default() };
        let mut bed = TestBed::open_with(published, |bed| bed.window = window);
        bed.clear();
        let mut end = bed.send(1, 20);
        bed.wait(40);
        assert_eq!(bed.data().last().map(|(off, _)| *off), Some(19_001), "past the window");
        // The client accepts data up to its window; the remainder is smaller than a segment.
        bed.window = remnant as u16 >> 4;
        for _ in 0..2 {
            bed.ack(16_001);
            bed.wait(2);
        }
        for n in 0..40 {
            let data = bed.client_packet(bed.client_next, Some(16_001), ACK, SEGMENT, |_| ());
            bed.client_sends(data);
            bed.client_next += SEGMENT;
            bed.wait(100);
            bed.clear();
            // ACKs that are forwarded, and ACKs from the headers of data.
            if n % 2 == 0 {
                let ack = bed.server_packet(end, ACK, 0, |_| ());
                bed.server_sends(ack);
            } else {
                end = bed.send(end, 1);
            }
            let down: Vec<TcpHeader> = bed.taken_by_client().iter().map(header).collect();
            let accepts = |tcp: &&TcpHeader| (16_001..=16_001 + remnant).contains(&bed.offset(tcp.seq));
            let ack = SeqNumber(bed.client_isn) + bed.client_next;
            assert!(down.iter().filter(accepts).any(|tcp| tcp.ack == ack), "{remnant}, {n}: {down:?}");
            bed.wait(100);
            bed.ack(16_001);
        }
    }
}

/// ACKs in the client's name have a sequence number that the server accepts. A client that
/// probes a closed window has sent a byte past it.
// keeps: accelerator.window
#[test]
fn acks_are_not_numbered_past_the_servers_closed_window() {
    let mut bed = TestBed::open_cleared(|_| ());
    let mut off = bed.send(1, 2);
    bed.wait(20);
    bed.ack(off);
    let data = bed.client_packet(bed.client_next, Some(off), ACK, SEGMENT, |_| ());
    bed.client_sends(data);
    bed.client_next += SEGMENT;
    let full = bed.server_packet(off, ACK, 0, |tcp| tcp.window = 0);
    bed.server_sends(full.clone());
    bed.wait(500);
    let probe = bed.client_packet(bed.client_next, Some(off), ACK, 1, |_| ());
    bed.client_sends(probe);
    bed.wait(5);
    bed.server_sends(full);
    bed.clear();
    let expects = SeqNumber(bed.client_isn) + bed.client_next;
    for _ in 0..3 {
        for n in 0..2 {
            let data = bed.server_packet(off + n * 1000, ACK, SEGMENT, |tcp| tcp.window = 0);
            bed.server_sends(data);
        }
        off += 2000;
        bed.wait(30);
        bed.ack(off);
        let up: Vec<TcpHeader> = bed.taken_by_server().iter().map(header).collect();
        assert!(up.iter().all(|tcp| tcp.seq == expects), "{up:?}");
        assert_eq!(up.last().map(|tcp| bed.offset(tcp.ack)), Some(off));
    }
    // The window opens: the server has accepted the byte.
    bed.client_next += 1;
    let open = bed.server_packet(off, ACK, 0, |_| ());
    bed.server_sends(open);
    bed.send(off, 1);
    assert_eq!(header(bed.to_server.last().unwrap()).seq, expects + 1u32);
}
