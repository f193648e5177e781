//! Congestion control.
//!
//! A sender gives its control an [`AckSample`] for every acknowledgment and a [`CongestionEvent`] for every
//! change of the congestion state, and gets window and pacing rate. The detection of losses and the
//! window during a recovery (RFC 9937) are the sender's. One file for each algorithm, in folders by the
//! signal that it uses; a new one is added to [`Variant`] and
//! [`Controller`], or given to an endpoint from outside as [`OwnControl`].

mod bbr;
mod control;
mod controller;
mod delay_based;
mod ecn_based;
mod external;
mod loss_based;
mod variant;
mod window;

pub use bbr::{Bbr, Bbr3};
pub use control::{AckSample, AnyControl, CongestionControl, CongestionEvent, Ecn, LossSample, RateSample};
pub use controller::{ControlParameters, Controller, OwnControl};
pub use delay_based::{Illinois, Vegas, Veno};
pub use ecn_based::{Dctcp, Prague};
pub use external::{External, Interval, RttInterval, Setting};
pub use loss_based::{Abc, Cubic, Reno, SlowStartExit, Tahoe, Westwood, WestwoodPlus};
pub use variant::{ParseVariantError, Variant};
pub use window::CwndUnit;

#[cfg(test)]
mod tests;
