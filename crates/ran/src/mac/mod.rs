//! Medium access control (TS 36.321; TS 38.321 for NR) with one logical channel per station.
//!
//! Uplink: data in an empty buffer trigger a buffer status report and a scheduling request
//! (`scheduling_request`). The eNB estimates the buffer from both (`buffer_estimate`) and grants PRBs
//! (`scheduler`) within the reported power headroom (`power_headroom`). A station without PUCCH or connection
//! uses `random_access`. Downlink: the scheduler reads the eNB's own buffers. In both directions `pdu` fills
//! the scheduled transport block, and `harq` retransmits it until it is decoded or given up.

pub mod buffer_estimate;
pub mod buffer_report;
pub mod harq;
pub mod nr_encode;
pub mod nr_pdu;
pub mod pdu;
pub mod power_headroom;
pub mod random_access;
pub mod scheduler;
pub mod scheduling_request;
