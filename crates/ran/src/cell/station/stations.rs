//! All stations of a cell's node, and which of them each served cell has.

use super::Station;
use crate::air::Network;
use std::ops::{Index, IndexMut};

/// The stations, by index.
pub(in crate::cell) struct Stations {
    stations: Vec<Station>,
    /// Stations of each served cell, ascending.
    members: Vec<Vec<usize>>,
}

impl Stations {
    pub fn new(stations: Vec<Station>, cells: usize) -> Self {
        let mut members = vec![Vec::new(); cells];
        stations.iter().enumerate().for_each(|(index, station)| members[station.cell].push(index));
        Self { stations, members }
    }
    pub fn len(&self) -> usize {
        self.stations.len()
    }
    pub fn iter(&self) -> std::slice::Iter<'_, Station> {
        self.stations.iter()
    }
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Station> {
        self.stations.iter_mut()
    }
    /// The stations of each served cell, ascending.
    pub fn members(&self) -> &[Vec<usize>] {
        &self.members
    }
    /// The served cell `to` serves a station from now on. Returns whether another one did before.
    pub fn serve(&mut self, index: usize, to: usize, network: Option<&Network>) -> bool {
        let station = &mut self.stations[index];
        let from = std::mem::replace(&mut station.cell, to);
        let (Some(placed), Some(network)) = (station.radio.placed_mut(), network) else { return false };
        if from == to {
            return false;
        }
        network.serve(placed, to);
        station.forget_reports();
        self.members[from].retain(|member| *member != index);
        let place = self.members[to].partition_point(|member| *member < index);
        self.members[to].insert(place, index);
        true
    }
}

impl Index<usize> for Stations {
    type Output = Station;
    fn index(&self, station: usize) -> &Station {
        &self.stations[station]
    }
}
impl IndexMut<usize> for Stations {
    fn index_mut(&mut self, station: usize) -> &mut Station {
        &mut self.stations[station]
    }
}
