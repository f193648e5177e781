//! The sums over transfers that an experiment keeps of each device, by size of transfer.

use paceline_net::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Sizes of transfers in bytes: each class ends below its bound. Chosen: decades, from one window of a new
/// connection (10 segments, RFC 6928) to transfers that last.
pub const SIZES: [(&str, u64); 5] = [
    ("below 10 kB", 10_000),
    ("10 to 100 kB", 100_000),
    ("100 kB to 1 MB", 1_000_000),
    ("1 to 10 MB", 10_000_000),
    ("10 MB and more", u64::MAX),
];

/// A transfer to a device, as the observer saw it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The device, as by [`super::device_of`].
    pub device: IpAddr,
    /// Payload bytes that the device acknowledged.
    pub bytes: u64,
    /// From the device's request to its acknowledgment of the last byte.
    pub time: Duration,
    /// Mean round-trip time between the interface and the device, of at least one sample.
    pub rtt: Option<Duration>,
    /// Payload bytes sent to the device.
    pub sent: u64,
    /// Payload bytes among them that had been sent before.
    pub repeated: u64,
    /// Whether all that was sent was acknowledged. Of other transfers only the number counts.
    pub finished: bool,
    /// When its connection was opened.
    pub opened_at: Instant,
    /// When it began, by the device's request.
    pub began_at: Instant,
}

/// Sums over a device's transfers of one size.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClassSums {
    /// Finished transfers.
    pub transfers: u32,
    /// Sum of the logarithms of goodput in b/s.
    pub log_goodput: f64,
    /// Sum of the logarithms of the time in seconds.
    pub log_time: f64,
    /// Transfers with a round-trip time.
    pub timed: u32,
    /// Sum of the logarithms of the mean round-trip time in seconds.
    pub log_rtt: f64,
    /// Payload bytes sent.
    pub sent: u64,
    /// Payload bytes that were repeated.
    pub repeated: u64,
}

/// Sums over a device's transfers.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DeviceSums {
    /// By size of transfer.
    pub classes: [ClassSums; SIZES.len()],
    /// Transfers that did not finish.
    pub unfinished: u32,
}

impl ClassSums {
    fn plus(mut self, other: &Self) -> Self {
        self.transfers += other.transfers;
        self.log_goodput += other.log_goodput;
        self.log_time += other.log_time;
        self.timed += other.timed;
        self.log_rtt += other.log_rtt;
        self.sent += other.sent;
        self.repeated += other.repeated;
        self
    }
    fn add(&mut self, transfer: &Measured) {
        // Chosen: a microsecond is below the resolution of the clocks, and keeps logarithms finite.
        let seconds = transfer.time.as_secs_f64().max(1e-6);
        self.transfers = self.transfers.saturating_add(1);
        self.log_time += libm::log(seconds);
        self.log_goodput += libm::log(8.0 * transfer.bytes as f64 / seconds);
        if let Some(rtt) = transfer.rtt {
            self.timed += 1;
            self.log_rtt += libm::log(rtt.as_secs_f64().max(1e-6));
        }
        self.sent += transfer.sent;
        self.repeated += transfer.repeated;
    }
}

impl DeviceSums {
    /// Adds a transfer.
    pub fn add(&mut self, transfer: &Measured) {
        if !transfer.finished {
            self.unfinished = self.unfinished.saturating_add(1);
        } else if transfer.bytes > 0 {
            let class =
                SIZES.iter().position(|(_, below)| transfer.bytes < *below).unwrap_or(SIZES.len() - 1);
            self.classes[class].add(transfer);
        }
    }
    /// The sums over one class of sizes, or over all.
    pub fn of(&self, class: Option<usize>) -> ClassSums {
        match class {
            Some(class) => self.classes[class],
            None => self.classes.iter().fold(ClassSums::default(), |sum, class| sum.plus(class)),
        }
    }
    /// Mean logarithm of the transfers' sizes in bytes; None without transfers.
    pub fn log_size(&self) -> Option<f64> {
        let all = self.of(None);
        let count = f64::from(all.transfers);
        // Goodput is bits by seconds.
        (all.transfers > 0).then(|| (all.log_goodput + all.log_time) / count - libm::log(8.0))
    }
    /// Finished transfers.
    pub fn transfers(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(class.transfers)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_summed_by_size() {
        let mut sums = DeviceSums::default();
        let transfer = |bytes, ms, finished| Measured {
            device: [10, 0, 0, 1].into(),
            bytes,
            time: Duration::from_millis(ms),
            rtt: (ms > 100).then_some(Duration::from_millis(50)),
            sent: bytes + 100,
            repeated: 100,
            finished,
            opened_at: Instant::ZERO,
            began_at: Instant::ZERO,
        };
        for measured in [
            transfer(9_999, 100, true),
            transfer(10_000, 1000, true),
            transfer(40_000, 2000, true),
            transfer(5, 1, false),
        ] {
            sums.add(&measured);
        }
        let [small, medium] = [sums.of(Some(0)), sums.of(Some(1))];
        assert_eq!((small.transfers, medium.transfers, sums.unfinished), (1, 2, 1));
        // 80 and 160 kb/s: the geometric mean is 80 times the root of 2.
        let goodput = libm::exp(medium.log_goodput / 2.0);
        assert!((goodput - 80_000.0 * std::f64::consts::SQRT_2).abs() < 1e-6, "{goodput}");
        assert!((libm::exp(medium.log_rtt / 2.0) - 0.05).abs() < 1e-12 && small.timed == 0);
        assert_eq!((sums.of(None).transfers, sums.of(None).repeated), (3, 300));
        let size = libm::cbrt(9_999.0 * 10_000.0 * 40_000.0);
        assert!((libm::exp(sums.log_size().unwrap()) - size).abs() < 1e-6 * size);
    }
}
