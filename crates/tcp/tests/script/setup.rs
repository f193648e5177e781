//! The header of a script: the endpoint's configuration, its source, and the peer's options.

use paceline_net::{Bytes, Duration, SeqNumber};
use paceline_tcp::{
    DelayedAck, EndpointConfig, Keepalive, LossRecovery, Nagle, SackCompression, Source, StretchAck,
};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

/// The peer's options when the runner opens the connection, and its window.
#[derive(Clone, Debug)]
pub struct Peer {
    pub isn: SeqNumber,
    /// Window field of segments that name none.
    pub window: u16,
    pub mss: Option<u16>,
    pub sack: bool,
    pub scale: Option<u8>,
    /// TSval of its SYN, if it offers timestamps.
    pub timestamps: Option<u32>,
}

/// The contents of the header.
#[derive(Clone, Debug)]
pub struct Setup {
    pub config: EndpointConfig,
    pub source: Source,
    /// Whether a segment may leave only at its line's place between the other lines; else also up to
    /// [`crate::script::runner::LOOSE`] earlier, and after the last line.
    pub strict: bool,
    /// The endpoint sends the SYN.
    pub active: bool,
    /// The runner opens the connection with this round-trip time before the first line.
    pub established: Option<Duration>,
    pub peer: Peer,
}

impl Default for Setup {
    fn default() -> Self {
        let local = "198.18.0.1:40000".parse().expect("an address");
        let remote = "198.18.0.2:80".parse().expect("an address");
        Self {
            config: plain(EndpointConfig::new(local, remote)),
            source: Source::Nothing,
            active: true,
            strict: true,
            established: None,
            peer: Peer {
                isn: SeqNumber(0),
                window: 65_535,
                mss: Some(1460),
                sack: true,
                scale: None,
                timestamps: None,
            },
        }
    }
}

/// The rules of the RFCs without those of Linux, and segments of 1000 bytes.
fn plain(config: EndpointConfig) -> EndpointConfig {
    EndpointConfig {
        segment_size: 1000,
        loss_recovery: LossRecovery::Sack,
        tail_loss_probe: false,
        frto: false,
        nagle: Nagle::Off,
        sack_compression: None,
        delayed_ack: DelayedAck { adaptive: false, ..config.delayed_ack },
        syn_linear_timeouts: 0,
        ..config
    }
}

/// A span of time: a number with s, ms, us or ns; 0 needs no unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let error = || format!("`{text}` is not a time: write a number with s, ms, us or ns");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "ns" => 1,
        _ => return Err(error()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut ns = whole.parse::<u64>().map_err(|_| error())?.checked_mul(unit).ok_or_else(error)?;
    let mut place = unit;
    for digit in fraction.chars() {
        place /= 10;
        ns += place * u64::from(digit.to_digit(10).ok_or_else(error)?);
    }
    Ok(Duration::from_nanos(ns))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits"))
}
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}
fn optional<T: std::str::FromStr>(text: &str) -> Result<Option<T>, String> {
    if text == "off" { Ok(None) } else { number(text).map(Some) }
}
/// One of the words that scenario files use.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(StrDeserializer::<Error>::new(text)).map_err(|error| error.to_string())
}
fn keepalive(text: &str) -> Result<Option<Keepalive>, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["off"] => Ok(None),
        [idle, interval, probes] => Ok(Some(Keepalive {
            idle: duration(idle)?,
            interval: duration(interval)?,
            probes: number(probes)?,
        })),
        _ => Err(format!("`{text}` is neither off nor IDLE INTERVAL PROBES")),
    }
}
fn stretch(text: &str) -> Result<Option<StretchAck>, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["off"] => Ok(None),
        [segments, timeout, ref rest @ ..] if rest.is_empty() || rest == ["duplicates"] => {
            Ok(Some(StretchAck {
                segments: number(segments)?,
                timeout: duration(timeout)?,
                hold_duplicates: !rest.is_empty(),
            }))
        }
        _ => {
            Err(format!("`{text}` is neither off nor SEGMENTS TIMEOUT, with `duplicates` to hold those too"))
        }
    }
}
fn source(text: &str) -> Result<Source, String> {
    match text.split_once(' ') {
        None if text == "nothing" => Ok(Source::Nothing),
        None if text == "bulk" => Ok(Source::Bulk),
        None if text == "calls" => Ok(Source::Relay),
        Some(("request", size)) => Ok(Source::Request(Bytes(number(size)?))),
        Some(("file", size)) => Ok(Source::File(Bytes(number(size)?))),
        Some(("chunks", rest)) => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [size, interval, count] => Ok(Source::Chunks {
                size: Bytes(number(size)?),
                interval: duration(interval)?,
                count: number(count)?,
            }),
            _ => Err("chunks are BYTES INTERVAL COUNT".into()),
        },
        _ => Err(format!(
            "`{text}` is not a source: nothing, bulk, calls, file BYTES, request BYTES, or chunks BYTES INTERVAL COUNT"
        )),
    }
}

impl Setup {
    /// Takes one line of the header.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "open" => {
                self.active = match value {
                    "active" => true,
                    "passive" => false,
                    _ => return Err(format!("`{value}` is neither active nor passive")),
                }
            }
            "strict" => self.strict = switch(value)?,
            "source" => self.source = source(value)?,
            "established" => self.established = Some(duration(value)?),
            "peer_isn" => self.peer.isn = SeqNumber(number(value)?),
            "peer_window" => self.peer.window = number(value)?,
            "peer_mss" => self.peer.mss = optional(value)?,
            "peer_sack" => self.peer.sack = switch(value)?,
            "peer_window_scale" => self.peer.scale = optional(value)?,
            "peer_timestamps" => self.peer.timestamps = optional(value)?,
            _ => {
                let known =
                    set_common(&mut self.config, key, value)? || set_sending(&mut self.config, key, value)?;
                if !known {
                    return Err(format!("`{key}` is not a key; docs/tcp-scripts.md lists them"));
                }
            }
        }
        Ok(())
    }
}

/// Keys of both halves of an endpoint and of its receiver; false if this is none of them.
fn set_common(config: &mut EndpointConfig, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "segment_size" => config.segment_size = number(value)?,
        "receive_buffer" => config.receive_buffer = Bytes(number(value)?),
        "autotune" => config.autotune = switch(value)?,
        "request" => config.request = Bytes(number(value)?),
        "read_rate" => config.read_rate = Some(value.parse().map_err(|error| format!("{error}"))?),
        "beyond_window" => config.beyond_window = word(value)?,
        "timestamps" => config.timestamps = switch(value)?,
        "sack" => config.sack = switch(value)?,
        "dsack" => config.dsack = switch(value)?,
        "window_scale" => config.window_scale = switch(value)?,
        "ecn" => config.ecn = word(value)?,
        "delayed_ack" => config.delayed_ack.segments = number(value)?,
        "delayed_ack_timeout" => config.delayed_ack.timeout = duration(value)?,
        "quick_acks" => config.delayed_ack.quick_acks = number(value)?,
        "adaptive_ack" => config.delayed_ack.adaptive = switch(value)?,
        "sack_compression" => config.sack_compression = switch(value)?.then(SackCompression::default),
        "stretch_ack" => config.stretch_ack = stretch(value)?,
        "keepalive" => config.keepalive = keepalive(value)?,
        "isn" => config.isn = SeqNumber(number(value)?),
        "start_at" => config.start_at += duration(value)?,
        "syn_retries" => config.syn_retries = number(value)?,
        "syn_ack_retries" => config.syn_ack_retries = number(value)?,
        "syn_linear_timeouts" => config.syn_linear_timeouts = number(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Keys of the sending half; false if this is none of them.
fn set_sending(config: &mut EndpointConfig, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "variant" => config.variant = value.parse().map_err(|error| format!("{error}"))?,
        "initial_window" => config.initial_window = number(value)?,
        "send_buffer" => config.send_buffer = Bytes(number(value)?),
        "hystart" => config.hystart = word(value)?,
        "fast_convergence" => config.fast_convergence = switch(value)?,
        "abc" => config.abc = word(value)?,
        "cwnd_unit" => config.cwnd_unit = word(value)?,
        "loss_recovery" => config.loss_recovery = word(value)?,
        "newreno_timer" => config.newreno_timer = word(value)?,
        "newreno_careful" => config.newreno_careful = switch(value)?,
        "prr" => config.prr = word(value)?,
        "tail_loss_probe" => config.tail_loss_probe = switch(value)?,
        "frto" => config.frto = switch(value)?,
        "undo" => config.undo = switch(value)?,
        "limited_transmit" => config.limited_transmit = switch(value)?,
        "rto_style" => config.rto_style = word(value)?,
        "min_rto" => config.min_rto = duration(value)?,
        "initial_rto" => config.initial_rto = duration(value)?,
        "retries" => config.retries = number(value)?,
        "pacing" => config.pacing = value.parse().map_err(|error| format!("{error}"))?,
        "idle_restart" => config.idle_restart = switch(value)?,
        "nagle" => config.nagle = word(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}
