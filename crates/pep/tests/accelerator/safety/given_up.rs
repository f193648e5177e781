//! Clients that are given up after a long silence: the connection is left to its ends, or both of them hear
//! of its end.

use super::super::test_bed::*;
use paceline_net::{Packet, SeqNumber, TcpFlags};
use paceline_pep::AcceleratorConfig;

/// Linux's limit with 15 `tcp_retries2`, and the longest interval of timeouts here, in milliseconds.
const LIMIT_MS: u64 = 924_600;
const LAST_TIMEOUT_MS: u64 = 70_000;

fn is_reset(packet: &Packet) -> bool {
    header(packet).flags.contains(TcpFlags::RST)
}
/// A connection with exposed bytes, whose client is silent from then on. `all`: everything was sent.
fn silent(all: bool) -> TestBed {
    let mut bed = TestBed::open_cleared(|bed| {
        if !all {
            (bed.shift, bed.window) = (0, 8_000);
        }
    });
    bed.send(1, if all { 8 } else { 40 });
    bed.wait(100);
    assert!(bed.exposure() > 0);
    bed
}

/// The client's acknowledgments may take another path: what was sent has arrived as far as is known.
// keeps: accelerator.keepalive
#[test]
fn a_silent_client_that_was_sent_everything_is_left() {
    let mut bed = silent(true);
    bed.wait(LIMIT_MS - 1_000);
    assert_eq!(bed.accelerator.flow_count(), 1, "Linux's limit, not a shorter one");
    bed.wait(LAST_TIMEOUT_MS);
    assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 0));
    assert!(!bed.to_client.iter().chain(&bed.to_server).any(is_reset));
    bed.clear();
    let more = bed.server_data(8_001, SEGMENT);
    bed.server_sends(more.clone());
    assert_eq!(bed.taken_by_client(), [more], "end to end");
}

/// An outage of the uplink that is shorter than the limit ends nothing.
#[test]
fn a_client_that_is_heard_again_within_the_limit_goes_on() {
    let mut bed = silent(false);
    bed.wait(600_000);
    bed.clear();
    bed.ack(8_001);
    bed.wait(100);
    assert_eq!((bed.accelerator.flow_count(), bed.data().first().map(|data| data.0)), (1, Some(8_001)));
}

/// RFC 5961, section 3.2: a reset counts with the number that its receiver expects. The client may have
/// acknowledged nothing, or everything, on a path that does not come here; its answer to the probe has the
/// right number in any case.
// keeps: accelerator.crash
#[test]
fn both_ends_hear_of_the_end_whatever_the_client_has() {
    let mut bed = silent(false);
    bed.clear();
    bed.wait(LIMIT_MS + LAST_TIMEOUT_MS);
    assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 1));
    let resets: Vec<u64> = bed
        .to_client
        .iter()
        .filter(|packet| is_reset(packet))
        .map(|own| bed.offset(header(own).seq))
        .collect();
    assert_eq!(resets, [1, 8_001], "the client has nothing, or everything that was sent");
    let probe = header(bed.to_client.last().expect("a probe"));
    assert_eq!((bed.offset(probe.seq), probe.flags, probe.payload_len), (0, ACK, 0));
    let server: Vec<_> = bed.to_server.iter().rev().take(2).map(header).collect();
    assert_eq!((server[1].seq, server[1].flags), (SeqNumber(bed.client_isn) + 1, RST));
    assert_eq!((server[0].seq, server[0].flags), (SeqNumber(bed.client_isn), ACK));
    // The answer goes to the server, which has no connection any more.
    bed.clear();
    let answer = bed.client_packet(bed.client_next, Some(5_001), ACK, 0, |_| ());
    bed.client_sends(answer.clone());
    assert_eq!(bed.taken_by_server(), [answer]);
}

/// The limit is configured.
#[test]
fn the_limit_is_a_parameter() {
    let give_up = paceline_net::Duration::from_secs(30);
    let config = AcceleratorConfig { give_up, ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |bed| (bed.shift, bed.window) = (0, 8_000));
    bed.send(1, 40);
    bed.wait(29_000);
    assert_eq!(bed.stats().flows_reset, 0);
    bed.wait(40_000);
    assert_eq!(bed.stats().flows_reset, 1);
}
