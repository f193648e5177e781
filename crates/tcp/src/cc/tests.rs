use super::*;
use paceline_net::{Bytes, Duration, Instant, Stream};

fn control(variant: Variant, cwnd_unit: CwndUnit, mss: u32) -> Controller {
    Controller::new(&ControlParameters {
        variant,
        mss,
        initial_window: 10,
        cwnd_unit,
        abc: Abc::Unlimited,
        hystart: SlowStartExit::HyStart,
        fast_convergence: true,
        sack: true,
        seed: (1 << 16) | 80,
    })
}
/// A duration of any order of magnitude, up to hours.
fn span(stream: &mut Stream) -> Duration {
    Duration::from_nanos(stream.next_u64() >> (20 + stream.below(44)))
}
fn bytes(stream: &mut Stream) -> Bytes {
    Bytes(stream.next_u64() >> (28 + stream.below(36)))
}
fn sample(stream: &mut Stream, totals: &mut [u64; 4]) -> AckSample {
    let (acked, lost) = (bytes(stream), if stream.chance(0.2) { bytes(stream) } else { Bytes::ZERO });
    let [delivered, lost_total, una, nxt] = totals;
    *delivered += acked.0;
    *lost_total += lost.0;
    *una += acked.0;
    *nxt = *una + bytes(stream).0;
    let rtt = stream.chance(0.9).then(|| span(stream));
    let repairing = stream.below(8);
    AckSample {
        acked,
        acked_again: Bytes::ZERO,
        lost,
        advanced: stream.chance(0.8),
        rtt,
        srtt: stream.chance(0.9).then(|| span(stream)),
        min_rtt: rtt,
        prior_in_flight: bytes(stream),
        in_flight: bytes(stream),
        cwnd_limited: stream.chance(0.8),
        in_recovery: repairing == 0,
        in_loss: repairing == 1,
        snd_una: *una,
        snd_nxt: *nxt,
        delivered: Bytes(*delivered),
        lost_total: Bytes(*lost_total),
        ce_bytes: Bytes(stream.below(acked.0 + 1)),
        rate: RateSample {
            delivered: bytes(stream),
            interval: span(stream),
            prior_delivered: Bytes(stream.below(*delivered + 1)),
            lost: bytes(stream),
            tx_in_flight: bytes(stream),
            app_limited: stream.chance(0.1),
        },
        loss: (lost > Bytes::ZERO).then(|| LossSample {
            lost: Bytes(lost.0 + bytes(stream).0),
            tx_in_flight: bytes(stream),
            app_limited: stream.chance(0.1),
        }),
    }
}

/// With any samples, the window has at least one segment and nothing overflows.
#[test]
fn every_window_stays_within_its_bounds() {
    const EVENTS: [CongestionEvent; 6] = [
        CongestionEvent::FastRecovery,
        CongestionEvent::RecoveryEnd,
        CongestionEvent::Timeout,
        CongestionEvent::RepeatedTimeout,
        CongestionEvent::Undo,
        CongestionEvent::Ecn,
    ];
    for variant in Variant::ALL {
        for seed in 0..30 {
            println!("{variant} seed {seed}"); // shown on failure
            let mut stream = Stream::new(seed, "controls");
            let mss = 1 + stream.below(9000) as u32;
            let mut control =
                control(variant, if seed % 2 == 0 { CwndUnit::Segments } else { CwndUnit::Bytes }, mss);
            let (mut now, mut totals) = (Instant::ZERO, [0; 4]);
            if stream.chance(0.8) {
                let rtt = stream.chance(0.8).then(|| span(&mut stream));
                control.on_established(now, rtt);
            }
            for _ in 0..2000 {
                now += if stream.chance(0.3) { Duration::ZERO } else { span(&mut stream) / 1000 };
                match stream.below(20) {
                    0 => {
                        let event = EVENTS[stream.below(6) as usize];
                        control.on_congestion(now, event, bytes(&mut stream));
                    }
                    1 => control.on_transmit_start(now, stream.chance(0.5)),
                    2 => control.on_sent(now, Bytes(u64::from(mss)), bytes(&mut stream)),
                    _ => control.on_ack(now, &sample(&mut stream, &mut totals)),
                }
                assert!(control.cwnd() >= Bytes(u64::from(mss)), "{control:?}");
                assert!(control.cwnd() < Bytes(1 << 60), "{control:?}");
            }
        }
    }
}

#[test]
fn controls_require_ecn_and_own_their_window_as_documented() {
    for variant in Variant::ALL {
        let control = control(variant, CwndUnit::Segments, 1448);
        let ecn = match variant {
            Variant::Dctcp => Ecn::Ect0,
            Variant::Prague => Ecn::Ect1,
            _ => Ecn::None,
        };
        assert_eq!(control.ecn(), ecn, "{variant}");
        assert_eq!(control.restarts_on_loss(), variant == Variant::Tahoe);
        assert_eq!(control.owns_recovery_window(), matches!(variant, Variant::Bbr | Variant::Bbr3));
        assert_eq!(control.cwnd(), Bytes(14_480), "{variant}");
    }
}

#[test]
fn a_control_takes_at_most_640_bytes() {
    let size = size_of::<Controller>();
    assert!(size <= 640, "{size} bytes");
}
