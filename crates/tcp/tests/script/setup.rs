//! The header of a script: the endpoint's configuration, its source, and what the peer offers.

use paceline_net::{Bytes, Duration, SeqNumber};
use paceline_tcp::{EndpointConfig, Source};

/// What the peer of a script offers when the runner opens the connection, and its window.
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

/// All that stands in the header.
#[derive(Clone, Debug)]
pub struct Setup {
    pub config: EndpointConfig,
    pub source: Source,
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
            config: EndpointConfig { segment_size: 1000, ..EndpointConfig::new(local, remote) },
            source: Source::Nothing,
            active: true,
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
fn source(text: &str) -> Result<Source, String> {
    match text.split_once(' ') {
        None if text == "nothing" => Ok(Source::Nothing),
        None if text == "bulk" => Ok(Source::Bulk),
        Some(("file", size)) => Ok(Source::File(Bytes(number(size)?))),
        _ => Err(format!("`{text}` is not a source: nothing, bulk, or file BYTES")),
    }
}

impl Setup {
    /// Takes one line of the header.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let config = &mut self.config;
        match key {
            "open" => {
                self.active = match value {
                    "active" => true,
                    "passive" => false,
                    _ => return Err(format!("`{value}` is neither active nor passive")),
                }
            }
            "source" => self.source = source(value)?,
            "established" => self.established = Some(duration(value)?),
            "variant" => config.variant = value.parse().map_err(|error| format!("{error}"))?,
            "segment_size" => config.segment_size = number(value)?,
            "initial_window" => config.initial_window = number(value)?,
            "min_rto" => config.min_rto = duration(value)?,
            "receive_buffer" => config.receive_buffer = Bytes(number(value)?),
            "autotune" => config.autotune = switch(value)?,
            "send_buffer" => config.send_buffer = Bytes(number(value)?),
            "timestamps" => config.timestamps = switch(value)?,
            "sack" => config.sack = switch(value)?,
            "window_scale" => config.window_scale = switch(value)?,
            "hystart" => config.hystart = switch(value)?,
            "delayed_ack" => config.delayed_ack.segments = number(value)?,
            "delayed_ack_timeout" => config.delayed_ack.timeout = duration(value)?,
            "quick_acks" => config.delayed_ack.quick_acks = number(value)?,
            "isn" => config.isn = SeqNumber(number(value)?),
            "start_at" => config.start_at += duration(value)?,
            "peer_isn" => self.peer.isn = SeqNumber(number(value)?),
            "peer_window" => self.peer.window = number(value)?,
            "peer_mss" => self.peer.mss = optional(value)?,
            "peer_sack" => self.peer.sack = switch(value)?,
            "peer_window_scale" => self.peer.scale = optional(value)?,
            "peer_timestamps" => self.peer.timestamps = optional(value)?,
            _ => return Err(format!("`{key}` is not a key; docs/tcp-scripts.md lists them")),
        }
        Ok(())
    }
}
