//! Hexagonal networks of 1, 7 or 19 sites with three sectors each (TR 36.942 §4.2.1, TR 36.814 A.2.1.1), with
//! or without wrap-around, and the placement of stations in them.
//!
//! Site 0 stands at the origin, sites 1..=6 around it, 7..=18 around those. The sectors point to 30, 150 and
//! 270 degrees, counted from the x axis to the y axis, each straight at a neighbouring site: the clover-leaf
//! layout, in which a sector is a hexagon with a side of a third of the inter-site distance and the site on a
//! corner. With wrap-around, six copies of the network surround it, and a site's nearest copy counts. Left
//! out: terrain, irregular sites, heights.

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

/// The sites of a network.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    isd_m: f64,
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
        Self { isd_m, sites: places, shifts }
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
        assert!(min_distance_m < self.isd_m / 2.0, "the minimum distance leaves no room");
        loop {
            let point = match region {
                Region::AllSites => {
                    let site = self.sites[stream.below(self.sites.len() as u64) as usize];
                    site.plus(in_hexagon(self.isd_m / 2.0, 30.0, stream))
                }
                Region::Site(site) => self.sites[site].plus(in_hexagon(self.isd_m / 2.0, 30.0, stream)),
                Region::Sector(site, sector) => {
                    let side = self.isd_m / 3.0;
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
