use super::*;

/// A path of `rate` bytes per millisecond and 40 ms: the control fills it, for so many milliseconds.
struct Path {
    control: Adaptive,
    now: u64,
    /// Bytes sent and when; a queue of what has not been delivered.
    flying: std::collections::VecDeque<(u64, u64)>,
    in_flight: u64,
    credit: u64,
}
const PACKET: u64 = 1000;

impl Path {
    fn new() -> Self {
        let control = Adaptive::new(AdaptiveParameters::default());
        Self { control, now: 1, flying: std::collections::VecDeque::new(), in_flight: 0, credit: 0 }
    }
    fn run(&mut self, ms: u64, rate: u64, delay: u64, app: u64) {
        for _ in 0..ms {
            self.now += 1;
            let now = Instant::from_millis(self.now);
            self.credit = (self.credit + rate).min(rate.max(PACKET) * 2);
            while let Some(&(sent_at, _)) =
                self.flying.front().filter(|(sent_at, _)| sent_at + delay <= self.now)
                && self.credit >= PACKET
            {
                self.flying.pop_front();
                self.credit -= PACKET;
                self.in_flight -= PACKET;
                let sample = AckSample {
                    bytes: PACKET,
                    rtt: Some(Duration::from_millis(self.now - sent_at)),
                    sent_at: Some(Instant::from_millis(sent_at)),
                    lost: 0,
                    in_flight: self.in_flight,
                    app_limited: app < self.control.window(),
                    fades: false,
                    unselective: false,
                };
                self.control.on_ack(now, &sample);
            }
            let paced = self.control.rate().0 / 8000 + PACKET;
            let mut sent = 0;
            while self.in_flight + PACKET <= self.control.window().min(app) && sent < paced {
                self.control.on_send(now, self.in_flight == 0);
                self.flying.push_back((self.now, PACKET));
                self.in_flight += PACKET;
                sent += PACKET;
            }
        }
    }
    fn queue_ms(&self, rate: u64, delay: u64) -> u64 {
        (self.in_flight / rate).saturating_sub(delay)
    }
}

#[test]
fn the_estimate_is_the_paths_and_the_queue_short() {
    let mut path = Path::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    let bandwidth = path.control.bandwidth() / 8000.0;
    assert!((1_900.0..2_200.0).contains(&bandwidth), "{bandwidth} bytes a millisecond");
    assert!(path.queue_ms(2_000, 40) < 60, "{} ms", path.queue_ms(2_000, 40));
    path.run(30_000, 2_000, 40, u64::MAX);
    assert!(path.queue_ms(2_000, 40) < 60, "the minimum does not creep: {} ms", path.queue_ms(2_000, 40));
}

#[test]
fn too_little_to_send_lowers_nothing() {
    let mut path = Path::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    path.run(5_000, 2_000, 40, 5_000);
    assert!(path.control.bandwidth() / 8000.0 > 1_900.0);
}

#[test]
fn a_longer_path_is_told_from_a_queue() {
    let mut path = Path::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    path.run(10_000, 2_000, 160, u64::MAX);
    assert!(path.control.bandwidth() / 8000.0 > 1_900.0, "{}", path.control.bandwidth() / 8000.0);
    assert!(path.control.min_rtt() >= Duration::from_millis(155), "{:?}", path.control.min_rtt());
}

/// On a radio that fades the first round trip after a silence is short, since the path is without load: the window is
/// that of the loaded path all the same.
#[test]
fn a_silence_does_not_shrink_the_window() {
    let mut path = Path::new();
    path.run(5_000, 2_000, 80, u64::MAX);
    while path.control.response.factor() > 1.0 {
        path.run(10, 2_000, 80, u64::MAX); // a larger window is being tried
    }
    let (before, path_now) = (path.control.window(), path.now);
    let mut acked = |at: u64, rtt: u64| {
        let sample = AckSample {
            bytes: PACKET,
            rtt: Some(Duration::from_millis(rtt)),
            sent_at: Some(Instant::from_millis(at - rtt)),
            lost: 0,
            in_flight: path.in_flight,
            app_limited: true,
            fades: true,
            unselective: false,
        };
        path.control.on_ack(Instant::from_millis(at), &sample);
    };
    acked(path_now + 200, 30);
    assert_eq!(path.control.min_rtt(), Duration::from_millis(80), "it says nothing of the loaded path");
    let after = path.control.window();
    assert!(after as f64 > 0.9 * before as f64, "{after} of {before} bytes");
}

/// Acknowledgments of 40 ms, one each ten milliseconds, half of what was sent being lost in each.
fn lossy(control: &mut Adaptive, from: u64, until: u64, every: usize) {
    for at in (from..until).step_by(every) {
        let sample = AckSample {
            bytes: 10_000,
            rtt: Some(Duration::from_millis(40)),
            sent_at: Some(Instant::from_millis(at - 40)),
            lost: 10_000,
            in_flight: 40_000,
            app_limited: false,
            fades: false,
            unselective: false,
        };
        control.on_ack(Instant::from_millis(at), &sample);
    }
}

#[test]
fn a_path_that_loses_bursts_is_sent_none() {
    let mut control = Adaptive::new(AdaptiveParameters::default());
    lossy(&mut control, 1_000, 1_400, 5);
    let pace = control.rate().0 as f64 / control.bandwidth();
    assert!(control.gain > 1.0 && pace < 1.3, "{pace} times the bandwidth");
}

#[test]
fn what_a_silence_lost_is_no_burst() {
    let mut control = Adaptive::new(AdaptiveParameters::default());
    lossy(&mut control, 1_000, 3_000, 50);
    assert_eq!(control.even, 0, "each of these is a silence");
}

/// The estimate is that of a faster path, and what is sent by it is lost: though there is too little to send and no queue, it
/// falls.
#[test]
fn an_estimate_that_loses_what_it_sends_falls() {
    let mut path = Path::new();
    path.run(5_000, 2_000, 40, u64::MAX);
    let mut control = path.control;
    for at in (5_100..7_000).step_by(5) {
        let sample = AckSample {
            bytes: 2_000,
            rtt: Some(Duration::from_millis(40)),
            sent_at: Some(Instant::from_millis(at - 40)),
            lost: 8_000,
            in_flight: 40_000,
            app_limited: true,
            fades: false,
            unselective: false,
        };
        control.on_ack(Instant::from_millis(at), &sample);
    }
    assert!(control.bandwidth() / 8000.0 < 450.0, "{} bytes a millisecond", control.bandwidth() / 8000.0);
}

/// A radio whose rate changes within a round trip, one of which is longer than the longest budget of short paths.
#[test]
fn on_a_long_path_the_budget_lasts_for_its_changes() {
    let largest_budget = |delay| {
        let mut path = Path::new();
        let mut largest = 0.0_f64;
        for _ in 0..150 {
            path.run(250, 8_000, delay, u64::MAX);
            path.run(250, 300, delay, u64::MAX);
            largest = largest.max(path.control.budget.seconds());
        }
        largest
    };
    let (short, long) = (largest_budget(40), largest_budget(200));
    assert!(short <= 0.1 && (0.12..=0.3).contains(&long), "{short} s and {long} s");
}

/// Turns of 40 ms at three times the rate, and pauses of 80.
#[test]
fn the_rate_of_a_radio_that_serves_in_turns_is_that_of_turns_and_pauses() {
    let mut path = Path::new();
    for _ in 0..100 {
        path.run(40, 6_000, 40, u64::MAX);
        path.run(80, 0, 40, u64::MAX);
    }
    let rate = path.control.bandwidth() / 8000.0;
    assert!((1_800.0..3_600.0).contains(&rate), "{rate} bytes a millisecond of 2000 on average");
    let (stretch, budget) = (path.control.budget.stretch().as_secs_f64(), path.control.budget.seconds());
    assert!((0.09..0.135).contains(&stretch), "{stretch} s are one and a half pauses");
    assert!(budget >= stretch / 6.0, "{budget} s");
    path.run(5_000, 2_000, 40, u64::MAX);
    assert!(path.control.budget.stretch() < Duration::from_millis(1), "it is forgotten");
}

#[test]
fn idle_time_is_no_pause() {
    let mut path = Path::new();
    path.run(2_000, 2_000, 40, u64::MAX);
    path.run(200, 2_000, 40, 0);
    path.now += 1_000;
    path.run(200, 2_000, 40, u64::MAX);
    assert_eq!(path.control.budget.stretch(), Duration::ZERO);
}
