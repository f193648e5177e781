//! PDCP of one direction of a data radio bearer (TS 36.323; TS 38.323 for NR, with the SDAP header of TS
//! 37.324).
//!
//! The transmitting end ([`Tx`]) numbers SDUs with a COUNT and adds a header. An SDU gets its number when RLC
//! takes it from the buffer above, so an SDU that an ACK filter or the discard timer (§5.4, §5.3) removes
//! from the buffer leaves no gap. RLC sends at least a part of each SDU in the slot in which it takes it; the
//! discard timer therefore acts on the buffer alone. The receiving end ([`Rx`]) orders by COUNT in NR; in LTE
//! RLC delivers in order. Both ends keep whole COUNTs, so that no hyper frame number can be mistaken. Where a
//! bearer changes its path, copies of SDUs travel (`shared` has their packets), and a [`StatusReport`] says
//! which are not needed. Left out: header compression (ROHC) with its feedback, and ciphering.

mod config;
mod pdu;
mod rx;
mod shared;
mod tx;

pub use config::{NrPdcp, PdcpConfig, PdcpSn};
pub use pdu::{Content, Pdu, StatusReport};
pub use rx::Rx;
pub use tx::{Leg, Source, Tx, Waiting};
