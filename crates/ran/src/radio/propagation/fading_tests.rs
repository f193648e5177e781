use super::*;

fn fader(model: &FadingModel, doppler: f64, index: u64) -> Fader {
    Fader::new(model, doppler, &mut Stream::new(1, &format!("station{index}/fading")))
}

/// A single tap: the same gain at all frequencies.
fn flat() -> Profile {
    Profile { taps: vec![(0.0, 1.0)] }
}

/// Correlation of the complex gains of two frequencies `spacing_hz` apart: real and imaginary part.
fn frequency_correlation(profile: &Profile, spacing_hz: f64) -> (f64, f64) {
    profile.taps.iter().fold((0.0, 0.0), |(re, im), (delay, power)| {
        let (sin, cos) = libm::sincos(TAU * spacing_hz * delay);
        (re + power * cos, im - power * sin)
    })
}

/// Root mean square of the delay in seconds.
fn delay_spread(profile: &Profile) -> f64 {
    let mean: f64 = profile.taps.iter().map(|(delay, power)| delay * power).sum();
    let square: f64 = profile.taps.iter().map(|(delay, power)| delay * delay * power).sum();
    (square - mean * mean).sqrt()
}

/// Complex gains of the first frequencies.
fn response(fader: &mut Fader, model: &FadingModel, slot: u64) -> Vec<(f64, f64)> {
    fader.go_to(model, slot);
    let mut values = Vec::new();
    for gains in fader.responses(0..model.frequencies().div_ceil(LANES)) {
        values.extend((0..LANES).map(|i| (f64::from(gains.re[i]), f64::from(gains.im[i]))));
    }
    values.truncate(model.frequencies());
    values
}

/// Power gains at all frequencies.
fn powers<const N: usize>(fader: &mut Fader, model: &FadingModel, slot: u64) -> [f32; N] {
    fader.go_to(model, slot);
    let mut gains = vec![[0.0; LANES]; N.div_ceil(LANES)];
    fader.power_gains(0..gains.len(), &mut gains);
    std::array::from_fn(|i| gains.as_flattened()[i])
}

#[test]
fn profiles_are_those_of_the_standard() {
    for (name, taps, spread_ns) in
        [("EPA", 7, 43.1), ("EVA", 9, 356.7), ("ETU", 9, 990.9), ("TDLA30", 12, 30.0), ("TDLC300", 12, 300.3)]
    {
        let profile = Profile::named(name).unwrap();
        assert_eq!(profile.taps.len(), taps);
        assert!((delay_spread(&profile) * 1e9 - spread_ns).abs() < 0.1, "{name}");
        assert!((profile.taps.iter().map(|tap| tap.1).sum::<f64>() - 1.0).abs() < 1e-12);
    }
    // Some public tables have this tap at 120 ns.
    assert!((Profile::named("EPA").unwrap().taps[4].0 - 110e-9).abs() < 1e-15);
    assert_eq!((Profile::named("EP"), Profile::named("XYZ")), (None, None));
}

#[test]
fn doppler_and_subbands_hold_by_hand() {
    assert!((doppler_hz(3.0, 2.0) - 5.559).abs() < 1e-3);
    assert!((doppler_hz(30.0, 2.0) - 55.594).abs() < 1e-3);
    // 50 blocks in subbands of 6 (TS 36.213 Table 7.2.1-3): eight of them and one of two PRBs.
    let centres = subband_centres(50, 6, 180e3);
    assert_eq!(centres.len(), 9);
    assert!((centres[0] + 22.0 * 180e3).abs() < 1e-6 && (centres[8] - 24.0 * 180e3).abs() < 1e-6);
    assert_eq!((subband_centres(100, 8, 180e3).len(), subband_centres(100, 4, 180e3).len()), (13, 25));
}

#[test]
fn power_has_mean_one_and_falls_below_a_tenth_as_rayleigh_does() {
    for name in ["EPA", "EVA", "ETU"] {
        let model =
            FadingModel::new(Profile::named(name).unwrap(), &subband_centres(50, 10, 180e3), Numerology::LTE);
        let (mut sum, mut square, mut low, mut count) = (0.0, 0.0, 0.0, 0.0);
        for index in 0..10_000 {
            for gain in powers::<5>(&mut fader(&model, 70.0, index), &model, index * 7) {
                sum += f64::from(gain);
                square += f64::from(gain) * f64::from(gain);
                low += f64::from(u8::from(gain < 0.1));
                count += 1.0;
            }
        }
        // At least 10,000 independent draws: standard error 0.01.
        assert!((sum / count - 1.0).abs() < 0.028, "{name} {}", sum / count);
        // Exponential power: E[x^2] = 2 (less 1/16 of the sum of squared tap powers), P(x < 0.1) = 0.0952.
        assert!((square / count - 2.0).abs() < 0.15, "{name} {}", square / count);
        assert!((low / count - 0.0952).abs() < 0.01, "{name} {}", low / count);
    }
}

#[test]
fn autocorrelation_is_the_bessel_function() {
    let model = FadingModel::new(flat(), &[0.0], Numerology::LTE);
    let doppler = 50.0;
    let n = 60_000;
    let lags = [1, 2, 4, 6, 8, 10, 13, 16, 20, 40];
    let mut sums = [(0.0, 0.0); 10];
    for index in 0..n {
        let mut fader = fader(&model, doppler, index);
        let start = 1000 + index % 300;
        let first = response(&mut fader, &model, start)[0];
        for (sum, lag) in sums.iter_mut().zip(lags) {
            let later = response(&mut fader, &model, start + lag)[0];
            sum.0 += first.0 * later.0 + first.1 * later.1;
            sum.1 += first.0 * later.1 - first.1 * later.0;
        }
    }
    for (sum, lag) in sums.iter().zip(lags) {
        let expected = libm::j0(TAU * doppler * lag as f64 * 1e-3);
        let got = sum.0 / n as f64;
        // Standard error 1/sqrt(60,000) = 0.004.
        assert!((got - expected).abs() < 0.017, "{lag} {got} {expected}");
        assert!((sum.1 / n as f64).abs() < 0.017, "{lag}");
    }
}

#[test]
fn one_draw_follows_the_bessel_function_over_time() {
    // Averages over time and the nine taps of a link, each with sixteen stratified angles.
    let model = FadingModel::new(Profile::named("EVA").unwrap(), &[0.0], Numerology::LTE);
    let mut drawn = 0.0;
    let n = 40_000;
    let lag = 3;
    for index in 0..40 {
        let mut fader = fader(&model, 55.6, index);
        let values: Vec<(f64, f64)> = (0..n / 40).map(|i| response(&mut fader, &model, i * 17)[0]).collect();
        let later: Vec<(f64, f64)> =
            (0..n / 40).map(|i| response(&mut fader, &model, i * 17 + lag)[0]).collect();
        drawn += values.iter().zip(&later).map(|(a, b)| a.0 * b.0 + a.1 * b.1).sum::<f64>();
    }
    let expected = libm::j0(TAU * 55.6e-3 * lag as f64);
    assert!((drawn / n as f64 - expected).abs() < 0.03, "{} {expected}", drawn / n as f64);
}

#[test]
fn frequencies_are_correlated_as_the_profile_says() {
    for name in ["EPA", "EVA", "ETU"] {
        let spacings = [0.0, 0.18e6, 0.5e6, 1.0e6, 2.5e6, 4.6e6];
        let model = FadingModel::new(Profile::named(name).unwrap(), &spacings, Numerology::LTE);
        let n = 16_000;
        let mut sums = [(0.0, 0.0); 6];
        for index in 0..n {
            let values = response(&mut fader(&model, 5.0, index), &model, index);
            for (sum, value) in sums.iter_mut().zip(&values) {
                sum.0 += values[0].0 * value.0 + values[0].1 * value.1;
                sum.1 += values[0].0 * value.1 - values[0].1 * value.0;
            }
        }
        // Standard error 1/sqrt(16,000) = 0.008.
        for (sum, spacing) in sums.iter().zip(spacings) {
            let (re, im) = frequency_correlation(&model.profile, spacing);
            assert!((sum.0 / n as f64 - re).abs() < 0.032, "{name} {spacing} {} {re}", sum.0 / n as f64);
            assert!((sum.1 / n as f64 - im).abs() < 0.032, "{name} {spacing} {} {im}", sum.1 / n as f64);
        }
    }
}

#[test]
fn coherence_bandwidth_is_that_of_the_delay_spread() {
    // The correlation is about one half at 1 / (5 rms delay), and about 0.9 at 1 / (50 rms delay).
    for name in ["EVA", "ETU"] {
        let profile = Profile::named(name).unwrap();
        let size = |hz: f64| {
            let (re, im) = frequency_correlation(&profile, hz);
            (re * re + im * im).sqrt()
        };
        let spread = delay_spread(&profile);
        assert!(
            size(1.0 / (50.0 * spread)) > 0.9 && (0.3..0.8).contains(&size(1.0 / (5.0 * spread))),
            "{name}"
        );
    }
}

#[test]
fn a_gain_does_not_depend_on_earlier_queries() {
    let model =
        FadingModel::new(Profile::named("ETU").unwrap(), &subband_centres(100, 8, 180e3), Numerology::LTE);
    let gains_at = |fader: &mut Fader, slot: u64| powers::<13>(fader, &model, slot).map(f32::to_bits);
    for doppler in [0.0, 0.1, 5.56, 20.0, 300.0] {
        let mut forward = fader(&model, doppler, 0);
        let all: Vec<[u32; 13]> = (0..2000).map(|slot| gains_at(&mut forward, slot)).collect();
        let mut jumping = fader(&model, doppler, 0);
        let mut order = Stream::new(4, "order");
        for _ in 0..3000 {
            let slot = order.below(2000);
            assert_eq!(gains_at(&mut jumping, slot), all[slot as usize], "{doppler} Hz");
        }
        // A new fader at one slot only; then in reverse order.
        assert_eq!(gains_at(&mut fader(&model, doppler, 0), 1234), all[1234]);
        for slot in (0..2000).rev() {
            assert_eq!(gains_at(&mut jumping, slot), all[slot as usize], "{doppler} Hz");
        }
    }
}

/// The complex gain of a link by definition: the sum over all sinusoids of all taps.
fn by_definition(taps: &[Tap], profile: &Profile, frequency_hz: f64, slot: f64) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (tap, (delay, power)) in taps.iter().zip(&profile.taps) {
        for (start, rate) in tap.start.iter().zip(&tap.rate) {
            let (sin, cos) = libm::sincos(TAU * (start + rate * slot - frequency_hz * delay));
            let amplitude = (power / SINUSOIDS as f64).sqrt();
            (sum.0, sum.1) = (sum.0 + amplitude * cos, sum.1 + amplitude * sin);
        }
    }
    sum
}

#[test]
fn gains_are_those_of_the_sinusoids_at_every_speed() {
    let frequencies = subband_centres(100, 4, 180e3);
    for name in ["EPA", "ETU"] {
        let profile = Profile::named(name).unwrap();
        let model = FadingModel::new(profile.clone(), &frequencies, Numerology::LTE);
        let (mut worst, mut interpolated) = (0.0f64, 0);
        for (index, doppler) in
            [0.0, 0.3, 0.7, 1.8, 2.9, 5.559, 5.96, 11.9, 23.8, 24.0, 70.0].into_iter().enumerate()
        {
            let mut fader = fader(&model, doppler, index as u64);
            // The taps before the fader shifts them.
            let mut stream = Stream::new(1, &format!("station{index}/fading"));
            let drawn: Vec<Tap> =
                profile.taps.iter().map(|_| Tap::new(1e-3 * doppler, &mut stream)).collect();
            interpolated += u32::from(fader.spacing > 0);
            for slot in (0..700).chain(3_600_000..3_600_300) {
                let gains = response(&mut fader, &model, slot);
                for at in [0, 7, 24] {
                    let exact = by_definition(&drawn, &profile, frequencies[at], slot as f64);
                    let error = libm::hypot(gains[at].0 - exact.0, gains[at].1 - exact.1);
                    worst = worst.max(error);
                }
            }
        }
        // The mean power is 1.
        assert!(worst < 5e-4, "{name} {worst}");
        assert_eq!(interpolated, 9, "up to 23.9 Hz");
    }
}

#[test]
fn stepped_phases_agree_with_exact_ones_after_a_day() {
    let model = FadingModel::new(flat(), &[0.0], Numerology::LTE);
    let mut fader = fader(&model, 300.0, 3);
    for slot in [0, 255, 86_400_255, 86_400_128 + 77] {
        let tap = &fader.taps[0];
        let exact = tap.start.iter().zip(&tap.rate).fold((0.0, 0.0), |sum, (start, rate)| {
            let turns = start + rate * slot as f64;
            let (sin, cos) = libm::sincos(TAU * (turns - turns.floor()));
            (sum.0 + cos / 4.0, sum.1 + sin / 4.0)
        });
        let got = response(&mut fader, &model, slot)[0];
        assert!((got.0 - exact.0).abs() < 2e-5 && (got.1 - exact.1).abs() < 2e-5, "{slot}");
    }
}

#[test]
fn a_station_without_doppler_has_a_constant_channel() {
    let model = FadingModel::new(Profile::named("EPA").unwrap(), &[0.0, 1e6], Numerology::LTE);
    let mut fader = fader(&model, 0.0, 1);
    let (first, later) = (powers::<2>(&mut fader, &model, 0), powers::<2>(&mut fader, &model, 77_777));
    assert!(first.iter().zip(later).all(|(a, b)| (a - b).abs() < 1e-5) && first[0] != first[1]);
}

#[test]
fn golden_values_hold_on_every_machine() {
    let model = FadingModel::new(Profile::named("EVA").unwrap(), &[-2e6, 0.0, 2e6], Numerology::LTE);
    let golden = |doppler| powers::<3>(&mut fader(&model, doppler, 9), &model, 123_456_789).map(f32::to_bits);
    assert_eq!([golden(55.6), golden(5.56)], GOLDEN, "at every slot, and between nodes");
}
/// Bits of the gains, measured once with this test.
const GOLDEN: [[u32; 3]; 2] = [[1054449477, 1041744292, 1059710663], [1050677994, 1038716228, 1032890951]];

/// At 28 GHz and 30 km/h the Doppler frequency is 778 Hz. The autocorrelation follows time, not slots: after
/// 0.5 ms, four slots of 120 kHz or one of 30 kHz, it is J0(2.445) = -0.022. Groups of 16 PRBs of 120 kHz are
/// 23 MHz apart, far beyond the coherence bandwidth of TDL-A30.
#[test]
fn millimetre_waves_fade_by_time_and_group() {
    let doppler = doppler_hz(30.0, 28.0);
    assert!((doppler - 778.3).abs() < 0.1, "{doppler}");
    for (mu, slots) in [(3, 4), (1, 1), (3, 1)] {
        let numerology = Numerology::new(mu).unwrap();
        let centres = subband_centres(66, 16, numerology.prb_hz());
        assert_eq!(centres.len(), 5);
        assert!((centres[1] - centres[0] - 16.0 * numerology.prb_hz()).abs() < 1e-3);
        let model = FadingModel::new(Profile::named("TDLA30").unwrap(), &centres, numerology);
        let n = 8_000;
        let mut sum = 0.0;
        for index in 0..n {
            let mut fader = fader(&model, doppler, index);
            let first = response(&mut fader, &model, 1000)[0];
            let later = response(&mut fader, &model, 1000 + slots)[0];
            sum += first.0 * later.0 + first.1 * later.1;
        }
        let expected = libm::j0(TAU * doppler * slots as f64 * numerology.slot_seconds());
        // Standard error 1/sqrt(8,000) = 0.011.
        assert!((sum / n as f64 - expected).abs() < 0.045, "{mu} {} {expected}", sum / n as f64);
    }
}
