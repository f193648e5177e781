//! The receiving side of AM (TS 38.322 §5.2.3.2), and its STATUS PDUs (§5.3.4).
//!
//! Of several delayed polls the lowest and the highest are kept: the ones between them would only repeat a
//! report that t-StatusProhibit delays.

use super::am_block::AmConfig;
use super::headers::longest_pdu;
use super::ranges::{END, has_gap, is_complete};
use super::ring::Ring;
use super::status::{FIXED_BYTES, Nack, Status, join};
use crate::slot::Slot;
use paceline_net::Ranges;

/// The receiving side.
#[derive(Clone, Debug)]
pub struct Rx {
    config: AmConfig,
    /// Bytes received of the SDUs from RX_Next to RX_Next_Highest.
    received: Ring<Ranges<u32>>,
    /// RX_Highest_Status: SDUs below it may be reported as missing.
    highest_status: u64,
    /// RX_Next_Status_Trigger: the number after the SDU that started t-Reassembly.
    status_trigger: u64,
    t_reassembly: Option<Slot>,
    /// The lowest and the highest polled number that did not trigger a report yet.
    polled: Option<(u64, u64)>,
    status_due: bool,
    /// The end of t-StatusProhibit.
    prohibited_until: Slot,
}

impl Rx {
    /// The initial state.
    pub fn new(config: AmConfig) -> Self {
        Self {
            config,
            received: Ring::default(),
            highest_status: 0,
            status_trigger: 0,
            t_reassembly: None,
            polled: None,
            status_due: false,
            prohibited_until: Slot(0),
        }
    }
    /// The next slot in which a timer expires or a STATUS PDU may be sent.
    pub fn next_event(&self) -> Option<Slot> {
        let status = self.status_due.then_some(self.prohibited_until);
        self.t_reassembly.into_iter().chain(status).min()
    }
    /// Number of SDUs between RX_Next and RX_Next_Highest.
    pub fn window_used(&self) -> u64 {
        self.received.end() - self.received.start()
    }

    /// A PDU arrives with the bytes `from..to` of an SDU; whether the SDU is complete now (§5.2.3.2.2).
    pub fn on_pdu(&mut self, slot: Slot, sdu: u64, from: u32, to: u32) -> bool {
        let next = self.received.start();
        if sdu < next || sdu >= next + self.config.sn.am_window() {
            return false;
        }
        while self.received.end() <= sdu {
            self.received.push(Ranges::default());
        }
        let Some(received) = self.received.get_mut(sdu) else { return false };
        if received.contains(from, to) {
            return false;
        }
        received.insert(from, to);
        let complete = is_complete(received);
        if complete {
            self.highest_status = self.incomplete_from(self.highest_status);
            while self.received.front().is_some_and(is_complete) {
                self.received.pop();
            }
        }
        self.update_t_reassembly(slot);
        complete
    }
    /// The block that arrived had polls between these numbers (§5.3.4).
    pub fn on_polls(&mut self, polls: Option<(u64, u64)>) {
        if let Some((low, high)) = polls {
            let (lowest, highest) = self.polled.unwrap_or((low, high));
            self.polled = Some((lowest.min(low), highest.max(high)));
        }
        if let Some((low, high)) = self.polled {
            let reported = |sdu| sdu < self.highest_status;
            self.status_due |= reported(low);
            if reported(low) {
                self.polled = (!reported(high)).then_some((high, high));
            }
        }
    }
    /// The first SDU at or above `sdu` of which bytes are missing.
    fn incomplete_from(&self, mut sdu: u64) -> u64 {
        sdu = sdu.max(self.received.start());
        while self.received.get(sdu).is_some_and(is_complete) {
            sdu += 1;
        }
        sdu
    }
    /// Whether an SDU at or above `sdu` is known to have missing bytes (§5.2.3.2.3).
    fn missing_from(&self, sdu: u64) -> bool {
        let highest = self.received.end();
        highest > sdu + 1 || (highest == sdu + 1 && self.received.get(sdu).is_some_and(has_gap))
    }
    fn update_t_reassembly(&mut self, slot: Slot) {
        let next = self.received.start();
        let no_gap = || !self.received.get(next).is_some_and(has_gap);
        if self.status_trigger <= next || (self.status_trigger == next + 1 && no_gap()) {
            self.t_reassembly = None;
        }
        if self.t_reassembly.is_none() && self.missing_from(next) {
            self.start_t_reassembly(slot);
        }
    }
    fn start_t_reassembly(&mut self, slot: Slot) {
        self.t_reassembly = Some(slot + self.config.t_reassembly);
        self.status_trigger = self.received.end();
    }
    /// Handles the expiry of t-Reassembly (§5.2.3.2.4); does nothing before it.
    pub fn check_timers(&mut self, slot: Slot) {
        if self.t_reassembly.is_none_or(|at| at > slot) {
            return;
        }
        self.t_reassembly = None;
        self.highest_status = self.incomplete_from(self.status_trigger);
        if self.missing_from(self.highest_status) {
            self.start_t_reassembly(slot);
        }
        self.status_due = true;
        self.on_polls(None);
    }

    /// The NACKs of all missing bytes below RX_Highest_Status.
    fn nacks(&self) -> impl Iterator<Item = Nack> + '_ {
        let sdus = self.received.start()..self.highest_status;
        join(sdus.flat_map(|sdu| {
            let received = self.received.get(sdu);
            let parts = received.into_iter().filter(|received| !is_complete(received));
            parts.flat_map(|received| received.gaps(0, END)).map(move |(from, to)| (sdu, from, to))
        }))
    }
    /// Length in bytes of the STATUS PDU that may be sent now; zero if there is none.
    pub fn status_len(&self, slot: Slot) -> u32 {
        if !self.status_due || slot < self.prohibited_until {
            return 0;
        }
        FIXED_BYTES + self.nacks().map(|nack| nack.len(self.config.sn)).sum::<u32>()
    }
    /// The STATUS PDU that may be sent now, with as many NACKs as fit into `room` bytes of a transport block
    /// (§5.3.4). t-StatusProhibit starts.
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Status> {
        let longest = longest_pdu(room);
        if !self.status_due || slot < self.prohibited_until || longest < FIXED_BYTES {
            return None;
        }
        let mut status = Status { ack_sn: self.highest_status, nacks: Vec::new(), len: FIXED_BYTES };
        for nack in self.nacks() {
            let len = status.len + nack.len(self.config.sn);
            let covered = status.nacks.last().map(|last| last.last());
            if len > longest {
                // ACK_SN: the next missing SDU that the report does not name.
                if covered.is_none_or(|covered| nack.last() > covered) {
                    status.ack_sn = covered.map_or(nack.first, |covered| nack.first.max(covered + 1));
                    break;
                }
                continue;
            }
            status.len = len;
            status.nacks.push(nack);
        }
        self.status_due = false;
        self.prohibited_until = slot + self.config.t_status_prohibit;
        Some(status)
    }
}
