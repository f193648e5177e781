//! A way along straight lines.

use super::Point;

/// A way through places, at a constant speed.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// The places, the first one at the start.
    pub places: Vec<Point>,
    /// Speed in m/s.
    pub speed_mps: f64,
    /// Whether it turns at both ends, again and again; else it stops at the last place.
    pub returns: bool,
}

impl Route {
    /// The position after `seconds`.
    ///
    /// # Panics
    /// If there is no place.
    pub fn position(&self, seconds: f64) -> Point {
        let (start, end) = (self.places[0], self.places[self.places.len() - 1]);
        let legs = || self.places.windows(2).map(|leg| (leg[0], leg[1]));
        let length: f64 = legs().map(|(from, to)| to.minus(from).norm()).sum();
        let gone = self.speed_mps * seconds;
        if length == 0.0 {
            return start;
        }
        if !self.returns {
            return along(legs(), gone).unwrap_or(end);
        }
        let phase = gone % (2.0 * length);
        along(legs(), phase.min(2.0 * length - phase)).unwrap_or(end)
    }
}

/// The point after this many metres along consecutive lines; none beyond their end.
pub(crate) fn along(legs: impl Iterator<Item = (Point, Point)>, metres: f64) -> Option<Point> {
    let mut left = metres;
    for (from, to) in legs {
        let way = to.minus(from);
        let length = way.norm();
        if left <= length && length > 0.0 {
            let part = left / length;
            return Some(from.plus(Point { x: part * way.x, y: part * way.y }));
        }
        left -= length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_stops_at_its_end_or_turns() {
        let places = vec![Point { x: 0.0, y: 0.0 }, Point { x: 30.0, y: 0.0 }, Point { x: 30.0, y: 40.0 }];
        let route = Route { places, speed_mps: 10.0, returns: false };
        let at = |route: &Route, seconds: f64| {
            let Point { x, y } = route.position(seconds);
            ((x * 1e6).round() / 1e6, (y * 1e6).round() / 1e6)
        };
        assert_eq!((at(&route, 0.0), at(&route, 1.5)), ((0.0, 0.0), (15.0, 0.0)));
        assert_eq!((at(&route, 5.0), at(&route, 60.0)), ((30.0, 20.0), (30.0, 40.0)));
        let returns = Route { returns: true, ..route };
        assert_eq!((at(&returns, 8.0), at(&returns, 14.0)), ((30.0, 30.0), (0.0, 0.0)));
        assert_eq!(at(&returns, 14.0 + 1.5), (15.0, 0.0));
    }
}
