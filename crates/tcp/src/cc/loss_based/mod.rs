//! Congestion controls whose signal is loss.
//!
//! They grow a window until a loss and then reduce it: to half (`reno`, `tahoe`), to 0.7 (`cubic`), or to an
//! estimate of bandwidth times smallest RTT (`westwood`, `westwood_plus`). `cubic_curve` is CUBIC's growth in
//! bytes; `hystart` and `hystart_pp` end its slow start before a loss.

mod cubic;
mod cubic_curve;
mod hystart;
mod hystart_pp;
mod reno;
mod tahoe;
mod westwood;
mod westwood_plus;

pub use cubic::{Cubic, SlowStartExit};
pub use reno::{Abc, Reno};
pub use tahoe::Tahoe;
pub use westwood::Westwood;
pub use westwood_plus::WestwoodPlus;
