//! Tables `[[station]]`: groups of stations of one kind, their radio conditions, and their traffic.

use super::limits::{self, Allowed, Limit, Problem, Section, key, numbers, quantities, rates, relation};
use super::tcp::{StationTcp, Tcp};
use crate::Place;
use paceline_net::units::Db;
use paceline_net::{Bytes, Duration, Rate, Stream};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Largest number of stations in a scenario. Chosen: a limit for mistyped numbers, since run time and memory
/// grow with the stations.
pub(super) const MAX_STATIONS: u64 = 1000;

/// Table `[[station]]`: stations of one kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Stations {
    /// The number of stations in the group.
    pub count: u64,
    /// Mean SINR of the downlink: one value, or a range from which each station draws a value. Not beside
    /// `[deployment]` or `[link]`.
    pub downlink_sinr: SinrRange,
    /// Mean SINR of the uplink: one value, or a range. Not beside `[deployment]` or `[link]`.
    pub uplink_sinr: SinrRange,
    /// Standard deviation of the SINR around its mean. Not beside `[deployment]` or `[link]`.
    pub fading: Db,
    /// Coherence time of the SINR. Not beside `[deployment]` or `[link]`.
    pub coherence: Duration,
    /// Time that a packet takes in the stack of these stations above PDCP, in each direction. It comes on top
    /// of `cell.decode_delay`. Not beside `[link]`.
    pub processing: Duration,
    /// The way of these stations in a deployment: they begin at the first place, outside of buildings, and
    /// move to the others at `deployment.speed_kmh`, each in a straight line. If left out, each has a random
    /// place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Place>,
    /// Whether they turn at both ends of `path`, again and again; else they stop at the last place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub path_returns: bool,
    /// Beside `[sidelink]`, whether each station has a peer with a direct link; else it is an ordinary
    /// station of the same eNB, whose other end is a server behind the core.
    #[serde(skip_serializing_if = "is_true")]
    pub peer: bool,
    /// Whether these stations' packets go through the proxy of `core.path`; else they pass it untouched, as
    /// those of devices that share its network without being served by it.
    #[serde(skip_serializing_if = "is_true")]
    pub proxy: bool,
    /// TCP connections or UDP flows of each station.
    pub flows: u32,
    /// Direction of the data.
    pub direction: Direction,
    /// Transport protocol of the data.
    pub traffic: Traffic,
    /// Bit rate of each UDP flow, with IP and UDP headers.
    pub udp_rate: Rate,
    /// Times between the datagrams of a UDP flow, or between pings.
    pub udp_arrivals: UdpArrivals,
    /// Payload of a UDP datagram.
    pub udp_payload: Bytes,
    /// Time between pings; their mean with `udp_arrivals = "poisson"`. ping(8) has 1 s.
    pub ping_interval: Duration,
    /// Payload of a ping and of its answer. ping(8) has 56 B, which are 84 B with its headers.
    pub ping_payload: Bytes,
    /// Size of each transfer. If left out, transfers do not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Bytes>,
    /// Size of a request, as of a web client: the station sends it first, and the server's data follow. If
    /// left out, the server's data follow the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Size of the pieces that the sending application writes at regular intervals; `file` is the sum of all
    /// pieces. If left out, the application writes all data at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Time from one piece to the next.
    pub chunk_interval: Duration,
    /// Time at which the first connection opens.
    pub start: Duration,
    /// Each connection opens at a random time within this span after `start`.
    pub start_spread: Duration,
    /// TCP of these stations and their servers: keys that override those of `[tcp]`. With a `profile`, the
    /// other keys default to the profile's values instead of those of `[tcp]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<StationTcp>,
}

impl Default for Stations {
    fn default() -> Self {
        Self {
            count: 1,
            downlink_sinr: SinrRange::fixed(20.0),
            uplink_sinr: SinrRange::fixed(10.0),
            fading: Db(0.0),
            coherence: Duration::from_millis(20),
            processing: Duration::ZERO,
            path: Vec::new(),
            path_returns: false,
            peer: true,
            proxy: true,
            flows: 1,
            direction: Direction::Download,
            traffic: Traffic::Tcp,
            udp_rate: Rate(1_000_000),
            udp_arrivals: UdpArrivals::Constant,
            udp_payload: Bytes(1472),
            ping_interval: Duration::from_secs(1),
            ping_payload: Bytes(56),
            file: None,
            request: None,
            chunk: None,
            chunk_interval: Duration::from_secs(1),
            start: Duration::ZERO,
            start_spread: Duration::from_millis(100),
            tcp: None,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_true(flag: &bool) -> bool {
    *flag
}

/// Transport protocol of a station's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// TCP connections.
    Tcp,
    /// UDP flows, as of a probe: the receiver answers each datagram with a short one.
    Udp,
    /// Pings: single datagrams whose answers are as long, sent by the server (`direction = "download"`) or by
    /// the station (`"upload"`). The results have their round trips and one-way delays, in a cell by part.
    Ping,
}

/// Times between the datagrams of a UDP flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpArrivals {
    /// Equal times: a constant rate.
    Constant,
    /// Exponentially distributed times with the same mean: a Poisson process.
    Poisson,
}

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From server to station.
    Download,
    /// From station to server.
    Upload,
    /// No simulated traffic: a station for real programs (`paceline emulate`).
    None,
}

impl Section for Stations {
    fn limits() -> Vec<Limit<Self>> {
        let sinr = || {
            let ordered = |range: &SinrRange| {
                range.low.0 <= range.high.0 && range.low.0 >= -30.0 && range.high.0 <= 60.0
            };
            Allowed::new("-30 dB to 60 dB, the lower end of a range first", ordered)
        };
        let of_tcp_download =
            |group: &Self| group.direction == Direction::Download && group.traffic == Traffic::Tcp;
        let divides_file = |group: &Self| match (group.file, group.chunk) {
            (Some(file), Some(chunk)) => file.0.is_multiple_of(chunk.0),
            _ => true,
        };
        vec![
            key!(udp_rate, rates()),
            key!(udp_payload, quantities("1 B", "8972 B")),
            key!(ping_interval, quantities("100 us", "86400 s")),
            key!(ping_payload, quantities("1 B", "8972 B")),
            relation!(chunk?, "left out with traffic = \"udp\" or \"ping\"", |group| group.traffic
                == Traffic::Tcp),
            key!(count, numbers(1..=MAX_STATIONS).unit("stations")),
            key!(downlink_sinr, sinr()),
            key!(uplink_sinr, sinr()),
            key!(fading, quantities("0 dB", "20 dB")),
            key!(coherence, quantities("1 ms", "100 s")),
            key!(processing, quantities("0 ms", "100 ms")),
            relation!(path_returns, "false without path", |group: &Self| {
                !group.path_returns || !group.path.is_empty()
            }),
            key!(flows, numbers(1..=1000).unit("connections per station")),
            key!(file?, quantities("1 B", "1024 GiB")),
            relation!(request?, "left out except for downloads by TCP", of_tcp_download),
            key!(request?, quantities("1 B", "1 MiB")),
            key!(chunk?, quantities("1 B", "1 GiB")),
            relation!(chunk?, "a divisor of file", divides_file),
            key!(chunk_interval, quantities("1 us", "86400 s")),
            key!(start, quantities("0 s", "86400 s")),
            key!(start_spread, quantities("0 s", "86400 s")),
        ]
    }
}

/// Checks all groups, and the keys that a deployment excludes.
pub(super) fn check(groups: &[Stations], tcp: &Tcp, beside_deployment: bool) -> Result<(), Problem> {
    if beside_deployment {
        groups.iter().enumerate().try_for_each(|(index, group)| radio_left_out(index, group))?;
    }
    let mut groups = groups.iter().enumerate();
    groups.try_for_each(|(index, group)| {
        let path = format!("station.{index}");
        limits::check(&path, group)?;
        group.tcp.iter().try_for_each(|own| limits::check(&format!("{path}.tcp"), &own.over(tcp)))
    })
}

/// In a deployment a station's radio link follows from its place: values that would be ignored are refused.
fn radio_left_out(index: usize, group: &Stations) -> Result<(), Problem> {
    const PLACE: &str = "left out beside [deployment], where a station's place decides";
    let (key, unset) = (|name: &str| format!("station.{index}.{name}"), Stations::default());
    let same = group.downlink_sinr == unset.downlink_sinr;
    Problem::unless(same, &key("downlink_sinr"), group.downlink_sinr, PLACE)?;
    Problem::unless(group.uplink_sinr == unset.uplink_sinr, &key("uplink_sinr"), group.uplink_sinr, PLACE)?;
    let fading = "left out; see deployment.fading";
    Problem::unless(group.fading == unset.fading, &key("fading"), group.fading, fading)?;
    let speed = "left out; see deployment.speed_kmh";
    Problem::unless(group.coherence == unset.coherence, &key("coherence"), group.coherence, speed)
}

/// A SINR: one value (`"15 dB"`), or a range from which each station draws (`["5 dB", "20 dB"]`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SinrRange {
    /// Lower end.
    pub low: Db,
    /// Upper end, equal to the lower one for a fixed value.
    pub high: Db,
}
impl SinrRange {
    /// A fixed value.
    pub const fn fixed(db: f64) -> Self {
        Self { low: Db(db), high: Db(db) }
    }
    /// One station's value in dB.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        if self.low == self.high { self.low.0 } else { stream.uniform_in(self.low.0, self.high.0) }
    }
}

impl fmt::Display for SinrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "\"{}\"", self.low)
        } else {
            write!(f, "[\"{}\", \"{}\"]", self.low, self.high)
        }
    }
}

impl Serialize for SinrRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.low == self.high {
            return self.low.serialize(serializer);
        }
        let mut seq = serializer.serialize_seq(Some(2))?;
        seq.serialize_element(&self.low)?;
        seq.serialize_element(&self.high)?;
        seq.end()
    }
}

impl<'de> Deserialize<'de> for SinrRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrTwo;
        impl<'de> Visitor<'de> for OneOrTwo {
            type Value = SinrRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"15 dB\", or a range such as [\"5 dB\", \"20 dB\"]")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<SinrRange, E> {
                let db: Db = text.parse().map_err(E::custom)?;
                Ok(SinrRange { low: db, high: db })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SinrRange, A::Error> {
                let low = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let high = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &self))?;
                if seq.next_element::<Db>()?.is_some() {
                    return Err(de::Error::invalid_length(3, &self));
                }
                Ok(SinrRange { low, high })
            }
        }
        deserializer.deserialize_any(OneOrTwo)
    }
}

impl JsonSchema for SinrRange {
    fn schema_name() -> Cow<'static, str> {
        "SinrRange".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let db = generator.subschema_for::<Db>();
        let quantity = "a ratio in decibels, or an array of two";
        let range = json_schema!({ "type": "array", "items": db, "minItems": 2, "maxItems": 2 });
        json_schema!({ "anyOf": [db, range], "x-quantity": quantity, "x-units": "dB" })
    }
}
