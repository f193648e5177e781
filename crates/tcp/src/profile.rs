//! Defaults of hosts and simulators by name, for comparisons with published measurements. Each value comes
//! from the documentation or source of the named program; mechanisms that it lacks are off.

use crate::cc::{Abc, CwndUnit, Variant};
use crate::config::{DelayedAck, EndpointConfig};
use crate::options::{BeyondWindow, EcnMode, LossRecovery, Nagle, PrrMode, RtoStyle};
use paceline_net::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of defaults.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// Linux of 2025 (from 6.17 on) with its defaults.
    #[default]
    #[serde(rename = "linux")]
    Linux,
    /// ns-3 from 3.34 on with its default attributes: `TcpSocket` (SegmentSize 536, InitialCwnd 10, buffers
    /// 131072, DelAckCount 2, DelAckTimeout 0.2 s, ConnTimeout 3 s, ConnCount and DataRetries 6, TcpNoDelay),
    /// `TcpSocketBase` (MinRto 1 s, Sack, Timestamp, WindowScaling, LimitedTransmit), TcpCubic,
    /// TcpPrrRecovery.
    #[serde(rename = "ns3-default")]
    Ns3Default,
    /// INET 4 with the defaults of `Tcp.ned`: TcpReno, mss 536, advertisedWindow 14 segments, nagleEnabled,
    /// no delayed ACKs, limited transmit, increased initial window, SACK, timestamps or window scale.
    #[serde(rename = "inet-default")]
    InetDefault,
    /// Windows XP on Ethernet: SACK without RFC 1323 options.
    #[serde(rename = "windows-xp")]
    WindowsXp,
    /// RFC 793 with the congestion control of RFC 2001 and the timeouts of RFC 1122; no options.
    #[serde(rename = "rfc793+reno")]
    Rfc793Reno,
    /// Linux 2.6.32 to 2.6.38 (2009 to 2011): rate halving; without PRR (3.2), tail loss probes (3.10) and
    /// RACK (4.4).
    #[serde(rename = "linux-2.6")]
    Linux26,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 6] =
        [Self::Linux, Self::Ns3Default, Self::InetDefault, Self::WindowsXp, Self::Rfc793Reno, Self::Linux26];

    /// Sets every parameter to the profile's value, except addresses, start time and initial sequence number.
    pub fn apply(self, config: &mut EndpointConfig) {
        let fresh = EndpointConfig::new(config.local, config.remote);
        *config = EndpointConfig { isn: config.isn, start_at: config.start_at, ..fresh };
        match self {
            Self::Linux => {}
            Self::Linux26 => linux_26(config),
            Self::Ns3Default => ns3(config),
            Self::InetDefault => inet(config),
            Self::WindowsXp => windows_xp(config),
            Self::Rfc793Reno => rfc793(config),
        }
    }
}

/// Switches off the mechanisms that only Linux and other recent hosts have.
fn plain(config: &mut EndpointConfig) {
    config.tail_loss_probe = false;
    config.frto = false;
    config.undo = false;
    config.rto_style = RtoStyle::Rfc6298;
    config.initial_rto = Duration::from_secs(3);
    config.min_rto = Duration::from_secs(1);
    (config.syn_linear_timeouts, config.syn_ack_retries) = (0, config.syn_retries);
    config.idle_restart = false;
    config.autotune = false;
    config.dsack = false;
    config.sack_compression = None;
    config.ecn = EcnMode::Off;
    config.beyond_window = BeyondWindow::Accept;
    config.delayed_ack =
        DelayedAck { segments: 2, timeout: Duration::from_millis(200), quick_acks: 0, adaptive: false };
}

fn without_options(config: &mut EndpointConfig) {
    config.sack = false;
    config.timestamps = false;
    config.window_scale = false;
}

fn linux_26(config: &mut EndpointConfig) {
    config.initial_window = 3;
    config.loss_recovery = LossRecovery::Sack;
    // Rate halving sends at most one segment for each that was delivered, as the conservative bound does.
    config.prr = PrrMode::Rfc6937Crb;
    config.tail_loss_probe = false;
    config.initial_rto = Duration::from_secs(3);
    (config.syn_retries, config.syn_linear_timeouts) = (5, 0);
    config.receive_buffer = Bytes(4 << 20);
    config.sack_compression = None;
    config.beyond_window = BeyondWindow::Accept;
}

fn ns3(config: &mut EndpointConfig) {
    plain(config);
    config.segment_size = 536;
    config.receive_buffer = Bytes(131_072);
    config.send_buffer = Bytes(131_072);
    config.loss_recovery = LossRecovery::Sack;
    config.prr = PrrMode::Rfc6937Ssrb;
    config.nagle = Nagle::Off;
    (config.retries, config.syn_retries) = (6, 6);
}

fn inet(config: &mut EndpointConfig) {
    plain(config);
    without_options(config);
    config.variant = Variant::NewReno;
    config.abc = Abc::Off;
    config.cwnd_unit = CwndUnit::Bytes;
    config.segment_size = 536;
    config.initial_window = 1;
    config.receive_buffer = Bytes(14 * 536);
    config.loss_recovery = LossRecovery::Reno;
    config.prr = PrrMode::Off;
    config.limited_transmit = false;
    config.nagle = Nagle::Rfc896;
    config.retries = 12;
    config.delayed_ack.segments = 1;
}

fn windows_xp(config: &mut EndpointConfig) {
    plain(config);
    without_options(config);
    config.sack = true;
    config.variant = Variant::NewReno;
    config.abc = Abc::Off;
    config.cwnd_unit = CwndUnit::Bytes;
    config.segment_size = 1460;
    config.initial_window = 2;
    config.receive_buffer = Bytes(17_520);
    config.loss_recovery = LossRecovery::Sack;
    config.prr = PrrMode::Off;
    config.limited_transmit = false;
    config.nagle = Nagle::Rfc896;
    config.min_rto = Duration::from_millis(300);
    (config.retries, config.syn_retries, config.syn_ack_retries) = (5, 2, 2);
}

fn rfc793(config: &mut EndpointConfig) {
    plain(config);
    without_options(config);
    config.variant = Variant::NewReno;
    config.abc = Abc::Off;
    config.cwnd_unit = CwndUnit::Bytes;
    config.segment_size = 536;
    config.initial_window = 1;
    config.receive_buffer = Bytes(65_535);
    config.loss_recovery = LossRecovery::Reno;
    config.prr = PrrMode::Off;
    config.limited_transmit = false;
    config.nagle = Nagle::Off;
    config.delayed_ack.segments = 1;
}
