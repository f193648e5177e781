//! Signs of middleboxes: connections that are split, sequence numbers that are shifted, windows that are
//! tracked without their scale, options that are removed.

use crate::connection::{CLIENT, Connection, SERVER};
use crate::halves::Half;
use crate::sender::Sender;
use paceline_net::words::ms;

/// Times by which the round trips of data are longer than that of the handshake where another node answered
/// it. Chosen: a radio that has just woken, and the first packets of a path, make the handshake longer
/// instead.
const SOONER: u64 = 4;
/// Least difference of both, ns: hosts delay an ACK by less than Linux's TCP_DELACK_MIN of 40 ms only if
/// they delay none, and queues are below 10 ms at some time.
const LEAST_DIFFERENCE_NS: u64 = 10_000_000;
/// Samples of data that are compared at least: the least of fewer may have a delayed ACK each.
const LEAST_SAMPLES: u64 = 8;
/// Segments or ACKs that show a sign at least: damaged packets are fewer.
const LEAST_SEEN: u64 = 10;

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Another node than the other end answers the handshake or the data.
    SplitConnection,
    /// Sequence numbers are changed and SACK blocks are not, or numbers differ between capture points.
    SequenceShift,
    /// Segments beyond the window without its scale are dropped.
    WindowTracking,
    /// Options are removed or changed.
    OptionsChanged,
}

impl Sign {
    /// The name in files.
    pub fn key(self) -> &'static str {
        match self {
            Self::SplitConnection => "split_connection",
            Self::SequenceShift => "sequence_shift",
            Self::WindowTracking => "window_tracking",
            Self::OptionsChanged => "options_changed",
        }
    }
}

/// The signs of a connection at one capture point, each with its evidence in words.
pub fn signs(connection: &Connection) -> Vec<(Sign, String)> {
    let ends = [(CLIENT, "client"), (SERVER, "server")];
    let mut signs = Vec::new();
    for (end, name) in ends {
        signs.extend(answers_early(&connection.halves[end]).map(|(early, data)| {
            let text = format!(
                "the {name} answers the handshake within {}, data within {} at the earliest: another node \
                 answers one of them",
                ms(early),
                ms(data)
            );
            (Sign::SplitConnection, text)
        }));
        let limits = connection.hop_limits[end];
        let (changed, all) = limits.changed();
        if let Some((first, other)) = limits.both().filter(|_| is_most(changed, all)) {
            signs.push((
                Sign::SplitConnection,
                format!("the {name}'s handshake has a TTL of {first}, its data one of {other}"),
            ));
        }
        let sender = &connection.senders[end];
        let other = if end == CLIENT { "server" } else { "client" };
        if !connection.is_mid_stream() && is_most(sender.sack_outside, sender.sack_acks) {
            let text =
                format!("{} of the {other}'s ACKs have SACK blocks outside of the data", sender.sack_outside);
            signs.push((Sign::SequenceShift, text));
        }
        if connection.has_option(|options| options.sack_permitted)
            && sender.sack_acks == 0
            && sender.duplicate_acks >= LEAST_SEEN
        {
            let text = format!("{} duplicate ACKs of the {other} have no SACK blocks", sender.duplicate_acks);
            signs.push((Sign::OptionsChanged, text));
        }
        if connection.has_option(|options| options.timestamps.is_some())
            && is_most(connection.without_timestamps[end], connection.segments[end])
        {
            signs.push((
                Sign::OptionsChanged,
                format!("the {name}'s segments lack the timestamps of its SYN"),
            ));
        }
        signs.extend(tracks_window(sender).map(|text| (Sign::WindowTracking, text)));
    }
    signs
}

/// Signs of the changes between two capture points of one connection.
pub fn differences(one: &Connection, other: &Connection) -> Vec<(Sign, String)> {
    let mut signs = Vec::new();
    for (end, name) in [(CLIENT, "client"), (SERVER, "server")] {
        let (Some(a), Some(b)) = (one.offers[end], other.offers[end]) else { continue };
        if one.first_seqs[end] != other.first_seqs[end] {
            signs.push((
                Sign::SequenceShift,
                format!("the {name}'s SYN has another sequence number at another capture point"),
            ));
        }
        let (a, b) = (a.options, b.options);
        let changes = [
            ("MSS", a.mss != b.mss),
            ("window scale", a.window_scale != b.window_scale),
            ("SACK", a.sack_permitted != b.sack_permitted),
            ("timestamps", a.timestamps.is_some() != b.timestamps.is_some()),
        ];
        let changed: Vec<&str> =
            changes.into_iter().filter(|(_, changed)| *changed).map(|(n, _)| n).collect();
        if !changed.is_empty() {
            let text =
                format!("the {name}'s SYN has another {} at another capture point", changed.join(", "));
            signs.push((Sign::OptionsChanged, text));
        }
    }
    signs
}

/// The handshake and the earliest data of a half in ms, if data take far longer.
fn answers_early(half: &Half) -> Option<(f64, f64)> {
    let (handshake, data) = (half.handshake_ns?, half.least_data_ns?);
    let is_early = data >= SOONER * handshake && data >= handshake + LEAST_DIFFERENCE_NS;
    (is_early && half.samples.count() > LEAST_SAMPLES).then_some((handshake as f64 / 1e6, data as f64 / 1e6))
}

fn tracks_window(sender: &Sender) -> Option<String> {
    let beyond = sender.copies.beyond;
    let is_sharp = is_most(beyond.lost, beyond.lost + beyond.lost_within) && beyond.lost > beyond.arrived;
    is_sharp.then(|| {
        format!(
            "{} segments beyond the window without its scale were lost, {} arrived",
            beyond.lost, beyond.arrived
        )
    })
}

fn is_most(part: u64, all: u64) -> bool {
    part >= LEAST_SEEN && 2 * part > all
}
