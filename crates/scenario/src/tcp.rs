//! Table `[tcp]`: TCP at both ends. A profile gives the default of every other key. The resolved scenario
//! states all keys.

use super::PacingPattern;
use super::limits::{self, Allowed, Limit, Section, key, numbers, quantities, rates, relation};
use paceline_net::{Bytes, Duration, Rate};
use paceline_tcp::{
    Abc, BeyondWindow, CwndUnit, DelaySignal, DelayedAck, EcnMode, EndpointConfig, Keepalive, LossRecovery,
    Nagle, NewRenoTimer, Pacing, Profile, PrrMode, RtoStyle, SackCompression, SlowStartExit, StretchAck,
    Variant,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Default longest delay of an ACK below TCP. Chosen: the order of a modem's transmission interval.
const STRETCH_ACK_TIMEOUT: Duration = Duration::from_millis(5);

/// Declares the table twice: as it is used, where every key has a value, and as a file may have it.
macro_rules! table {
    (
        profile { $(#[$profile_doc:meta])* }
        keys { $($(#[$doc:meta])* $key:ident: $type:ty,)* }
        optional { $($(#[$optional_doc:meta])* $optional:ident: $optional_type:ty,)* }
    ) => {
        /// Table `[tcp]`.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(from = "File")]
        pub struct Tcp {
            $(#[$profile_doc])* pub profile: Profile,
            $($(#[$doc])* pub $key: $type,)*
            $(
                $(#[$optional_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $optional: Option<$optional_type>,
            )*
        }

        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(transform = limits::order::<Self>, transform = limits::limit::<Tcp>, transform = linux_defaults)]
        struct File {
            $(#[$profile_doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            profile: Option<Profile>,
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                $key: Option<$type>,
            )*
            $(
                $(#[$optional_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                $optional: Option<$optional_type>,
            )*
        }

        impl File {
            /// The table `base`, or the defaults of the own profile, with the keys that are given here.
            fn over(&self, base: &Tcp) -> Tcp {
                let mut tcp = self.profile.map_or_else(|| base.clone(), Tcp::of);
                $(if let Some(value) = &self.$key {
                    tcp.$key = value.clone();
                })*
                $(if let Some(value) = &self.$optional {
                    tcp.$optional = Some(value.clone());
                })*
                tcp
            }
        }

        impl From<File> for Tcp {
            fn from(file: File) -> Self {
                file.over(&Self::default())
            }
        }

        impl From<Tcp> for File {
            fn from(tcp: Tcp) -> Self {
                Self {
                    profile: Some(tcp.profile),
                    $($key: Some(tcp.$key),)*
                    $($optional: tcp.$optional,)*
                }
            }
        }
    };
}

table! {
    profile {
        /// The set of defaults.
    }
    keys {
        /// Congestion control of the senders.
        congestion_control: Variant,
        /// Payload of a full segment.
        segment_size: Bytes,
        /// Initial congestion window (RFC 6928).
        initial_window: u32,
        /// Detection and repair of losses.
        loss_recovery: LossRecovery,
        /// Effect of partial ACKs on the retransmission timer, without SACK (RFC 6582 §4).
        newreno_timer: NewRenoTimer,
        /// Whether duplicate ACKs at the last recovery point are ignored, without SACK (RFC 6582 §4.1).
        newreno_careful: bool,
        /// Congestion window during fast recovery (proportional rate reduction).
        prr: PrrMode,
        /// Tail loss probes, with `loss_recovery = "rack"` (RFC 8985).
        tail_loss_probe: bool,
        /// Detection of spurious timeouts: F-RTO (RFC 5682).
        frto: bool,
        /// Whether spurious reductions of the congestion window are undone.
        undo: bool,
        /// Limited transmit: new segments for the first duplicate ACKs (RFC 3042).
        limited_transmit: bool,
        /// Computation of the retransmission timeout (RTO).
        rto_style: RtoStyle,
        /// Lower bound of the RTO, or with `rto_style = "linux"` of its variance term.
        min_rto: Duration,
        /// RTO before the first sample of the round-trip time.
        initial_rto: Duration,
        /// Consecutive timeouts that end a connection, as their time with backoff from `min_rto` (Linux
        /// tcp_retries2).
        retries: u32,
        /// Retransmissions of a SYN before the attempt fails, besides `syn_linear_timeouts` (Linux
        /// tcp_syn_retries).
        syn_retries: u32,
        /// Retransmissions of a SYN-ACK (Linux tcp_synack_retries).
        syn_ack_retries: u32,
        /// Retransmissions of a SYN before its RTO doubles (Linux tcp_syn_linear_timeouts).
        syn_linear_timeouts: u32,
        /// Spacing of segments; congestion controls with a rate of their own keep it.
        pacing: Pacing,
        /// TDD pattern for `tdd` and `tdd-published` pacing and clean delays.
        pacing_pattern: PacingPattern,
        /// Whether the congestion window shrinks while it is not used (RFC 2861).
        idle_restart: bool,
        /// Delay of small segments while others are outstanding.
        nagle: Nagle,
        /// Keepalive probes on idle connections.
        keepalive: bool,
        /// Idle time before the first keepalive probe.
        keepalive_idle: Duration,
        /// Time between keepalive probes.
        keepalive_interval: Duration,
        /// Unanswered keepalive probes that end a connection.
        keepalive_probes: u32,
        /// Explicit Congestion Notification (RFC 3168).
        ecn: EcnMode,
        /// Largest receive window.
        receive_buffer: Bytes,
        /// Whether the receive window grows with the transfer, as in Linux.
        autotune: bool,
        /// Largest number of bytes in flight.
        send_buffer: Bytes,
        /// Full segments per delayed ACK.
        delayed_ack_segments: u32,
        /// Longest delay of an ACK; with `delayed_ack_adaptive` the shortest.
        delayed_ack_timeout: Duration,
        /// Whether the delay of ACKs adapts to the time between segments, and interactive traffic ends quick
        /// ACKs.
        delayed_ack_adaptive: bool,
        /// ACKs without delay at the start and after idle times.
        quick_acks: u32,
        /// Whether duplicate ACKs within a millisecond are merged.
        sack_compression: bool,
        /// Full segments per ACK where a modem below TCP thins out ACKs; 1: no thinning.
        stretch_ack_segments: u32,
        /// Longest delay of an ACK by this thinning.
        stretch_ack_timeout: Duration,
        /// Whether duplicate ACKs are thinned out too.
        stretch_ack_duplicates: bool,
        /// Segments that reach beyond the advertised window.
        beyond_window: BeyondWindow,
        /// The timestamps option (RFC 7323).
        timestamps: bool,
        /// Selective acknowledgments (RFC 2018).
        sack: bool,
        /// SACK blocks for duplicate segments: D-SACK (RFC 2883).
        dsack: bool,
        /// The window scale option (RFC 7323).
        window_scale: bool,
        /// End of CUBIC's slow start before a loss.
        hystart: SlowStartExit,
        /// CUBIC's fast convergence (RFC 9438 §4.7).
        fast_convergence: bool,
        /// Appropriate byte counting of `reno` and `newreno` (RFC 3465).
        abc: Abc,
        /// Unit of the congestion window of `tahoe`, `reno`, `newreno` and `cubic`.
        cwnd_unit: CwndUnit,
    }
    optional {
        /// Send time, modulo the period, of a segment that reaches the cell at the start of `pacing_pattern`.
        /// Default: from the delays of `core.hops`.
        pacing_phase: Duration,
        /// Round-trip times for HyStart, Illinois, Vegas and Veno. Default: `clean` with `tdd` pacing, else
        /// `raw`.
        delay_signal: DelaySignal,
        /// Rate at which the receiving application reads. Default: at once.
        read_rate: Rate,
    }
}

/// Table `tcp` of a `[[station]]`: keys that differ from `[tcp]`. The loader completes it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StationTcp(File);

impl StationTcp {
    /// The whole table: `[tcp]`, or the profile that is given here, with the keys that are given here.
    pub fn over(&self, tcp: &Tcp) -> Tcp {
        self.0.over(tcp)
    }
}

impl From<Tcp> for StationTcp {
    fn from(tcp: Tcp) -> Self {
        Self(tcp.into())
    }
}

impl JsonSchema for StationTcp {
    fn schema_name() -> Cow<'static, str> {
        "StationTcp".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = File::json_schema(generator);
        limits::without_defaults(&mut schema);
        schema.insert("x-same-keys".to_owned(), "tcp".into());
        schema
    }
}

impl Section for Tcp {
    fn limits() -> Vec<Limit<Self>> {
        // The largest window of RFC 7323 §2.3.
        const ONE_GIB: Bytes = Bytes(1 << 30);
        const BUFFER: &str = "tcp.segment_size to 1 GiB";
        let rto = || quantities("1 ms", "60 s");
        let retries = |unit: &'static str| numbers(0..=255).unit(unit);
        let keepalive = || quantities("1 ms", "86400 s");
        let rate_of = |pacing: &Pacing| match pacing {
            Pacing::External(rate) => Some(*rate),
            _ => None,
        };
        let at_most_500_ms = |delay: &Duration| *delay <= Duration::from_millis(500);
        vec![
            key!(segment_size, quantities("64 B", "8948 B")),
            key!(initial_window, numbers(1..=1000).unit("segments")),
            relation!(receive_buffer, BUFFER, |tcp| {
                tcp.receive_buffer >= tcp.segment_size && tcp.receive_buffer <= ONE_GIB
            }),
            relation!(send_buffer, BUFFER, |tcp| {
                tcp.send_buffer >= tcp.segment_size && tcp.send_buffer <= ONE_GIB
            }),
            key!(delayed_ack_segments, numbers(1..=64).unit("segments")),
            key!(delayed_ack_timeout, Allowed::new("0 to 500 ms (RFC 9293 §3.8.6.3)", at_most_500_ms)),
            key!(quick_acks, numbers(0..=1000).unit("ACKs")),
            key!(stretch_ack_segments, numbers(1..=64).unit("segments")),
            key!(stretch_ack_timeout, Allowed::new("0 to 500 ms", at_most_500_ms)),
            key!(read_rate?, rates()),
            key!(pacing_phase?, quantities("0 s", "20 ms")),
            key!(min_rto, rto()),
            key!(initial_rto, rto()),
            key!(retries, retries("timeouts")),
            key!(syn_retries, retries("retransmissions")),
            key!(syn_ack_retries, retries("retransmissions")),
            key!(syn_linear_timeouts, retries("retransmissions")),
            key!(keepalive_probes, retries("probes")),
            key!(keepalive_idle, keepalive()),
            key!(keepalive_interval, keepalive()),
            key!(pacing, rates().inside("none, linux, linux-per-segment, tdd, tdd-published, or ", rate_of)),
        ]
    }
    /// The defaults of the profiles, where they differ.
    fn computed_defaults() -> Vec<(&'static str, String)> {
        let tables = Profile::ALL.map(|profile| keys_and_values(&Self::of(profile)));
        let values = |key: &str| {
            tables.iter().filter_map(|table| Some((text(&table["profile"]), text(table.get(key)?)))).collect()
        };
        let keys = limits::keys::<Self>().iter().filter(|key| **key != "profile");
        let all = keys.map(|key| -> (&str, Vec<(String, String)>) { (*key, values(key)) });
        let different = all.filter(|(_, values)| values.iter().any(|(_, value)| *value != values[0].1));
        different.map(|(key, values)| (key, limits::by_name(values))).collect()
    }
}

fn linux_defaults(schema: &mut Schema) {
    limits::defaults(schema, &Tcp::default());
}

fn keys_and_values(table: &Tcp) -> Map<String, Value> {
    match serde_json::to_value(table) {
        Ok(Value::Object(table)) => table,
        _ => unreachable!("a table has keys and values"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Default for Tcp {
    fn default() -> Self {
        Self::of(Profile::Linux)
    }
}

impl Tcp {
    /// The table with the defaults of a profile.
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
            syn_ack_retries: config.syn_ack_retries,
            syn_linear_timeouts: config.syn_linear_timeouts,
            pacing: config.pacing,
            pacing_pattern: PacingPattern::default(),
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
            stretch_ack_timeout: config.stretch_ack.map_or(STRETCH_ACK_TIMEOUT, |stretch| stretch.timeout),
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
            pacing_phase: None,
            delay_signal: config.delay_signal,
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
            syn_ack_retries: self.syn_ack_retries,
            syn_linear_timeouts: self.syn_linear_timeouts,
            pacing: self.pacing,
            delay_signal: self.delay_signal,
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
    use crate::load;

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
    fn a_station_overrides_tcp_key_by_key() {
        let text = "[tcp]\ncongestion_control = \"cubic\"\nsegment_size = \"1000 B\"\n[[station]]\n\
            [[station]]\ntcp = { congestion_control = \"bbr\" }\n\
            [[station]]\ntcp = { profile = \"inet-default\", sack = true }\n";
        let scenario = load("test.toml", text, &[]).unwrap();
        let [first, second, third] = [0, 1, 2].map(|group| scenario.tcp_of(&scenario.stations[group]));
        assert_eq!(first, scenario.tcp);
        assert_eq!(second, Tcp { congestion_control: Variant::Bbr, ..scenario.tcp.clone() });
        assert_eq!(third, Tcp { sack: true, ..Tcp::of(Profile::InetDefault) });
        let resolved = scenario.to_toml();
        assert_eq!(resolved.matches("segment_size = ").count(), 3, "{resolved}");
        assert_eq!(load("again.toml", &resolved, &[]).unwrap(), scenario);
        let set = load("test.toml", text, &["station.1.tcp.congestion_control=reno".to_owned()]).unwrap();
        assert_eq!(set.tcp_of(&set.stations[1]).congestion_control, Variant::Reno);
        let error = load("test.toml", text, &["station.1.tcp.segment_size=1 B".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("station.1.tcp.segment_size"), "{error}");
    }

    #[test]
    fn every_profile_survives_its_own_file() {
        for profile in Profile::ALL {
            let tcp = Tcp::of(profile);
            let address = "198.18.0.1:80".parse().unwrap();
            let (config, mut own) = (tcp.config(address, address), EndpointConfig::new(address, address));
            profile.apply(&mut own);
            assert_eq!(format!("{config:?}"), format!("{own:?}"));
            let scenario = crate::Scenario { tcp, ..load("a.toml", "[[station]]\n", &[]).unwrap() };
            assert_eq!(load("resolved.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        }
        let error = load("b.toml", "[tcp]\nprofile = \"bsd\"\n[[station]]\n", &[]).unwrap_err().to_string();
        assert!(error.contains("b.toml:2: tcp.profile") && error.contains("windows-xp"), "{error}");
    }
}
