//! Suggestions for mistyped names: keys and words of scenarios, names of files.

use paceline_sim::scenario::reference::{self, Default, Table};

/// Words by which other programs and papers call a key, with the key. Chosen: the names of ns-3, mahimahi, tc
/// and iperf3, and the usual abbreviations.
const CALLED: [(&str, &str); 34] = [
    ("rtt", "core.hops.delay"),
    ("ping", "core.hops.delay"),
    ("latency", "core.hops.delay"),
    ("owd", "core.hops.delay"),
    ("throughput", "core.hops.rate"),
    ("datarate", "core.hops.rate"),
    ("aqm", "core.hops.queue_discipline"),
    ("mtu", "tcp.segment_size"),
    ("mss", "tcp.segment_size"),
    ("cca", "tcp.congestion_control"),
    ("algorithm", "tcp.congestion_control"),
    ("variant", "tcp.congestion_control"),
    ("iw", "tcp.initial_window"),
    ("users", "station.count"),
    ("ues", "station.count"),
    ("clients", "station.count"),
    ("devices", "station.count"),
    ("number", "station.count"),
    ("snr", "station.downlink_sinr"),
    ("sinr", "station.downlink_sinr"),
    ("label", "station.name"),
    ("protocol", "station.traffic"),
    ("size", "station.file"),
    ("connections", "station.flows"),
    ("bw", "cell.bandwidth"),
    ("scs", "cell.subcarrier_spacing"),
    ("technology", "cell.rat"),
    ("generation", "cell.rat"),
    ("tdd", "cell.pattern"),
    ("band", "cell.frequency"),
    ("length", "run.duration"),
    ("time", "run.duration"),
    ("seeds", "run.seed"),
    ("loss", "link.loss_percent"),
];
/// Suggestions at most. Chosen: the one that is meant is among the first, and more are not read.
const MOST: usize = 3;

/// Up to three of the `known` dotted paths that are called like `path`, resemble it, or whose last parts
/// resemble its last part; those of the same table first.
pub fn similar<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Chosen: includes one or two wrong letters in a key of scenarios, and excludes the names of other keys.
    const LEAST_SIMILARITY: f64 = 0.7;
    // Chosen: excludes other keys of the same table, whose paths have the table's name in common.
    const LEAST_SIMILARITY_OF_LAST_PARTS: f64 = 0.5;
    // Chosen: a part of a name is more than a wrong letter in a long name; the table decides between equals,
    // and a part of a name in the same table is before a whole name in another.
    let (of_a_part, same_table, same_first_table) = (0.9, 0.2, 0.05);
    let path = path.to_lowercase();
    let (table, asked) = split(&path);
    let similarity = |other: &str| {
        let (other_table, name) = split(other);
        if CALLED.contains(&(asked, other)) {
            return 1.0 + 2.0 * same_table;
        }
        let near = match (table, other_table) {
            (Some(own), Some(other)) if own == other => same_table,
            (Some(own), Some(other)) if own.split('.').next() == other.split('.').next() => same_first_table,
            _ => 0.0,
        };
        let parts = strsim::normalized_damerau_levenshtein(name, asked);
        let part = if is_part(asked, name) && (near > 0.0 || table.is_none()) { of_a_part } else { 0.0 };
        let of_paths = match parts >= LEAST_SIMILARITY_OF_LAST_PARTS {
            true => parts.max(strsim::normalized_damerau_levenshtein(other, &path)),
            false => 0.0,
        };
        let similarity = of_paths.max(part);
        if similarity < LEAST_SIMILARITY { 0.0 } else { similarity + near }
    };
    nearest(known, LEAST_SIMILARITY, similarity)
}

/// Up to three of the `known` names, such as those of files, that resemble `name`.
pub fn similar_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Chosen: one or two wrong letters in a name of eight.
    const LEAST_SIMILARITY: f64 = 0.7;
    nearest(known, LEAST_SIMILARITY, |other| strsim::normalized_damerau_levenshtein(other, name))
}

fn nearest<'a>(
    known: impl Iterator<Item = &'a str>,
    least: f64,
    similarity: impl Fn(&str) -> f64,
) -> Vec<String> {
    let mut scored: Vec<(f64, &str)> = known.map(|other| (similarity(other), other)).collect();
    scored.retain(|(similarity, _)| *similarity >= least);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// Whether a word is one of the words of a name, as `buffer` of `downlink_buffer`, or their initials, as `cc`
/// of `congestion_control`.
fn is_part(word: &str, name: &str) -> bool {
    let words = || name.split(['_', '-']);
    let initials: String = words().filter_map(|word| word.chars().next()).collect();
    words().count() > 1 && (words().any(|own| own == word && word.len() > 2) || initials == word)
}

/// The end of a message that names similar paths; empty if there are none.
pub fn hint(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(", ")) }
}

/// The form in which a table is written, where a value of another type stands in its place: `[[station]]`, or
/// `[link.trace] downlink = "f"` for the string `"f"`.
pub fn as_written(table: &Table, value: Option<&str>) -> String {
    if table.repeated {
        return format!("[[{}]]", table.path);
    }
    let needed = table.entries.iter().find(|entry| entry.default == Default::Required);
    let key = needed.zip(value).map(|(entry, value)| format!(" {} = {value}", split(&entry.path).1));
    format!("[{}]{}", table.path, key.unwrap_or_default())
}

/// A path as the reference has it: `station.0.count` and `[[station]]` without index and brackets.
pub fn without_indices(path: &str) -> String {
    let parts = path.trim_matches(['[', ']', ' ']).split('.');
    let names: Vec<&str> = parts.filter(|part| part.parse::<usize>().is_err()).collect();
    names.join(".")
}

/// Dotted paths of all keys and tables of a scenario.
pub fn known_paths() -> Vec<String> {
    let entries = reference::entries().into_iter().map(|entry| entry.path);
    entries.chain(reference::tables().into_iter().map(|table| table.path)).collect()
}

/// The table and the last part of a path.
fn split(path: &str) -> (Option<&str>, &str) {
    path.rsplit_once('.').map_or((None, path), |(table, name)| (Some(table), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_its_initials_and_other_words_for_it_are_known() {
        let known = known_paths();
        let first = |path: &str| similar(path, known.iter().map(String::as_str)).first().cloned();
        for (path, key) in [
            ("cell.buffer", "cell.downlink_buffer"),
            ("tcp.cc", "tcp.congestion_control"),
            ("core.rtt", "core.hops.delay"),
            ("rtt", "core.hops.delay"),
            ("station.cuont", "station.count"),
        ] {
            assert_eq!(first(path).as_deref(), Some(key), "{path}");
        }
    }

    #[test]
    fn words_for_keys_lead_to_keys_and_are_none_themselves() {
        let known = known_paths();
        for (word, key) in CALLED {
            assert!(known.iter().any(|path| path == key), "{key}");
            let table = key.split('.').next().unwrap_or_default();
            assert!(!known.contains(&format!("{table}.{word}")), "{table}.{word} is a key");
        }
    }
}
