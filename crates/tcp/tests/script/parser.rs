//! The lines of a script.

use crate::script::check::{self, Check};
use crate::script::segment::{self, Pattern};
use crate::script::setup::{Setup, duration};
use paceline_net::Duration;

/// Tolerance of `+~`: one tick of the timestamp clock.
const TOLERANCE: Duration = Duration::from_millis(1);

/// A script.
#[derive(Debug)]
pub struct Script {
    pub name: String,
    pub setup: Setup,
    pub lines: Vec<Line>,
}

/// One event.
#[derive(Debug)]
pub struct Line {
    pub number: usize,
    pub text: String,
    /// Earliest and latest time after the line before.
    pub after: (Duration, Duration),
    pub action: Action,
}

/// The kind of an event.
#[derive(Debug)]
pub enum Action {
    /// `<`: segments arrive.
    Inject(Vec<Pattern>),
    /// `>`: segments leave.
    Expect(Vec<Pattern>),
    /// `> nothing for`: none leaves.
    Quiet(Duration),
    /// `?`: conditions on the state.
    Check(Vec<Check>),
    /// `!`: the application calls.
    Call(Call),
}

/// A call of the application of a script with `source = calls`.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Bytes.
    Write(u64),
    /// Bytes, as far as they have arrived.
    Read(u64),
    /// No more is written: FIN follows.
    Close,
}

fn parse_call(text: &str) -> Result<Call, String> {
    let error = || format!("`{text}` is not a call: write `write BYTES`, `read BYTES` or `close`");
    let bytes = |text: &str| text.trim().parse().map_err(|_| error());
    match text.split_once(' ') {
        None if text == "close" => Ok(Call::Close),
        Some(("write", count)) => Ok(Call::Write(bytes(count)?)),
        Some(("read", count)) => Ok(Call::Read(bytes(count)?)),
        _ => Err(error()),
    }
}

/// Reads a script; an error names file, line and the allowed values.
pub fn parse(name: &str, text: &str) -> Result<Script, String> {
    let mut script = Script { name: name.to_owned(), setup: Setup::default(), lines: Vec::new() };
    for (index, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let number = index + 1;
        let parsed = if line.starts_with('+') {
            parse_line(number, line).map(|line| script.lines.push(line))
        } else if script.lines.is_empty() {
            parse_key(&mut script.setup, line)
        } else {
            Err("after the first line with a time, every line begins with one: +TIME".into())
        };
        parsed.map_err(|error| format!("{name}:{number}: {error}\n  line      {line}\n"))?;
    }
    if script.lines.is_empty() {
        return Err(format!("{name}: nothing happens in this script\n"));
    }
    Ok(script)
}

fn parse_key(setup: &mut Setup, line: &str) -> Result<(), String> {
    let (key, value) = line.split_once('=').ok_or("a line of the header is KEY = VALUE")?;
    let (key, value) = (key.trim(), value.trim());
    setup.set(key, value).map_err(|error| format!("{key}: {error}"))
}

fn parse_line(number: usize, line: &str) -> Result<Line, String> {
    let (when, rest) = line.split_once(char::is_whitespace).ok_or("after the time comes <, >, ? or !")?;
    let after = parse_time(&when[1..])?;
    let rest = rest.trim_start();
    let body = rest.get(1..).unwrap_or("").trim();
    let action = match rest.chars().next() {
        Some('<') => Action::Inject(segment::parse(body)?),
        Some('>') => match body.strip_prefix("nothing") {
            Some(quiet) => {
                let span = quiet.trim().strip_prefix("for ").ok_or("write `> nothing for TIME`")?;
                Action::Quiet(duration(span.trim())?)
            }
            None => Action::Expect(segment::parse(body)?),
        },
        Some('?') => Action::Check(check::parse(body)?),
        Some('!') => Action::Call(parse_call(body)?),
        _ => return Err("after the time comes < (arrives), > (leaves), ? (is) or ! (calls)".into()),
    };
    if after.0 != after.1 && !matches!(action, Action::Expect(_)) {
        return Err("only a segment that leaves may have a range of times".into());
    }
    Ok(Line { number, text: line.to_owned(), after, action })
}

fn parse_time(text: &str) -> Result<(Duration, Duration), String> {
    if let Some(about) = text.strip_prefix('~') {
        let about = duration(about)?;
        return Ok((about.saturating_sub(TOLERANCE), about + TOLERANCE));
    }
    match text.split_once("..") {
        Some((low, high)) => {
            let (low, high) = (duration(low)?, duration(high)?);
            if low > high {
                return Err(format!("`{text}` ends before it begins"));
            }
            Ok((low, high))
        }
        None => duration(text).map(|at| (at, at)),
    }
}
