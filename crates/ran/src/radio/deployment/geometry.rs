//! Hexagonal networks of 1, 7 or 19 sites with three sectors each (TR 36.942 §4.2.1, TR 36.814 A.2.1.1), with
//! or without wrap-around, and the placement of stations in them.
//!
//! Site 0 stands at the origin, sites 1..=6 around it, 7..=18 around those. The sectors point to 30, 150 and
//! 270 degrees, counted from the x axis to the y axis, each straight at a neighbouring site: the clover-leaf
//! layout, in which a sector is a hexagon with a side of a third of the inter-site distance and the site on a
//! corner. With wrap-around, six copies of the network surround it, and a site's nearest copy counts. The
//! indoor hotspot of TR 38.901 is a hall with twelve sites. Left out: terrain, irregular sites, heights.

use crate::radio::propagation::antenna::wrap_deg;
use paceline_net::Stream;

/// Sectors of a site (TR 36.814 A.2.1.1).
pub const SECTORS: usize = 3;
/// Boresights of the sectors in degrees. Follows from the clover-leaf layout: each points at a neighbouring
/// site.
pub const BORESIGHTS_DEG: [f64; SECTORS] = [30.0, 150.0, 270.0];

/// A place on the ground, in metres.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// Metres along the axis of 0 degrees.
    pub x: f64,
    /// Metres along the axis of 90 degrees.
    pub y: f64,
}

impl Point {
    /// The point at `distance_m` from the origin towards `azimuth_deg`.
    pub fn polar(distance_m: f64, azimuth_deg: f64) -> Self {
        let (sin, cos) = libm::sincos(azimuth_deg.to_radians());
        Self { x: distance_m * cos, y: distance_m * sin }
    }
    /// The point moved by `by`.
    #[must_use]
    pub fn plus(self, by: Self) -> Self {
        Self { x: self.x + by.x, y: self.y + by.y }
    }
    /// The vector from `other` to this point.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
    }
    /// Distance from the origin in metres.
    pub fn norm(self) -> f64 {
        (self.x * self.x + self.y * self.y).sqrt()
    }
    /// Direction from the origin in degrees, -180 to 180.
    pub fn azimuth_deg(self) -> f64 {
        libm::atan2(self.y, self.x).to_degrees()
    }
}

/// Distance and direction from the nearest copy of a site to a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ray {
    /// Horizontal distance in metres.
    pub distance_m: f64,
    /// Direction from the site in degrees, -180 to 180.
    pub azimuth_deg: f64,
}

/// The region in which a station is placed uniformly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// The hexagons of all sites.
    AllSites,
    /// The hexagon of a site: the points closer to it than to any other site of an infinite network.
    Site(usize),
    /// The hexagon of a sector of a site.
    Sector(usize, usize),
}

/// The ground that the stations stand on.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Area {
    /// A hexagon around every site, with this distance of the sites in metres.
    Hexagons(f64),
    /// The hall of [`Layout::hall`].
    Hall,
}

/// Length and width of the hall in metres (TR 38.901 Table 7.2-2).
const HALL_M: Point = Point { x: 120.0, y: 50.0 };
/// Distance of the hall's sites in metres (TR 38.901 Table 7.2-2).
const HALL_ISD_M: f64 = 20.0;
/// Number of the hall's sites in a row, and of its rows (TR 38.901 Figure 7.2-1).
const HALL_SITES: (u32, u32) = (6, 2);

/// The sites of a network.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    area: Area,
    sites: Vec<Point>,
    /// Displacements of the copies of the network; the first is zero.
    shifts: Vec<Point>,
}

impl Layout {
    /// A layout of 1, 7 or 19 sites. Wrap-around of a single site has no effect.
    ///
    /// # Panics
    /// For another number of sites.
    pub fn new(sites: usize, isd_m: f64, wrap_around: bool) -> Self {
        let rings = match sites {
            1 => 0,
            7 => 1,
            19 => 2,
            _ => panic!("a hexagonal layout has 1, 7 or 19 sites, not {sites}"),
        };
        let mut places = vec![Point::default()];
        for ring in 1..=rings {
            for side in 0..6 {
                // From one corner of the ring towards the next.
                let corner = Point::polar(isd_m * f64::from(ring), 30.0 + 60.0 * f64::from(side));
                for step in 0..ring {
                    let along = Point::polar(isd_m * f64::from(step), 150.0 + 60.0 * f64::from(side));
                    places.push(corner.plus(along));
                }
            }
        }
        let mut shifts = vec![Point::default()];
        if wrap_around && rings > 0 {
            let reach = f64::from(rings);
            for side in 0..6 {
                let turn = 60.0 * f64::from(side);
                let first = Point::polar(isd_m * (reach + 1.0), 30.0 + turn);
                shifts.push(first.plus(Point::polar(isd_m * reach, 90.0 + turn)));
            }
        }
        Self { area: Area::Hexagons(isd_m), sites: places, shifts }
    }
    /// The indoor hotspot of TR 38.901 Table 7.2-2: two rows of six sites, 20 m apart, in a hall of 120 m by
    /// 50 m around the origin, without copies.
    pub fn hall() -> Self {
        let (columns, rows) = HALL_SITES;
        let offset = |at: u32, count: u32| HALL_ISD_M * (f64::from(at) - f64::from(count - 1) / 2.0);
        let row = |y: u32| (0..columns).map(move |x| Point { x: offset(x, columns), y: offset(y, rows) });
        Self { area: Area::Hall, sites: (0..rows).flat_map(row).collect(), shifts: vec![Point::default()] }
    }
    /// Position of a site.
    pub fn site(&self, index: usize) -> Point {
        self.sites[index]
    }
    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }
    /// Number of cells, three per site: cell `3 * site + sector`.
    pub fn cells(&self) -> usize {
        SECTORS * self.sites.len()
    }
    /// Distance and direction from the nearest copy of `site` to `point`.
    pub fn ray(&self, site: usize, point: Point) -> Ray {
        let direct = point.minus(self.sites[site]);
        let mut nearest = direct;
        for shift in &self.shifts[1..] {
            let way = direct.minus(*shift);
            if way.x * way.x + way.y * way.y < nearest.x * nearest.x + nearest.y * nearest.y {
                nearest = way;
            }
        }
        Ray { distance_m: nearest.norm(), azimuth_deg: nearest.azimuth_deg() }
    }
    /// Distance in metres to the nearest site.
    pub fn nearest_site_m(&self, point: Point) -> f64 {
        (0..self.sites.len()).map(|site| self.ray(site, point).distance_m).fold(f64::INFINITY, f64::min)
    }
    /// The copy of `point` in the hexagons of this network: with wrap-around a station that leaves the
    /// network re-enters it there. Without wrap-around, the point itself.
    pub fn wrapped(&self, point: Point) -> Point {
        let from_nearest_site = |place: Point| {
            let squared =
                self.sites.iter().map(|site| place.minus(*site)).map(|way| way.x * way.x + way.y * way.y);
            squared.fold(f64::INFINITY, f64::min)
        };
        let mut best = point;
        for shift in &self.shifts[1..] {
            let copy = point.minus(*shift);
            if from_nearest_site(copy) < from_nearest_site(best) {
                best = copy;
            }
        }
        best
    }
    /// A uniformly drawn point in `region`, at least `min_distance_m` from every site.
    ///
    /// # Panics
    /// If the minimum distance is half the inter-site distance or more.
    pub fn place(&self, region: Region, min_distance_m: f64, stream: &mut Stream) -> Point {
        let isd_m = match self.area {
            Area::Hexagons(isd_m) => isd_m,
            Area::Hall => HALL_ISD_M,
        };
        assert!(min_distance_m < isd_m / 2.0, "the minimum distance leaves no room");
        loop {
            let point = match (self.area, region) {
                (Area::Hall, _) => {
                    let point = Point {
                        x: HALL_M.x * (stream.uniform() - 0.5),
                        y: HALL_M.y * (stream.uniform() - 0.5),
                    };
                    if !self.is_in_hall_region(point, region) {
                        continue;
                    }
                    point
                }
                (_, Region::AllSites) => {
                    let site = self.sites[stream.below(self.sites.len() as u64) as usize];
                    site.plus(in_hexagon(isd_m / 2.0, 30.0, stream))
                }
                (_, Region::Site(site)) => self.sites[site].plus(in_hexagon(isd_m / 2.0, 30.0, stream)),
                (_, Region::Sector(site, sector)) => {
                    let side = isd_m / 3.0;
                    let centre = self.sites[site].plus(Point::polar(side, BORESIGHTS_DEG[sector]));
                    centre.plus(in_hexagon(side * (3.0f64.sqrt() / 2.0), 0.0, stream))
                }
            };
            if self.nearest_site_m(point) >= min_distance_m {
                return point;
            }
        }
    }
}

impl Layout {
    /// Whether a point of the hall is nearest to a region's site, and within 60 degrees of its sector's
    /// boresight.
    fn is_in_hall_region(&self, point: Point, region: Region) -> bool {
        let nearest = |site: usize| self.ray(site, point).distance_m <= self.nearest_site_m(point);
        match region {
            Region::AllSites => true,
            Region::Site(site) => nearest(site),
            Region::Sector(site, sector) => {
                let off = wrap_deg(self.ray(site, point).azimuth_deg - BORESIGHTS_DEG[sector]);
                nearest(site) && off.abs() <= 60.0
            }
        }
    }
}

/// A uniformly drawn point in the hexagon around the origin with inner radius `inner_m` and one side towards
/// `side_deg`.
fn in_hexagon(inner_m: f64, side_deg: f64, stream: &mut Stream) -> Point {
    // The hexagon consists of three rhombi that meet at its centre: draw one, then a point in it.
    let outer = inner_m * (2.0 / 3.0f64.sqrt());
    let corner = side_deg + 30.0 + 120.0 * stream.below(3) as f64;
    let (a, b) = (stream.uniform(), stream.uniform());
    Point::polar(outer * a, corner).plus(Point::polar(outer * b, corner + 120.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_at_their_distances() {
        let layout = Layout::new(19, 500.0, false);
        assert_eq!((layout.sites.len(), layout.cells()), (19, 57));
        let distances: Vec<f64> = layout.sites.iter().map(|site| site.norm()).collect();
        assert_eq!(distances[0], 0.0);
        assert!(distances[1..7].iter().all(|d| (d - 500.0).abs() < 1e-9));
        let near = |d: f64, to: f64| usize::from((d - to).abs() < 1e-9);
        assert_eq!(distances[7..].iter().map(|d| near(*d, 1000.0)).sum::<usize>(), 6);
        assert_eq!(distances[7..].iter().map(|d| near(*d, 500.0 * 3.0f64.sqrt())).sum::<usize>(), 6);
        // No two sites coincide.
        for (i, a) in layout.sites.iter().enumerate() {
            assert!(layout.sites[..i].iter().all(|b| a.minus(*b).norm() > 499.0));
        }
    }

    #[test]
    fn the_hall_has_twelve_sites_twenty_metres_apart() {
        let layout = Layout::hall();
        assert_eq!((layout.sites(), layout.cells()), (12, 36));
        // TR 38.901 Figure 7.2-1: 10 m from the short walls, 15 m from the long ones.
        assert_eq!(
            (layout.sites[0], layout.sites[11]),
            (Point { x: -50.0, y: -10.0 }, Point { x: 50.0, y: 10.0 })
        );
        let mut stream = Stream::new(1, "hall");
        let (mut x, mut y) = (0.0f64, 0.0f64);
        for _ in 0..20_000 {
            let point = layout.place(Region::AllSites, 0.0, &mut stream);
            (x, y) = (x.max(point.x.abs()), y.max(point.y.abs()));
            assert!(layout.wrapped(point) == point);
        }
        assert!((59.9..=60.0).contains(&x) && (24.9..=25.0).contains(&y), "{x} {y}");
        for _ in 0..1000 {
            let point = layout.place(Region::Sector(4, 1), 0.0, &mut stream);
            assert!(layout.nearest_site_m(point) == layout.ray(4, point).distance_m);
        }
    }

    #[test]
    fn boresights_look_at_neighbouring_sites() {
        let layout = Layout::new(7, 300.0, false);
        for boresight in BORESIGHTS_DEG {
            let ahead = Point::polar(300.0, boresight);
            assert!(layout.sites.iter().any(|site| site.minus(ahead).norm() < 1e-9));
        }
    }

    #[test]
    fn with_wrap_around_every_site_sees_the_same_network() {
        for count in [7, 19] {
            let layout = Layout::new(count, 500.0, true);
            let sorted = |from: usize| {
                let at = layout.sites[from];
                let mut d: Vec<f64> = (0..count).map(|site| layout.ray(site, at).distance_m).collect();
                d.sort_by(f64::total_cmp);
                d
            };
            let centre = sorted(0);
            for site in 1..count {
                assert!(centre.iter().zip(sorted(site)).all(|(a, b)| (a - b).abs() < 1e-6), "{count} {site}");
            }
            // Six neighbours at one inter-site distance.
            assert!(
                centre[1..7].iter().all(|d| (d - 500.0).abs() < 1e-6)
                    && centre[6] < centre.get(7).map_or(f64::INFINITY, |d| *d)
            );
        }
    }

    #[test]
    fn rays_point_from_the_nearest_copy() {
        let layout = Layout::new(7, 500.0, true);
        // By hand: a point 200 m beyond site 1; the network's copy is shifted by 2 a1 + a2, with a1 = 500 m
        // at 30 degrees and a2 = 500 m at 90 degrees.
        let ray = layout.ray(1, Point::polar(700.0, 30.0));
        assert!((ray.distance_m - 200.0).abs() < 1e-9 && (ray.azimuth_deg - 30.0).abs() < 1e-9);
        let shift = Point::polar(1000.0, 30.0).plus(Point::polar(500.0, 90.0));
        let ray = layout.ray(0, shift.plus(Point { x: 3.0, y: 4.0 }));
        assert!((ray.distance_m - 5.0).abs() < 1e-9 && (ray.azimuth_deg - 53.130_102).abs() < 1e-5);
        // A ray is the same from every copy of a point.
        let mut stream = Stream::new(5, "wrap");
        for _ in 0..200 {
            let point = layout.place(Region::AllSites, 0.0, &mut stream);
            let back = layout.wrapped(point.plus(shift));
            assert!(back.minus(point).norm() < 1e-9);
        }
    }

    #[test]
    fn placement_is_uniform_in_its_region() {
        let layout = Layout::new(19, 500.0, true);
        let mut stream = Stream::new(1, "place");
        let n = 20_000;
        for (region, centre, mean_square) in [
            // Second moment of a hexagon of side a about its centre: 5/12 a^2.
            (Region::Site(4), layout.sites[4], 5.0 / 12.0 * 500.0 * 500.0 / 3.0),
            (
                Region::Sector(2, 1),
                layout.sites[2].plus(Point::polar(500.0 / 3.0, 150.0)),
                5.0 / 12.0 * 500.0 * 500.0 / 9.0,
            ),
        ] {
            let points: Vec<Point> =
                (0..n).map(|_| layout.place(region, 0.0, &mut stream).minus(centre)).collect();
            let mean = |f: fn(&Point) -> f64| points.iter().map(f).sum::<f64>() / f64::from(n);
            let got = mean(|p| p.x * p.x + p.y * p.y);
            assert!((got / mean_square - 1.0).abs() < 0.02, "{region:?} {got} {mean_square}");
            assert!(mean(|p| p.x).abs() < 3.0 && mean(|p| p.y).abs() < 3.0);
        }
        // In the hexagon of a site, every point is closest to that site and at least 35 m away.
        for _ in 0..2000 {
            let point = layout.place(Region::Site(3), 35.0, &mut stream);
            let own = layout.ray(3, point).distance_m;
            assert!(own >= 35.0 && (layout.nearest_site_m(point) - own).abs() < 1e-9);
        }
    }

    #[test]
    #[should_panic(expected = "1, 7 or 19 sites")]
    fn other_numbers_of_sites_are_refused() {
        Layout::new(3, 500.0, true);
    }
}
