//! Coupling gains between stations and cells, the serving cell, and the geometry: the downlink SINR when
//! every cell transmits in all PRBs (TR 36.814 A.2.2, TR 38.901 §7.8.1).
//!
//! A coupling gain is the gain between the antenna ports: path loss, shadowing, penetration, both antennas.
//! Line of sight and shadowing are the same for all sectors of a site; a moving station gets new ones along
//! its path (line of sight with the 50 m of TR 38.901 Table 7.6.3.1-2). Fast fading is added by `fading`.
//! Left out: several antennas, body loss, handover margins.

use super::geometry::{BORESIGHTS_DEG, Layout, Point, Region, SECTORS};
use super::parameters::{DeploymentConfig, Penetration, SiteLayout, noise_per_prb_dbm};
use crate::decibel::{from_db, to_db};
use crate::radio::propagation::path_loss::Heights;
use crate::radio::propagation::shadowing::{self, Shadowing};
use paceline_net::Stream;

/// Distance in metres over which the correlation of line of sight falls to 1/e (TR 38.901 Table 7.6.3.1-2).
const SIGHT_CORRELATION_M: f64 = 50.0;
/// Shadowing of stations indoors: standard deviation in dB and correlation distance in metres (TR 38.901
/// Table 7.5-6, O2I).
const INDOOR_SHADOWING: (f64, f64) = (7.0, 7.0);

/// Loss into cars in dB: mean and standard deviation (TR 38.901 §7.4.3.2).
const CAR_LOSS_DB: (f64, f64) = (9.0, 5.0);

/// The rule that chooses a station's serving cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Association {
    /// The cell with the largest coupling gain.
    Best,
    /// The cell of this site with the largest coupling gain.
    BestOfSite(usize),
}

/// A station in the network.
#[derive(Clone, Debug)]
pub struct Station {
    position: Point,
    height_m: f64,
    /// Distance from the outer wall in metres; none outdoors.
    indoor_m: Option<f64>,
    penetration_db: f64,
    shadowing: Shadowing,
    /// Standard normal deviates that determine line of sight, per site.
    sight: Vec<f64>,
    sight_stream: Stream,
    los: Vec<bool>,
    gains_db: Vec<f64>,
    serving: usize,
}

impl Station {
    /// Position in metres.
    pub fn position(&self) -> Point {
        self.position
    }
    /// Coupling gain in dB of every cell (negative), the mean over fast fading.
    pub fn gains_db(&self) -> &[f64] {
        &self.gains_db
    }
    /// The serving cell.
    pub fn serving(&self) -> usize {
        self.serving
    }
    /// Changes the serving cell.
    pub fn serve(&mut self, cell: usize) {
        assert!(cell < self.gains_db.len(), "the deployment has no cell {cell}");
        self.serving = cell;
    }
    /// Coupling loss in dB to the serving cell.
    pub fn coupling_loss_db(&self) -> f64 {
        -self.gains_db[self.serving]
    }
}

/// A network of cells with its propagation model.
#[derive(Clone, Debug)]
pub struct Deployment {
    config: DeploymentConfig,
    layout: Layout,
    seed: u64,
}

impl Deployment {
    /// A network. All draws are functions of `seed` and the stations' names.
    ///
    /// # Panics
    /// If the layout does not have this number of sites.
    pub fn new(config: DeploymentConfig, seed: u64) -> Self {
        let layout = match config.layout {
            SiteLayout::Hexagonal => Layout::new(config.sites, config.isd_m, config.wrap_around),
            SiteLayout::Hall => Layout::hall(),
        };
        assert_eq!(layout.sites(), config.sites, "sites of the layout");
        Self { config, layout, seed }
    }
    /// Its parameters.
    pub fn config(&self) -> &DeploymentConfig {
        &self.config
    }
    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.layout.cells()
    }
    /// Places the station `name` uniformly in `region`.
    pub fn place(&self, name: &str, region: Region, association: Association) -> Station {
        let mut stream = Stream::new(self.seed, &format!("{name}/place"));
        let position = self.layout.place(region, self.config.min_distance_m, &mut stream);
        self.station_at(name, position, association)
    }
    /// The station `name` at a given position.
    pub fn station_at(&self, name: &str, position: Point, association: Association) -> Station {
        self.build(name, position, association, false)
    }
    /// The station `name` at a given position, outside of buildings; in the rural macro in a car.
    pub fn outdoor_station_at(&self, name: &str, position: Point, association: Association) -> Station {
        self.build(name, position, association, true)
    }
    fn build(&self, name: &str, position: Point, association: Association, outdoors: bool) -> Station {
        let sites = self.config.sites;
        let mut sight_stream = Stream::new(self.seed, &format!("{name}/sight"));
        let sight = (0..sites).map(|_| sight_stream.normal()).collect();
        let mut indoor_stream = Stream::new(self.seed, &format!("{name}/indoor"));
        let (height_m, indoor_m, penetration_db) = self.draw_building(&mut indoor_stream, outdoors);
        let mut station = Station {
            position,
            height_m,
            indoor_m,
            penetration_db,
            shadowing: Shadowing::new(
                sites,
                self.config.site_correlation,
                Stream::new(self.seed, &format!("{name}/shadowing")),
            ),
            sight,
            sight_stream,
            los: vec![false; sites],
            gains_db: vec![0.0; self.cells()],
            serving: 0,
        };
        self.update(&mut station);
        self.associate(&mut station, association);
        station
    }
    /// Moves a station to `to` along a straight line. Its serving cell is kept.
    pub fn advance(&self, station: &mut Station, to: Point) {
        let way_m = to.minus(station.position).norm();
        if way_m > 0.0 {
            let Station { shadowing, los, indoor_m, .. } = station;
            let model = self.config.model;
            shadowing.advance(way_m, |site| match indoor_m {
                Some(_) => INDOOR_SHADOWING.1,
                None => model.correlation_m(los[site]),
            });
            for value in &mut station.sight {
                *value = shadowing::step(*value, way_m / SIGHT_CORRELATION_M, &mut station.sight_stream);
            }
        }
        station.position = self.layout.wrapped(to);
        self.update(station);
    }
    /// Chooses the serving cell at the present position.
    pub fn associate(&self, station: &mut Station, association: Association) {
        let cells = match association {
            Association::Best => 0..self.cells(),
            Association::BestOfSite(site) => SECTORS * site..SECTORS * (site + 1),
        };
        let gains = &station.gains_db;
        let best = cells.max_by(|a, b| gains[*a].total_cmp(&gains[*b]));
        station.serving = best.expect("a site has sectors");
    }
    /// Azimuth and zenith angle in degrees at which a station sees its serving cell.
    pub fn arrival_deg(&self, station: &Station) -> (f64, f64) {
        let ray = self.layout.ray(station.serving / SECTORS, station.position);
        let rise = self.config.heights.bs_m - station.height_m;
        (ray.azimuth_deg + 180.0, 90.0 - libm::atan2(rise, ray.distance_m).to_degrees())
    }
    /// Downlink SINR in dB of a station when every cell transmits in all PRBs.
    pub fn geometry_db(&self, station: &Station) -> f64 {
        let power = from_db(self.config.enb_power_per_prb_dbm());
        let noise = from_db(noise_per_prb_dbm(self.config.numerology, self.config.ue_noise_figure_db));
        self.carrier_over(station, noise / power)
    }
    /// The geometry without noise in dB, as in the calibration of TR 38.901.
    pub fn geometry_without_noise_db(&self, station: &Station) -> f64 {
        self.carrier_over(station, 0.0)
    }
    /// Gain of the serving cell over the sum of the other gains and `noise`, in dB.
    fn carrier_over(&self, station: &Station, noise: f64) -> f64 {
        let others = station.gains_db.iter().enumerate().filter(|(cell, _)| *cell != station.serving);
        let interference: f64 = others.map(|(_, gain)| from_db(*gain)).sum();
        station.gains_db[station.serving] - to_db(interference + noise)
    }
    /// Draws a station's height in metres, its distance from the outer wall in metres (none outdoors), and
    /// its penetration loss in dB.
    fn draw_building(&self, stream: &mut Stream, outdoors: bool) -> (f64, Option<f64>, f64) {
        let outdoor_m = self.config.heights.ut_m;
        match self.config.penetration {
            Penetration::Fixed(loss) => (outdoor_m, None, loss),
            Penetration::Indoor38901(share) => {
                if outdoors || !stream.chance(share) {
                    return (outdoor_m, None, 0.0);
                }
                // Table 7.2-1: 4 to 8 floors of 3 m, the station on one of them.
                let floors = 4 + stream.below(5);
                let floor = stream.below(floors);
                let inside = stream.uniform_in(0.0, 25.0).min(stream.uniform_in(0.0, 25.0));
                let wall = wall_loss_db(stream.chance(0.5), self.config.carrier_ghz, stream.normal());
                (outdoor_m + 3.0 * floor as f64, Some(inside), wall + 0.5 * inside)
            }
            Penetration::Rural38901(share) => {
                if outdoors || !stream.chance(share) {
                    return (outdoor_m, None, CAR_LOSS_DB.0 + CAR_LOSS_DB.1 * stream.normal());
                }
                // §7.4.3.1: rural buildings are at most 10 m deep.
                let inside = stream.uniform_in(0.0, 10.0).min(stream.uniform_in(0.0, 10.0));
                let wall = wall_loss_db(false, self.config.carrier_ghz, stream.normal());
                (outdoor_m, Some(inside), wall + 0.5 * inside)
            }
        }
    }
    /// Computes line of sight and gains at the present position.
    fn update(&self, station: &mut Station) {
        let config = &self.config;
        let heights = Heights { ut_m: station.height_m, ..config.heights };
        for site in 0..config.sites {
            let ray = self.layout.ray(site, station.position);
            let outdoors = ray.distance_m - station.indoor_m.unwrap_or(0.0);
            let chance = config.model.los_probability_at(outdoors.max(0.0), station.height_m);
            let los = normal_below(station.sight[site]) < chance;
            station.los[site] = los;
            let sigma = match station.indoor_m {
                Some(_) => INDOOR_SHADOWING.0,
                None => config.model.shadowing_db(los),
            };
            let loss = config.model.loss_db(los, ray.distance_m, config.carrier_ghz, heights)
                + sigma * station.shadowing.deviations(site)
                + station.penetration_db;
            let rise = config.heights.bs_m - station.height_m;
            let depression = libm::atan2(rise, ray.distance_m).to_degrees();
            for (sector, boresight) in BORESIGHTS_DEG.into_iter().enumerate() {
                let antenna = config.antenna.gain_db(ray.azimuth_deg - boresight, depression);
                let gain = antenna + config.ue_antenna_dbi - loss;
                station.gains_db[SECTORS * site + sector] = gain.min(-config.min_coupling_loss_db);
            }
        }
    }
}

/// Probability that a standard normal deviate lies below `x`.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Loss through the outer wall in dB (TR 38.901 Tables 7.4.3-1 and 7.4.3-2) with a standard normal `deviate`.
fn wall_loss_db(high: bool, f_ghz: f64, deviate: f64) -> f64 {
    let concrete = from_db(-(5.0 + 4.0 * f_ghz));
    if high {
        5.0 - to_db(0.7 * from_db(-(23.0 + 0.3 * f_ghz)) + 0.3 * concrete) + 6.5 * deviate
    } else {
        5.0 - to_db(0.3 * from_db(-(2.0 + 0.2 * f_ghz)) + 0.7 * concrete) + 4.4 * deviate
    }
}

#[cfg(test)]
#[path = "link_budget_tests.rs"]
mod tests;
