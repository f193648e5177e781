//! A station in the deployment: its place, downlink interference, the fading of its links, and its uplink
//! power.

use super::blocked_path::BlockedPath;
use crate::decibel::from_db;
use crate::radio::fading::LANES;
use crate::radio::power_control::PuschTransmission;
use crate::radio::{DownlinkReceiver, Fader, FadingModel, Point, PowerControl, Station as Place};
use crate::rat::Quality;
use crate::slot::Slot;
use paceline_net::Stream;
use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) struct Placed {
    /// Name of the station in its random streams.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) receiver: DownlinkReceiver,
    pub(super) downlink_fading: Option<LinkFading>,
    pub(super) uplink_fading: Option<LinkFading>,
    /// Downlink and uplink fading of the links to cells that served the station before.
    pub(super) former_fading: BTreeMap<usize, (Option<LinkFading>, Option<LinkFading>)>,
    /// Sum of the TPC commands in dB: f of TS 36.213 §5.1.1.1.
    pub(super) tpc_correction_db: f64,
    pub(super) power: UplinkPower,
    /// Blockage of the path to the serving cell.
    pub(super) blockage: Option<BlockedPath>,
    /// Linear SINRs of the last CQI measurement, and its report: without fading the same SINRs recur.
    pub(super) last_cqi: (Vec<f64>, Quality),
}

impl Placed {
    /// Sets the blockage of a slot, which may be somewhat earlier than the last one.
    pub(super) fn go_to(&mut self, slot: Slot) {
        if let Some(blockage) = &mut self.blockage {
            let gain = blockage.gain(slot);
            self.receiver.set_path_gain(gain);
            self.power.own_gain = self.power.free_gain * gain;
        }
    }
    /// Position in metres from the served site.
    pub fn position(&self) -> Point {
        self.place.position()
    }
    /// Power control's parameters of a PUSCH transmission in `n_prb` PRBs.
    pub(super) fn pusch(&self, n_prb: u32) -> PuschTransmission {
        let path_loss_db = self.place.coupling_loss_db();
        let correction_db = self.tpc_correction_db;
        PuschTransmission { correction_db, ..PuschTransmission::open_loop(n_prb, path_loss_db) }
    }
    pub fn reset_tpc_correction(&mut self) {
        self.tpc_correction_db = 0.0;
        self.power.correct(0.0);
    }
    pub fn tpc_correction_db(&self) -> f64 {
        self.tpc_correction_db
    }
    pub fn coupling_loss_db(&self) -> f64 {
        self.place.coupling_loss_db()
    }
}

/// Uplink power and gains in linear units, for use in every slot.
pub(super) struct UplinkPower {
    /// Power in mW per PRB by the formula of TS 36.213 §5.1.1.1: without and with TPC commands.
    open_loop_mw: f64,
    unlimited_mw: f64,
    pcmax_mw: f64,
    minimum_mw: f64,
    /// Linear gains to the served cells.
    pub gains: Vec<f64>,
    /// Linear gain to the serving cell: the present one, and that without blockage.
    pub own_gain: f64,
    free_gain: f64,
}

impl UplinkPower {
    pub fn new(control: &PowerControl, place: &Place, served: usize) -> Self {
        let one_prb = PuschTransmission::open_loop(1, place.coupling_loss_db());
        let open_loop_mw = from_db(control.unlimited_dbm(&one_prb));
        Self {
            open_loop_mw,
            unlimited_mw: open_loop_mw,
            pcmax_mw: from_db(control.pcmax_dbm),
            minimum_mw: from_db(control.min_dbm),
            gains: place.gains_db()[..served].iter().map(|gain| from_db(*gain)).collect(),
            own_gain: from_db(-place.coupling_loss_db()),
            free_gain: from_db(-place.coupling_loss_db()),
        }
    }
    /// Power in mW per PRB of a transmission in `n_prb` PRBs.
    pub fn per_prb_mw(&self, n_prb: u32) -> f64 {
        let n_prb = f64::from(n_prb.max(1));
        self.unlimited_mw.min(self.pcmax_mw / n_prb).max(self.minimum_mw / n_prb)
    }
    /// Power in mW per PRB by the formula, at most Pcmax in one PRB.
    pub fn formula_mw(&self) -> f64 {
        self.unlimited_mw.min(self.pcmax_mw)
    }
    pub fn correct(&mut self, correction_db: f64) {
        self.unlimited_mw = self.open_loop_mw * from_db(correction_db);
    }
}

/// Fast fading of a link, with the gains computed for the last slot.
pub(super) struct LinkFading {
    fader: Fader,
    /// Linear power gains per resource block group, in lanes; `known` lanes are those of slot `at`.
    gains: Vec<[f32; LANES]>,
    known: Range<usize>,
    at: Option<u64>,
}

impl LinkFading {
    pub fn new(model: &FadingModel, doppler_hz: f64, stream: &mut Stream) -> Self {
        let gains = vec![[1.0; LANES]; model.frequencies().div_ceil(LANES)];
        Self { fader: Fader::new(model, doppler_hz, stream), gains, known: 0..0, at: None }
    }
    pub fn gains(&mut self, model: &FadingModel, slot: u64, groups: Range<usize>) -> &[f32] {
        if self.at != Some(slot) {
            self.fader.go_to(model, slot);
            (self.at, self.known) = (Some(slot), 0..0);
        }
        let lanes = groups.start / LANES..groups.end.div_ceil(LANES);
        if lanes.start < self.known.start || self.known.end < lanes.end {
            self.fader.power_gains(lanes.clone(), &mut self.gains[lanes.clone()]);
            self.known = lanes;
        }
        &self.gains.as_flattened()[groups]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::{Association, Deployment, DeploymentConfig, Region};

    #[test]
    fn linear_power_is_that_of_power_control_from_the_minimum_to_the_maximum() {
        let deployment = Deployment::new(DeploymentConfig::case1(), 1);
        let (mut lowest, mut highest) = (0, 0);
        for index in 0..100 {
            let name = format!("station{index}");
            let place = deployment.place(&name, Region::AllSites, Association::Best);
            for p0_dbm in [-120.0, -85.0] {
                let control =
                    PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm, alpha: 0.8, delta_mcs: false };
                let power = UplinkPower::new(&control, &place, 3);
                for n_prb in [1, 6, 96] {
                    let pusch = PuschTransmission::open_loop(n_prb, place.coupling_loss_db());
                    let expected_mw = from_db(control.power_per_prb_dbm(&pusch));
                    assert!((power.per_prb_mw(n_prb) / expected_mw - 1.0).abs() < 1e-9, "{pusch:?}");
                    lowest += u32::from(control.power_dbm(&pusch) == control.min_dbm);
                    highest += u32::from(control.power_dbm(&pusch) == control.pcmax_dbm);
                }
            }
        }
        assert!(lowest > 10 && highest > 10, "{lowest} at the minimum, {highest} at the maximum");
    }
}
