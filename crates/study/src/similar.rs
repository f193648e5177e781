//! Suggestions for mistyped names.

/// Up to three of the `known` dotted paths that resemble `path`, or whose last parts resemble its last part.
pub fn similar<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Chosen: includes one or two wrong letters in a key of scenarios, and excludes the names of other keys.
    const LEAST_SIMILARITY: f64 = 0.7;
    // Chosen: excludes other keys of the same table, whose paths have the table's name in common.
    const LEAST_SIMILARITY_OF_LAST_PARTS: f64 = 0.5;
    let similarity = |other: &str| {
        let parts = strsim::normalized_damerau_levenshtein(last_part(other), last_part(path));
        if parts < LEAST_SIMILARITY_OF_LAST_PARTS {
            return 0.0;
        }
        parts.max(strsim::normalized_damerau_levenshtein(other, path))
    };
    let mut scored: Vec<(f64, &str)> = known.map(|other| (similarity(other), other)).collect();
    scored.retain(|(similarity, _)| *similarity >= LEAST_SIMILARITY);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, path)| path.to_owned()).collect()
}

/// The end of a message that names similar paths; empty if there are none.
pub fn hint(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(", ")) }
}

/// A path as the reference has it: `station.0.count` and `[[station]]` without index and brackets.
pub fn without_indices(path: &str) -> String {
    let parts = path.trim_matches(['[', ']', ' ']).split('.');
    let names: Vec<&str> = parts.filter(|part| part.parse::<usize>().is_err()).collect();
    names.join(".")
}

fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
