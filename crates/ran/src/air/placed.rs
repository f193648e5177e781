//! A station in the deployment: its place, what it receives, the fading of its links, and its power.

use crate::decibel::from_db;
use crate::radio::fading::LANES;
use crate::radio::power_control::Grant;
use crate::radio::{DownlinkReceiver, Fader, FadingModel, Point, PowerControl, Station as Place};
use paceline_net::Stream;
use std::ops::Range;

/// A station in the deployment.
pub(crate) struct Placed {
    pub(super) place: Place,
    pub(super) receiver: DownlinkReceiver,
    pub(super) downlink_fading: Option<Fading>,
    pub(super) uplink_fading: Option<Fading>,
    /// What TPC commands have added to the power in dB: f of TS 36.213 §5.1.1.1.
    pub(super) correction_db: f64,
    pub(super) power: UplinkPower,
    /// The linear SINRs of the last CQI, and the CQI: without fading they repeat.
    pub(super) measured: (Vec<f64>, u8),
}

impl Placed {
    /// Where it stands, in metres from the served site.
    pub fn position(&self) -> Point {
        self.place.position()
    }
    /// A transmission in so many blocks, as power control sees it.
    pub(super) fn grant(&self, blocks: u32) -> Grant {
        let path_loss_db = self.place.coupling_loss_db();
        Grant { correction_db: self.correction_db, ..Grant::open_loop(blocks, path_loss_db) }
    }
    /// Closed-loop power control begins anew.
    pub fn reset_correction(&mut self) {
        self.correction_db = 0.0;
        self.power.correct(0.0);
    }
    /// What TPC commands have added to its power in dB.
    pub fn correction_db(&self) -> f64 {
        self.correction_db
    }
    /// Coupling loss to the serving cell in dB.
    pub fn coupling_loss_db(&self) -> f64 {
        self.place.coupling_loss_db()
    }
}

/// Power control in linear terms, which every TTI needs.
pub(super) struct UplinkPower {
    /// In mW per resource block, as the formula asks for it: without and with TPC commands.
    open_loop_mw: f64,
    wanted_mw: f64,
    pcmax_mw: f64,
    /// Gains to the served cells, and to its own.
    pub gains: Vec<f64>,
    pub own_gain: f64,
}

impl UplinkPower {
    pub fn new(control: &PowerControl, place: &Place, served: usize) -> Self {
        let grant = Grant::open_loop(1, place.coupling_loss_db());
        let open_loop_mw = from_db(control.wanted_dbm(&grant));
        Self {
            open_loop_mw,
            wanted_mw: open_loop_mw,
            pcmax_mw: from_db(control.pcmax_dbm),
            gains: place.gains_db()[..served].iter().map(|gain| from_db(*gain)).collect(),
            own_gain: from_db(-place.coupling_loss_db()),
        }
    }
    /// Power in mW per block of a transmission over `n_prb` blocks.
    pub fn per_block_mw(&self, n_prb: u32) -> f64 {
        self.wanted_mw.min(self.pcmax_mw / f64::from(n_prb.max(1)))
    }
    pub fn correct(&mut self, correction_db: f64) {
        self.wanted_mw = self.open_loop_mw * from_db(correction_db);
    }
}

/// The fading of a link, and its gains as far as they were looked at in the last TTI.
pub(super) struct Fading {
    fader: Fader,
    /// Power gains per resource block group, in lanes, and which lanes hold those of TTI `at`.
    gains: Vec<[f32; LANES]>,
    known: Range<usize>,
    at: Option<u64>,
}

impl Fading {
    pub fn new(model: &FadingModel, doppler_hz: f64, stream: &mut Stream) -> Self {
        let gains = vec![[1.0; LANES]; model.frequencies().div_ceil(LANES)];
        Self { fader: Fader::new(model, doppler_hz, stream), gains, known: 0..0, at: None }
    }
    /// Power gains in a TTI of these groups.
    pub fn gains(&mut self, model: &FadingModel, tti: u64, groups: Range<usize>) -> &[f32] {
        if self.at != Some(tti) {
            self.fader.go_to(model, tti);
            (self.at, self.known) = (Some(tti), 0..0);
        }
        let lanes = groups.start / LANES..groups.end.div_ceil(LANES);
        if lanes.start < self.known.start || self.known.end < lanes.end {
            self.fader.power_gains(lanes.clone(), &mut self.gains[lanes.clone()]);
            self.known = lanes;
        }
        &self.gains.as_flattened()[groups]
    }
}
