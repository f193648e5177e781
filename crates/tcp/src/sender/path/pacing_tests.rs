use super::*;
use paceline_net::SlotPattern;
use paceline_net::pacing::Hint;
use std::net::SocketAddr;

const FLOW: PacedFlow = PacedFlow {
    cwnd: 10_000,
    ssthresh: u64::MAX,
    outstanding: 0,
    in_flight: 0,
    srtt: Some(Duration::from_millis(100)),
};

fn config(pacing: Pacing) -> EndpointConfig {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    EndpointConfig { pacing, ..EndpointConfig::new(nowhere, nowhere) }
}

fn pacer(pacing: Pacing) -> Pacer {
    Pacer::new(&config(pacing))
}

#[test]
fn linux_paces_at_200_percent_in_slow_start_and_120_percent_above() {
    let mut pacer = pacer(Pacing::Linux);
    assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), None); // the initial window leaves at once
    for _ in 0..10 {
        pacer.on_sent(Instant::ZERO, 1000, None, None);
    }
    // 10 kB in 100 ms are 800 kb/s.
    assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), Some(Rate(1_600_000)));
    assert_eq!(
        pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 20_000, ..FLOW }),
        Some(Rate(960_000))
    );
    assert_eq!(
        pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 20_002, ..FLOW }),
        Some(Rate(1_600_000))
    );
    assert_eq!(
        pacer.rate(Instant::ZERO, None, || PacedFlow { ssthresh: 0, outstanding: 20_000, ..FLOW }),
        Some(Rate(1_920_000))
    );
    assert_eq!(pacer.rate(Instant::ZERO, Some(Rate(7)), || FLOW), Some(Rate(7)));
}

#[test]
fn segments_are_spaced_by_their_time_and_half_a_segments_delay_is_compensated() {
    let mut pacer = pacer(Pacing::External(Rate(8_000_000)));
    assert_eq!(pacer.rate(Instant::ZERO, None, || FLOW), Some(Rate(8_000_000)));
    let ms = Instant::from_millis;
    pacer.on_sent(ms(10), 1000, Some(Rate(8_000_000)), None);
    assert_eq!(pacer.until(), ms(11));
    let mut pacer = self::pacer(Pacing::LinuxPerSegment);
    pacer.on_sent(ms(0), 1000, Some(Rate(8_000_000)), None);
    pacer.on_sent(ms(5), 1000, Some(Rate(8_000_000)), None);
    assert_eq!(pacer.until(), Instant::from_nanos(5_500_000));
}

/// ACKs of segments that are sent every 0.5 ms and wait for the end of a period of 5 ms.
fn learn(pacer: &mut Pacer) -> (Instant, Option<Duration>) {
    let (mut now, mut shown) = (Instant::ZERO, None);
    for sent in (0..3995_u64).map(|index| index * 500_000) {
        now = Instant::from_nanos((sent / 5_000_000 + 2) * 5_000_000);
        shown = pacer.on_ack(now, Some(Duration::from_nanos(now.as_nanos() - sent)), false);
    }
    (now, shown)
}

#[test]
fn a_learned_period_cleans_the_delay_and_limits_the_wait() {
    let mut pacer = pacer(Pacing::Tdd);
    let (now, shown) = learn(&mut pacer);
    // Round trips are 5.5 to 10 ms.
    assert_eq!(shown, Some(Duration::from_nanos(5_500_000)));
    pacer.on_sent(now, 1000, Some(Rate(1000)), None);
    assert_eq!(pacer.until(), now + Duration::from_millis(5));
    let mut linux = self::pacer(Pacing::Linux);
    assert_eq!(learn(&mut linux).1, Some(Duration::from_millis(8)));
}

#[test]
fn the_published_pacing_spreads_the_open_window_over_a_period() {
    let mut pacer = pacer(Pacing::TddPublished);
    for _ in 0..10 {
        pacer.on_sent(Instant::ZERO, 1000, None, None);
    }
    let flow = PacedFlow { cwnd: 20_000, in_flight: 10_000, ..FLOW };
    assert_eq!(pacer.rate(Instant::ZERO, None, || flow), linux_rate(&flow));
    let (now, shown) = learn(&mut pacer);
    assert!(shown >= Some(Duration::from_nanos(5_500_000)));
    // 10 kB in 5 ms are 16 Mb/s.
    assert_eq!(pacer.rate(now, None, || flow), Some(Rate(16_000_000)));
    let later = now + Duration::from_micros(2500);
    let rest = PacedFlow { in_flight: 15_000, ..flow };
    assert_eq!(pacer.rate(later, None, || rest), Some(Rate(16_000_000)));
}

/// Send times in microseconds of segments that leave as soon as they may.
fn times(pacer: &mut Pacer, rate: Rate, min_rtt: Option<Duration>, count: usize) -> Vec<u64> {
    let mut now = Instant::ZERO;
    let mut send = || {
        now = if pacer.waits(now) { pacer.until() } else { now };
        pacer.on_sent(now, 1000, Some(rate), min_rtt);
        now.as_nanos() / 1000
    };
    (0..count).map(|_| send()).collect()
}

#[test]
fn linux_sends_the_segments_of_a_millisecond_together_and_at_least_two() {
    // 1,000 bytes in 0.4 ms: two segments together. In 0.1 ms: nine, less than a 1/1,024 s.
    let (slow, fast) = (Rate(20_000_000), Rate(80_000_000));
    assert_eq!(times(&mut pacer(Pacing::Linux), slow, None, 6), [0, 0, 800, 800, 1600, 1600]);
    let nine = times(&mut pacer(Pacing::Linux), fast, None, 19);
    assert_eq!((nine[8], nine[9], nine[17], nine[18]), (0, 900, 900, 1800));
    assert_eq!(times(&mut pacer(Pacing::LinuxPerSegment), slow, None, 3), [0, 400, 800]);
    // A round trip below 1 ms adds 32 KiB, and 64 KiB is the most.
    let near = times(&mut pacer(Pacing::Linux), fast, Some(Duration::from_micros(600)), 43);
    assert_eq!((near[41], near[42]), (0, 4200));
    let most = times(&mut pacer(Pacing::Linux), Rate(10_000_000_000), None, 67);
    assert_eq!((most[64], most[65]), (0, 52));
    // A chunk that the window ends early counts with the segments that it has.
    let mut early = pacer(Pacing::Linux);
    early.on_sent(Instant::ZERO, 1000, Some(fast), None);
    assert_eq!(early.until(), Instant::from_nanos(100_000));
    assert!(!early.waits(Instant::ZERO) && early.waits(Instant::from_nanos(50_000)));
}

#[test]
fn tdd_without_a_period_is_linux_one_segment_at_a_time() {
    let [tdd, published] = [Pacing::Tdd, Pacing::TddPublished].map(pacer);
    for mut pacer in [tdd, published] {
        let rate = Rate(20_000_000);
        assert_eq!(
            times(&mut pacer, rate, None, 50),
            times(&mut self::pacer(Pacing::LinuxPerSegment), rate, None, 50)
        );
    }
}

#[test]
fn a_given_pattern_holds_from_the_start_and_gates_after_a_loss_in_a_shallow_queue() {
    let pattern = SlotPattern::from_carrier("DDDSU/30kHz").unwrap();
    let hint = Hint::Pattern { pattern, phase: Instant::ZERO, error: Duration::ZERO };
    let ms = |ms: u64| Some(Duration::from_millis(ms));
    let mut pacer = Pacer::new(&EndpointConfig { pacing_hint: hint.clone(), ..config(Pacing::Tdd) });
    assert_eq!(pacer.on_ack(Instant::from_millis(10), ms(10), false), ms(10));
    assert_eq!(pacer.on_ack(Instant::from_millis(12), ms(12), false), ms(10));
    let rate = Rate(20_000_000);
    assert_eq!(times(&mut pacer.clone(), rate, None, 3), [0, 400, 800]);
    pacer.on_ack(Instant::from_millis(13), ms(12), true);
    let in_slots = |times: Vec<u64>| times.iter().all(|us| !(1500..2000).contains(&((us + 2250) % 2500)));
    assert!(in_slots(times(&mut pacer, rate, None, 500)[1..].to_vec()));
    // The signal is a key of its own.
    let raw = EndpointConfig {
        pacing_hint: hint.clone(),
        delay_signal: Some(DelaySignal::Raw),
        ..config(Pacing::Tdd)
    };
    let clean =
        EndpointConfig { pacing_hint: hint, delay_signal: Some(DelaySignal::Clean), ..config(Pacing::None) };
    for (config, shown) in [(raw, ms(12)), (clean, ms(10))] {
        let mut pacer = Pacer::new(&config);
        pacer.on_ack(Instant::from_millis(10), ms(10), false);
        assert_eq!(pacer.on_ack(Instant::from_millis(12), ms(12), false), shown);
    }
}
