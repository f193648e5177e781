//! The traffic of the first group of stations: transfers without end, short ones, or a thin flow beside them,
//! in a group of one station.

use super::Choice;
use paceline_sim::Scenario;
use paceline_sim::scenario::{Direction, Traffic};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Table, value};

/// Name of the control.
pub const KEY: &str = "traffic";

const BULK: &str = "bulk";
const SHORT: &str = "short transfers";
const THIN: &str = "a thin flow beside";
/// Name of the thin flow's group, and of the first one beside it.
const NAMES: [&str; 2] = ["thin flow", "bulk"];

/// Short transfers of a station. Chosen: one to ten at a time in the built-in scenarios.
const TRANSFERS: i64 = 20;
/// A short transfer: less than a megabyte, as most of the web's (a picture, a page's scripts).
const SHORT_FILE: &str = "200 kB";
/// Keys of a group's traffic.
const KEYS: [&str; 6] = ["file", "flows", "start_spread", "request", "chunk", "chunk_interval"];

/// The values with their meanings.
pub fn choices() -> Vec<Choice> {
    let choice = |value: &str, meaning: &str| Choice { value: value.to_owned(), meaning: meaning.to_owned() };
    vec![
        choice(BULK, "Downloads or uploads without end."),
        choice(SHORT, "20 transfers of 200 kB by each station, which begin at random times."),
        choice(THIN, "As bulk, and one more station that gets 160 bytes every 20 ms, as of a call."),
    ]
}

/// The present value; none for traffic of other kinds.
pub fn present(scenario: &Scenario) -> Option<&'static str> {
    let first = scenario.stations.first()?;
    let thin = scenario.stations.last().and_then(|group| group.name.as_deref()) == Some(NAMES[0]);
    if first.traffic != Traffic::Tcp || first.direction == Direction::None || first.chunk.is_some() {
        return None;
    }
    Some(if thin {
        THIN
    } else if first.file.is_some() {
        SHORT
    } else {
        BULK
    })
}

/// The text with another value.
pub fn edit(text: &str, scenario: &Scenario, traffic: &str) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|_| "the text is not valid TOML")?;
    let groups = document.get_mut("station").and_then(|item| item.as_array_of_tables_mut());
    let groups = groups.ok_or("write the stations as [[station]]")?;
    if present(scenario) == Some(THIN) && groups.len() > 1 {
        groups.remove(groups.len() - 1);
    }
    let first = groups.get_mut(0).ok_or("there is no [[station]]")?;
    if first.get("name").and_then(|name| name.as_str()) == Some(NAMES[1]) {
        first.remove("name");
    }
    KEYS.iter().for_each(|key| drop(first.remove(key)));
    match traffic {
        BULK => {}
        SHORT => {
            first.insert("file", value(SHORT_FILE));
            first.insert("flows", value(TRANSFERS));
            first.insert("start_spread", value(scenario.run.duration.to_string()));
        }
        THIN => add_thin_flow(groups),
        _ => return Err(format!("traffic = {traffic}: allowed: {BULK}, {SHORT}, {THIN}")),
    }
    Ok(document.to_string())
}

/// A station at the place of the first group, with a stream of the size and pace of a call: G.711 in frames
/// of 20 ms (RFC 3551 section 4.5.14), by TCP without Nagle's delay.
fn add_thin_flow(groups: &mut ArrayOfTables) {
    let Some(first) = groups.get_mut(0) else { return };
    let mut thin: Table = first.clone();
    if !first.contains_key("name") {
        first.insert("name", value(NAMES[1]));
    }
    thin.decor_mut().set_prefix("\n");
    thin.set_position(None);
    for (key, text) in
        [("name", NAMES[0]), ("file", "16 MB"), ("chunk", "160 B"), ("chunk_interval", "20 ms")]
    {
        thin.insert(key, value(text));
    }
    thin.insert("count", value(1));
    let tcp = thin.entry("tcp").or_insert(value(InlineTable::new()));
    if let Some(tcp) = tcp.as_table_like_mut() {
        tcp.insert("nagle", value("off"));
    }
    groups.push(thin);
}
