//! The radio of pairs: positions of the stations (`motion`), the links that follow from them (`channel`), and
//! the slots, resource blocks and distances of the carrier (`carrier`).

mod air;
mod carrier;
mod channel;
mod motion;

pub(super) use air::{AIRS, Air};
pub(super) use carrier::Radio;
pub use carrier::{Carrier, ResourcePool};
pub use channel::{LinkBudget, RadioLink};
pub use motion::Motion;
