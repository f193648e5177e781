//! Former names of keys and values. They are accepted for one release.

use toml_edit::{DocumentMut, TableLike};

/// Former and present names, by table. Derived: from the releases' lists of changes.
const RENAMED: [(&str, &str, &str); 4] = [
    ("core", "path", "proxy"),
    ("core", "path_after", "proxy_after"),
    ("accelerator", "least_budget", "min_target_delay"),
    ("accelerator", "most_budget", "max_target_delay"),
];

/// A key with the former and the present name of one of its values. Derived: as [`RENAMED`].
const RENAMED_VALUE: (&str, &str, &str, &str) = ("core", "proxy", "direct", "none");

/// Gives the keys and values of a file their present names. A sentence for each one that had another.
pub(crate) fn rename_keys(document: &mut DocumentMut) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (table, former, present) in RENAMED {
        let Some(table_of) = document.get_mut(table).and_then(|item| item.as_table_like_mut()) else {
            continue;
        };
        if table_of.contains_key(present) && table_of.contains_key(former) {
            return Err(format!(
                "{table}.{former} is the former name of {table}.{present}: give one of them"
            ));
        }
        if rename(table_of, former, present) {
            notes.push(note(&format!("{table}.{former}"), &format!("{table}.{present}")));
        }
    }
    let (table, key, former, present) = RENAMED_VALUE;
    let table_of = document.get_mut(table).and_then(|item| item.as_table_like_mut());
    if let Some(item) = table_of.and_then(|table| table.get_mut(key))
        && item.as_str() == Some(former)
    {
        *item = toml_edit::value(present);
        notes.push(value_note());
    }
    Ok(notes)
}

/// The present name of a key.
pub fn present_name(key: &str) -> String {
    let of = |(table, former, _): &&(&str, &str, &str)| key == format!("{table}.{former}");
    RENAMED.iter().find(of).map_or_else(|| key.to_owned(), |(table, _, present)| format!("{table}.{present}"))
}

/// The same for a setting `key=value`.
pub(crate) fn rename_setting(setting: &str) -> (String, Vec<String>) {
    let Some((key, value)) = setting.split_once('=') else { return (setting.to_owned(), Vec::new()) };
    let mut notes = Vec::new();
    let present = present_name(key.trim());
    if present != key.trim() {
        notes.push(note(key.trim(), &present));
    }
    let (table, of, former, now) = RENAMED_VALUE;
    if present == format!("{table}.{of}") && value.trim().trim_matches('"') == former {
        notes.push(value_note());
        return (format!("{present}={now}"), notes);
    }
    (if notes.is_empty() { setting.to_owned() } else { format!("{present}={value}") }, notes)
}

fn note(former: &str, present: &str) -> String {
    format!("{former} is called {present} now; the next release does not accept the former name")
}

fn value_note() -> String {
    let (table, key, former, present) = RENAMED_VALUE;
    note(&format!("{table}.{key} = \"{former}\""), &format!("\"{present}\""))
}

/// Renames a key in its place, with its comments.
fn rename(table: &mut dyn TableLike, former: &str, present: &str) -> bool {
    let Some((key, item)) = table.get_key_value(former).map(|(key, item)| (key.clone(), item.clone())) else {
        return false;
    };
    table.remove(former);
    table.insert(present, item);
    if let Some(mut renamed) = table.key_mut(present) {
        *renamed.leaf_decor_mut() = key.leaf_decor().clone();
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::{Proxy, load};

    #[test]
    fn former_names_are_accepted_with_a_note() {
        let text =
            "[core]\npath = \"accelerator\" # a comment\n[accelerator]\nmost_budget = \"1 s\"\n[[station]]\n";
        let scenario = load("a.toml", text, &[]).unwrap();
        assert_eq!((scenario.core.proxy, scenario.renamed.len()), (Proxy::Accelerator, 2));
        assert!(scenario.warnings()[0].contains("core.path is called core.proxy now"));
        let direct = load("a.toml", text, &["core.path=direct".to_owned()]).unwrap();
        assert_eq!((direct.core.proxy, direct.renamed.len()), (Proxy::None, 3));
        let written = load("a.toml", "[core]\nproxy = \"direct\"\n[[station]]\n", &[]).unwrap();
        assert_eq!((written.core.proxy, written.renamed.len()), (Proxy::None, 1));
        assert!(direct.to_toml().contains("proxy = \"none\""));
        let error = load("a.toml", "[core]\npath = \"direct\"\nproxy = \"none\"\n[[station]]\n", &[]);
        assert!(error.unwrap_err().to_string().contains("core.path is the former name of core.proxy"));
        let error = load("a.toml", "[core]\npath = \"pep\"\n[[station]]\n", &[]).unwrap_err().to_string();
        assert!(error.contains("core.proxy") && error.contains("accelerator"), "{error}");
    }
}
