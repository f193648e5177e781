//! The eNB's state of random access and scheduling requests: detected preambles, responses, granted Msg3s.

use crate::mcs::PrbSize;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::Stream;
use std::collections::VecDeque;

pub(super) struct DetectedPreamble {
    pub occasion: Slot,
    pub cell: usize,
    /// The stations that sent it; more than one after a collision.
    pub stations: Vec<usize>,
}

/// A random access response PDU of this slot.
pub(super) struct Response {
    pub occasion: Slot,
    pub cell: usize,
    /// Size of a PRB of the slot.
    pub size: PrbSize,
    /// For each answered preamble, the PRBs of its Msg3 and the stations that sent it.
    pub answered: Vec<(PrbSet, Vec<usize>)>,
}

/// The eNB's state of random access and scheduling requests.
pub(super) struct Responder {
    pub draws: Stream,
    pub request_draws: Stream,
    pub active: Vec<usize>,
    /// Detected preambles without a response, oldest first.
    pub preambles: VecDeque<DetectedPreamble>,
    pub responses: Vec<Response>,
    /// Granted Msg3s: slot of the first transmission, cell and PRBs.
    pub granted_msg3: Vec<(Slot, usize, PrbSet)>,
    /// Stations whose decoded Msg3 awaits Msg4.
    pub msg4_pending: Vec<usize>,
}

impl Responder {
    pub fn new(seed: u64) -> Self {
        Self {
            draws: Stream::new(seed, "cell0/random-access"),
            request_draws: Stream::new(seed, "cell0/scheduling-requests"),
            active: Vec::new(),
            preambles: VecDeque::new(),
            responses: Vec::new(),
            granted_msg3: Vec::new(),
            msg4_pending: Vec::new(),
        }
    }
    pub fn detects_request(&mut self, probability: f64) -> bool {
        probability >= 1.0 || self.request_draws.chance(probability)
    }
}
