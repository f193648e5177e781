//! Propagation between two antennas: the gain of a link in dB, and its variation over time and frequency.
//!
//! - [`path_loss`]: mean loss, probability of line of sight, parameters of shadowing (TR 36.814, TR 38.901).
//! - [`antenna`]: patterns of the sectors.
//! - [`shadowing`]: log-normal deviation, correlated between sites and along a station's way.
//! - [`fading`]: EPA, EVA and ETU channels with Doppler, per subband and slot (TS 36.101 Annex B.2).

pub mod antenna;
pub mod fading;
pub mod path_loss;
pub mod shadowing;
