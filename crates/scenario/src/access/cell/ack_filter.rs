//! Table `[ack_filter]`: the ACK filter in the stations' uplink buffers.

use crate::limits::{self, Limit, Section, key, quantities};
use paceline_net::Bytes;
use paceline_pep::Scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[ack_filter]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct AckFilter {
    /// The ACKs that are discarded, and when. RATIO is a share, T a number of ACKs.
    pub scheme: Scheme,
    /// S_header of `hybrid-opt`: TCP/IP, PDCP, RLC and MAC headers of a data segment, as published.
    pub header: Bytes,
}

impl Default for AckFilter {
    fn default() -> Self {
        Self { scheme: Scheme::Basic, header: Bytes(58) }
    }
}

impl Section for AckFilter {
    fn limits() -> Vec<Limit<Self>> {
        vec![key!(header, quantities("1 B", "1000 B"))]
    }
}
