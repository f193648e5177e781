//! Segments in the notation of scripts: reading a pattern, building a packet from it, comparing one with it,
//! and writing a packet the same way.

use paceline_net::{FlowKey, Packet, SackBlocks, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use std::fmt::Write;

/// The letters of the control bits in scripts.
const LETTERS: [(char, TcpFlags); 9] = [
    ('S', TcpFlags::SYN),
    ('P', TcpFlags::PSH),
    ('A', TcpFlags::ACK),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('U', TcpFlags::URG),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('N', TcpFlags::AE),
];
/// The codepoints of RFC 3168 by number.
const ECN: [&str; 4] = ["noect", "ect1", "ect0", "ce"];

/// The condition of a pattern on a field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Want<T> {
    /// Any value matches; a built segment has none.
    #[default]
    Any,
    Absent,
    Is(T),
}

impl<T: PartialEq + Copy> Want<T> {
    fn fits(self, got: Option<T>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => got.is_none(),
            Self::Is(value) => got == Some(value),
        }
    }
    fn value(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            _ => None,
        }
    }
}

/// A segment as a script writes it; numbers count from the initial sequence numbers.
#[derive(Clone, Default, Debug)]
pub struct Pattern {
    pub flags: TcpFlags,
    pub seq: i64,
    pub len: u32,
    pub ack: Option<i64>,
    pub window: Option<u16>,
    pub sack: Vec<(i64, i64)>,
    /// TSval and TSecr; `None` for a value that is not compared.
    pub timestamps: Want<(Option<u32>, Option<u32>)>,
    pub mss: Want<u16>,
    pub scale: Want<u8>,
    pub sack_permitted: Want<()>,
    pub ecn: Option<u8>,
    /// Unknown options.
    pub garbage: bool,
    /// PSH is not compared.
    pub any_push: bool,
}

/// The initial sequence numbers of the segment's sender and receiver.
#[derive(Clone, Copy, Debug)]
pub struct Base {
    pub sender: SeqNumber,
    pub receiver: SeqNumber,
}

fn absolute(base: SeqNumber, relative: i64) -> SeqNumber {
    base + relative as u32
}
fn relative(base: SeqNumber, number: SeqNumber) -> i64 {
    i64::from(number.distance(base))
}
fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not {what}"))
}
fn range(text: &str) -> Result<Option<(i64, i64)>, String> {
    let Some((left, right)) = text.split_once("..") else { return Ok(None) };
    let (left, right) = (number(left, "a sequence number")?, number(right, "a sequence number")?);
    if left >= right {
        return Err(format!("`{text}` is an empty range"));
    }
    Ok(Some((left, right)))
}

/// Reads `FLAGS SEQ FIELDS`; a range with a piece size becomes a burst.
pub fn parse(text: &str) -> Result<Vec<Pattern>, String> {
    let mut words = text.split_whitespace().peekable();
    let flags = parse_flags(words.next().ok_or("a segment begins with its flags")?)?;
    let place =
        words.next().ok_or("after the flags comes the sequence number or the range of the payload")?;
    let mut pattern = Pattern { flags, ..Pattern::default() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word {
            "ack" => pattern.ack = Some(number(value()?, "an acknowledgment number")?),
            "win" => pattern.window = Some(number(value()?, "a window field")?),
            "mss" => pattern.mss = Want::Is(number(value()?, "a segment size")?),
            "nomss" => pattern.mss = Want::Absent,
            "wscale" => pattern.scale = Want::Is(number(value()?, "a shift")?),
            "nowscale" => pattern.scale = Want::Absent,
            "sackok" => pattern.sack_permitted = Want::Is(()),
            "nosackok" => pattern.sack_permitted = Want::Absent,
            "ts" => pattern.timestamps = Want::Is(parse_timestamps(value()?)?),
            "nots" => pattern.timestamps = Want::Absent,
            "garbage" => pattern.garbage = true,
            "anypush" => pattern.any_push = true,
            "sack" => {
                while let Some(block) = words.peek().map_or(Ok(None), |word| range(word))? {
                    pattern.sack.push(block);
                    words.next();
                }
                if pattern.sack.is_empty() || pattern.sack.len() > 4 {
                    return Err("`sack` is followed by one to four blocks, LEFT..RIGHT".into());
                }
            }
            _ => match ECN.iter().position(|name| *name == word) {
                Some(codepoint) => pattern.ecn = Some(codepoint as u8),
                None => return Err(unknown(word)),
            },
        }
    }
    if flags.contains(TcpFlags::ACK) != pattern.ack.is_some() {
        return Err("`ack` is written exactly where the flags have A".into());
    }
    pieces(pattern, place)
}

fn unknown(word: &str) -> String {
    format!(
        "`{word}` is not a field: write ack, win, sack, ts, nots, mss, nomss, wscale, nowscale, sackok, nosackok, \
         garbage, anypush, {}",
        ECN.join(", ")
    )
}

fn parse_flags(text: &str) -> Result<TcpFlags, String> {
    let mut flags = TcpFlags::default();
    for letter in text.chars().filter(|letter| *letter != '-') {
        let known = LETTERS.iter().find(|known| known.0 == letter);
        let known = known.ok_or_else(|| format!("`{text}` are not flags: letters of SPAFRUEWN, or -"))?;
        flags = flags.with(known.1);
    }
    Ok(flags)
}

fn parse_timestamps(text: &str) -> Result<(Option<u32>, Option<u32>), String> {
    let error = || format!("`{text}` is not TSval:TSecr; either may be *");
    let (val, ecr) = text.split_once(':').ok_or_else(error)?;
    let part = |text: &str| {
        (text != "*").then(|| text.parse()).transpose().map_err(|_: std::num::ParseIntError| error())
    };
    Ok((part(val)?, part(ecr)?))
}

/// Cuts `LEFT..RIGHT/SIZE` into segments; PSH, FIN and CWR go with the last, last, and first of them.
fn pieces(pattern: Pattern, place: &str) -> Result<Vec<Pattern>, String> {
    let (span, size) = match place.split_once('/') {
        Some((span, size)) => (span, Some(number::<u32>(size, "a segment size")?)),
        None => (place, None),
    };
    let Some((left, right)) = range(span)? else {
        if size.is_some() {
            return Err(format!("`{place}` has a piece size but no range"));
        }
        return Ok(vec![Pattern { seq: number(span, "a sequence number")?, ..pattern }]);
    };
    let size = i64::from(size.unwrap_or((right - left) as u32).max(1));
    let mut burst = Vec::new();
    let mut seq = left;
    while seq < right {
        let len = size.min(right - seq);
        let mut flags = pattern.flags;
        if seq + len < right {
            flags.0 &= !(TcpFlags::PSH.0 | TcpFlags::FIN.0);
        }
        if seq > left {
            flags.0 &= !TcpFlags::CWR.0;
        }
        burst.push(Pattern { flags, seq, len: len as u32, ..pattern.clone() });
        seq += len;
    }
    Ok(burst)
}

impl Pattern {
    /// The packet from `key.src` to `key.dst`; `window` where the pattern names none.
    pub fn packet(&self, key: FlowKey, base: Base, window: u16) -> Packet {
        let mut sack = SackBlocks::default();
        for (left, right) in &self.sack {
            sack.push(absolute(base.receiver, *left), absolute(base.receiver, *right));
        }
        let timestamps = self.timestamps.value();
        let tcp = TcpHeader {
            src_port: key.src_port,
            dst_port: key.dst_port,
            seq: absolute(base.sender, self.seq),
            ack: self.ack.map_or(SeqNumber(0), |ack| absolute(base.receiver, ack)),
            flags: self.flags,
            window: self.window.unwrap_or(window),
            options: TcpOptions {
                mss: self.mss.value(),
                window_scale: self.scale.value(),
                sack_permitted: self.sack_permitted.value().is_some(),
                timestamps: timestamps
                    .map(|(val, ecr)| Timestamps { val: val.unwrap_or(0), ecr: ecr.unwrap_or(0) }),
                sack,
                other: self.garbage.into(),
            },
            payload_len: self.len,
        };
        let mut packet = Packet::tcp(key.src, key.dst, tcp);
        packet.ip.traffic_class = self.ecn.unwrap_or(0);
        packet
    }
    /// Whether a packet matches the pattern.
    pub fn fits(&self, packet: &Packet, base: Base) -> bool {
        let Some(tcp) = packet.tcp_header() else { return false };
        let options = &tcp.options;
        let blocks: Vec<_> = blocks(tcp, base);
        let timestamps = match (self.timestamps, options.timestamps) {
            (Want::Is((val, ecr)), Some(got)) => {
                val.is_none_or(|val| val == got.val) && ecr.is_none_or(|ecr| ecr == got.ecr)
            }
            (Want::Is(_), None) => false,
            (Want::Absent, got) => got.is_none(),
            (Want::Any, _) => true,
        };
        let ignored = if self.any_push { TcpFlags::PSH.0 } else { 0 };
        (tcp.flags.0 | ignored) == (self.flags.0 | ignored)
            && relative(base.sender, tcp.seq) == self.seq
            && tcp.payload_len == self.len
            && self.ack.is_none_or(|ack| tcp.ack == absolute(base.receiver, ack))
            && self.window.is_none_or(|window| window == tcp.window)
            && blocks == self.sack
            && timestamps
            && self.mss.fits(options.mss)
            && self.scale.fits(options.window_scale)
            && self.sack_permitted.fits(options.sack_permitted.then_some(()))
            && self.ecn.is_none_or(|ecn| ecn == packet.ip.ecn())
    }
}

fn blocks(tcp: &TcpHeader, base: Base) -> Vec<(i64, i64)> {
    let relative = |number| relative(base.receiver, number);
    tcp.options.sack.as_slice().iter().map(|(left, right)| (relative(*left), relative(*right))).collect()
}

/// A packet in the notation of scripts, with all fields.
pub fn write(packet: &Packet, base: Base) -> String {
    let Some(tcp) = packet.tcp_header() else { return format!("{:?}", packet.transport) };
    let letters = LETTERS.iter().filter(|known| tcp.flags.contains(known.1)).map(|known| known.0);
    let mut text: String = letters.collect();
    if text.is_empty() {
        text.push('-');
    }
    let seq = relative(base.sender, tcp.seq);
    let _ = write!(text, " {seq}");
    if tcp.payload_len > 0 {
        let _ = write!(text, "..{}", seq + i64::from(tcp.payload_len));
    }
    if tcp.flags.contains(TcpFlags::ACK) {
        let _ = write!(text, " ack {}", relative(base.receiver, tcp.ack));
    }
    let _ = write!(text, " win {}", tcp.window);
    for (index, (left, right)) in blocks(tcp, base).into_iter().enumerate() {
        let _ = write!(text, "{} {left}..{right}", if index == 0 { " sack" } else { "" });
    }
    let options = &tcp.options;
    if let Some(mss) = options.mss {
        let _ = write!(text, " mss {mss}");
    }
    if options.sack_permitted {
        text.push_str(" sackok");
    }
    if let Some(Timestamps { val, ecr }) = options.timestamps {
        let _ = write!(text, " ts {val}:{ecr}");
    }
    if let Some(shift) = options.window_scale {
        let _ = write!(text, " wscale {shift}");
    }
    if packet.ip.ecn() != 0 {
        let _ = write!(text, " {}", ECN[usize::from(packet.ip.ecn())]);
    }
    if options.other.any() {
        text.push_str(" garbage");
    }
    text
}
