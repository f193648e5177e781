//! Keys that act only where another key has a certain value. Where that key is left out and its default is
//! another value, they are refused: who writes them means to use them. Where it is stated they may stay, so
//! that a comparison changes one key (`core.proxy = "none"` beside `[accelerator]`). A resolved scenario has
//! none that do not act.

use crate::access::sidelink;
use crate::limits::Problem;
use toml::{Table, Value};

/// The values of the other key with which a key acts.
#[derive(Clone, Copy)]
enum With {
    /// One of these.
    Any(&'static [&'static str]),
    /// Any but this one.
    Not(&'static str),
    /// Any; it must not be left out.
    Present,
    /// This one, which no comparison changes: else the key is refused also where the other one is stated.
    Only(&'static str),
}

/// Keys, the key that decides, and its values. `station` stands for each group of stations, and `tcp` for its
/// table in each group too. Derived: from the places where the models read each key;
/// `crates/sim/tests/key_effects.rs` finds one that is missing.
const RULES: [(&[&str], &str, With); 26] = [
    (&["accelerator"], "core.proxy", With::Any(&["accelerator"])),
    (&["split_tcp"], "core.proxy", With::Any(&["split-tcp"])),
    (&["core.proxy_after"], "core.proxy", With::Not("none")),
    (&["station.proxy"], "core.proxy", With::Not("none")),
    (&["core.hops.service_queue"], "core.hops.service_time", With::Present),
    (
        &["accelerator.min_target_delay", "accelerator.max_target_delay"],
        "accelerator.profile",
        With::Any(&["adaptive"]),
    ),
    (
        &["accelerator.k", "accelerator.lambda", "accelerator.alpha", "accelerator.beta", "accelerator.mu"],
        "accelerator.profile",
        With::Any(&["paper"]),
    ),
    (&["accelerator.r_cap"], "accelerator.profile", With::Any(&["paper"])),
    (&["accelerator.pacing_phase"], "accelerator.pacing", With::Any(&["tdd", "tdd-published"])),
    (&["ack_filter.header"], "ack_filter.scheme", With::Any(&["hybrid-opt"])),
    (
        &["cell.t_poll_retransmit", "cell.poll_pdu", "cell.poll_byte", "cell.max_retx_threshold"],
        "RLC",
        With::Any(&["am"]),
    ),
    (&["cell.t_status_prohibit"], "RLC", With::Any(&["am"])),
    (&["cell.t_reordering"], "cell.rat", With::Only("lte")),
    (
        &["tcp.keepalive_idle", "tcp.keepalive_interval", "tcp.keepalive_probes"],
        "tcp.keepalive",
        With::Any(&["true"]),
    ),
    (&["tcp.stretch_ack_timeout", "tcp.stretch_ack_duplicates"], "tcp.stretch_ack_segments", With::Not("1")),
    (&["station.udp_rate", "station.udp_payload"], "station.traffic", With::Any(&["udp"])),
    (&["station.udp_arrivals"], "station.traffic", With::Any(&["udp", "ping"])),
    (&["station.ping_interval", "station.ping_payload"], "station.traffic", With::Any(&["ping"])),
    (&["station.chunk_interval"], "station.chunk", With::Present),
    (&["station.coherence"], "station.fading", With::Not("0 dB")),
    (&["sidelink.selection_period", "sidelink.hysteresis"], "sidelink.selection", With::Any(&["best-cqi"])),
    (&["sidelink.far_distance_m", "sidelink.speed_mps"], "sidelink.movement", With::Not("standing")),
    (&["link.burst_packets"], "link.burst_loss_percent", With::Not("0.0")),
    (&["link.reorder_delay"], "link.reorder_percent", With::Not("0.0")),
    (&["link.fixed.interruption_interval"], "link.fixed.interruption", With::Not("0 ns")),
    (&["deployment.blocker_speed_kmh"], "deployment.blockage", With::Not("none")),
];

/// Keys of `[[station]]` that act with one access, and the reason for which others refuse them.
const OF_CELLS: ([&str; 5], &str) = (
    ["downlink_sinr", "uplink_sinr", "fading", "coherence", "processing"],
    "left out beside [link], which has no radio, and beside [sidelink], whose distances decide",
);
const OF_CORES: ([&str; 1], &str) =
    (["proxy"], "left out beside [sidelink], whose pairs have no core network and no proxy");
const OF_PAIRS: ([&str; 1], &str) = (["peer"], "left out without [sidelink], whose pairs have direct links");

/// A key that does not act, and the reason.
struct Idle {
    key: String,
    /// The key that decides and whose statement excuses this one, if there is one.
    by: Option<String>,
    reason: String,
}

/// Settings `key=value` with which the key at `path`, without indices, acts; none of a key that always does.
pub(crate) fn settings(path: &str) -> Vec<String> {
    let is_of = |keys: &[&str]| keys.iter().any(|key| path == *key || path.starts_with(&format!("{key}.")));
    let setting = |(_, by, with): &(&[&str], &str, With)| {
        let by = if *by == "RLC" { "cell.rlc" } else { by };
        let value = match with {
            With::Any(values) => values[0],
            With::Only(one) => one,
            With::Not("0 dB") => "1 dB",
            With::Not("0 ns") => "5 ms",
            With::Not("none") if by == "core.proxy" => "accelerator",
            With::Not("none") => "indoor",
            With::Not("standing") => "back-and-forth",
            With::Not(_) => "2",
            With::Present if by == "core.hops.service_time" => "10 us",
            With::Present => "1000 B",
        };
        format!("{by}={value}")
    };
    RULES.iter().filter(|(keys, ..)| is_of(keys)).map(setting).collect()
}

/// The value at a dotted path.
fn at<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (table.get(first)?, rest) {
        (value, None) => Some(value),
        (Value::Table(inner), Some(rest)) => at(inner, rest),
        (Value::Array(all), Some(rest)) => {
            let (index, rest) = rest.split_once('.')?;
            at(all.get(index.parse::<usize>().ok()?)?.as_table()?, rest)
        }
        _ => None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a key acts, by the value of the deciding one.
fn acts(with: With, value: Option<&Value>) -> bool {
    match (with, value.map(text)) {
        (With::Any(values), Some(value)) => values.contains(&value.as_str()),
        (With::Not(other), Some(value)) => value != other,
        (With::Only(one), Some(value)) => value == one,
        (With::Present, value) => value.is_some(),
        (_, None) => true,
    }
}

/// The places of a path: itself, and that in each group of stations or in each hop.
fn places(path: &str, table: &Table) -> Vec<String> {
    let groups = groups(table);
    if let Some(key) = path.strip_prefix("core.hops.") {
        let hops = at(table, "core.hops").and_then(Value::as_array).map_or(0, Vec::len);
        return (0..hops).map(|index| format!("core.hops.{index}.{key}")).collect();
    }
    match path.split_once('.') {
        Some(("station", key)) => (0..groups).map(|index| format!("station.{index}.{key}")).collect(),
        Some(("tcp", _)) => {
            let of_groups = (0..groups).map(|index| format!("station.{index}.{path}"));
            of_groups.chain([path.to_owned()]).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// The keys that another access than that of the scenario has, and the reasons for refusing them.
fn of_other_access(table: &Table) -> Vec<(String, &'static str)> {
    let station = |(keys, reason): (&[&str], &'static str)| {
        let keys: Vec<String> = keys.iter().map(|key| format!("station.{key}")).collect();
        keys.into_iter().flat_map(move |key| places(&key, table)).map(move |key| (key, reason))
    };
    let (of_cells, of_pairs) = (station((&OF_CELLS.0, OF_CELLS.1)), station((&OF_PAIRS.0, OF_PAIRS.1)));
    let of_cores = station((&OF_CORES.0, OF_CORES.1));
    let nr = table.contains_key("cell");
    let reason = if nr {
        "left out beside [sidelink] in NR, where it has no effect"
    } else {
        "left out in LTE: it belongs to [cell] with rat = \"nr\""
    };
    match (table.contains_key("link"), table.contains_key("sidelink")) {
        (true, _) => of_cells.chain(of_pairs).collect(),
        (_, true) => of_cells
            .chain(of_cores)
            .chain(sidelink::unused_keys(nr).into_iter().map(|key| (key, reason)))
            .collect(),
        _ => of_pairs.collect(),
    }
}

/// The keys of a rule that `wanted` has and that do not act.
fn idle(table: &Table, wanted: &dyn Fn(&str) -> bool) -> Vec<Idle> {
    let others = of_other_access(table).into_iter().filter(|(key, _)| wanted(key));
    let idle = |(key, reason): (String, &str)| Idle { key, by: None, reason: reason.to_owned() };
    let mut found: Vec<Idle> = others.map(idle).collect();
    for (keys, by, with) in RULES {
        for key in keys {
            for (key, by) in places(key, table).into_iter().zip(places(by, table)) {
                if !wanted(&key) {
                    continue;
                }
                // The carrier of pairs has the RLC of the direct links.
                let pairs = if table.contains_key("sidelink") { "sidelink.rlc" } else { "cell.rlc" };
                let by = if by == "RLC" { pairs.to_owned() } else { by };
                let value = at(table, &by);
                let of_groups =
                    key.starts_with("tcp.").then(|| (0..groups(table)).map(|n| format!("station.{n}.{by}")));
                let mut of_groups = of_groups.into_iter().flatten().filter_map(|by| at(table, &by));
                if acts(with, value) || of_groups.any(|value| acts(with, Some(value))) {
                    continue;
                }
                let is = value.map_or_else(|| String::from(" left out"), |value| format!(" {value}"));
                let needs = match with {
                    With::Any(values) => format!("{by} = {}", quoted(values)),
                    With::Not(other) => format!("{by} other than {}", quoted(&[other])),
                    With::Present => by.clone(),
                    With::Only(one) => format!("{by} = {}", quoted(&[one])),
                };
                let reason = format!("left out where {by} is{is}: it acts with {needs}");
                let by = (!matches!(with, With::Only(_))).then_some(by);
                found.push(Idle { key, by, reason });
            }
        }
    }
    found
}

fn quoted(values: &[&str]) -> String {
    let plain = |value: &&str| value.parse::<f64>().is_ok() || *value == "true";
    let quote = |value: &&str| if plain(value) { (*value).to_owned() } else { format!("\"{value}\"") };
    values.iter().map(quote).collect::<Vec<_>>().join(" or ")
}

/// Refuses a given key of a scenario, here with every key, that does not act, unless the key that decides is
/// given too.
pub(crate) fn check(table: &Table, given: &dyn Fn(&str) -> bool) -> Result<(), Problem> {
    let idle = idle(table, given);
    let refused = idle.into_iter().find(|idle| !idle.by.as_deref().is_some_and(given));
    refused.map_or(Ok(()), |Idle { key, reason, .. }| Err(Problem::without_value(&key, reason)))
}

fn groups(table: &Table) -> usize {
    table.get("station").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Removes the keys that do not act from a resolved scenario.
pub(crate) fn remove_idle(table: &mut Table) {
    for Idle { key, .. } in idle(&table.clone(), &|_| true) {
        remove(table, &key);
    }
}

fn remove(table: &mut Table, path: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        table.remove(path);
        return;
    };
    match table.get_mut(first) {
        Some(Value::Table(inner)) => remove(inner, rest),
        Some(Value::Array(all)) => {
            let Some((index, rest)) = rest.split_once('.') else { return };
            let element = index.parse::<usize>().ok().and_then(|index| all.get_mut(index));
            if let Some(Value::Table(inner)) = element {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    /// The message for a text with settings; none if it is accepted.
    fn refusal(text: &str, sets: &[&str]) -> Option<String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        load("a.toml", text, &sets).err().map(|error| error.to_string())
    }

    #[test]
    fn keys_that_do_not_act_are_refused_with_the_key_that_decides() {
        for (text, message) in [
            (
                "[accelerator]\nk = 3\n[[station]]\n",
                "a.toml:1: accelerator: allowed: left out where core.proxy is \"none\": it acts with core.proxy \
                 = \"accelerator\"",
            ),
            (
                "[core]\nproxy = \"accelerator\"\n[accelerator]\nk = 3\n[[station]]\n",
                "a.toml:4: accelerator.k: allowed: left out where accelerator.profile is \"adaptive\": it acts \
                 with accelerator.profile = \"paper\"",
            ),
            (
                "[cell]\npoll_pdu = 4\n[[station]]\n",
                "a.toml:2: cell.poll_pdu: allowed: left out where cell.rlc is \"um\": it acts with cell.rlc = \
                 \"am\"",
            ),
            (
                "[cell]\nrat = \"nr\"\nt_reordering = \"40 ms\"\n[[station]]\n",
                "a.toml:3: cell.t_reordering: allowed: left out where cell.rat is \"nr\": it acts with cell.rat = \
                 \"lte\"",
            ),
            (
                "[[station]]\n[[station]]\nudp_rate = \"2 Mb/s\"\n",
                "a.toml:3: station.1.udp_rate: allowed: left out where station.1.traffic is \"tcp\": it acts \
                 with station.1.traffic = \"udp\"",
            ),
            (
                "[[station]]\nchunk_interval = \"2 s\"\n",
                "a.toml:2: station.0.chunk_interval: allowed: left out where station.0.chunk is left out: it \
                 acts with station.0.chunk",
            ),
            (
                "[[station]]\n[station.tcp]\nstretch_ack_timeout = \"2 ms\"\n",
                "a.toml:3: station.0.tcp.stretch_ack_timeout: allowed: left out where \
                 station.0.tcp.stretch_ack_segments is 1: it acts with station.0.tcp.stretch_ack_segments other \
                 than 1",
            ),
        ] {
            assert_eq!(refusal(text, &[]).as_deref(), Some(message));
        }
    }

    #[test]
    fn they_stay_where_the_key_that_decides_is_stated() {
        let text = "[core]\nproxy = \"accelerator\"\n[accelerator]\nflow_buffer = \"1 MiB\"\n[[station]]\n";
        assert_eq!(refusal(text, &[]), None);
        assert_eq!(refusal(text, &["core.proxy=none"]), None);
        let message = refusal("[[station]]\n", &["accelerator.flow_buffer=1 MiB"]);
        assert!(message.is_some_and(|message| message.contains("accelerator: allowed: left out")));
        assert_eq!(refusal("[[station]]\n", &["core.proxy=none", "accelerator.flow_buffer=1 MiB"]), None);
    }

    #[test]
    fn a_key_of_all_stations_acts_if_it_does_in_one_group() {
        let text = "[tcp]\nkeepalive_idle = \"5 s\"\n[[station]]\n[[station]]\n";
        assert!(refusal(text, &[]).is_some_and(|message| message.contains("tcp.keepalive is false")));
        assert_eq!(refusal(&format!("{text}[station.tcp]\nkeepalive = true\n"), &[]), None);
    }

    #[test]
    fn a_resolved_scenario_has_no_key_that_does_not_act() {
        let resolved = load("a.toml", "[[station]]\n", &[]).unwrap().to_toml();
        for absent in ["[accelerator]", "[split_tcp]", "poll_pdu", "keepalive_idle", "udp_rate", "header"] {
            assert!(!resolved.contains(absent), "{absent}");
        }
        assert!(resolved.contains("t_reordering") && resolved.contains("[ack_filter]"), "{resolved}");
    }
}
