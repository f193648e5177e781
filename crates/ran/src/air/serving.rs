//! The links of a station to the cells: its first place, fading of each link, another serving cell, movement,
//! and the quality of the serving cell for radio link monitoring.
//!
//! Coupling gains of all cells follow from the station's place; only the link to the serving cell has fast
//! fading (`network`).

use super::blocked_path::BlockedPath;
use super::network::Network;
use super::placed::{LinkFading, Placed, UplinkPower};
use crate::decibel::to_db;
use crate::radio::fading::doppler_hz;
use crate::radio::{Association, DownlinkReceiver, FadingModel, Point, Region, Station};
use crate::rat::Quality;
use crate::slot::Slot;
use paceline_net::Stream;
use std::collections::BTreeMap;

/// Attempts to place a station. Chosen: with 19 equal sites one attempt in 19 succeeds.
const MAX_PLACEMENTS: u32 = 100_000;

impl Network {
    /// Places a station uniformly among the positions whose best cell is a served one; returns that cell too.
    /// Because of shadowing some of these positions lie outside the served sites' hexagons.
    pub fn place(&self, index: usize) -> (Placed, usize) {
        let name = format!("station{index}");
        let mut attempts = (0..MAX_PLACEMENTS).map(|attempt| {
            self.deployment.place(&format!("{name}/attempt{attempt}"), Region::AllSites, Association::Best)
        });
        let place = attempts.find(|place| place.serving() < self.served_cells());
        self.placed(name, place.expect("a served cell is the best one somewhere"))
    }
    /// Places a station at a given position outside of buildings. Returns the strongest served cell too.
    pub fn place_at(&self, index: usize, position: Point) -> (Placed, usize) {
        let name = format!("station{index}");
        let mut place = self.deployment.outdoor_station_at(&name, position, Association::Best);
        if place.serving() >= self.served_cells() {
            let gains = &place.gains_db()[..self.served_cells()];
            let strongest = (0..gains.len()).max_by(|a, b| gains[*a].total_cmp(&gains[*b]));
            place.serve(strongest.expect("a network serves at least one site"));
        }
        self.placed(name, place)
    }
    fn placed(&self, name: String, place: Station) -> (Placed, usize) {
        let cell = place.serving();
        let receiver = DownlinkReceiver::new(&self.deployment, &place);
        let (downlink_fading, uplink_fading) = self.draw_fading(&name);
        let power = UplinkPower::new(&self.config.power_control, &place, self.served_cells());
        let blockage = self.config.blockage.map(|blockage| {
            let motion = (self.deployment.arrival_deg(&place), self.config.speed_kmh / 3.6);
            let carrier = (self.config.deployment.carrier_ghz, self.config.deployment.numerology);
            let stream = Stream::new(self.seed, &format!("{name}/blockage"));
            BlockedPath::new(blockage, motion, carrier, stream)
        });
        let (tpc_correction_db, last_cqi) = (0.0, (Vec::new(), Quality::default()));
        let placed = Placed {
            name,
            place,
            former_fading: BTreeMap::new(),
            receiver,
            downlink_fading,
            uplink_fading,
            tpc_correction_db,
            power,
            blockage,
            last_cqi,
        };
        (placed, cell)
    }
    /// Fading of a link in both directions, drawn from the streams of `link`.
    pub(super) fn draw_fading(&self, link: &str) -> (Option<LinkFading>, Option<LinkFading>) {
        let doppler = doppler_hz(self.config.speed_kmh, self.config.deployment.carrier_ghz);
        let fading = |model: &FadingModel, direction: &str| {
            let mut stream = Stream::new(self.seed, &format!("{link}/{direction}/fading"));
            LinkFading::new(model, doppler, &mut stream)
        };
        let Some((downlink, uplink)) = &self.models else { return (None, None) };
        (Some(fading(downlink, "downlink")), Some(fading(uplink, "uplink")))
    }
    /// Another cell serves the station from now on. Every link between a station and a cell has fading of its
    /// own, which continues when the station returns. TPC commands of the former cell are forgotten.
    pub fn serve(&self, placed: &mut Placed, cell: usize) {
        let former = placed.place.serving();
        if cell == former {
            return;
        }
        let from_deg = self.deployment.arrival_deg(&placed.place);
        placed.place.serve(cell);
        let to_deg = self.deployment.arrival_deg(&placed.place);
        let (downlink, uplink) = placed
            .former_fading
            .remove(&cell)
            .unwrap_or_else(|| self.draw_fading(&format!("{}/cell{cell}", placed.name)));
        let downlink = std::mem::replace(&mut placed.downlink_fading, downlink);
        let uplink = std::mem::replace(&mut placed.uplink_fading, uplink);
        placed.former_fading.insert(former, (downlink, uplink));
        placed.tpc_correction_db = 0.0;
        self.update_links(placed, from_deg, to_deg);
    }
    /// Moves a station along a straight line, with shadowing and line of sight correlated over its way. Its
    /// serving cell is kept.
    pub fn advance(&self, placed: &mut Placed, to: Point) {
        let from_deg = self.deployment.arrival_deg(&placed.place);
        self.deployment.advance(&mut placed.place, to);
        let to_deg = self.deployment.arrival_deg(&placed.place);
        self.update_links(placed, from_deg, to_deg);
    }
    /// Computes the powers of all links anew, after the path to the serving cell turned.
    fn update_links(&self, placed: &mut Placed, from_deg: (f64, f64), to_deg: (f64, f64)) {
        placed.receiver = DownlinkReceiver::new(&self.deployment, &placed.place);
        placed.power = UplinkPower::new(&self.config.power_control, &placed.place, self.served_cells());
        placed.power.correct(placed.tpc_correction_db);
        placed.last_cqi = (Vec::new(), Quality::default());
        if let Some(blockage) = &mut placed.blockage {
            blockage.turn(from_deg, to_deg);
        }
    }
    /// Downlink SINR of the serving cell in dB, the mean over the carrier and over fast fading, with the
    /// downlink PRBs of the last slot that had transmissions.
    pub fn mean_sinr_db(&mut self, placed: &mut Placed, slot: Slot) -> f64 {
        placed.go_to(slot);
        let mut noise_mw = self.spare.pop().unwrap_or_else(|| vec![0.0; self.activity.groups()]);
        placed.receiver.interference_mw(&self.activity, 0, &mut noise_mw);
        let mean_mw = noise_mw.iter().sum::<f64>() / noise_mw.len() as f64;
        self.spare.push(noise_mw);
        to_db(placed.receiver.signal_mw() / mean_mw)
    }
    /// Coupling gains from the served cells to a station in dB.
    pub fn served_gains_db<'a>(&self, placed: &'a Placed) -> &'a [f64] {
        &placed.place.gains_db()[..self.served_cells()]
    }
    /// The served cell with the strongest reference signals at a station but this one; none if there is no
    /// other.
    pub fn strongest_but(&self, placed: &Placed, cell: usize) -> Option<usize> {
        let gains = self.served_gains_db(placed);
        let others = (0..gains.len()).filter(|other| *other != cell);
        others.max_by(|a, b| gains[*a].total_cmp(&gains[*b]))
    }
    /// The served cell with the strongest reference signals at a station; all cells have the same power.
    pub fn strongest_served(&self, placed: &Placed) -> usize {
        let gains = self.served_gains_db(placed);
        let strongest = (0..gains.len()).max_by(|a, b| gains[*a].total_cmp(&gains[*b]));
        strongest.expect("a network serves at least one site")
    }
}
