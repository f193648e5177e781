use super::*;

const MSS: u32 = 1000;

fn ack(segments: u64, rtt_ms: u64) -> AckSample {
    AckSample {
        acked: Bytes(segments * u64::from(MSS)),
        advanced: true,
        cwnd_limited: true,
        rtt: Some(Duration::from_millis(rtt_ms)),
        srtt: Some(Duration::from_millis(rtt_ms)),
        ..Default::default()
    }
}

fn after_loss(cwnd: u32) -> Cubic {
    let mut cubic = Cubic::new(CwndUnit::Segments, MSS, cwnd, SlowStartExit::Off, true);
    cubic.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
    cubic.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
    cubic
}

#[test]
fn growth_follows_the_curve_of_rfc_9438() {
    // W_max 1000, RTT 100 ms: the cubic region applies. Feed one window of ACKs per RTT, spread over it.
    let mut cubic = after_loss(1000);
    let start = f64::from(cubic.window.cwnd);
    assert_eq!(start, 700.0);
    let k = libm::cbrt((1000.0 - start) / 0.4);
    let mut now = Instant::ZERO;
    for _ in 0..140 {
        for _ in 0..20 {
            now += Duration::from_millis(5);
            let segments = u64::from(cubic.window.cwnd) / 20;
            cubic.on_ack(now, &ack(segments, 100));
        }
        let t = now.as_secs_f64();
        let expected = 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
        let got = f64::from(cubic.window.cwnd);
        assert!((got - expected).abs() / expected < 0.03, "t={t} cwnd={got} expected={expected}");
    }
}

#[test]
fn fast_convergence_lowers_the_peak_after_a_second_loss_below_it() {
    let mut cubic = after_loss(1000);
    assert_eq!((cubic.last_max, cubic.window.cwnd), (1000, 700));
    cubic.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
    assert_eq!(cubic.last_max, 700 * (1024 + 717) / 2048);
    assert_eq!(cubic.ssthresh(), Bytes(490 * 1000));
}

#[test]
fn short_round_trips_grow_at_least_as_reno_would() {
    // W_max 20, RTT 10 ms: the Reno-friendly region applies, with 3 (1-beta)/(1+beta) = 0.53 segments per
    // RTT.
    let mut cubic = after_loss(20);
    let mut now = Instant::ZERO;
    for _ in 0..40 {
        now += Duration::from_millis(10);
        cubic.on_ack(now, &ack(u64::from(cubic.window.cwnd), 10));
    }
    let expected = 14.0 + 40.0 * 0.53;
    let got = f64::from(cubic.window.cwnd);
    assert!((got - expected).abs() < 3.0, "{got} {expected}");
}

#[test]
fn an_idle_time_is_excluded_from_the_curve() {
    let mut cubic = after_loss(1000);
    let mut other = cubic.clone();
    for control in [&mut cubic, &mut other] {
        control.on_ack(Instant::from_millis(100), &ack(700, 100));
        control.on_sent(Instant::from_millis(100), Bytes(1000), Bytes(1000));
    }
    cubic.on_transmit_start(Instant::from_millis(60_000), true);
    cubic.on_ack(Instant::from_millis(60_100), &ack(700, 100));
    other.on_ack(Instant::from_millis(200), &ack(700, 100));
    assert_eq!(cubic.window.cwnd, other.window.cwnd);
}

#[test]
fn a_timeout_restarts_from_one_segment_and_resets_w_max() {
    let mut cubic = after_loss(100);
    cubic.on_congestion(Instant::ZERO, CongestionEvent::Timeout, Bytes(0));
    assert_eq!((cubic.cwnd(), cubic.last_max), (Bytes(1000), 0));
    assert_eq!(cubic.ssthresh(), Bytes(49_000));
    cubic.on_congestion(Instant::ZERO, CongestionEvent::RepeatedTimeout, Bytes(0));
    assert_eq!(cubic.ssthresh(), Bytes(49_000));
}

#[test]
fn hystart_sets_ssthresh_to_the_window() {
    let mut cubic = Cubic::new(CwndUnit::Segments, MSS, 20, SlowStartExit::HyStart, true);
    let mut now = Instant::ZERO;
    cubic.on_ack(now, &ack(1, 50));
    for i in 0..40 {
        now += Duration::from_millis(3);
        cubic.on_ack(now, &AckSample { snd_una: 1000, snd_nxt: 1_000_000 + i, ..ack(1, 60) });
    }
    assert!(cubic.ssthresh().0 < 60_000, "{:?}", cubic.ssthresh());
}

#[test]
fn a_window_in_bytes_restores_its_curve_when_a_reduction_is_undone() {
    let mut cubic = Cubic::new(CwndUnit::Bytes, MSS, 100, SlowStartExit::Off, false);
    let lose = |cubic: &mut Cubic, now| {
        cubic.on_congestion(now, CongestionEvent::FastRecovery, Bytes(0));
        cubic.on_congestion(now, CongestionEvent::RecoveryEnd, Bytes(0));
    };
    let grow = |cubic: &mut Cubic, from_ms| {
        for ms in (from_ms..from_ms + 1000).step_by(5) {
            cubic.on_ack(Instant::from_millis(ms), &ack(4, 100));
        }
    };
    lose(&mut cubic, Instant::ZERO);
    assert_eq!(cubic.cwnd(), Bytes(100_000 * BETA / BETA_SCALE));
    grow(&mut cubic, 0);
    let mut spared = cubic.clone();
    lose(&mut cubic, Instant::from_millis(1000));
    assert!(cubic.cwnd() < spared.cwnd());
    cubic.on_congestion(Instant::from_millis(1000), CongestionEvent::Undo, Bytes(0));
    for control in [&mut cubic, &mut spared] {
        grow(control, 1000);
    }
    assert_eq!(cubic.cwnd(), spared.cwnd());
}
