//! Propagation between two antennas: the gain of a link in dB, and its variation over time and frequency.
//!
//! - [`path_loss`]: mean loss, probability of line of sight, parameters of shadowing (TR 36.814, TR 38.901).
//! - [`rural_indoor`]: the rural and indoor models of TR 38.901 that `path_loss` has as variants.
//! - [`antenna`]: patterns of the sectors.
//! - [`shadowing`]: log-normal deviation, correlated between sites and along a station's way.
//! - [`fading`]: EPA, EVA and ETU channels with Doppler, per subband and slot (TS 36.101 Annex B.2).
//! - [`blockage`]: loss by people and vehicles around the station (TR 38.901 §7.6.4).

pub mod antenna;
pub mod blockage;
pub mod fading;
pub mod path_loss;
pub mod rural_indoor;
pub mod shadowing;
