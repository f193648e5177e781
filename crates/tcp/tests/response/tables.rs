//! Tables 1 to 3 of RFC 9438 §5, for Reno and for CUBIC with C = 0.4.

use super::law::law;
use super::response;
use paceline_net::Duration;
use paceline_tcp::{CwndUnit, Variant};

/// One entry of a table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// 1, 2 or 3.
    pub table: u32,
    pub variant: Variant,
    pub rtt: Duration,
    /// Segments between two losses: 1/p.
    pub period: u64,
    /// The average window as printed, in segments.
    pub printed: f64,
}

impl Entry {
    /// The average window by §5 (equation 5 for C = 0.4 and beta = 0.7, the Reno-friendly region, and RFC
    /// 3649's 1.2/sqrt(p) for Reno).
    pub fn formula(&self) -> f64 {
        let period = self.period as f64;
        let reno = 1.2 * period.sqrt();
        let cubic = cubic_factor() * libm::pow(self.rtt.as_secs_f64() * period, 0.75);
        if self.variant == Variant::Cubic { reno.max(cubic) } else { reno }
    }
    /// The window at which the loss comes: the average of Reno's straight line is 3/4 of it, in CUBIC's
    /// Reno-friendly region 0.85, of CUBIC's curve 0.925.
    fn peak(&self) -> f64 {
        let reno = 1.2 * (self.period as f64).sqrt();
        let below = match self.variant {
            Variant::Cubic if self.formula() > reno => 0.925,
            Variant::Cubic => 0.85,
            _ => 0.75,
        };
        self.formula() / below
    }
    /// By the control's law alone, in this unit, over `periods` losses.
    pub fn by_law(&self, unit: CwndUnit, periods: u64) -> f64 {
        law(self, unit, self.peak().round() as u64, periods)
    }
    /// By simulation of whole endpoints, over `periods` losses.
    pub fn simulated(&self, unit: CwndUnit, periods: u64) -> f64 {
        response(self, unit, self.peak().round() as u64, periods)
    }
}

/// The fourth root of C (3 + beta) / 4 (1 - beta).
fn cubic_factor() -> f64 {
    libm::pow(0.4 * 3.7 / 1.2, 0.25)
}

/// Tables 1 and 2, loss rates from 1e-2 down to 1e-8.
const WINDOWS: [(u64, [f64; 7], [f64; 7]); 2] = [
    (
        100,
        [12.0, 38.0, 120.0, 379.0, 1200.0, 3795.0, 12_000.0],
        [12.0, 38.0, 187.0, 1054.0, 5926.0, 33_325.0, 187_400.0],
    ),
    (
        10,
        [12.0, 38.0, 120.0, 379.0, 1200.0, 3795.0, 12_000.0],
        [12.0, 38.0, 120.0, 379.0, 1200.0, 5926.0, 33_325.0],
    ),
];
/// Table 3, for 1500 bytes and 100 ms: Mb/s, average window, and the loss rates of Reno and CUBIC that give
/// them.
const LOSS_RATES: [(f64, f64, f64, f64); 5] = [
    (1.0, 8.3, 2.0e-2, 2.0e-2),
    (10.0, 83.3, 2.0e-4, 2.9e-4),
    (100.0, 833.3, 2.0e-6, 1.4e-5),
    (1000.0, 8333.3, 2.0e-8, 6.3e-7),
    (10_000.0, 83_333.3, 2.0e-10, 2.9e-8),
];
const VARIANTS: [Variant; 2] = [Variant::NewReno, Variant::Cubic];

/// Entries of tables 1 and 2 at one loss in 10^`exponent`.
pub fn windows(exponent: u32) -> Vec<Entry> {
    let at = exponent as usize - 2;
    let rows = WINDOWS.iter().zip(1..).flat_map(|((rtt, reno, cubic), table)| {
        VARIANTS.iter().zip([reno[at], cubic[at]]).map(move |(variant, printed)| Entry {
            table,
            variant: *variant,
            rtt: Duration::from_millis(*rtt),
            period: 10u64.pow(exponent),
            printed,
        })
    });
    rows.collect()
}

/// The entries of table 3 with at most `longest` segments between two losses. The loss rates are printed with
/// two digits, a rounding of up to 2.5% of a window; the entries have the rates before rounding.
pub fn loss_rates(longest: u64) -> Vec<Entry> {
    let rows = LOSS_RATES.iter().flat_map(|(_, window, reno, cubic)| {
        VARIANTS.iter().zip([reno, cubic]).map(move |(variant, printed)| {
            let by_reno = libm::pow(1.2 / window, 2.0);
            let by_cubic = 0.1 * libm::pow(cubic_factor() / window, 4.0 / 3.0);
            let rate = if *variant == Variant::Cubic { by_reno.max(by_cubic) } else { by_reno };
            assert!((rate / printed - 1.0).abs() < 0.05, "{variant}: {rate:e} is printed as {printed:e}");
            Entry {
                table: 3,
                variant: *variant,
                rtt: Duration::from_millis(100),
                period: (1.0 / rate).round() as u64,
                printed: *window,
            }
        })
    });
    rows.filter(|entry| entry.period <= longest).collect()
}

/// The average window of the model where both of CUBIC's curves matter. The tables have the larger of two
/// averages, but the window is the larger curve at each moment (§4.3), whose average is larger where the
/// curves cross. Computed by integration over the cycle that ends at its own peak.
pub fn both_curves(rtt: Duration, period: u64) -> f64 {
    const STEPS: u32 = 2000;
    let (rtt, target) = (rtt.as_secs_f64(), period as f64);
    // Segments and duration of the cycle with this peak.
    let cycle = |peak: f64| {
        let k = libm::cbrt(0.3 * peak / 0.4);
        let alpha = 3.0 * 0.3 / 1.7;
        let end = k.min(0.3 * peak * rtt / alpha);
        let window = |t: f64| (peak + 0.4 * (t - k) * (t - k) * (t - k)).max(0.7 * peak + alpha * t / rtt);
        let step = end / f64::from(STEPS);
        let sum: f64 = (0..STEPS).map(|i| window((f64::from(i) + 0.5) * step)).sum();
        (sum * step / rtt, end)
    };
    let (mut low, mut high) = (1.0, 1e7);
    for _ in 0..100 {
        let peak = (low + high) / 2.0;
        if cycle(peak).0 < target { low = peak } else { high = peak }
    }
    target * rtt / cycle(low).1
}
