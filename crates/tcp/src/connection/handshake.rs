//! The opening of a connection (RFC 9293 §3.5): the options of the SYNs, the agreement on them, and the SYN
//! timer.

use crate::config::{EndpointConfig, MAX_SHIFT};
use crate::receiver::ReceiveWindow;
use crate::sender::MAX_RTO;
use paceline_net::{Duration, Instant, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// Segment size of a peer that names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Smallest MSS accepted from a peer. Chosen: it leaves payload beside the timestamps option.
const SMALLEST_MSS: u32 = 64;
/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_LEN: u32 = 12;
/// Largest exponent of the SYN's backoff: with it every timeout is [`MAX_RTO`]. Chosen: it keeps the shift in
/// range.
const MAX_BACKOFF: u32 = 16;

/// The agreement of both SYNs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// Payload bytes of a full segment.
    pub mss: u32,
    pub timestamps: bool,
    pub sack: bool,
    /// Both SYNs had the window scale option.
    pub scaled: bool,
    /// Shift of the windows that the peer advertises.
    pub peer_shift: u8,
    /// Shift of the windows that this side advertises.
    pub own_shift: u8,
    /// Explicit Congestion Notification (RFC 3168 §6.1.1).
    pub ecn: bool,
}

impl Agreed {
    pub fn new(config: &EndpointConfig, peer: &TcpOptions) -> Self {
        let timestamps = config.timestamps && peer.timestamps.is_some();
        let room = peer.mss.map_or(DEFAULT_MSS, u32::from).max(SMALLEST_MSS);
        let room = if timestamps { room - TIMESTAMPS_LEN } else { room };
        let shift = peer.window_scale.filter(|_| config.window_scale);
        Self {
            mss: config.segment_size.min(room).max(1),
            timestamps,
            sack: config.sack && peer.sack_permitted,
            scaled: shift.is_some(),
            peer_shift: shift.map_or(0, |shift| shift.min(MAX_SHIFT)),
            own_shift: if shift.is_some() { config.scale_shift() } else { 0 },
            ecn: false,
        }
    }
}

/// The options of a SYN, or with `agreed` of a SYN-ACK.
pub(super) fn syn_options(
    config: &EndpointConfig,
    agreed: Option<&Agreed>,
    timestamps: Timestamps,
) -> TcpOptions {
    let with_timestamps = agreed.map_or(config.timestamps, |agreed| agreed.timestamps);
    let scaled = agreed.map_or(config.window_scale, |agreed| agreed.scaled);
    let header = if config.timestamps { TIMESTAMPS_LEN } else { 0 };
    TcpOptions {
        mss: Some(u16::try_from(config.segment_size + header).unwrap_or(u16::MAX)),
        window_scale: scaled.then(|| config.scale_shift()),
        sack_permitted: agreed.map_or(config.sack, |agreed| agreed.sack),
        timestamps: with_timestamps.then_some(timestamps),
        ..TcpOptions::default()
    }
}

/// The window field of a SYN.
pub(super) fn syn_window(config: &EndpointConfig) -> u16 {
    ReceiveWindow::unscaled(config)
}

/// The flags of an ECN-setup SYN (RFC 3168 §6.1.1).
pub(super) const ECN_SETUP: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

/// Whether the connection uses ECN: this side uses it, `own`, and the peer's SYN is an ECN-setup SYN, or
/// with `answer` an ECN-setup SYN-ACK, which has ECE alone (RFC 3168 §6.1.1).
pub(super) fn ecn_agreed(own: bool, flags: TcpFlags, answer: bool) -> bool {
    let peer = if answer {
        flags.contains(TcpFlags::ECE) && !flags.contains(TcpFlags::CWR)
    } else {
        flags.contains(ECN_SETUP)
    };
    own && peer
}

/// The timer of the SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SynTimer {
    /// A SYN or SYN-ACK is to be sent.
    pub due: bool,
    attempts: u32,
    sent_at: Instant,
    expires: Option<Instant>,
}

impl SynTimer {
    pub fn on_sent(&mut self, now: Instant, config: &EndpointConfig) {
        // The first retransmissions follow at equal intervals, then the interval doubles.
        let doubled = self.attempts.saturating_sub(config.syn_linear_timeouts).min(MAX_BACKOFF);
        let wait = (config.initial_rto * (1 << doubled)).min(MAX_RTO);
        *self = Self { due: false, attempts: self.attempts + 1, sent_at: now, expires: Some(now + wait) };
    }
    /// Handles the timer if it has expired; true if the last retransmission was not answered.
    pub fn on_timer(&mut self, now: Instant, config: &EndpointConfig) -> bool {
        if self.expires.is_none_or(|at| at > now) {
            return false;
        }
        self.expires = None;
        self.due = self.attempts <= config.syn_retries;
        !self.due
    }
    pub fn deadline(&self) -> Option<Instant> {
        self.expires
    }
    /// Whether a SYN was sent already.
    pub fn has_sent(&self) -> bool {
        self.attempts > 0
    }
    /// Number of SYNs sent.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
    /// The opening is over.
    pub fn stop(&mut self) {
        self.expires = None;
        self.due = false;
    }
    /// The SYN was answered: stops the timer. Returns the round-trip time if the SYN was sent once (Karn).
    pub fn on_answer(&mut self, now: Instant) -> Option<Duration> {
        self.stop();
        (self.attempts == 1).then(|| now.since(self.sent_at))
    }
}

/// The window of a segment in bytes; that of a SYN is never scaled (RFC 7323 §2.2).
pub(super) fn window_of(tcp: &TcpHeader, shift: u8, is_syn: bool) -> u64 {
    if is_syn { u64::from(tcp.window) } else { u64::from(tcp.window) << shift }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> EndpointConfig {
        let address = "198.18.0.1:80".parse().unwrap();
        EndpointConfig::new(address, address)
    }

    #[test]
    fn the_segment_size_is_the_smaller_of_both_sides() {
        let offer = syn_options(&config(), None, Timestamps::default());
        assert_eq!((offer.mss, offer.window_scale), (Some(1460), Some(7)));
        assert_eq!(offer.wire_len(), 20);
        assert_eq!(Agreed::new(&config(), &offer).mss, 1448);
        let small = TcpOptions { mss: Some(1000), ..offer };
        assert_eq!(Agreed::new(&config(), &small).mss, 988);
        assert_eq!(Agreed::new(&config(), &TcpOptions::default()).mss, 536);
    }

    #[test]
    fn an_option_is_used_only_if_both_offer_it() {
        let offer = syn_options(&config(), None, Timestamps::default());
        let plain = EndpointConfig { timestamps: false, sack: false, window_scale: false, ..config() };
        let agreed = Agreed::new(&plain, &offer);
        assert!(!agreed.timestamps && !agreed.sack && agreed.peer_shift == 0 && agreed.own_shift == 0);
        let answer = syn_options(&plain, Some(&agreed), Timestamps::default());
        assert_eq!((answer.timestamps, answer.window_scale, answer.sack_permitted), (None, None, false));
    }

    #[test]
    fn unanswered_syns_back_off_and_the_last_one_ends_the_opening() {
        for (linear, waits) in [(0, [1, 2, 4, 8]), (2, [1, 1, 1, 2])] {
            let config = EndpointConfig { syn_linear_timeouts: linear, syn_retries: 3, ..config() };
            let mut timer = SynTimer::default();
            let mut now = Instant::ZERO;
            for (sent, seconds) in waits.into_iter().enumerate() {
                timer.on_sent(now, &config);
                assert_eq!(timer.deadline(), Some(now + Duration::from_secs(seconds)));
                now += Duration::from_secs(seconds);
                assert_eq!(timer.on_timer(now, &config), sent == 3);
                assert_eq!(timer.due, sent < 3);
            }
            assert_eq!(timer.on_answer(now), None);
        }
    }

    #[test]
    fn ecn_needs_both_flags_in_the_syn_and_ece_alone_in_the_syn_ack() {
        assert!(ecn_agreed(true, TcpFlags::SYN.with(ECN_SETUP), false));
        assert!(!ecn_agreed(false, TcpFlags::SYN.with(ECN_SETUP), false));
        assert!(!ecn_agreed(true, TcpFlags::SYN.with(TcpFlags::ECE), false));
        assert!(ecn_agreed(true, TcpFlags::SYN.with(TcpFlags::ECE), true));
        // A peer that reflects the flags does not support ECN (RFC 3168 §6.1.1.1).
        assert!(!ecn_agreed(true, TcpFlags::SYN.with(ECN_SETUP), true));
    }
}
