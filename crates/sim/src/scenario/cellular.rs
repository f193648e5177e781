//! Tables `[link.hspa]` and `[link.lte_early]`: the mobile channels of K. Liu and J. Y. B. Lee, "Mobile Accelerator"
//! (2011), as processes that a UDP probe cannot tell from the published ones. Each name is a set of defaults for the
//! same keys.
//!
//! Sources: a probe's round-trip times and losses at eight rates each, as published, give `delay`, `queue`, the mean
//! rate, and how delay and loss grow with the load. HSPA's peak is a format: a category 8 receiver takes 21 RLC blocks of
//! 640 bits each 2 ms, 6.72 Mb/s of the nominal 7.2, and one first transmission in ten fails. That its radio would carry as
//! much on average, and is cut there, follows from row 2a: TCP was delivered 5.19 Mb/s; where the probe's queue was full it
//! was 3.5 to 4.1, which is `congested_share`. Standard deviation and coherence of the rate, and from which queue on it is
//! congested, were chosen together so that a probe finds the queue empty at 3.2 Mb/s, long at times at 4.0 and always at
//! 4.8, where it once was; rates vary over hundreds of milliseconds, as published, and a second.
//!
//! **Delay ahead of the queue.** HSPA's layer 2 delivers in order (MAC-hs, 3GPP TS 25.321, section 11.6.2; RLC in acknowledged
//! mode, TS 25.322): what follows a block that is sent again waits for it (`error_percent`, `error_delay`). A probe then sees
//! its round trips grow with its rate, as published, since more of it waits; trains of packets, which TCP sends, wait
//! longer than a probe of the same rate. Share and delay were chosen so that the probe's round trips stay within a fifth of
//! the published ones and the plateau of row 2b, a round trip of 85 to 97 ms where the probe's takes 69, is met. On early LTE
//! delay grows in proportion to the load (`load_delay`), which fits its probe as well as blocks that are late would; with
//! those the published rate control falls short of its row 2f.
//!
//! Not published, so ours: the distribution of the rate (log-normal, cut at the peak), and how losses come. A probe's
//! means do not see the last; that losses come as fades, which lose everything for a while, is suggested by what the paper
//! says of single events on 3G: after one, a probe loses an eighth of its throughput and CUBIC 85%, as after a timeout and
//! not as after a fast retransmission. On HSPA a fade is an eighth of a second and a little; on LTE its length was chosen
//! from 150, 200 and 280 ms so that the TCP of that time (`linux-2.6`, a client that is Windows XP) falls into its published
//! range in all four conditions. What the published accelerator reaches was looked at with all of these: rows 2a, 2b, 2c and
//! 2g decided between choices that the probe liked as well (a queue that is congested from less on breaks 2g). Seeds 1 to 10
//! and 41 to 50 were looked at for the choice. None of these rows is a prediction of this model.
//!
//! What no set of parameters gives, since the channel stays the same from run to run: less delivered at 4.8 Mb/s than at 5.6
//! (3.50 and 4.12), and an accelerated source that falls short by 6% at 4.8 and gets more at 5.6.

use paceline_net::{Bytes, Duration, Rate};
use serde::{Deserialize, Deserializer, Serialize};

/// Propagation delay one way and queue of HSPA.
pub(super) const HSPA_PATH: (Duration, Bytes) = (Duration::from_micros(25_750), Bytes(330_000));
/// The same of early LTE.
pub(super) const LTE_EARLY_PATH: (Duration, Bytes) = (Duration::from_micros(11_000), Bytes(11_000_000));

macro_rules! table {
    ($($(#[$doc:meta])* $key:ident: $type:ty = $hspa:expr, $lte:expr;)*) => {
        /// Table `[link.hspa]` or `[link.lte_early]`; the defaults of both are in the source.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        pub struct Cellular {
            $($(#[$doc])* pub $key: $type,)*
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            $(#[serde(default)] $key: Option<$type>,)*
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
    /// Mean rate of the downlink, before it is cut at the peak.
    rate: Rate = Rate(6_050_000), Rate(59_500_000);
    /// The most that it ever is: the channel's peak.
    peak_rate: Rate = Rate(6_050_000), Rate(150_000_000);
    /// Standard deviation of the logarithm of the rate.
    rate_sigma: f64 = 0.25, 0.2;
    /// Time in which the rate forgets itself (its correlation falls to 1/e).
    coherence: Duration = Duration::from_secs(1), Duration::from_millis(300);
    /// Rate of the uplink, which does not vary.
    uplink_rate: Rate = Rate(2_000_000), Rate(20_000_000);
    /// Percent of the downlink packets with a block that has to be sent again.
    error_percent: f64 = 12.0, 0.0;
    /// How much later these come; what was sent meanwhile waits for them, since layer 2 delivers in order.
    error_delay: Duration = Duration::from_millis(50), Duration::ZERO;
    /// Delay added downlink at a load of 1, in proportion up to `load_full`; the load is what was sent of late over the
    /// mean rate.
    load_delay: Duration = Duration::ZERO, Duration::from_millis(85);
    /// Percent of the downlink packets lost without congestion at every load.
    loss_percent: f64 = 0.02, 0.01;
    /// Percent that would be lost besides at a load of 1; in proportion from `load_loss_from` to `load_full`.
    load_loss_percent: f64 = 0.5, 18.2;
    /// Load from which on the loss grows.
    load_loss_from: f64 = 0.3, 0.085;
    /// Load from which on neither delay nor loss grows: the published probes saw none above it but with a full queue.
    load_full: f64 = 0.68, 0.68;
    /// Mean length of a burst of losses: a fade.
    loss_burst: Duration = Duration::from_millis(150), Duration::from_millis(200);
    /// Percent of the packets that are lost within a burst.
    burst_loss_percent: f64 = 100.0, 100.0;
    /// Share of the rate that is left while the queue holds more than `congested_queue`: what layer 2 discards half
    /// sent, or repeats needlessly.
    congested_share: f64 = 0.695, 1.0;
    /// Bytes in the queue from which on that holds.
    congested_queue: Bytes = Bytes(83_000), Bytes(8_000_000);
}

impl Cellular {
    pub(super) fn read_hspa<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::read(deserializer, Self::hspa())
    }
    pub(super) fn read_lte_early<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        Self::read(deserializer, Self::lte_early())
    }
}
