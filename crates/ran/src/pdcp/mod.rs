//! PDCP of one direction of a data radio bearer (TS 36.323; TS 38.323 for NR, with the SDAP header of TS
//! 37.324).
//!
//! The transmitting end ([`Tx`]) numbers SDUs with a COUNT and adds a header. An SDU gets its number when RLC
//! takes it from the buffer above, so an SDU that an ACK filter or the discard timer (§5.4, §5.3) removes
//! from the buffer leaves no gap. RLC sends at least a part of each SDU in the slot in which it takes it; the
//! discard timer therefore acts on the buffer alone. The receiving end ([`Rx`]) orders by COUNT in NR; in LTE
//! RLC delivers in order. Both ends keep whole COUNTs, so that no hyper frame number can be mistaken. Left
//! out: header compression (ROHC), ciphering, and control PDUs.

mod config;
mod rx;
mod tx;

pub use config::{NrPdcp, PdcpConfig, PdcpSn};
pub use rx::Rx;
pub use tx::{Pdu, Source, Tx, Waiting};
