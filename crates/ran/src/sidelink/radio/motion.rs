//! Positions of a pair over time, in metres from the eNB.
//!
//! Both stations stand on a circle around the eNB, so that their uplinks do not change while their distance
//! from each other does. With way points the station walks along a line, and its peer stands still.

use crate::radio::Point;
use crate::radio::route::along;

/// Movement of a pair.
#[derive(Clone, PartialEq, Debug)]
pub struct Motion {
    /// Distance of both stations from the eNB in m.
    pub radius_m: f64,
    /// Direction of the pair's middle from the eNB in rad.
    pub angle_rad: f64,
    /// Distance between both stations at the start in m, at most twice the radius.
    pub start_m: f64,
    /// Distance at which they stop or turn, in m; the same as `start_m` for stations that stand still.
    pub end_m: f64,
    /// Speed of each station in m/s: their distance changes at twice that.
    pub speed_mps: f64,
    /// Whether they turn at either distance; else they stop at `end_m`.
    pub returns: bool,
    /// Places that the station walks to, one after the other and again from the first; empty for the
    /// movement above.
    pub waypoints: Vec<Point>,
}

impl Motion {
    /// Whether the positions never change.
    pub fn stands_still(&self) -> bool {
        self.speed_mps == 0.0 || (self.start_m == self.end_m && self.waypoints.is_empty())
    }
    /// Distance of the stations after `seconds`, without way points.
    fn distance_m(&self, seconds: f64) -> f64 {
        let (span, walked) = ((self.end_m - self.start_m).abs(), 2.0 * self.speed_mps * seconds);
        if span == 0.0 {
            return self.start_m;
        }
        let gone = if self.returns {
            let phase = walked % (2.0 * span);
            phase.min(2.0 * span - phase)
        } else {
            walked.min(span)
        };
        if self.end_m >= self.start_m { self.start_m + gone } else { self.start_m - gone }
    }
    fn on_circle(&self, side_rad: f64) -> Point {
        let angle = self.angle_rad + side_rad;
        Point { x: self.radius_m * libm::cos(angle), y: self.radius_m * libm::sin(angle) }
    }
    /// Positions of the station and of its peer after `seconds`.
    pub fn positions(&self, seconds: f64) -> (Point, Point) {
        let half = |distance: f64| libm::asin((distance / 2.0 / self.radius_m).min(1.0));
        if self.waypoints.is_empty() {
            let half = half(self.distance_m(seconds));
            return (self.on_circle(half), self.on_circle(-half));
        }
        let half = half(self.start_m);
        (self.on_waypoints(self.on_circle(half), seconds), self.on_circle(-half))
    }
    fn on_waypoints(&self, start: Point, seconds: f64) -> Point {
        let length = |(from, to): (Point, Point)| libm::hypot(to.x - from.x, to.y - from.y);
        let round = (0..self.waypoints.len())
            .map(|at| (self.waypoints[at], self.waypoints[(at + 1) % self.waypoints.len()]));
        let first = (start, self.waypoints[0]);
        let whole: f64 = round.clone().map(length).sum();
        let mut left = self.speed_mps * seconds;
        if left > length(first) && whole > 0.0 {
            left = length(first) + (left - length(first)) % whole;
        }
        along(std::iter::once(first).chain(round), left).unwrap_or(self.waypoints[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn motion() -> Motion {
        Motion {
            radius_m: 300.0,
            angle_rad: 0.0,
            start_m: 30.0,
            end_m: 160.0,
            speed_mps: 3.0,
            returns: true,
            waypoints: Vec::new(),
        }
    }
    fn distance((a, b): (Point, Point)) -> f64 {
        libm::hypot(a.x - b.x, a.y - b.y)
    }

    #[test]
    fn a_crossing_of_130_m_takes_21_7_s_and_the_distance_to_the_enb_is_constant() {
        let motion = motion();
        for (at, expected) in [(0.0, 30.0), (10.0, 90.0), (21.666_667, 160.0), (43.333_333, 30.0)] {
            let places = motion.positions(at);
            assert!((distance(places) - expected).abs() < 1e-3, "{at}: {}", distance(places));
            for place in [places.0, places.1] {
                assert!((libm::hypot(place.x, place.y) - 300.0).abs() < 1e-9);
            }
        }
        let line = Motion { returns: false, ..motion };
        assert!((distance(line.positions(60.0)) - 160.0).abs() < 1e-9, "it stops at the far end");
    }

    #[test]
    fn a_station_walks_along_its_way_points_again_and_again() {
        let corners = [(0.0, 0.0), (30.0, 0.0), (30.0, 40.0)].map(|(x, y)| Point { x, y });
        let mut motion = Motion { waypoints: corners.to_vec(), speed_mps: 1.0, ..motion() };
        motion.radius_m = 20.0;
        let (start, peer) = motion.positions(0.0);
        assert_eq!(motion.positions(1e3).1, peer);
        // The round from the first corner is 30 + 40 + 50 m long.
        let to_first = libm::hypot(start.x, start.y);
        for round in [0.0, 1.0, 7.0] {
            let place = motion.positions(to_first + 120.0 * round + 50.0).0;
            assert!((place.x - 30.0).abs() < 1e-9 && (place.y - 20.0).abs() < 1e-9, "{place:?}");
        }
    }
}
