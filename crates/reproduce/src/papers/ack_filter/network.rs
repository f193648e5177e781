//! Capacities of a scenario's network.

use paceline_ran::resource_blocks;
use paceline_sim::scenario::{Cells, Hop, Scenario};

/// Capacities with which the use of a resource is compared.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Payload of a segment, bytes.
    pub segment: f64,
    /// Headers of a segment, bytes: S_header (Ohta et al. 2018).
    pub header: f64,
    /// Rate of the narrowest hop, Mb/s; for a hop that exists per cell, of all cells together. None without
    /// hops.
    pub hop_mbps: Option<f64>,
    /// Share of the uplink PRBs for data; PUCCH has the others.
    pub uplink_for_data: f64,
    /// Scheduling request occasions of a station, per second.
    pub sr_occasions_per_s: f64,
}

impl Network {
    /// Capacities of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let Cells { cell, ack_filter, .. } = scenario.cells().expect("the paper has a cell");
        let uplink = resource_blocks(cell.uplink_bandwidth.unwrap_or(cell.bandwidth).0 / 1000).unwrap_or(100);
        let times = |hop: &Hop| if hop.per_cell { scenario.served_cells() as u64 } else { 1 };
        let narrowest = scenario.core.hops.iter().map(|hop| hop.rate.0 * times(hop)).min();
        Self {
            segment: scenario.tcp.segment_size.0 as f64,
            header: ack_filter.header.0 as f64,
            hop_mbps: narrowest.map(|rate| rate as f64 / 1e6),
            uplink_for_data: 1.0 - f64::from(cell.pucch_prb) / f64::from(uplink),
            sr_occasions_per_s: 1000.0 / cell.sr_period.as_millis().max(1) as f64,
        }
    }
}
