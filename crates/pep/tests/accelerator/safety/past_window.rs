//! The window of a client: when data is sent past it, and when no more.

use super::super::test_bed::*;
use paceline_net::{Duration, Packet, TcpFlags};
use paceline_pep::AcceleratorConfig;

/// A reset of a host that has no such connection: without the ACK flag.
const BARE_RST: TcpFlags = TcpFlags::RST;

/// A client that reads at once. Its server always has data ready.
struct Reader {
    bed: TestBed,
    /// End of the data that the client has, and of the server's data.
    una: u64,
    end: u64,
    /// End of the data that was sent to the client.
    sent: u64,
    /// Right edge of the window that the client has advertised.
    edge: u64,
}

/// All that the server has is stored, however long the client takes for it.
fn patient() -> AcceleratorConfig {
    AcceleratorConfig { most_stored: Some(Duration::from_secs(1)), ..AcceleratorConfig::default() }
}

impl Reader {
    fn open(bed: TestBed, window: u64) -> Self {
        let mut reader = Self { bed, una: 1, end: 1, sent: 1, edge: 1 };
        // Another connection shows the rate of the device.
        reader.connect(900_000);
        (0..20).for_each(|_| drop(reader.round(900_000)));
        let end = reader.end;
        while reader.una < end {
            reader.flight_of(0);
            reader.acks(reader.sent, 900_000);
        }
        reader.reconnect(window);
        reader
    }
    fn connect(&mut self, window: u64) {
        self.bed.window = (window >> self.bed.shift) as u16;
        self.bed.client_next = 1;
        self.bed.handshake();
        self.bed.clear();
        (self.una, self.end, self.sent, self.edge) = (1, 1, 1, 1 + window);
    }
    /// Another connection of the same device.
    fn reconnect(&mut self, window: u64) {
        self.bed.key.dst_port += 1;
        self.connect(window);
    }
    /// The data sent in a round trip; returns the segments that end past the window.
    fn flight(&mut self) -> Vec<(u64, u32)> {
        self.flight_of((self.una + 600_000).saturating_sub(self.end) / u64::from(SEGMENT))
    }
    fn flight_of(&mut self, missing: u64) -> Vec<(u64, u32)> {
        self.end = self.bed.send(self.end, missing);
        self.bed.wait(20);
        let mut data = self.bed.data();
        self.sent = data.last().map_or(self.sent, |(off, len)| off + u64::from(*len));
        self.bed.clear();
        data.retain(|(off, len)| off + u64::from(*len) > self.edge);
        data
    }
    /// The client has everything up to `una` and advertises `window`, in two ACKs.
    fn acks(&mut self, una: u64, window: u64) {
        self.bed.window = (window >> self.bed.shift) as u16;
        self.bed.ack(self.una + (una - self.una) / 2);
        self.bed.ack(una);
        (self.una, self.edge) = (una, self.edge.max(una + window));
    }
    /// A round trip at whose end the client has everything and advertises `window`.
    fn round(&mut self, window: u64) -> Vec<(u64, u32)> {
        let past = self.flight();
        self.acks(self.sent, window);
        past
    }
    /// Windows that double, until data is past the edge; returns these segments. Their ACK is due.
    fn until_past_window(&mut self) -> Vec<(u64, u32)> {
        let mut window = 16_000;
        for _ in 0..7 {
            window *= 2;
            self.round(window);
            let past = self.flight();
            if past.len() > 1 {
                return past;
            }
            self.acks(self.sent, window);
        }
        panic!("nothing was sent past the window");
    }
}

/// A client whose window does not grow gets nothing past it, however small it is.
// keeps: accelerator.window
#[test]
fn windows_that_do_not_grow_are_kept() {
    for window in [8_000, 30_000, 128_000] {
        let mut reader = Reader::open(TestBed::new(patient()), window);
        for n in 0..40 {
            // Unread data makes the window smaller for a while.
            let past = reader.round(if n % 5 == 4 { window - 2_000 } else { window });
            assert_eq!(past, [], "window {window}, round trip {n}");
        }
        assert_eq!(reader.bed.stats().retransmissions, 0);
    }
}

/// The first data past the window is one segment that has the edge in it. More follows when it is delivered,
/// at most a window more.
// keeps: accelerator.window
#[test]
fn a_device_is_probed_with_one_segment_first() {
    let mut reader = Reader::open(TestBed::new(patient()), 16_000);
    let (mut first, mut window, mut past_bytes) = (None, 16_000, 0);
    for _ in 0..6 {
        window *= 2;
        let edge = reader.edge;
        let past = reader.round(window);
        if let Some(&(off, _)) = past.first() {
            assert!(off <= edge, "segments begin in the window or where another ends");
            if first.is_none() {
                assert_eq!(past.len(), 1, "{past:?}");
            }
            first = first.or(Some(past[0]));
            past_bytes += past.last().map_or(0, |(off, len)| off + u64::from(*len) - edge);
            assert!(past_bytes <= 2 * window);
        }
    }
    assert!(first.is_some() && past_bytes > 2_000, "{past_bytes} bytes past the window");
}

/// At the first drop it ends for the device, in all connections and for good.
// keeps: accelerator.window
#[test]
fn a_drop_past_the_window_ends_it_for_the_device() {
    let mut reader = Reader::open(TestBed::new(patient()), 16_000);
    reader.until_past_window();
    // The client has dropped what was past the edge, and answers with duplicate ACKs.
    let edge = reader.edge;
    reader.acks(edge, 500_000);
    (0..4).for_each(|_| reader.bed.ack(edge));
    reader.bed.wait(20);
    assert_eq!(reader.bed.stats().overshoot_drops, 1);
    let mut window = 500_000;
    for _ in 0..5 {
        window += window / 4;
        assert_eq!(reader.round(window), []);
    }
    // A day later the device has another connection, and no other one.
    reader.acks(reader.sent, window);
    reader.bed.accelerator.abort(reader.bed.now);
    reader.bed.accelerator.resume();
    assert_eq!(reader.bed.accelerator.flow_count(), 0);
    reader.bed.wait(86_400_000);
    reader.reconnect(16_000);
    let mut window = 16_000;
    for _ in 0..7 {
        window *= 2;
        assert_eq!(reader.round(window), []);
        assert_eq!(reader.bed.accelerator.flow_count(), 1);
    }
}

fn resets(packets: &[Packet]) -> usize {
    packets.iter().filter(|packet| header(packet).flags.contains(TcpFlags::RST)).count()
}

/// A router that tracks windows answers data past the window by a reset. The client lives on, and so does the
/// connection; the device gets no more past its window.
// keeps: accelerator.client-reset
#[test]
fn a_reset_after_data_past_the_window_waits_for_a_sign_of_life() {
    let mut reader = Reader::open(TestBed::new(patient()), 16_000);
    reader.until_past_window();
    for _ in 0..8 {
        let reset = reader.bed.client_packet(reader.bed.client_next, None, BARE_RST, 0, |_| ());
        reader.bed.client_sends(reset);
    }
    assert_eq!(resets(&reader.bed.to_server), 0, "held");
    let probe = header(reader.bed.to_client.first().expect("a probe"));
    assert_eq!((reader.bed.offset(probe.seq), probe.payload_len), (reader.una - 1, 0));
    let edge = reader.edge;
    reader.bed.clear();
    reader.acks(edge, 500_000);
    reader.bed.wait(5_000);
    assert_eq!((resets(&reader.bed.to_server), reader.bed.accelerator.flow_count()), (0, 2));
    assert!(reader.bed.data().iter().any(|(off, _)| *off == edge), "sent again");
    assert!(reader.bed.data().iter().all(|(off, len)| off + u64::from(*len) <= reader.edge));
}

/// The client has reset the connection itself: its reset is forwarded when it does not answer, and at once
/// where it cannot be a router's.
// keeps: accelerator.client-reset
#[test]
fn a_reset_of_the_client_after_data_past_the_window_is_forwarded() {
    for (flags, past_window, at_once) in [(BARE_RST, true, false), (BARE_RST, false, true), (RST, true, true)]
    {
        let mut reader = Reader::open(TestBed::new(patient()), 16_000);
        if past_window {
            reader.until_past_window();
        } else {
            reader.flight();
        }
        let reset = reader.bed.client_packet(reader.bed.client_next, None, flags, 0, |_| ());
        reader.bed.client_sends(reset.clone());
        let case = (flags, past_window);
        assert_eq!(resets(&reader.bed.to_server), usize::from(at_once), "{case:?}");
        reader.bed.wait(3_000);
        assert_eq!(reader.bed.to_server.iter().filter(|packet| **packet == reset).count(), 1, "{case:?}");
        assert_eq!(reader.bed.accelerator.flow_count(), 1, "the other one");
    }
}
