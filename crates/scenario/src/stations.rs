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
    /// The name of the group in results, tables and pictures. If left out: its congestion control, or its
    /// traffic, where these tell the groups apart, else `station.` and the number of the table from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of stations.
    pub count: u64,
    /// Mean SINR of the downlink, or a range from which each station draws it. This and the next three keys
    /// not beside `[deployment]` or `[link]`.
    pub downlink_sinr: SinrRange,
    /// Mean SINR of the uplink, or a range.
    pub uplink_sinr: SinrRange,
    /// Standard deviation of the SINR around its mean.
    pub fading: Db,
    /// Coherence time of the SINR.
    pub coherence: Duration,
    /// Time of a packet in the stack of these stations above PDCP, in each direction, on top of
    /// `cell.decode_delay`. Not beside `[link]`.
    pub processing: Duration,
    /// The way of these stations in a deployment: from the first place, outdoors, in straight lines to the
    /// others, at `deployment.speed_kmh`. Without the table, each has a random place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Place>,
    /// Whether they turn at both ends of `path`, again and again, or stop at the last place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub path_returns: bool,
    /// Whether each station has a peer, beside `[sidelink]`; else it is an ordinary station of the same eNB
    /// with a server behind the core.
    #[serde(skip_serializing_if = "is_true")]
    pub peer: bool,
    /// Whether the proxy of `core.proxy` serves these stations; else their packets pass it untouched.
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
    /// Time between pings; their mean with `udp_arrivals = "poisson"`. Default of ping(8).
    pub ping_interval: Duration,
    /// Payload of a ping and of its answer. Default of ping(8), 84 B with headers.
    pub ping_payload: Bytes,
    /// Size of each transfer. Default: no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Bytes>,
    /// Size of a request, as of a web client, which the station sends ahead of the server's data. Default:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Pieces of `file` that the sending application writes at regular intervals. Default: all data at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Time from one piece of `chunk` to the next.
    pub chunk_interval: Duration,
    /// Transfers at times of their own, in place of `flows`, `file` and `start`: those of a capture, for
    /// example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// Time at which the first connection opens.
    pub start: Duration,
    /// Span after `start` in which each connection opens at a random time.
    pub start_spread: Duration,
    /// TCP of these stations and their servers: keys that override those of `[tcp]`. With a `profile`, the
    /// other keys default to the profile's values instead of those of `[tcp]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<StationTcp>,
}

impl Default for Stations {
    fn default() -> Self {
        Self {
            name: None,
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
            transfers: Vec::new(),
            start: Duration::ZERO,
            start_spread: Duration::from_millis(100),
            tcp: None,
        }
    }
}

/// Table `[[station.transfers]]`: a TCP connection with its time and its data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Transfer {
    /// Time at which the connection opens.
    pub start: Duration,
    /// Size of the transfer.
    pub file: Bytes,
    /// Pieces of `file`, as `chunk` of the station. Default: all data at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Time from one piece to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_interval: Option<Duration>,
}

impl Section for Transfer {
    fn limits() -> Vec<Limit<Self>> {
        let divides = |own: &Self| own.chunk.is_none_or(|chunk| own.file.0.is_multiple_of(chunk.0));
        let paired = |own: &Self| own.chunk.is_some() == own.chunk_interval.is_some();
        vec![
            key!(start, quantities("0 s", "86400 s")),
            key!(file, quantities("1 B", "1024 GiB")),
            key!(chunk?, quantities("1 B", "1 GiB")),
            relation!(chunk?, "a divisor of file", divides),
            relation!(chunk?, "beside chunk_interval", paired),
            key!(chunk_interval?, quantities("1 us", "86400 s")),
            relation!(chunk_interval?, "beside chunk", paired),
        ]
    }
}

impl Stations {
    /// TCP connections or UDP flows of each station.
    pub fn connections(&self) -> u32 {
        if self.transfers.is_empty() { self.flows } else { self.transfers.len() as u32 }
    }
    /// Size of the transfer of a connection; none without an end.
    pub fn file_of(&self, connection: usize) -> Option<Bytes> {
        self.transfers.get(connection).map(|own| own.file).or(self.file)
    }
    /// The latest time at which a connection opens.
    pub fn last_start(&self) -> Duration {
        let listed = self.transfers.iter().map(|own| own.start).max();
        listed.unwrap_or(self.start) + self.start_spread
    }
}

/// Most transfers of a station. Chosen: the bound of `flows`, each with a port of its own.
const MOST_TRANSFERS: usize = 1000;

/// Refuses keys that the list of transfers replaces, and values in it.
fn check_transfers(path: &str, group: &Stations) -> Result<(), Problem> {
    let unset = Stations::default();
    if group.transfers.is_empty() {
        return Ok(());
    }
    let beside = "left out beside transfers, which have their own";
    let key = |name: &str| format!("{path}.{name}");
    Problem::unless(group.flows == unset.flows, &key("flows"), group.flows, beside)?;
    if let Some(file) = group.file {
        Problem::unless(false, &key("file"), file, beside)?;
    }
    if let Some(chunk) = group.chunk {
        Problem::unless(false, &key("chunk"), chunk, beside)?;
    }
    Problem::unless(group.start == unset.start, &key("start"), group.start, beside)?;
    let count = group.transfers.len();
    let (name, text) = (key("transfers"), format!("{count} transfers"));
    let is_tcp = group.traffic == Traffic::Tcp && group.direction != Direction::None;
    Problem::unless(is_tcp, &name, &text, "left out except for downloads and uploads by TCP")?;
    Problem::unless(count <= MOST_TRANSFERS, &name, &text, "at most 1000 transfers")?;
    let mut all = group.transfers.iter().enumerate();
    all.try_for_each(|(index, own)| limits::check(&format!("{name}.{index}"), own))
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
    /// UDP flows, as of a probe: a short answer to each datagram.
    Udp,
    /// Pings: single datagrams whose answers are as long, sent by the server (`direction = "download"`) or by
    /// the station (`"upload"`). The results have their round trips and one-way delays, in a cell by part.
    Ping,
}

/// Times between the datagrams of a UDP flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UdpArrivals {
    /// Equal times.
    Constant,
    /// Exponentially distributed times: a Poisson process.
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
    /// No simulated traffic, for real programs (`paceline emulate`).
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
            key!(name?, names()),
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

/// Characters of a name at most. Chosen: two names and a figure beside each fit a line of a terminal.
const MAX_CHARACTERS: usize = 32;

/// The names that a group may have. Without dots, commas and quotes: a name is a part of names of columns in
/// CSV files, and differs from the key of a table.
fn names() -> Allowed<String> {
    let text = "1 to 32 letters, digits, spaces, -, _ and +, a letter or digit first, no space last";
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '+');
    Allowed::new(text, move |name: &String| {
        name.trim_end() == name
            && name.starts_with(char::is_alphanumeric)
            && (1..=MAX_CHARACTERS).contains(&name.chars().count())
            && name.chars().all(of_name)
    })
}

/// Refuses a name that an earlier group has.
fn check_unique(groups: &[Stations]) -> Result<(), Problem> {
    for (index, group) in groups.iter().enumerate() {
        let Some(name) = &group.name else { continue };
        if let Some(first) = groups[..index].iter().position(|other| other.name.as_ref() == Some(name)) {
            let allowed = format!("a name that no other group has; station.{first}.name has it");
            Problem::unless(false, &format!("station.{index}.name"), name, &allowed)?;
        }
    }
    Ok(())
}

/// Checks all groups, and the keys that a deployment excludes.
pub(super) fn check(groups: &[Stations], tcp: &Tcp, beside_deployment: bool) -> Result<(), Problem> {
    if beside_deployment {
        groups.iter().enumerate().try_for_each(|(index, group)| radio_left_out(index, group))?;
    }
    check_unique(groups)?;
    let mut groups = groups.iter().enumerate();
    groups.try_for_each(|(index, group)| {
        let path = format!("station.{index}");
        limits::check(&path, group)?;
        check_transfers(&path, group)?;
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

#[cfg(test)]
mod tests {
    use crate::load;

    #[test]
    fn transfers_are_read_again_and_bad_ones_are_refused() {
        let set = |list: &str, more: &str| {
            load(
                "list.toml",
                &format!("[link]\n[link.fixed]\n[[station]]\n{more}transfers = [{list}]\n"),
                &[],
            )
        };
        let list = r#"{ start = "1 s", file = "30 kB", chunk = "10 kB", chunk_interval = "50 ms" }"#;
        let scenario = set(list, "").unwrap();
        assert_eq!(load("again.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
        assert_eq!(scenario.stations[0].connections(), 1);
        let plain = r#"{ start = "1 s", file = "30 kB" }"#;
        for (list, more, key) in [
            (r#"{ start = "1 s", file = "0 B" }"#, "", "transfers.0.file"),
            (r#"{ start = "1 s", file = "3 B", chunk = "2 B", chunk_interval = "1 s" }"#, "", "chunk"),
            (r#"{ start = "1 s", file = "4 B", chunk = "2 B" }"#, "", "chunk"),
            (r#"{ start = "1 s", file = "4 B", chunk_interval = "2 s" }"#, "", "chunk_interval"),
            (plain, "flows = 2\n", "station.0.flows"),
            (plain, "file = \"1 kB\"\n", "station.0.file"),
            (plain, "start = \"1 s\"\n", "station.0.start"),
            (plain, "traffic = \"udp\"\n", "station.0.transfers"),
        ] {
            let error = set(list, more).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
