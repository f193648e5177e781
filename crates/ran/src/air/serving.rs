//! The links of a station to the cells: fading of each link, another serving cell, and movement.
//!
//! Coupling gains of all cells follow from the station's place; only the link to the serving cell has fast
//! fading (`network`).

use super::network::Network;
use super::placed::{LinkFading, Placed, UplinkPower};
use crate::radio::fading::doppler_hz;
use crate::radio::{DownlinkReceiver, FadingModel, Point};
use crate::rat::Quality;
use paceline_net::Stream;

impl Network {
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
    /// Coupling gains from the served cells to a station in dB.
    pub fn served_gains_db<'a>(&self, placed: &'a Placed) -> &'a [f64] {
        &placed.place.gains_db()[..self.served_cells()]
    }
    /// The served cell with the strongest reference signals at a station; all cells have the same power.
    pub fn strongest_served(&self, placed: &Placed) -> usize {
        let gains = self.served_gains_db(placed);
        let strongest = (0..gains.len()).max_by(|a, b| gains[*a].total_cmp(&gains[*b]));
        strongest.expect("a network serves at least one site")
    }
}
