use super::*;
use std::collections::VecDeque;

/// Bytes of a packet. Chosen: with rates in bytes per millisecond, a packet takes whole milliseconds.
const PACKET: u64 = 1000;

/// A path that delivers `rate` bytes per millisecond after `delay` milliseconds, and a sender that fills the
/// window.
struct ControlledPath {
    control: Adaptive,
    now_ms: u64,
    /// When each packet in flight was sent, in ms.
    sent_ms: VecDeque<u64>,
    in_flight: u64,
    /// Bytes that the link may deliver at once.
    credit: u64,
}

impl ControlledPath {
    fn new() -> Self {
        let control = Adaptive::new(AdaptiveParameters::default());
        Self { control, now_ms: 1, sent_ms: VecDeque::new(), in_flight: 0, credit: 0 }
    }
    /// `app`: bytes in flight that the application fills at most.
    fn run(&mut self, ms: u64, rate: u64, delay: u64, app: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            let now = Instant::from_millis(self.now_ms);
            self.credit = (self.credit + rate).min(rate.max(PACKET) * 2);
            while let Some(&sent_ms) = self.sent_ms.front().filter(|sent_ms| **sent_ms + delay <= self.now_ms)
                && self.credit >= PACKET
            {
                self.sent_ms.pop_front();
                self.credit -= PACKET;
                self.in_flight -= PACKET;
                let sample = AckSample {
                    delivered: PACKET,
                    rtt: Some(Duration::from_millis(self.now_ms - sent_ms)),
                    sent_at: Some(Instant::from_millis(sent_ms)),
                    in_flight: self.in_flight,
                    app_limited: app < self.control.window(),
                    ..AckSample::default()
                };
                self.control.on_ack(now, &sample);
            }
            let paced = self.control.rate().0 / 8000 + PACKET;
            let mut sent = 0;
            while self.in_flight + PACKET <= self.control.window().min(app) && sent < paced {
                self.control.on_send(now, self.in_flight == 0);
                self.sent_ms.push_back(self.now_ms);
                self.in_flight += PACKET;
                sent += PACKET;
            }
        }
    }
    fn queue_ms(&self, rate: u64, delay: u64) -> u64 {
        (self.in_flight / rate).saturating_sub(delay)
    }
    fn bytes_per_ms(&self) -> f64 {
        self.control.bandwidth() / 8000.0
    }
}

#[test]
fn the_estimate_is_the_paths_rate_and_the_queue_is_short() {
    let mut path = ControlledPath::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    assert!((1_900.0..2_200.0).contains(&path.bytes_per_ms()), "{} bytes/ms", path.bytes_per_ms());
    assert!(path.queue_ms(2_000, 40) < 60, "{} ms", path.queue_ms(2_000, 40));
    path.run(30_000, 2_000, 40, u64::MAX);
    assert!(path.queue_ms(2_000, 40) < 60, "the minimum RTT rises: {} ms", path.queue_ms(2_000, 40));
}

#[test]
fn an_application_limited_sender_does_not_lower_the_estimate() {
    let mut path = ControlledPath::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    path.run(5_000, 2_000, 40, 5_000);
    assert!(path.bytes_per_ms() > 1_900.0);
}

#[test]
fn a_longer_path_is_told_from_a_queue() {
    let mut path = ControlledPath::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    path.run(10_000, 2_000, 160, u64::MAX);
    assert!(path.bytes_per_ms() > 1_900.0, "{}", path.bytes_per_ms());
    assert!(path.control.min_rtt() >= Duration::from_millis(155), "{:?}", path.control.min_rtt());
}

/// On a radio that fades, the first RTT after a silence is short because the path is empty.
#[test]
fn a_silence_does_not_shrink_the_window() {
    let mut path = ControlledPath::new();
    path.run(5_000, 2_000, 80, u64::MAX);
    while path.control.load_delay.window_factor() > 1.0 {
        path.run(10, 2_000, 80, u64::MAX); // until the bandwidth probe ends
    }
    let (before, path_now) = (path.control.window(), path.now_ms);
    let mut acked = |at: u64, rtt: u64| {
        let sample = AckSample {
            delivered: PACKET,
            rtt: Some(Duration::from_millis(rtt)),
            sent_at: Some(Instant::from_millis(at - rtt)),
            in_flight: path.in_flight,
            app_limited: true,
            fading: true,
            ..AckSample::default()
        };
        path.control.on_ack(Instant::from_millis(at), &sample);
    };
    acked(path_now + 200, 30);
    assert_eq!(path.control.min_rtt(), Duration::from_millis(80), "the path was without load");
    let after = path.control.window();
    assert!(after as f64 > 0.9 * before as f64, "{after} of {before} bytes");
}

/// ACKs each `every` ms with an RTT of 40 ms, after each of which half of the bytes sent are lost.
fn lose_half(control: &mut Adaptive, from_ms: u64, until_ms: u64, every: usize) {
    for at in (from_ms..until_ms).step_by(every) {
        let sample = AckSample {
            delivered: 10_000,
            rtt: Some(Duration::from_millis(40)),
            sent_at: Some(Instant::from_millis(at - 40)),
            lost: 10_000,
            in_flight: 40_000,
            ..AckSample::default()
        };
        control.on_ack(Instant::from_millis(at), &sample);
    }
}

#[test]
fn on_a_path_that_drops_bursts_packets_are_paced_evenly() {
    let mut control = Adaptive::new(AdaptiveParameters::default());
    lose_half(&mut control, 1_000, 1_400, 5);
    let pace = control.rate().0 as f64 / control.bandwidth();
    assert!(control.window_gain > 1.0 && pace < 1.3, "{pace} times the bandwidth");
}

#[test]
fn losses_after_silences_do_not_make_pacing_even() {
    let mut control = Adaptive::new(AdaptiveParameters::default());
    lose_half(&mut control, 1_000, 3_000, 50);
    assert_eq!(control.even_pacing_rounds, 0, "each gap of 50 ms is a silence");
}

/// The estimate is that of an earlier, faster path. The sender is application-limited and sees no queue.
#[test]
fn an_estimate_whose_packets_are_lost_falls() {
    let mut path = ControlledPath::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    for at in (5_100..7_000).step_by(5) {
        let sample = AckSample {
            delivered: 2_000,
            rtt: Some(Duration::from_millis(40)),
            sent_at: Some(Instant::from_millis(at - 40)),
            lost: 8_000,
            in_flight: 40_000,
            app_limited: true,
            ..AckSample::default()
        };
        path.control.on_ack(Instant::from_millis(at), &sample);
    }
    assert!(path.bytes_per_ms() < 450.0, "{} bytes/ms", path.bytes_per_ms());
}

/// The radio's rate changes each 250 ms, which is within a round trip of the long path.
#[test]
fn on_a_long_path_the_target_delay_may_exceed_its_maximum() {
    let largest_target = |delay| {
        let mut path = ControlledPath::new();
        let mut largest = 0.0_f64;
        for _ in 0..150 {
            path.run(250, 8_000, delay, u64::MAX);
            path.run(250, 300, delay, u64::MAX);
            largest = largest.max(path.control.target_delay.seconds());
        }
        largest
    };
    let (short, long) = (largest_target(40), largest_target(200));
    assert!(short <= 0.1 && (0.12..=0.3).contains(&long), "{short} s and {long} s");
}

/// Turns of 40 ms at three times the mean rate, and pauses of 80 ms.
#[test]
fn the_rate_of_a_radio_that_serves_in_turns_is_the_mean_over_turns_and_pauses() {
    let mut path = ControlledPath::new();
    for _ in 0..100 {
        path.run(40, 6_000, 40, u64::MAX);
        path.run(80, 0, 40, u64::MAX);
    }
    let rate = path.bytes_per_ms();
    assert!((1_800.0..3_600.0).contains(&rate), "{rate} bytes/ms of 2000 on average");
    let interval = path.control.target_delay.min_rate_interval().as_secs_f64();
    let target = path.control.target_delay.seconds();
    assert!((0.09..0.135).contains(&interval), "{interval} s are one and a half pauses");
    assert!(target >= interval / 6.0, "{target} s");
    path.run(5_000, 2_000, 40, u64::MAX);
    let interval = path.control.target_delay.min_rate_interval();
    assert!(interval < Duration::from_millis(1), "pauses are forgotten: {interval:?}");
}

#[test]
fn idle_time_is_no_pause() {
    let mut path = ControlledPath::new();
    path.run(2_000, 2_000, 40, u64::MAX);
    path.run(200, 2_000, 40, 0);
    path.now_ms += 1_000;
    path.run(200, 2_000, 40, u64::MAX);
    assert_eq!(path.control.target_delay.min_rate_interval(), Duration::ZERO);
}
