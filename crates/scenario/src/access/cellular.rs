//! Tables `[link.hspa]` and `[link.lte_early]`: the mobile channels of K. Liu and J. Y. B. Lee, "Mobile
//! Accelerator" (2011), as random processes. A UDP probe of these processes measures the published figures.
//! Both tables have the same keys and differ in the defaults. The sources of the values are below.
//!
//! Left out: changes of a channel from run to run. Therefore no set of parameters delivers less at 4.8 Mb/s
//! than at 5.6 Mb/s (published: 3.50 and 4.12), or an accelerated source that falls short by 6% at 4.8 and
//! gains at 5.6.

use crate::limits::{self, Allowed, Limit, Section, key, numbers, quantities, rates, relation};
use paceline_net::{Bytes, Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

// Published and used: round-trip times and losses of a UDP probe at eight rates per channel. They give
// `delay`, `queue`, the mean rate, and the growth of delay and loss with the load.
//
// HSPA, rate. The peak follows from the format: a category 8 receiver takes 21 RLC blocks of 640 bits every 2
// ms, which is 6.72 Mb/s of the nominal 7.2, and one first transmission in ten fails. The mean rate is as
// high, and cut at the peak: in row 2a TCP was delivered 5.19 Mb/s, while the probe with a full queue was
// delivered 3.5 to 4.1 Mb/s, which is `congested_share`. `rate_sigma`, `coherence` and `congested_queue` were
// chosen together, so that the probe's queue is empty at 3.2 Mb/s, sometimes long at 4.0 Mb/s and always long
// at 4.8 Mb/s. Rates vary over hundreds of milliseconds (published) and a second.
//
// HSPA, delay. Layer 2 delivers in order (MAC-hs, 3GPP TS 25.321 §11.6.2; RLC AM, TS 25.322): packets behind
// a block that is retransmitted wait for it (`error_percent`, `error_delay`). A probe's round trips therefore
// grow with its rate, as published. Trains of packets, as TCP sends, wait longer than a probe of the same
// rate. Share and delay were chosen so that the probe's round trips are within a fifth of the published ones,
// and that row 2b has its plateau: a round trip of 85 to 97 ms where the probe's is 69 ms.
//
// Early LTE, delay. The delay grows in proportion to the load (`load_delay`), which fits the probe as well as
// retransmitted blocks do. With retransmitted blocks the published rate control falls short of row 2f.
//
// Chosen, since not published: the distribution of the rate (log-normal, cut at the peak), and that losses
// come in fades that lose every packet for a while. The paper suggests fades: after a single event on 3G a
// probe loses an eighth of its throughput and CUBIC 85%, as after a timeout and not as after a fast
// retransmission. The mean length of a fade is about an eighth of a second on HSPA. On LTE it was chosen from
// 150, 200 and 280 ms, so that the TCP of that time (profile `linux-2.6`, client Windows XP) is in its
// published range in all four conditions. Rows 2a, 2b, 2c and 2g of the published accelerator decided between
// values that fit the probe equally well (with a smaller `congested_queue` row 2g fails), with seeds 1 to 10
// and 41 to 50. These rows are therefore no predictions of the model.
//
// To compare with the published rows: `paceline reproduce accelerator --out DIR`.

/// Default propagation delay in one direction, and default queue, of HSPA. From the published probe.
pub(crate) const HSPA_PATH: (Duration, Bytes) = (Duration::from_micros(25_750), Bytes(330_000));
/// Default propagation delay in one direction, and default queue, of early LTE. From the published probe.
pub(crate) const LTE_EARLY_PATH: (Duration, Bytes) = (Duration::from_micros(11_000), Bytes(11_000_000));

/// Declares the table as a struct, with the defaults of HSPA and early LTE for each key, and as a file may
/// have it.
macro_rules! table {
    ($($(#[$doc:meta])* $key:ident: $type:ty = $hspa:expr, $lte:expr;)*) => {
        /// Table `[link.hspa]` or `[link.lte_early]`.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        pub struct Cellular {
            $($(#[$doc])* pub $key: $type,)*
        }

        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(transform = limits::order::<Self>, transform = limits::limit::<Cellular>)]
        struct File {
            $($(#[$doc])* #[serde(default)] $key: Option<$type>,)*
        }

        impl Cellular {
            /// HSPA at its defaults.
            pub fn hspa() -> Self {
                Self { $($key: $hspa,)* }
            }
            /// Early LTE at its defaults.
            pub fn lte_early() -> Self {
                Self { $($key: $lte,)* }
            }
            fn read<'de, D: Deserializer<'de>>(deserializer: D, defaults: Self) -> Result<Option<Self>, D::Error> {
                let file = File::deserialize(deserializer)?;
                Ok(Some(Self { $($key: file.$key.unwrap_or(defaults.$key),)* }))
            }
        }
    };
}

table! {
    /// Mean rate of the downlink before the cut at the peak.
    rate: Rate = Rate(6_050_000), Rate(59_500_000);
    /// Largest rate of the downlink.
    peak_rate: Rate = Rate(6_050_000), Rate(150_000_000);
    /// Standard deviation of the logarithm of the rate.
    rate_sigma: f64 = 0.25, 0.2;
    /// Correlation time of the rate (to 1/e).
    coherence: Duration = Duration::from_secs(1), Duration::from_millis(300);
    /// Constant rate of the uplink.
    uplink_rate: Rate = Rate(2_000_000), Rate(20_000_000);
    /// Share of downlink packets with a retransmitted block.
    error_percent: f64 = 12.0, 0.0;
    /// Additional delay of these packets and, since layer 2 delivers in order, of those behind them.
    error_delay: Duration = Duration::from_millis(50), Duration::ZERO;
    /// Additional downlink delay at a load of 1, in proportion up to `load_full`. The load is the rate sent
    /// in about 200 ms over the mean rate.
    load_delay: Duration = Duration::ZERO, Duration::from_millis(85);
    /// Share of the downlink packets that are lost at every load.
    loss_percent: f64 = 0.02, 0.01;
    /// Share of packets lost in addition at a load of 1, in proportion from `load_loss_from` to `load_full`.
    load_loss_percent: f64 = 0.5, 18.2;
    /// Load from which the additional loss grows.
    load_loss_from: f64 = 0.3, 0.085;
    /// Load from which neither delay nor loss grows, as in the published probes.
    load_full: f64 = 0.68, 0.68;
    /// Mean length of a burst of losses, a fade.
    loss_burst: Duration = Duration::from_millis(150), Duration::from_millis(200);
    /// Share of a burst's packets that are lost.
    burst_loss_percent: f64 = 100.0, 100.0;
    /// Share of the rate that remains while the queue is longer than `congested_queue`, since layer 2 then
    /// wastes blocks.
    congested_share: f64 = 0.695, 1.0;
    /// Queue length above which `congested_share` applies.
    congested_queue: Bytes = Bytes(83_000), Bytes(8_000_000);
}

impl Section for Cellular {
    fn limits() -> Vec<Limit<Self>> {
        let percent = || numbers(0.0..=99.0).unit("percent");
        let in_burst = |percent: &f64| *percent > 0.0 && *percent <= 100.0;
        let below_one = |load: &f64| (0.0..1.0).contains(load);
        vec![
            key!(rate, rates()),
            key!(peak_rate, rates()),
            relation!(peak_rate, "at least rate", |channel| channel.peak_rate >= channel.rate),
            key!(rate_sigma, numbers(0.0..=3.0)),
            key!(coherence, quantities("1 ms", "1000 s")),
            key!(uplink_rate, rates()),
            key!(load_delay, quantities("0 s", "10 s")),
            key!(error_delay, quantities("0 s", "10 s")),
            key!(error_percent, percent()),
            key!(loss_percent, percent()),
            key!(load_loss_percent, percent()),
            key!(burst_loss_percent, Allowed::new("more than 0, to 100", in_burst).unit("percent")),
            key!(load_loss_from, Allowed::new("0 to less than 1", below_one)),
            relation!(load_full, "load_loss_from to 1", |channel| {
                channel.load_full >= channel.load_loss_from && channel.load_full <= 1.0
            }),
            key!(loss_burst, quantities("1 us", "60 s")),
            key!(congested_share, numbers(0.001..=1.0)),
        ]
    }
}

impl Cellular {
    pub(crate) fn read_hspa<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::read(deserializer, Self::hspa())
    }
    pub(crate) fn read_lte_early<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        Self::read(deserializer, Self::lte_early())
    }
    pub(crate) fn hspa_schema(generator: &mut SchemaGenerator) -> Schema {
        Self::schema(generator, &Self::hspa())
    }
    pub(crate) fn lte_early_schema(generator: &mut SchemaGenerator) -> Schema {
        Self::schema(generator, &Self::lte_early())
    }
    fn schema(generator: &mut SchemaGenerator, defaults: &Self) -> Schema {
        let mut schema = File::json_schema(generator);
        limits::defaults(&mut schema, defaults);
        schema
    }
}
