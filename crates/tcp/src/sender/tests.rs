use super::*;
use crate::cc::Variant;
use crate::config::{EndpointConfig, Source};
use crate::options::Pacing;
use crate::stats::Stats;
use paceline_net::{Bytes, Duration, Instant, Rate, SackBlocks, SeqNumber};

const MSS: u32 = 1000;
const MS: fn(u64) -> Instant = Instant::from_millis;

/// A sender with a congestion window of `segments`, towards a receiver with a window of `window` bytes. The
/// first byte has sequence number 2.
fn sender(source: Source, window: u64, segments: u32, rate: Option<Rate>) -> (Sender, Stats) {
    let address = "198.18.0.1:80".parse().unwrap();
    let config = EndpointConfig {
        variant: Variant::Reno,
        initial_window: segments,
        pacing: rate.map_or(Pacing::None, Pacing::External),
        ..EndpointConfig::new(address, address)
    };
    let mut sender = Sender::new(&config, source, MSS, true);
    sender.set_window(SeqNumber(0), window);
    (sender, Stats::default())
}
fn burst(sender: &mut Sender, stats: &mut Stats, now: Instant) -> Vec<(u32, u32, bool)> {
    let mut sent = Vec::new();
    while let Some(segment) = sender.poll_segment(now, 1, stats) {
        sent.push((segment.seq.0 - 2, segment.payload, segment.fin));
    }
    sent
}
fn ack(sender: &mut Sender, stats: &mut Stats, now: Instant, upto: u32, window: u64) -> bool {
    let sack = SackBlocks::default();
    let (seq, ack) = (SeqNumber(0), SeqNumber(2) + upto);
    sender.on_ack(
        now,
        &AckInfo { seq, ack, window, sack: &sack, echo: None, has_data: false, ece: false },
        1,
        stats,
    )
}

#[test]
fn both_windows_bound_the_flight_and_fin_leaves_with_the_last_byte() {
    let (mut sender, mut stats) = sender(Source::File(Bytes(4500)), 3000, 10, None);
    assert_eq!(
        burst(&mut sender, &mut stats, MS(0)),
        [(0, 1000, false), (1000, 1000, false), (2000, 1000, false)]
    );
    assert!(ack(&mut sender, &mut stats, MS(10), 1000, 10_000));
    assert_eq!(burst(&mut sender, &mut stats, MS(10)), [(3000, 1000, false), (4000, 500, true)]);
    assert!(sender.fin_sent() && !sender.is_complete());
    assert!(ack(&mut sender, &mut stats, MS(20), 4501, 10_000));
    assert!(sender.fin_acked() && sender.is_complete());
    assert_eq!((sender.deadline(MS(20)), stats.bytes_acked), (None, 4500));
}

#[test]
fn an_ack_of_data_that_was_never_sent_is_refused() {
    let (mut sender, mut stats) = sender(Source::Bulk, 3000, 10, None);
    burst(&mut sender, &mut stats, MS(0));
    assert!(!ack(&mut sender, &mut stats, MS(1), 3001, 9000));
    assert!(ack(&mut sender, &mut stats, MS(1), 3000, 9000));
    assert!(ack(&mut sender, &mut stats, MS(1), 1000, 9000)); // an old acknowledgment has no effect
    assert_eq!(sender.seq_una(), SeqNumber(3002));
}

#[test]
fn pacing_spaces_segments_and_sets_a_deadline() {
    let (mut sender, mut stats) = sender(Source::Bulk, 100_000, 10, Some(Rate(1_000_000)));
    // 1000 bytes at 1 Mb/s take 8 ms.
    for i in 0..10 {
        assert_eq!(burst(&mut sender, &mut stats, MS(8 * i)).len(), 1);
        let expected = if i < 9 { Some(MS(8 * i + 8)) } else { sender.loss_timer.deadline() };
        assert_eq!(sender.deadline(MS(8 * i)), expected);
        assert!(burst(&mut sender, &mut stats, MS(8 * i + 7)).is_empty());
    }
    assert!(burst(&mut sender, &mut stats, MS(80)).is_empty()); // the window is full
}

#[test]
fn timeouts_back_off_and_resend_the_first_segment_alone() {
    let (mut sender, mut stats) = sender(Source::Bulk, 100_000, 4, None);
    sender.rules.tail_loss_probe = false;
    burst(&mut sender, &mut stats, MS(0));
    let mut now = MS(0);
    for wait in [1000, 2000, 4000] {
        now += Duration::from_millis(wait);
        assert_eq!(sender.deadline(now), Some(now));
        sender.on_timer(now, &mut stats);
        assert_eq!(burst(&mut sender, &mut stats, now), [(0, 1000, false)]);
    }
    assert_eq!((stats.timeouts, stats.retransmitted_segments), (3, 3));
}

#[test]
fn a_full_window_limits_the_sender_and_a_short_file_does_not() {
    let (mut sender, mut stats) = sender(Source::Bulk, 100_000, 4, None);
    burst(&mut sender, &mut stats, MS(0));
    assert!(sender.is_cwnd_limited());
    let (mut sender, mut stats) = self::sender(Source::File(Bytes(2000)), 100_000, 5, None);
    burst(&mut sender, &mut stats, MS(0));
    assert!(!sender.is_cwnd_limited());
}
