//! The opening of a connection (RFC 9293 §3.5): the options of the SYNs, the agreement on them, and the SYN
//! timer.

use crate::config::{EndpointConfig, MAX_SHIFT};
use crate::receiver::ReceiveWindow;
use crate::sender::MAX_RTO;
use paceline_net::{Duration, Instant, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// Segment size of a peer that names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Smallest MSS that a peer may set: a header's 40 bytes of options and 8 bytes of data (Linux
/// `TCP_MIN_SND_MSS`). A smaller one would multiply the packets of a transfer (CVE-2019-11479).
const SMALLEST_MSS: u32 = 48;
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
        // An MSS of 0 is as none (Linux `tcp_parse_options`).
        let offered = peer.mss.filter(|mss| *mss > 0);
        let room = offered.map_or(DEFAULT_MSS, u32::from).max(SMALLEST_MSS);
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
#[derive(Clone, Copy, Debug)]
pub(super) struct SynTimer {
    /// Retransmissions before the timeout doubles.
    linear: u32,
    /// Retransmissions before the opening is given up.
    retries: u32,
    /// A SYN or SYN-ACK is to be sent.
    pub due: bool,
    attempts: u32,
    sent_at: Instant,
    expires: Option<Instant>,
}

impl SynTimer {
    /// The timer of the SYN of an active opener, or of the SYN-ACK of a passive one. Linear timeouts are
    /// for the SYN alone, and the SYN's retransmissions are counted without them (Linux
    /// `tcp_write_timeout`, `tcp_syn_linear_timeouts`).
    pub fn new(config: &EndpointConfig, active: bool) -> Self {
        let (linear, retries) = match active {
            true => {
                (config.syn_linear_timeouts, config.syn_retries.saturating_add(config.syn_linear_timeouts))
            }
            false => (0, config.syn_ack_retries),
        };
        Self { linear, retries, due: false, attempts: 0, sent_at: Instant::ZERO, expires: None }
    }
    pub fn on_sent(&mut self, now: Instant, initial_rto: Duration) {
        // The first retransmissions follow at equal intervals, then the interval doubles.
        let doubled = self.attempts.saturating_sub(self.linear).min(MAX_BACKOFF);
        let wait = (initial_rto * (1 << doubled)).min(MAX_RTO);
        (self.due, self.attempts) = (false, self.attempts + 1);
        (self.sent_at, self.expires) = (now, Some(now + wait));
    }
    /// Handles the timer if it has expired; true if the last retransmission was not answered.
    pub fn on_timer(&mut self, now: Instant) -> bool {
        if self.expires.is_none_or(|at| at > now) {
            return false;
        }
        self.expires = None;
        self.due = self.attempts <= self.retries;
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
    fn a_small_mss_of_the_peer_is_honoured_down_to_48_bytes() {
        let plain = EndpointConfig { timestamps: false, ..config() };
        for (mss, payload) in [(100, 100), (48, 48), (47, 48), (1, 48), (0, 536)] {
            let offer = TcpOptions { mss: Some(mss), ..TcpOptions::default() };
            assert_eq!(Agreed::new(&plain, &offer).mss, payload, "{mss}");
        }
        let offer = TcpOptions { mss: Some(48), ..syn_options(&config(), None, Timestamps::default()) };
        assert_eq!(Agreed::new(&config(), &offer).mss, 36);
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
        // Linux with tcp_syn_retries = 6 and tcp_syn_linear_timeouts = 4: 11 SYNs in 131 s; with
        // tcp_synack_retries = 5: 6 SYN-ACKs in 63 s.
        let syn: &[u64] = &[1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64];
        for (active, waits, total) in [(true, syn, 131), (false, &[1, 2, 4, 8, 16, 32], 63)] {
            let mut timer = SynTimer::new(&config(), active);
            let mut now = Instant::ZERO;
            for (sent, &seconds) in waits.iter().enumerate() {
                timer.on_sent(now, config().initial_rto);
                assert_eq!(timer.deadline(), Some(now + Duration::from_secs(seconds)));
                now += Duration::from_secs(seconds);
                let last = sent + 1 == waits.len();
                assert_eq!((timer.on_timer(now), timer.due), (last, !last));
            }
            assert_eq!((timer.on_answer(now), now), (None, Instant::from_millis(1000 * total)));
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
