//! The observer: all connections whose SYN crossed the interface towards the devices, and their transfers.
//!
//! Only connections that were opened after the beginning are measured: older ones have the treatment of
//! before. The number of connections is bounded; with a full table, further ones are not measured, in
//! either arm.

use super::assignment::device_of;
use super::connection::{Connection, Segment};
use super::sums::Measured;
use paceline_net::{Duration, FlowKey, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Connections that are observed at most. Chosen: 20 MB; those of a large site in the same minutes.
const MAX_CONNECTIONS: usize = 65_536;
/// A connection without data for this long is forgotten. Chosen: bounds the table; its next data are not
/// measured.
const FORGET_AFTER: Duration = Duration::from_secs(300);

/// Observes connections.
#[derive(Default)]
pub struct Observer {
    /// By the key from server to device.
    connections: BTreeMap<FlowKey, Connection>,
    ended: VecDeque<(FlowKey, Measured)>,
    left_out: u64,
}

impl Observer {
    /// Handles a segment of the connection `key`, from server to device.
    pub fn on_segment(&mut self, now: Instant, key: FlowKey, segment: &Segment) {
        if segment.from_device && segment.syn {
            self.on_syn(now, key, segment);
        } else if segment.rst {
            let closed = self.connections.remove(&key).and_then(|mut connection| connection.close());
            self.ended.extend(closed.map(|transfer| (key, transfer)));
        } else if let Some(connection) = self.connections.get_mut(&key) {
            self.ended.extend(connection.on_segment(now, segment).map(|transfer| (key, transfer)));
        }
    }
    fn on_syn(&mut self, now: Instant, key: FlowKey, segment: &Segment) {
        if self.connections.get(&key).is_some_and(|known| known.is_opened_by(segment)) {
            return; // sent again
        }
        let closed = self.connections.remove(&key).and_then(|mut old| old.close());
        self.ended.extend(closed.map(|transfer| (key, transfer)));
        if self.connections.len() >= MAX_CONNECTIONS {
            self.left_out += 1;
            return;
        }
        self.connections.insert(key, Connection::new(now, device_of(key.dst), segment));
    }
    /// Ends transfers that are over, and forgets idle connections. To be called about once a second.
    pub fn sweep(&mut self, now: Instant) {
        let Self { connections, ended, .. } = self;
        connections.retain(|key, connection| {
            ended.extend(connection.check(now).map(|transfer| (*key, transfer)));
            !connection.is_idle(now, FORGET_AFTER)
        });
    }
    /// The next transfer that has ended, with the key of its connection from server to device.
    pub fn poll(&mut self) -> Option<(FlowKey, Measured)> {
        self.ended.pop_front()
    }
    /// Connections that were not observed because there were too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation, told in milliseconds.
    struct Talk {
        observer: Observer,
        key: FlowKey,
    }

    impl Talk {
        fn new() -> Self {
            let key = FlowKey {
                src: [192, 0, 2, 1].into(),
                dst: [10, 0, 0, 1].into(),
                src_port: 443,
                dst_port: 5000,
            };
            let mut talk = Self { observer: Observer::default(), key };
            talk.send(0, true, (99, None, 0), "S");
            talk.send(10, false, (999, Some(100), 0), "S");
            talk.send(50, true, (100, Some(1000), 0), "");
            talk
        }
        fn send(&mut self, ms: u64, from_device: bool, what: (u32, Option<u32>, u32), flags: &str) {
            let (seq, ack, payload) = what;
            let has = |flag| flags.contains(flag);
            let segment =
                Segment { from_device, seq, ack, payload, syn: has('S'), fin: has('F'), rst: has('R') };
            self.observer.on_segment(at(ms), self.key, &segment);
        }
        fn data(&mut self, ms: u64, seq: u32, payload: u32) {
            self.send(ms, false, (seq, Some(100), payload), "");
        }
        fn ack(&mut self, ms: u64, ack: u32) {
            self.send(ms, true, (100, Some(ack), 0), "");
        }
        fn ended(&mut self) -> Vec<Measured> {
            std::iter::from_fn(|| self.observer.poll()).map(|(_, transfer)| transfer).collect()
        }
        fn end(&mut self, ms: u64) -> Measured {
            self.observer.sweep(at(ms));
            let ended = self.ended();
            assert_eq!(ended.len(), 1, "{ended:?}");
            ended[0]
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_transfer_lasts_from_the_request_to_the_acknowledgment_of_the_last_byte() {
        let mut talk = Talk::new();
        talk.send(60, true, (100, Some(1000), 80), ""); // the request
        talk.data(100, 1000, 1000);
        talk.data(101, 2000, 1000);
        talk.ack(140, 3000);
        talk.data(150, 3000, 500);
        talk.send(151, false, (3500, Some(180), 0), "F");
        talk.ack(200, 3501);
        assert_eq!(talk.ended(), []);
        let measured = talk.end(1200);
        let wanted = Measured {
            device: [10, 0, 0, 1].into(),
            bytes: 2500,
            time: ms(140),
            rtt: Some(ms(45)), // 40 and 50
            sent: 2500,
            repeated: 0,
            finished: true,
            opened_at: at(0),
            began_at: at(60),
        };
        assert_eq!(measured, wanted);
    }

    #[test]
    fn a_server_that_speaks_first_is_timed_from_the_syn() {
        let mut talk = Talk::new();
        talk.data(60, 1000, 10_000);
        talk.ack(160, 11_000);
        assert_eq!((talk.end(2000).time, talk.observer.left_out()), (ms(160), 0));
    }

    #[test]
    fn requests_within_a_pause_are_one_transfer_and_later_ones_another() {
        let mut talk = Talk::new();
        talk.send(60, true, (100, Some(1000), 10), "");
        talk.data(100, 1000, 100);
        talk.ack(150, 1100);
        talk.send(400, true, (110, Some(1100), 10), "");
        talk.data(450, 1100, 100);
        talk.ack(500, 1200);
        // After a pause of 2 s; the first transfer ends with it.
        talk.send(2500, true, (120, Some(1200), 10), "");
        talk.data(2600, 1200, 300);
        let first = talk.ended();
        assert_eq!(first.iter().map(|end| (end.bytes, end.time)).collect::<Vec<_>>(), [(200, ms(440))]);
        talk.ack(2700, 1500);
        let second = talk.end(4000);
        assert_eq!((second.bytes, second.time), (300, ms(200)));
    }

    #[test]
    fn a_request_that_the_server_never_answered_is_not_part_of_the_next() {
        let mut talk = Talk::new();
        talk.send(60, true, (100, Some(1000), 10), "");
        talk.send(9000, true, (110, Some(1000), 10), "");
        talk.send(9500, true, (120, Some(1000), 10), "");
        talk.data(9600, 1000, 100);
        talk.ack(9700, 1100);
        assert_eq!(talk.end(20_000).time, ms(700));
    }

    #[test]
    fn data_sent_twice_are_repeated_and_data_that_fill_a_hole_are_not() {
        let mut talk = Talk::new();
        talk.data(60, 1000, 1000);
        talk.data(61, 3000, 1000); // a hole
        talk.data(62, 2000, 1000); // filled: out of order
        talk.data(300, 1000, 1000); // twice
        talk.data(301, 3500, 1000); // half of it twice
        talk.ack(400, 4500);
        let measured = talk.end(2000);
        assert_eq!((measured.sent, measured.repeated, measured.bytes), (5000, 1500, 3500));
        // The only timed segment was sent twice.
        assert_eq!(measured.rtt, None);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut talk = Talk::new();
        talk.send(0, true, (7, None, 0), "S");
        talk.send(10, false, (u32::MAX - 500, Some(8), 0), "S");
        talk.data(20, u32::MAX - 499, 1000);
        talk.ack(70, 500);
        let measured = talk.end(2000);
        assert_eq!((measured.bytes, measured.repeated, measured.rtt), (1000, 0, Some(ms(50))));
    }

    #[test]
    fn resets_and_stalls_leave_transfers_unfinished() {
        let mut talk = Talk::new();
        talk.data(60, 1000, 1000);
        talk.send(100, true, (100, Some(1000), 0), "R");
        let ended = talk.ended();
        assert_eq!(ended.iter().map(|end| (end.finished, end.bytes)).collect::<Vec<_>>(), [(false, 0)]);
        // A reset after the last acknowledgment is a usual end.
        let mut talk = Talk::new();
        talk.data(60, 1000, 1000);
        talk.ack(100, 2000);
        talk.send(100, true, (100, Some(2000), 0), "R");
        assert!(talk.ended()[0].finished);
        let mut talk = Talk::new();
        talk.data(60, 1000, 1000);
        assert!(!talk.end(61_000).finished);
    }

    #[test]
    fn uploads_and_connections_from_before_are_not_measured() {
        let mut talk = Talk::new();
        talk.send(60, true, (100, Some(1000), 100_000), "");
        talk.data(100, 1000, 200);
        talk.ack(150, 1200);
        talk.key.dst_port = 5001;
        talk.data(200, 1000, 1000);
        talk.ack(300, 2000);
        talk.observer.sweep(at(5000));
        assert_eq!(talk.ended(), []);
    }
}
