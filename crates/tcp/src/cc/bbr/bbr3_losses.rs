//! The reaction of BBR version 3 to losses (draft-ietf-ccwg-bbr): the short-term bounds, the end of Startup,
//! the long-term bound after a probe that lost too much, and the undo of spurious losses.

use super::bbr3::{BETA_PERCENT, Bbr3, NONE, Saved, State, percent};
use crate::cc::control::AckSample;
use paceline_net::{Bytes, Instant};

/// Tolerated loss rate in percent (draft-ietf-ccwg-bbr, BBR.LossThresh).
const LOSS_THRESHOLD_PERCENT: u64 = 2;
/// Loss events in a round trip that end Startup (draft-ietf-ccwg-bbr, BBRStartupFullLossCnt).
const FULL_LOSSES: u32 = 6;

impl Bbr3 {
    pub(super) fn update_signals(&mut self, sample: &AckSample) {
        let rate = sample.rate.rate().map_or(0, |rate| rate.0);
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(sample.rate.delivered.0);
        let measured = sample.rate.delivered > Bytes::ZERO;
        let prior = sample.rate.prior_delivered.0;
        if measured && prior >= self.loss_round_delivered {
            self.loss_round_delivered = sample.delivered.0;
            self.loss_round_start = true;
        }
        self.round_start = measured && prior >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round += 1;
            self.rounds_since_probe += 1;
        }
        if rate > 0 && (rate >= self.largest_bw() || !sample.rate.app_limited) {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
        if self.loss_round_start {
            self.lower_bounds();
            self.loss_in_round = false;
        }
    }
    /// Lowers the short-term bounds, once per round trip with losses outside of probes.
    pub(super) fn lower_bounds(&mut self) {
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        if probing || !self.loss_in_round {
            return;
        }
        let bw = if self.bw_shortterm == NONE { self.largest_bw() } else { self.bw_shortterm };
        let inflight = if self.inflight_shortterm == NONE { self.cwnd } else { self.inflight_shortterm };
        self.bw_shortterm = self.bw_latest.max(percent(bw, BETA_PERCENT));
        self.inflight_shortterm = self.inflight_latest.max(percent(inflight, BETA_PERCENT));
    }
    /// Ends Startup if a round trip of recovery lost too much.
    pub(super) fn check_startup_loss(&mut self, sample: &AckSample) {
        if self.full_bw_reached {
            return;
        }
        self.losses_in_round += u32::from(sample.lost > Bytes::ZERO);
        let enough = !self.sack || (self.loss_round_start && self.losses_in_round >= FULL_LOSSES);
        if enough && sample.in_recovery && self.too_high(sample.rate.lost, sample.rate.tx_in_flight) {
            self.saved.state = Some(State::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bandwidth(), 100).max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.losses_in_round = 0;
        }
    }
    /// Whether the loss rate is above the threshold (IsInflightTooHigh).
    pub(super) fn too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        u128::from(lost.0) * 100 > u128::from(tx_in_flight.0) * u128::from(LOSS_THRESHOLD_PERCENT)
            || (lost > Bytes::ZERO && !self.sack)
    }
    pub(super) fn on_loss(&mut self, now: Instant, sample: &AckSample) {
        self.note_loss();
        let Some(loss) = sample.loss.filter(|_| self.probe_sample) else { return };
        if self.too_high(loss.lost, loss.tx_in_flight) {
            // The volume in flight at which the loss rate passed the threshold (BBRInflightAtLoss).
            let size = sample.lost.0.min(loss.tx_in_flight.0);
            let (flying, lost) = (loss.tx_in_flight.0 - size, loss.lost.0.saturating_sub(size));
            let prefix =
                (LOSS_THRESHOLD_PERCENT * flying).saturating_sub(100 * lost) / (100 - LOSS_THRESHOLD_PERCENT);
            self.on_inflight_too_high(now, flying + prefix, loss.app_limited);
        }
    }
    pub(super) fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state();
        }
        self.loss_in_round = true;
    }
    pub(super) fn save_state(&mut self) {
        self.saved = Saved {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }
    pub(super) fn undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.saved.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.saved.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.saved.inflight_longterm);
        match self.saved.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }
}
