//! Table `[tcp]`: TCP at both ends. A profile gives every default; a key in the file goes before it. The resolved
//! scenario states them all.

use paceline_net::{Bytes, Duration, Rate};
use paceline_tcp::{
    Abc, BeyondWindow, CwndUnit, DelayedAck, EcnMode, EndpointConfig, Keepalive, LossRecovery, Nagle,
    NewRenoTimer, Pacing, Profile, PrrMode, RtoStyle, SackCompression, SlowStartExit, StretchAck, Variant,
};
use serde::{Deserialize, Serialize};

/// Declares the table as it is used, where every key has a value, and as a file may have it.
macro_rules! table {
    ($($(#[$doc:meta])* $key:ident: $type:ty,)*) => {
        /// Table `[tcp]`.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[serde(from = "File")]
        pub struct Tcp {
            /// Whose defaults: `linux`, `linux-2.6`, `ns3-default`, `inet-default`, `windows-xp` or `rfc793+reno`.
            pub profile: Profile,
            $($(#[$doc])* pub $key: $type,)*
            /// How fast the receiving application reads; at once if left out.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub read_rate: Option<Rate>,
        }

        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct File {
            profile: Profile,
            $($key: Option<$type>,)*
            read_rate: Option<Rate>,
        }

        impl From<File> for Tcp {
            fn from(file: File) -> Self {
                let mut tcp = Self::of(file.profile);
                $(if let Some(value) = file.$key {
                    tcp.$key = value;
                })*
                tcp.read_rate = file.read_rate;
                tcp
            }
        }
    };
}

table! {
    /// Congestion control of the senders: `tahoe`, `reno`, `newreno`, `westwood` (as first published), `westwood+` (Linux
    /// `westwood`), `veno`, `vegas`, `illinois`, `cubic`, `bbr` (version 1), `bbr3`, `dctcp` or `prague`.
    congestion_control: Variant,
    /// Payload bytes of a full segment.
    segment_size: Bytes,
    /// Initial window in segments (RFC 6928).
    initial_window: u32,
    /// How losses are told and repaired: `tahoe`, `reno`, `newreno`, `sack` or `rack`.
    loss_recovery: LossRecovery,
    /// What partial ACKs do to the timer without SACK: `impatient` or `slow-but-steady` (RFC 6582).
    newreno_timer: NewRenoTimer,
    /// Whether duplicate ACKs of what the last recovery ended with are ignored, without SACK (RFC 6582).
    newreno_careful: bool,
    /// The window during fast recovery: `off`, `rfc6937-crb`, `rfc6937-ssrb` or `rfc9937`.
    prr: PrrMode,
    /// Tail loss probes, with `rack` (RFC 8985).
    tail_loss_probe: bool,
    /// Detection of spurious timeouts (RFC 5682).
    frto: bool,
    /// Whether reductions that prove needless are taken back.
    undo: bool,
    /// New segments in answer to the first duplicate ACKs (RFC 3042).
    limited_transmit: bool,
    /// How the retransmission time-out is computed: `linux` or `rfc6298`.
    rto_style: RtoStyle,
    /// Lower bound of the retransmission time-out: of its variance term in `linux`, of the whole in `rfc6298`.
    min_rto: Duration,
    /// Retransmission time-out before the first sample.
    initial_rto: Duration,
    /// Time-outs in a row that end a connection, in the time that they take from `min_rto` on.
    retries: u32,
    /// Repetitions of a SYN before giving up.
    syn_retries: u32,
    /// Repetitions of a SYN before its time-out doubles.
    syn_linear_timeouts: u32,
    /// Spacing of segments: `none`, `linux`, or a rate; controls with a rate of their own keep it.
    pacing: Pacing,
    /// Whether a window that was not used shrinks (RFC 2861).
    idle_restart: bool,
    /// Small segments while others are outstanding: `off`, `rfc896` or `minshall`.
    nagle: Nagle,
    /// Probes of silent connections.
    keepalive: bool,
    /// Silence before the first one.
    keepalive_idle: Duration,
    /// Distance of further ones.
    keepalive_interval: Duration,
    /// Unanswered ones that end a connection.
    keepalive_probes: u32,
    /// Explicit Congestion Notification: `off`, `on` or `passive` (accepted but not asked for).
    ecn: EcnMode,
    /// Largest receive window.
    receive_buffer: Bytes,
    /// Whether the receive window starts small and grows with the transfer, as in Linux.
    autotune: bool,
    /// Largest amount of data in flight.
    send_buffer: Bytes,
    /// Segments per delayed ACK.
    delayed_ack_segments: u32,
    /// Longest delay of an ACK; the shortest one where it adapts.
    delayed_ack_timeout: Duration,
    /// Whether the delay follows the distance of segments, and ping-pong traffic ends quick ACKs.
    delayed_ack_adaptive: bool,
    /// ACKs sent at once at the start and after pauses.
    quick_acks: u32,
    /// Whether duplicate ACKs are merged within a millisecond.
    sack_compression: bool,
    /// Segments per ACK that leaves below TCP, as modems thin them out; 1 for all ACKs.
    stretch_ack_segments: u32,
    /// Longest time for which one is held there.
    stretch_ack_timeout: Duration,
    /// Whether duplicate ACKs are held there too.
    stretch_ack_duplicates: bool,
    /// Segments beyond the window: `accept` or `drop`.
    beyond_window: BeyondWindow,
    /// The timestamps option (RFC 7323).
    timestamps: bool,
    /// Selective acknowledgments (RFC 2018).
    sack: bool,
    /// Reports of duplicates (RFC 2883).
    dsack: bool,
    /// The window scale option (RFC 7323).
    window_scale: bool,
    /// How CUBIC leaves slow start before a loss: `off`, `hystart` (as Linux) or `hystart++` (RFC 9406).
    hystart: SlowStartExit,
    /// Whether CUBIC leaves room for others when a loss comes before its former peak (RFC 9438 §4.7).
    fast_convergence: bool,
    /// How `reno` and `newreno` count what was acknowledged (RFC 3465): `off` (each ACK is one segment), `l1` or `l2`
    /// (bytes, in slow start at most L = 1 or 2 segments per ACK), or `unlimited` (bytes, as Linux).
    abc: Abc,
    /// What the window of `tahoe`, `reno`, `newreno` and `cubic` counts: whole `segments`, as Linux, or `bytes`, as
    /// RFC 5681 and RFC 9438.
    cwnd_unit: CwndUnit,
}

impl Default for Tcp {
    fn default() -> Self {
        Self::of(Profile::Linux)
    }
}

impl Tcp {
    /// The defaults of a profile.
    pub fn of(profile: Profile) -> Self {
        let nowhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
        let mut config = EndpointConfig::new(nowhere, nowhere);
        profile.apply(&mut config);
        let keepalive = config.keepalive.unwrap_or_default();
        Self {
            profile,
            congestion_control: config.variant,
            segment_size: Bytes(u64::from(config.segment_size)),
            initial_window: config.initial_window,
            loss_recovery: config.loss_recovery,
            newreno_timer: config.newreno_timer,
            newreno_careful: config.newreno_careful,
            prr: config.prr,
            tail_loss_probe: config.tail_loss_probe,
            frto: config.frto,
            undo: config.undo,
            limited_transmit: config.limited_transmit,
            rto_style: config.rto_style,
            min_rto: config.min_rto,
            initial_rto: config.initial_rto,
            retries: config.retries,
            syn_retries: config.syn_retries,
            syn_linear_timeouts: config.syn_linear_timeouts,
            pacing: config.pacing,
            idle_restart: config.idle_restart,
            nagle: config.nagle,
            keepalive: config.keepalive.is_some(),
            keepalive_idle: keepalive.idle,
            keepalive_interval: keepalive.interval,
            keepalive_probes: keepalive.probes,
            ecn: config.ecn,
            receive_buffer: config.receive_buffer,
            autotune: config.autotune,
            send_buffer: config.send_buffer,
            delayed_ack_segments: config.delayed_ack.segments,
            delayed_ack_timeout: config.delayed_ack.timeout,
            delayed_ack_adaptive: config.delayed_ack.adaptive,
            quick_acks: config.delayed_ack.quick_acks,
            sack_compression: config.sack_compression.is_some(),
            stretch_ack_segments: config.stretch_ack.map_or(1, |stretch| stretch.segments),
            stretch_ack_timeout: config
                .stretch_ack
                .map_or(Duration::from_millis(5), |stretch| stretch.timeout),
            stretch_ack_duplicates: config.stretch_ack.is_some_and(|stretch| stretch.hold_duplicates),
            beyond_window: config.beyond_window,
            timestamps: config.timestamps,
            sack: config.sack,
            dsack: config.dsack,
            window_scale: config.window_scale,
            hystart: config.hystart,
            fast_convergence: config.fast_convergence,
            abc: config.abc,
            cwnd_unit: config.cwnd_unit,
            read_rate: config.read_rate,
        }
    }
    /// The configuration of an endpoint between these addresses.
    pub fn config(&self, local: std::net::SocketAddr, remote: std::net::SocketAddr) -> EndpointConfig {
        let keepalive = Keepalive {
            idle: self.keepalive_idle,
            interval: self.keepalive_interval,
            probes: self.keepalive_probes,
        };
        let stretch = StretchAck {
            segments: self.stretch_ack_segments,
            timeout: self.stretch_ack_timeout,
            hold_duplicates: self.stretch_ack_duplicates,
        };
        EndpointConfig {
            variant: self.congestion_control,
            segment_size: self.segment_size.0 as u32,
            initial_window: self.initial_window,
            loss_recovery: self.loss_recovery,
            newreno_timer: self.newreno_timer,
            newreno_careful: self.newreno_careful,
            prr: self.prr,
            tail_loss_probe: self.tail_loss_probe,
            frto: self.frto,
            undo: self.undo,
            limited_transmit: self.limited_transmit,
            rto_style: self.rto_style,
            min_rto: self.min_rto,
            initial_rto: self.initial_rto,
            retries: self.retries,
            syn_retries: self.syn_retries,
            syn_linear_timeouts: self.syn_linear_timeouts,
            pacing: self.pacing,
            idle_restart: self.idle_restart,
            nagle: self.nagle,
            keepalive: self.keepalive.then_some(keepalive),
            ecn: self.ecn,
            receive_buffer: self.receive_buffer,
            autotune: self.autotune,
            send_buffer: self.send_buffer,
            delayed_ack: DelayedAck {
                segments: self.delayed_ack_segments,
                timeout: self.delayed_ack_timeout,
                quick_acks: self.quick_acks,
                adaptive: self.delayed_ack_adaptive,
            },
            sack_compression: self.sack_compression.then(SackCompression::default),
            stretch_ack: (self.stretch_ack_segments > 1).then_some(stretch),
            beyond_window: self.beyond_window,
            timestamps: self.timestamps,
            sack: self.sack,
            dsack: self.dsack,
            window_scale: self.window_scale,
            hystart: self.hystart,
            fast_convergence: self.fast_convergence,
            abc: self.abc,
            cwnd_unit: self.cwnd_unit,
            read_rate: self.read_rate,
            ..EndpointConfig::new(local, remote)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    #[test]
    fn a_profile_gives_the_defaults_and_a_key_goes_before_it() {
        let text = "[tcp]\nprofile = \"inet-default\"\nsegment_size = \"1000 B\"\nsack = true\n[[station]]\n";
        let scenario = load("test.toml", text, &[]).unwrap();
        let tcp = &scenario.tcp;
        assert_eq!((tcp.segment_size, tcp.receive_buffer, tcp.sack), (Bytes(1000), Bytes(7504), true));
        assert_eq!(
            (tcp.loss_recovery, tcp.delayed_ack_segments, tcp.timestamps),
            (LossRecovery::Reno, 1, false)
        );
        assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
    }

    #[test]
    fn every_profile_survives_its_own_file() {
        for profile in Profile::ALL {
            let tcp = Tcp::of(profile);
            let address = "198.18.0.1:80".parse().unwrap();
            let (config, mut own) = (tcp.config(address, address), EndpointConfig::new(address, address));
            profile.apply(&mut own);
            assert_eq!(format!("{config:?}"), format!("{own:?}"));
            let scenario = crate::scenario::Scenario { tcp, ..load("a.toml", "[[station]]\n", &[]).unwrap() };
            assert_eq!(load("resolved.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        }
        let error = load("b.toml", "[tcp]\nprofile = \"bsd\"\n[[station]]\n", &[]).unwrap_err().to_string();
        assert!(error.contains("b.toml:2: tcp.profile") && error.contains("windows-xp"), "{error}");
    }
}
