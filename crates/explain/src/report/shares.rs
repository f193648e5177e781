//! Shares of a lifetime by cause.

use crate::causes::{Cause, CauseTimes};
use serde::Serialize;

/// Shares of a lifetime by cause. They sum to 1 if there is any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CauseShares {
    /// [`Cause::Handshake`].
    pub handshake: f64,
    /// [`Cause::Application`].
    pub application: f64,
    /// [`Cause::ReceiveWindow`].
    pub receive_window: f64,
    /// [`Cause::Recovery`].
    pub recovery: f64,
    /// [`Cause::Timeout`].
    pub timeout: f64,
    /// [`Cause::Pause`].
    pub pause: f64,
    /// [`Cause::Queue`].
    pub queue: f64,
    /// [`Cause::CongestionWindow`].
    pub congestion_window: f64,
    /// [`Cause::Policer`].
    pub policer: f64,
    /// [`Cause::AckPath`].
    pub ack_path: f64,
    /// [`Cause::Unknown`].
    pub unknown: f64,
}

impl CauseShares {
    /// Shares of these times.
    pub fn new(times: &CauseTimes) -> Self {
        Self {
            handshake: times.share(Cause::Handshake),
            application: times.share(Cause::Application),
            receive_window: times.share(Cause::ReceiveWindow),
            recovery: times.share(Cause::Recovery),
            timeout: times.share(Cause::Timeout),
            pause: times.share(Cause::Pause),
            queue: times.share(Cause::Queue),
            congestion_window: times.share(Cause::CongestionWindow),
            policer: times.share(Cause::Policer),
            ack_path: times.share(Cause::AckPath),
            unknown: times.share(Cause::Unknown),
        }
    }
    /// The shares in the order of [`Cause::ALL`].
    pub fn values(&self) -> [f64; Cause::ALL.len()] {
        [
            self.handshake,
            self.application,
            self.receive_window,
            self.recovery,
            self.timeout,
            self.pause,
            self.queue,
            self.congestion_window,
            self.policer,
            self.ack_path,
            self.unknown,
        ]
    }
}
