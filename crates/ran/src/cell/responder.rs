//! RESP

use crate::prb::PrbSet;
use crate::slot::Tti;
use paceline_net::Stream;
use std::collections::VecDeque;

/// A preamble that was heard.
pub(super) struct Heard {
    pub occasion: Tti,
    pub cell: usize,
    /// Who sent it.
    pub stations: Vec<usize>,
}

/// A response PDU of this TTI.
pub(super) struct Response {
    pub occasion: Tti,
    pub cell: usize,
    pub answered: Vec<(PrbSet, Vec<usize>)>,
}

/// What the eNB keeps for random access and scheduling requests.
pub(super) struct Responder {
    pub draws: Stream,
    pub request_draws: Stream,
    /// Stations with a procedure.
    pub active: Vec<usize>,
    pub heard: VecDeque<Heard>,
    pub on_air: Vec<Response>,
    /// Where Msg3s go: TTI, cell and blocks.
    pub granted: Vec<(Tti, usize, PrbSet)>,
    /// Stations whose Msg3 asks for a connection.
    pub asked: Vec<usize>,
}

impl Responder {
    pub fn new(seed: u64) -> Self {
        Self {
            draws: Stream::new(seed, "cell0/random-access"),
            request_draws: Stream::new(seed, "cell0/scheduling-requests"),
            active: Vec::new(),
            heard: VecDeque::new(),
            on_air: Vec::new(),
            granted: Vec::new(),
            asked: Vec::new(),
        }
    }
    /// Whether a scheduling request is heard.
    pub fn hears_request(&mut self, probability: f64) -> bool {
        probability >= 1.0 || self.request_draws.chance(probability)
    }
}
