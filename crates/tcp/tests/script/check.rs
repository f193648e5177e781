//! Assertions on the state: `cwnd == 10, rto <= 220ms, state == established`.

use crate::script::setup::duration;
use paceline_net::{Bytes, Duration};
use paceline_tcp::{Snapshot, Stats};
use std::cmp::Ordering;

/// One comparison.
#[derive(Clone, Debug)]
pub struct Check {
    pub text: String,
    name: String,
    operator: Operator,
    wanted: Value,
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

/// A quantity, or the value that it is compared with.
#[derive(Clone, PartialEq, Debug)]
enum Value {
    Count(u64),
    Segments(u64),
    Bytes(u64),
    Time(Duration),
    Word(String),
}

/// Reads comparisons separated by commas.
pub fn parse(text: &str) -> Result<Vec<Check>, String> {
    text.split(',').map(|text| parse_one(text.trim())).collect()
}

fn parse_one(text: &str) -> Result<Check, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, operator, wanted] = words[..] else {
        return Err(format!("`{text}` is not NAME OPERATOR VALUE"));
    };
    let operator = match operator {
        "==" => Operator::Equal,
        "!=" => Operator::Unequal,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::More,
        ">=" => Operator::MoreOrEqual,
        _ => return Err(format!("`{operator}` is not an operator: == != < <= > >=")),
    };
    let sample = lookup(name, &Observed::default()).ok_or_else(|| format!("`{name}` is not a quantity"))?;
    let error = || format!("`{wanted}` is not a value of {name}");
    let number = |text: &str| text.parse::<u64>().map_err(|_| error());
    let wanted = match sample {
        Value::Bytes(_) if wanted == "infinite" => Value::Bytes(u64::MAX),
        Value::Bytes(_) => match wanted.strip_suffix('B') {
            Some(bytes) => Value::Bytes(number(bytes)?),
            None => Value::Segments(number(wanted)?),
        },
        Value::Count(_) => Value::Count(number(wanted)?),
        Value::Time(_) => Value::Time(duration(wanted)?),
        _ => Value::Word(wanted.to_owned()),
    };
    if matches!(wanted, Value::Word(_)) && !matches!(operator, Operator::Equal | Operator::Unequal) {
        return Err(format!("{name} is a word: compare it with == or !="));
    }
    Ok(Check { text: text.to_owned(), name: name.to_owned(), operator, wanted })
}

/// The state that checks compare.
#[derive(Clone, Debug)]
pub struct Observed {
    pub snapshot: Snapshot,
    pub stats: Stats,
    /// Finished transfers.
    pub completed: u64,
    /// Connections given up.
    pub timed_out: u64,
    /// Bytes of a full segment.
    pub segment: u64,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            snapshot: Snapshot {
                cwnd: Bytes::ZERO,
                ssthresh: Bytes::ZERO,
                in_flight: Bytes::ZERO,
                peer_window: Bytes::ZERO,
                srtt: Some(Duration::ZERO),
                min_rtt: Some(Duration::ZERO),
                rto: Duration::ZERO,
                pacing_rate: None,
                congestion: "slow_start",
                state: "closed",
                established: false,
            },
            stats: Stats::default(),
            completed: 0,
            timed_out: 0,
            segment: 1,
        }
    }
}

/// The value of a name; an unknown time is longer than every other one.
fn lookup(name: &str, observed: &Observed) -> Option<Value> {
    let (snapshot, stats) = (&observed.snapshot, &observed.stats);
    let time = |time: Option<Duration>| Value::Time(time.unwrap_or(Duration::MAX));
    Some(match name {
        "cwnd" => Value::Bytes(snapshot.cwnd.0),
        "ssthresh" => Value::Bytes(snapshot.ssthresh.0),
        "in_flight" => Value::Bytes(snapshot.in_flight.0),
        "srtt" => time(snapshot.srtt),
        "min_rtt" => time(snapshot.min_rtt),
        "rto" => Value::Time(snapshot.rto),
        "state" => Value::Word(snapshot.state.to_owned()),
        "established" => Value::Word(if snapshot.established { "yes" } else { "no" }.to_owned()),
        "completed" => Value::Count(observed.completed),
        "timed_out" => Value::Count(observed.timed_out),
        _ => Value::Count(counter(name, stats)?),
    })
}

/// A counter of [`Stats`] by the name of its field.
fn counter(name: &str, stats: &Stats) -> Option<u64> {
    Some(match name {
        "segments_sent" => stats.segments_sent,
        "bytes_sent" => stats.bytes_sent,
        "bytes_acked" => stats.bytes_acked,
        "bytes_received" => stats.bytes_received,
        "retransmitted_segments" => stats.retransmitted_segments,
        "timeouts" => stats.timeouts,
        "fast_recoveries" => stats.fast_recoveries,
        "undone_reductions" => stats.undone_reductions,
        "pure_acks_sent" => stats.pure_acks_sent,
        "duplicate_acks_received" => stats.duplicate_acks_received,
        "segments_received" => stats.segments_received,
        "duplicate_segments_received" => stats.duplicate_segments_received,
        "window_probes_sent" => stats.window_probes_sent,
        "bytes_read" => stats.bytes_read,
        "tail_loss_probes" => stats.tail_loss_probes,
        "spurious_timeouts" => stats.spurious_timeouts,
        "ecn_reductions" => stats.ecn_reductions,
        "ce_received" => stats.ce_received,
        "keepalive_probes_sent" => stats.keepalive_probes_sent,
        "acks_compressed" => stats.acks_compressed,
        "acks_stretched" => stats.acks_stretched,
        "ignored" => stats.ignored,
        _ => return None,
    })
}

impl Check {
    /// The actual value, if the assertion does not hold.
    pub fn failure(&self, observed: &Observed) -> Option<String> {
        let got = lookup(&self.name, observed).expect("the parser knows every name");
        let order = compare(&got, &self.wanted, observed.segment);
        let holds = match self.operator {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::Unequal => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Operator::More => order == Some(Ordering::Greater),
            Operator::MoreOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        };
        (!holds).then(|| format!("{} is {}", self.name, show(&got, observed.segment)))
    }
}

fn compare(got: &Value, wanted: &Value, segment: u64) -> Option<Ordering> {
    match (got, wanted) {
        (Value::Bytes(got), Value::Bytes(wanted)) => Some(got.cmp(wanted)),
        (Value::Bytes(got), Value::Segments(wanted)) => Some(got.cmp(&(wanted * segment))),
        (Value::Count(got), Value::Count(wanted)) => Some(got.cmp(wanted)),
        (Value::Time(got), Value::Time(wanted)) => Some(got.cmp(wanted)),
        (Value::Word(got), Value::Word(wanted)) => Some(got.cmp(wanted)),
        _ => None,
    }
}

fn show(value: &Value, segment: u64) -> String {
    match value {
        Value::Bytes(u64::MAX) => "infinite".into(),
        Value::Bytes(bytes) => format!("{bytes}B ({} segments)", *bytes as f64 / segment as f64),
        Value::Segments(count) | Value::Count(count) => count.to_string(),
        Value::Time(Duration::MAX) => "not known".into(),
        Value::Time(time) => format!("{}ms", time.as_millis_f64()),
        Value::Word(word) => word.clone(),
    }
}
