//! One direction of a connection: the data of one sender, and the ACKs of these.
//!
//! `events` takes segments and ACKs, `losses` classifies segments that were sent again, `time` divides the
//! sender's lifetime among the causes.

mod counts;
mod events;
mod losses;
mod state;
mod time;
mod view;

pub use counts::Losses;
pub use state::Sender;
pub use time::NEAR_PARTS;
