//! Generated drives through cellular networks: rates of a car's links, with the spread and the correlation of
//! measured SINRs, and with handovers.
//!
//! The SINR in dB is a normal process of two Ornstein-Uhlenbeck processes, for the place and for fading. The
//! rate is the truncated Shannon bound of the SINR (TR 36.942 §A.2) in the spectrum of the network, times a
//! log-normal share for the load of the cells. A handover interrupts the link, and the process of the place
//! begins anew, since the SINR of the next cell says little about that of the last one.
//!
//! Spread, correlation and handovers are those of 16 drives with 5.7 hours in 5G and LTE (D. Raca et al.,
//! "Beyond Throughput, The Next Generation", MMSys 2020, uccmisl/5Gdataset): standard deviation of the SINR
//! 8.2 dB in LTE and 8.9 dB in 5G; autocorrelation over 1, 5, 10, 20 and 40 s 0.86, 0.66, 0.58, 0.47 and 0.31
//! (mean of both); 0.25 over a change of the cell; autocorrelation of the logarithm of the rate 0.4 over 1 s
//! and 0.1 over 2 s; a change of the cell every 29 s; mean speed 32 km/h. Times are those of [`SPEED_KMH`],
//! in inverse proportion to the speed.
//!
//! Mean SINR, load and spectrum of each network are fitted to the quantiles of [`DRIVES`], three values for
//! three; all are met within 15%, in the mean rates of seconds. Left out: the correlation of load with place,
//! and a rate that depends on the sent traffic.

use super::log_rate::OrnsteinUhlenbeck;
use paceline_net::Stream;

/// The network of a drive, in one direction.
pub(super) struct Drive {
    /// Name of the kind of trace.
    pub name: &'static str,
    /// Mean and standard deviation of the SINR, dB.
    sinr: (f64, f64),
    /// Standard deviation of the logarithm of the station's share of the cell.
    load: f64,
    /// Spectrum times its median share, Hz.
    spectrum: f64,
    /// Median length of an interruption by a handover, ms.
    interruption: f64,
    /// The published 10%, 50% and 90% of the rate, Mb/s.
    #[cfg_attr(not(test), expect(dead_code, reason = "the fit is tested"))]
    quantiles: [f64; 3],
}

const fn drive(
    name: &'static str,
    sinr: (f64, f64),
    (load, spectrum): (f64, f64),
    interruption: f64,
    quantiles: [f64; 3],
) -> Drive {
    Drive { name, sinr, load, spectrum, interruption, quantiles }
}

/// The drives. An uplink has the places and handovers of the downlink with its seed. Quantiles and
/// interruptions of NSA and SA: TCP and handovers of M. Ghoshal et al., "A First Large-Scale Study of
/// Operational 5G Standalone Networks" (CoNEXT 2025, figs. 5a, 6a, 14b); the other quantiles:
/// mssn/INFOCOM23-5GMeas (a3c064b), with the interruptions of NSA. Derived: the other values by a fit.
pub(super) const DRIVES: [Drive; 7] = [
    drive("drive-nsa", (4.5, OF_5G), (0.3, 162.0e6), 20.0, [36.0, 197.0, 536.0]),
    drive("drive-nsa-uplink", (0.0, OF_5G), (0.1, 66.0e6), 20.0, [3.3, 31.0, 91.0]),
    drive("drive-sa", (2.5, OF_5G), (0.0, 317.9e6), 45.0, [48.0, 320.0, 834.0]),
    drive("drive-sa-uplink", (1.8, OF_5G), (0.1, 57.5e6), 45.0, [4.6, 36.0, 89.0]),
    drive("drive-5g", (9.0, OF_5G), (0.8, 38.8e6), 20.0, [16.5, 75.0, 242.0]),
    drive("drive-lte", (13.0, OF_LTE), (1.6, 4.62e6), 20.0, [2.0, 14.0, 94.0]),
    drive("drive-mmwave", (3.5, OF_5G), (0.3, 95.0e6), 20.0, [17.7, 102.0, 293.0]),
];
/// End of the names of uplinks.
const UPLINK: &str = "-uplink";
/// Standard deviations of the SINR in 5G and LTE, dB. Measured: see the module's text.
const OF_5G: f64 = 8.9;
const OF_LTE: f64 = 8.2;
/// Part of its variance that belongs to the place. Measured: the autocorrelation over 5 s and more begins at
/// 0.7.
const OF_PLACE: f64 = 0.7;
/// Speed of the car. Chosen: that of highways, on which most of the drives of NSA and SA went.
const SPEED_KMH: f64 = 100.0;
/// Speed of the measured times.
const MEASURED_KMH: f64 = 32.0;
/// Time constant of the SINR of the place, ms at the measured speed. With the handovers, which shorten it,
/// the autocorrelation is 0.5, 0.4 and 0.2 over 5, 10 and 20 s.
const PLACE_MS: f64 = 40_000.0;
/// Time constant of fading, likewise.
const FADING_MS: f64 = 1_500.0;
/// Time constant of the load, ms. Measured: the autocorrelation of the logarithm of the rate over 1 s.
const LOAD_MS: f64 = 1_100.0;
/// Mean time between handovers, ms at the measured speed.
const HANDOVER_MS: f64 = 29_000.0;
/// Share of the Shannon bound and largest spectral efficiency in bit/s/Hz, of downlink and uplink, and least
/// SINR in dB (TR 36.942 Table A.2).
const DOWNLINK: (f64, f64) = (0.6, 4.4);
const OF_UPLINK: (f64, f64) = (0.4, 2.0);
const LEAST_DB: f64 = -10.0;

impl Drive {
    /// Rates in b/s in the milliseconds of a drive from 1 on.
    pub fn rates(&self, seed: u64) -> impl Iterator<Item = f64> {
        let network = self.name.strip_suffix(UPLINK).unwrap_or(self.name);
        let stream = |part: &str| Stream::new(seed, &format!("trace/{network}/{part}"));
        let slower = SPEED_KMH / MEASURED_KMH;
        let process = |ms: f64, part: &str| OrnsteinUhlenbeck::new(1.0 / ms, stream(part));
        let mut place = process(PLACE_MS / slower, "place");
        let mut fading = process(FADING_MS / slower, "fading");
        let mut load = process(LOAD_MS, "load");
        let mut handovers = stream("handovers");
        let mut next = handovers.exponential(HANDOVER_MS / slower);
        let mut resumes = 0.0;
        let Self { sinr: (mean_db, sigma_db), load: of_load, spectrum, interruption, .. } = *self;
        let curve = if self.name.ends_with(UPLINK) { OF_UPLINK } else { DOWNLINK };
        (1_u32..).map(move |ms| {
            let ms = f64::from(ms);
            if ms >= next {
                resumes = next + interruption;
                next = resumes + handovers.exponential(HANDOVER_MS / slower);
                place.restart();
            }
            let deviation = libm::sqrt(OF_PLACE) * place.step() + libm::sqrt(1.0 - OF_PLACE) * fading.step();
            let share = libm::exp(of_load * load.step());
            let sinr_db = mean_db + sigma_db * deviation;
            if ms < resumes { 0.0 } else { spectrum * share * efficiency(sinr_db, curve) }
        })
    }
}

/// Spectral efficiency at a SINR in dB, bit/s/Hz.
fn efficiency(sinr_db: f64, (share, largest): (f64, f64)) -> f64 {
    if sinr_db < LEAST_DB {
        return 0.0;
    }
    largest.min(share * libm::log2(1.0 + libm::exp(sinr_db * std::f64::consts::LN_10 / 10.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of the rate over the seconds of drives of two minutes, Mb/s.
    fn seconds(drive: &Drive, seeds: std::ops::Range<u64>) -> Vec<f64> {
        let mbps = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64 / 1e6;
        let of = |seed| {
            let rates: Vec<f64> = drive.rates(seed).take(120_000).collect();
            rates.chunks(1000).map(mbps).collect::<Vec<_>>()
        };
        seeds.flat_map(of).collect()
    }

    #[test]
    fn quantiles_of_the_rate_are_within_15_percent_of_the_measured_ones() {
        for drive in &DRIVES {
            let mut rates = seconds(drive, 1..81);
            rates.sort_by(f64::total_cmp);
            for (share, measured) in [0.1, 0.5, 0.9].into_iter().zip(drive.quantiles) {
                let ours = rates[(share * rates.len() as f64) as usize];
                println!("{} {share}: {ours:.1} of {measured} Mb/s", drive.name);
                assert!((ours / measured - 1.0).abs() < 0.15, "{} {share}: {ours} of {measured}", drive.name);
            }
        }
    }

    #[test]
    fn an_uplink_falls_and_is_interrupted_with_its_downlink() {
        let [down, up] = [&DRIVES[2], &DRIVES[3]].map(|drive| seconds(drive, 1..11));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let [of_down, of_up] = [mean(&down), mean(&up)];
        let product: f64 = down.iter().zip(&up).map(|(a, b)| (a - of_down) * (b - of_up)).sum();
        let square = |values: &[f64], mean: f64| values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        let correlation = product / libm::sqrt(square(&down, of_down) * square(&up, of_up));
        assert!(correlation > 0.9, "{correlation}");
        let silent = |drive: &Drive| drive.rates(1).take(120_000).map(|rate| rate == 0.0).collect::<Vec<_>>();
        let both = silent(&DRIVES[2]).into_iter().zip(silent(&DRIVES[3]));
        // SINRs below the least one are silent too.
        assert!(both.filter(|(down, up)| down != up).count() < 6000);
    }
}
