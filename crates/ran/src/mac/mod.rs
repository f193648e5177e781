//! Medium access control (TS 36.321) of one logical channel per station.
//!
//! Uplink: data in an empty buffer trigger a BSR and a scheduling request (`scheduling_request`); the eNB keeps an
//! estimate of the buffer (`buffer_estimate`) and grants PRBs (`scheduler`), limited by the reported power headroom
//! (`power_headroom`). A station without PUCCH or connection uses `random_access`. Downlink: the scheduler reads the
//! eNB's own buffers. In both directions a scheduled transport block is filled by `pdu` and sent by `harq` until it is
//! decoded or given up.

pub mod buffer_estimate;
pub mod harq;
pub mod pdu;
pub mod power_headroom;
pub mod random_access;
pub mod scheduler;
pub mod scheduling_request;
