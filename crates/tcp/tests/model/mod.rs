//! Models that bytes drive: every sequence of bytes is a valid run, for fuzz targets and tests.
#![allow(dead_code)] // each test and target uses its part

pub mod operations;
pub mod segments;

use paceline_net::pacing::Hint;
pub use paceline_net::test_support::Reassembly;
use paceline_net::{Bytes, Duration, Instant, Node, Rate, SeqNumber, SlotPattern};
use paceline_tcp::{
    Abc, BeyondWindow, CwndUnit, DelaySignal, DelayedAck, EcnMode, Endpoint, EndpointConfig, Keepalive,
    LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode, RtoStyle, SackCompression, SlowStartExit, Source,
    StretchAck, Variant,
};

/// Bytes as a source of numbers; zeros after their end.
pub struct Entropy<'a>(&'a [u8]);

impl<'a> Entropy<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
    pub fn long(&mut self) -> u32 {
        u32::from(self.word()) | u32::from(self.word()) << 16
    }
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }
}

const PACINGS: [Pacing; 6] = [
    Pacing::None,
    Pacing::Linux,
    Pacing::External(Rate(1_000_000)),
    Pacing::LinuxPerSegment,
    Pacing::Tdd,
    Pacing::TddPublished,
];

/// Initial sequence numbers near the wrap and the sign change.
const ISNS: [u32; 5] = [1, 0, u32::MAX, u32::MAX - 3000, 0x7fff_f000];

/// A configuration of one side.
pub fn config(entropy: &mut Entropy<'_>, client: bool) -> EndpointConfig {
    let addresses = ["198.18.0.1:40000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
    let (local, remote) = if client { (addresses[0], addresses[1]) } else { (addresses[1], addresses[0]) };
    let options = entropy.byte();
    EndpointConfig {
        variant: entropy.pick(&Variant::ALL),
        segment_size: entropy.pick(&[1448, 1, 7, 64, 536, 1000, 9000]),
        initial_window: entropy.pick(&[10, 1, 2, 4, 32]),
        min_rto: entropy.pick(&[200, 1, 20, 1000].map(Duration::from_millis)),
        receive_buffer: entropy.pick(&[6 << 20, 1, 500, 3000, 65_535, 65_536, 100_000].map(Bytes)),
        send_buffer: entropy.pick(&[4 << 20, 1, 2000, 30_000].map(Bytes)),
        autotune: options & 1 == 0,
        timestamps: options & 2 == 0,
        sack: options & 4 == 0,
        window_scale: options & 8 == 0,
        delayed_ack: DelayedAck {
            segments: entropy.pick(&[2, 1, 4, 0]),
            timeout: entropy.pick(&[40, 0, 1, 500].map(Duration::from_millis)),
            quick_acks: entropy.pick(&[16, 0, 2]),
            adaptive: options & 32 == 0,
        },
        isn: SeqNumber(entropy.pick(&ISNS)),
        start_at: Instant::ZERO,
        ..mechanisms(entropy, EndpointConfig::new(local, remote))
    }
}

/// No pattern, a period alone, or slots with a random phase and error.
fn hint(entropy: &mut Entropy<'_>) -> Hint {
    let pattern = |text| SlotPattern::from_carrier(text).expect("a pattern");
    let texts = [None, None, Some("DDDSU/30kHz"), Some("DDDDDDDSUU 6:4:4/30kHz"), Some("DSUUU/30kHz")];
    match entropy.pick(&texts).map(pattern) {
        None => Hint::None,
        Some(pattern) if entropy.flag() => Hint::Period(pattern.period()),
        Some(pattern) => Hint::Pattern {
            pattern,
            phase: Instant::from_nanos(u64::from(entropy.word()) * 100),
            error: Duration::from_micros(u64::from(entropy.byte()) * 2),
        },
    }
}

/// The configuration with random mechanisms.
pub fn mechanisms(entropy: &mut Entropy<'_>, config: EndpointConfig) -> EndpointConfig {
    use LossRecovery::{NewReno, Rack, Reno, Sack, Tahoe};
    let (on, second) = (entropy.byte(), entropy.byte());
    let stretch = StretchAck {
        segments: u32::from(second % 5),
        timeout: Duration::from_millis(u64::from(second)),
        hold_duplicates: second & 1 == 0,
    };
    EndpointConfig {
        loss_recovery: entropy.pick(&[Rack, Sack, NewReno, Reno, Tahoe]),
        newreno_timer: entropy.pick(&[NewRenoTimer::SlowButSteady, NewRenoTimer::Impatient]),
        newreno_careful: on & 1 == 0,
        prr: entropy.pick(&[PrrMode::Rfc9937, PrrMode::Off, PrrMode::Rfc6937Crb, PrrMode::Rfc6937Ssrb]),
        tail_loss_probe: on & 2 == 0,
        frto: on & 4 == 0,
        undo: on & 8 == 0,
        limited_transmit: on & 16 == 0,
        rto_style: entropy.pick(&[RtoStyle::Linux, RtoStyle::Rfc6298]),
        pacing: entropy.pick(&PACINGS),
        pacing_hint: hint(entropy),
        delay_signal: entropy.pick(&[None, Some(DelaySignal::Raw), Some(DelaySignal::Clean)]),
        idle_restart: on & 32 == 0,
        hystart: entropy.pick(&[SlowStartExit::HyStart, SlowStartExit::HyStartPlusPlus, SlowStartExit::Off]),
        fast_convergence: on & 3 != 3,
        abc: entropy.pick(&[Abc::Unlimited, Abc::Off, Abc::One, Abc::Two]),
        cwnd_unit: entropy.pick(&[CwndUnit::Segments, CwndUnit::Bytes]),
        nagle: entropy.pick(&[Nagle::Minshall, Nagle::Off, Nagle::Rfc896]),
        keepalive: (on & 64 != 0).then(|| Keepalive {
            idle: Duration::from_secs(20),
            interval: Duration::from_secs(1),
            probes: 200,
        }),
        ecn: entropy.pick(&[EcnMode::Passive, EcnMode::On, EcnMode::Off]),
        read_rate: entropy.pick(&[None, None, Some(Rate(200_000)), Some(Rate(50_000_000))]),
        beyond_window: entropy.pick(&[BeyondWindow::Drop, BeyondWindow::Accept]),
        dsack: on & 128 == 0,
        sack_compression: (second & 128 == 0).then(SackCompression::default),
        stretch_ack: (second & 64 != 0).then_some(stretch),
        // The models may lose packets for a long time.
        retries: 1000,
        syn_retries: 1000,
        syn_ack_retries: 1000,
        ..config
    }
}

/// Checks the invariants of an endpoint that has been polled for all its output.
pub fn check(endpoint: &Endpoint, now: Instant, config: &EndpointConfig) {
    let snapshot = endpoint.snapshot();
    let told = || format!("{now:?} {snapshot:?} {:?}", endpoint.stats());
    if let Some(at) = endpoint.poll_timeout() {
        assert!(at >= now, "a timer in the past, {at:?}: {}", told());
    }
    assert!(snapshot.cwnd.0 >= 1 && snapshot.ssthresh.0 >= 1, "no window: {}", told());
    assert!(snapshot.rto >= Duration::from_millis(1), "{}", told());
    assert!(snapshot.rto <= Duration::from_secs(120), "{}", told());
    let stats = endpoint.stats();
    assert!(stats.bytes_acked <= stats.bytes_sent, "{}", told());
    assert!(stats.bytes_sent <= stats.segments_sent * u64::from(config.segment_size), "{}", told());
}

/// A source of at most `most` bytes.
pub fn source(entropy: &mut Entropy<'_>, most: u32) -> Source {
    match entropy.byte() % 8 {
        0 | 1 => Source::Nothing,
        2 => Source::Chunks {
            size: Bytes(u64::from(entropy.byte())),
            interval: Duration::from_micros(u64::from(entropy.word())),
            count: u64::from(entropy.byte()).min(u64::from(most) / 255),
        },
        _ => Source::File(Bytes(u64::from(entropy.long() % (most + 1)))),
    }
}
