//! Closed-loop uplink power control of a station: TPC commands, and the headroom reports that tell the eNB
//! how much power is left.

use super::Grant;
use crate::air::{Network, Placed};
use crate::mac::power_headroom::{HeadroomEstimate, HeadroomReport, HeadroomTimers};
use crate::slot::Slot;

/// Both ends of the loop.
#[derive(Default)]
pub(super) struct PowerLoop {
    /// The station's: when reports are due.
    timers: HeadroomTimers,
    /// The eNB's: the headroom that is left.
    estimate: HeadroomEstimate,
    /// The command of the next grant, in dB.
    next_tpc_db: f64,
}

impl PowerLoop {
    /// The eNB chooses the next command for an SINR that is `missing_db` below its target.
    pub fn choose_command(&mut self, missing_db: f64) {
        self.next_tpc_db = self.estimate.command_db(missing_db);
    }
    /// The largest number of PRBs within the station's power, at most `uplink_prb`.
    pub fn max_prbs(&mut self, uplink_prb: u16) -> u16 {
        self.estimate.max_prbs(uplink_prb, self.next_tpc_db)
    }
    /// The command of a grant for this slot, in dB.
    pub fn command(&mut self, sent_at: Slot) -> f64 {
        self.estimate.on_command(sent_at, self.next_tpc_db);
        self.next_tpc_db
    }
    /// The station applies a grant's command. Returns the headroom report for the granted block if one is
    /// due.
    pub fn apply(
        &mut self,
        slot: Slot,
        grant: &Grant,
        placed: &mut Placed,
        network: &Network,
    ) -> Option<HeadroomReport> {
        network.apply_tpc(placed, grant.n_prb, grant.tpc_db);
        let due = self.timers.due(slot, network.headroom_config(), placed.coupling_loss_db());
        due.then(|| network.headroom(placed, grant.n_prb))
    }
    /// Reports begin anew, as at random access; the next command stays.
    pub fn reset(&mut self) {
        (self.timers, self.estimate) = (HeadroomTimers::default(), HeadroomEstimate::default());
    }
    /// The station has sent a report.
    pub fn on_report_sent(&mut self, slot: Slot, placed: &Placed) {
        self.timers.on_report(slot, placed.coupling_loss_db());
    }
    /// The eNB has decoded a report whose block was first sent in `sent_at`.
    pub fn on_report(&mut self, report: HeadroomReport, sent_at: Slot) {
        self.estimate.on_report(report, sent_at);
    }
}
