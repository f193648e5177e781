//! The rules for live traffic, sixth part: ends that are silent or gone, and clients that know more than we.

mod test_bed;

use paceline_net::{Bytes, Duration, TcpFlags};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};
use test_bed::*;

const DAY: u64 = 24 * 3600 * 1000;

fn is_reset(packet: &paceline_net::Packet) -> bool {
    header(packet).flags.contains(TcpFlags::RST)
}

/// Row "crash": connections with exposure 0 go on unharmed; so they do when a client has been silent for long. How long a
/// server waits for it is the server's business.
#[test]
fn a_silent_client_that_is_owed_nothing_is_left_to_its_server() {
    // Nothing is acknowledged early; an answer so short that it comes with its FIN; all of it is owed.
    for (pace, fin, reset) in [(true, false, false), (false, true, false), (false, false, true)] {
        let exposure = if pace { Bytes(0) } else { AcceleratorConfig::default().exposure };
        let config = AcceleratorConfig { exposure, ..AcceleratorConfig::default() };
        let mut bed = TestBed::open_with(config, |_| ());
        if fin {
            let last = bed.server_packet(1, FIN, 900, |_| ());
            bed.server_sends(last);
        } else {
            bed.send(1, 2);
        }
        bed.wait(50);
        assert_eq!(bed.exposure() > 0, reset);
        bed.wait(300_000);
        let (down, up) = (bed.to_client.iter().any(is_reset), bed.to_server.iter().any(is_reset));
        assert_eq!((down, up, bed.accelerator.flow_count()), (reset, reset, 0));
        assert_eq!(bed.stats().flows_detached, u64::from(!reset));
        bed.clear();
        let again = bed.server_data(1, 900);
        bed.server_sends(again.clone());
        assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![again], vec![]), "end to end");
    }
}

/// Row "hostile packets": per-device caps. They are for what is in use: connections whose ends have vanished without a word
/// do not keep a device's places.
#[test]
fn connections_whose_ends_are_gone_do_not_keep_a_devices_places() {
    for places in [1, 40] {
        let config = AcceleratorConfig { max_flows_per_device: places, ..AcceleratorConfig::default() };
        let mut bed = TestBed::new(config);
        let connect = |bed: &mut TestBed| {
            bed.key.dst_port += 1;
            bed.client_next = 1;
            bed.handshake();
            let end = bed.send(1, 3);
            bed.wait(20);
            bed.ack(end);
            bed.accelerator.flow_count()
        };
        for _ in 0..places {
            connect(&mut bed);
        }
        bed.wait(30_000);
        assert_eq!((connect(&mut bed), bed.stats().bypassed(BypassReason::DeviceFull)), (places, 1));
        bed.wait(60_000);
        for _ in 0..places {
            connect(&mut bed);
        }
        let stats = bed.stats();
        assert_eq!((stats.bypassed(BypassReason::DeviceFull), stats.flows), (1, 2 * places as u64));
        assert_eq!((stats.flows_detached, stats.flows_reset), (places as u64, 0));
        assert_eq!(bed.accelerator.flow_count(), places);
        // Others have places of their own, and are not made to give theirs.
        bed.wait(90_000);
        bed.key.dst = [198, 18, 0, 2].into();
        assert_eq!(connect(&mut bed), places + 1);
    }
}

/// The server's next segments went past us (fragments, IP options, another path), and the client has them with all that it
/// got from us: it says so again and again, whatever it is asked.
#[test]
fn a_client_that_has_what_never_came_here_goes_on_end_to_end() {
    for (sack, timestamps, window) in
        [(true, true, WINDOW), (false, true, WINDOW), (true, false, WINDOW), (true, true, 0)]
    {
        let mut bed = TestBed::open_with(AcceleratorConfig::default(), |bed| {
            (bed.sack, bed.timestamps) = (sack, timestamps);
        });
        let mut off = bed.send(1, 4);
        bed.wait(20);
        if window == 0 {
            // What is held behind a closed window went past as well.
            bed.window = 0;
            bed.ack(off);
            bed.wait(100);
            off = bed.send(off, 1);
        }
        let theirs = off + 3000;
        let mut heard = 0;
        for _ in 0..100 {
            bed.clear();
            bed.wait(100);
            if bed.to_client.is_empty() {
                continue;
            }
            // It answers what it gets.
            bed.clear();
            let answer = bed.client_packet(bed.client_next, Some(theirs), ACK, 0, |_| ());
            bed.client_sends(answer.clone());
            heard += 1;
            if bed.accelerator.flow_count() == 0 {
                assert_eq!(bed.to_server, [answer], "the server hears it");
                break;
            }
        }
        assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 0), "after {heard} answers");
        assert_eq!((bed.stats().bypassed(BypassReason::Unseen), bed.exposure()), (1, 0));
        assert!(heard >= 2, "one alone is not believed");
    }
}

/// Row "blind injection (RFC 5961)": acknowledgments of what never came here release nothing that the client lacks, how many of
/// them there are, as long as the client itself says otherwise.
#[test]
fn injected_acknowledgments_of_what_never_came_here_release_nothing() {
    // Nobody was asked: it does not matter how often they come.
    let mut bed = TestBed::open();
    let end = bed.send(1, 4);
    bed.wait(20);
    (0..100).for_each(|_| bed.ack(end + 1000));
    assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    // All of it is lost again and again; the client answers what it gets with what it lacks.
    for _ in 0..30 {
        bed.clear();
        bed.wait(100);
        if !bed.data().is_empty() {
            bed.ack(end + 1000);
            bed.ack(1);
            bed.ack(end + 1000);
        }
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    }
    // Numbers that no server can have come to are not believed however often they come.
    for _ in 0..30 {
        bed.clear();
        bed.wait(100);
        bed.ack(end + 900_000_000);
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    }
    // Nor those of what is held here and was not sent.
    let mut bed = TestBed::open_with(AcceleratorConfig::default(), |bed| bed.window = 250);
    bed.send(1, 30);
    bed.wait(20);
    let sent = bed.data().iter().map(|(off, len)| off + u64::from(*len)).max().unwrap();
    assert!(sent < 20_000, "{sent}");
    for _ in 0..30 {
        bed.wait(100);
        bed.ack(sent + 1000);
        bed.ack(1);
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (30_000, 1));
    }
}

/// The same where the server sent it again, through us this time: what the client has of it holds nothing up.
#[test]
fn what_a_client_has_of_what_is_held_here_does_not_stop_the_rest() {
    let mut bed = TestBed::open();
    let off = bed.send(1, 4);
    bed.wait(20);
    // Ten segments go around us, and the client falls silent; they come again here with more behind them.
    let mut have = off + 10_000;
    bed.wait(700);
    let end = bed.send(off, 30);
    bed.clear();
    let since = bed.now;
    while have < end {
        assert!(bed.now.since(since) < Duration::from_secs(6), "at {have} of {end}");
        bed.wait(50);
        let sent = bed.data();
        bed.clear();
        for (off, len) in sent {
            have = if off <= have { have.max(off + u64::from(len)) } else { have };
            bed.ack(have);
        }
    }
    bed.ack(end);
    assert_eq!((bed.exposure(), bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 1, 0));
}

/// RFC 7323, sections 4.3 and 5.5: what a server says without data renews its timestamp as well, or the timestamps would come
/// round to what looks old.
#[test]
fn a_server_that_only_acknowledges_for_a_month_is_believed() {
    let mut bed = TestBed::open();
    let off = bed.send(1, 2);
    bed.wait(20);
    bed.ack(off);
    for day in 0..30 {
        bed.wait(DAY);
        bed.clear();
        let data = bed.client_packet(bed.client_next, Some(off), ACK, 10, |_| ());
        bed.client_sends(data);
        bed.client_next += 10;
        let ack = bed.server_packet(off, ACK, 0, |_| ());
        bed.server_sends(ack);
        bed.echo[0] = bed.clock;
        assert_eq!((bed.to_client.len(), bed.to_server.len()), (1, 1), "day {day}");
    }
    bed.clear();
    let end = bed.send(off, 1);
    bed.wait(10);
    assert_eq!((bed.data(), bed.acked(), bed.stats().invalid), (vec![(off, SEGMENT)], Some(end), 0));
    let old = bed.server_packet(end, ACK, SEGMENT, |tcp| {
        tcp.options.timestamps.as_mut().unwrap().val = bed.clock.wrapping_sub(1000);
    });
    bed.server_sends(old);
    assert_eq!(bed.stats().invalid, 1, "what is old is refused as ever");
}

/// RFC 7323, section 5.5: after 24 days without a word no timestamp is old, of either end; and after half an hour none where
/// clocks tick every microsecond (Linux: `ip route ... features tcp_usec_ts`).
#[test]
fn ends_that_were_silent_for_long_are_believed() {
    const MINUTE: u64 = 60 * 1000;
    let days = [24, 26, 40].map(|days| (days * DAY + DAY * 9 / 10, 1));
    let minutes = [20, 30, 36, 50, 71, 72, 107, 108, 600].map(|minutes| (minutes * MINUTE, 1000));
    let silences = days.into_iter().chain(minutes);
    for ((silence, ticks), first) in silences.flat_map(|s| [(s, Side::Server), (s, Side::Mobile)]) {
        let mut bed = TestBed::open();
        let off = bed.send(1, 2);
        bed.wait(20);
        bed.ack(off);
        bed.wait(silence);
        bed.clock = bed.clock.wrapping_add((silence * (ticks - 1)) as u32);
        bed.clear();
        bed.echo = [bed.echo[0], bed.clock];
        if first == Side::Mobile {
            let request = bed.client_packet(bed.client_next, Some(off), ACK, 10, |_| ());
            bed.client_sends(request);
            bed.client_next += 10;
        }
        let end = bed.send(off, 3);
        bed.echo = [bed.clock; 2];
        bed.wait(20);
        bed.ack(end);
        bed.wait(20);
        assert_eq!(
            (bed.data().len(), bed.acked(), bed.exposure()),
            (3, Some(end), 0),
            "{first:?}, {silence}"
        );
        // What either was told is as new as what it says, if what was known says nothing.
        let recent = |packets: &[paceline_net::Packet]| {
            let of = |packet| header(packet).options.timestamps.unwrap().val;
            packets.iter().map(of).all(|val| bed.clock.wrapping_sub(val) < 1000)
        };
        assert!(
            silence < 2_048_000 || recent(&bed.to_client) && recent(&bed.to_server),
            "{first:?}, {silence}"
        );
        assert_eq!((bed.stats().invalid, bed.stats().flows_reset), (0, 0));
    }
}
