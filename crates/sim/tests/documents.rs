//! The documents agree with the code: docs/scenario.md and docs/scenario.schema.json are generated from it.

use paceline_sim::scenario::reference::{self, Default, Entry};
use paceline_sim::{Scenario, scenario};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_reference_of_scenarios_is_current() {
    let current = |file: &str, committed: &str, generated: &str| {
        assert!(committed == generated, "docs/{file} is not current: `make docs` generates it again");
    };
    current("scenario.md", include_str!("../../../docs/scenario.md"), &reference::markdown());
    let schema = serde_json::to_string_pretty(&reference::schema()).unwrap() + "\n";
    current("scenario.schema.json", include_str!("../../../docs/scenario.schema.json"), &schema);
}

#[test]
fn the_example_in_the_reference_is_a_scenario() {
    let text = reference::markdown();
    let example =
        text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    scenario::load("example.toml", example, &[]).unwrap();
}

/// All entries of the reference.
fn entries() -> Vec<Entry> {
    reference::tables().into_iter().flat_map(|table| table.entries).collect()
}

/// Dotted paths of all keys in a TOML text, without indices.
fn keys(text: &str) -> BTreeSet<String> {
    fn collect(keys: &mut BTreeSet<String>, path: &str, value: &toml::Value) {
        match value {
            toml::Value::Table(table) => table.iter().for_each(|(key, value)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if !value.is_table() {
                    keys.insert(path.clone());
                }
                collect(keys, &path, value);
            }),
            toml::Value::Array(values) => values.iter().for_each(|value| collect(keys, path, value)),
            _ => {}
        }
    }
    let mut keys = BTreeSet::new();
    collect(&mut keys, "", &toml::Value::Table(text.parse().expect("TOML")));
    keys
}

fn load(text: &str) -> Result<Scenario, String> {
    scenario::load_with("test.toml", text, &[], &|_| Ok(b"1\n".to_vec())).map_err(|error| error.to_string())
}

/// Scenarios that together have every table.
const TABLES: [&str; 7] = [
    "[deployment]\n[[station]]\n",
    "[link.fixed]\n[[station]]\n",
    "[link.trace]\ndownlink = \"generated:driving\"\n[[station]]\n",
    "[link.hspa]\n[[station]]\n",
    "[link.lte_early]\n[[station]]\n",
    "[sidelink]\nmovement = \"waypoints\"\nwaypoints = [{ x_m = 1.0, y_m = 2.0 }]\n[[station]]\n",
    "[deployment]\n[handover]\n[[station]]\npath = [{ x_m = 1.0, y_m = 2.0 }]\n",
];

/// A deployment with handovers.
const DRIVE: &str = "[deployment]\nserved_sites = 7\n[handover]\n[[station]]\nPATH\n";

#[test]
fn every_key_of_a_scenario_has_an_entry() {
    let known: BTreeSet<String> = entries().into_iter().map(|entry| entry.path).collect();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let written = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let written: Vec<String> = written.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(written.len() >= 10, "scenarios are found");
    let resolved = TABLES.iter().map(|text| load(text).unwrap().to_toml());
    for text in resolved.chain(written) {
        for key in keys(&text) {
            let tables = ["station", "station.path", "sidelink.waypoints"];
            assert!(known.contains(&key) || tables.contains(&key.as_str()), "{key} has no entry");
        }
    }
}

/// A value of the key: its default, a value that the schema allows, or for quantities one from the list.
fn example(entry: &Entry) -> String {
    let text = match (&entry.default, &entry.values[..]) {
        (Default::Value(value), _) => return value.clone(),
        (_, [(word, _), ..]) => word.clone(),
        _ => match entry.kind.as_str() {
            "boolean" => return "true".into(),
            "whole number" if entry.path == "sidelink.subchannel" => return "10".into(),
            "whole number" => return "1".into(),
            "number" if entry.path.ends_with("_dbm") => return "30.0".into(),
            "number" if entry.path.ends_with("_share") => return "0.5".into(),
            "number" => return "3.5".into(),
            "duration" if entry.path == "cell.decode_delay" => "1 ms".into(),
            "duration" if entry.path.ends_with(".pacing_phase") => "1 ms".into(),
            "duration" if entry.path.ends_with(".radio_lead") => "1 ms".into(),
            "duration" if entry.path.ends_with(".sr_prohibit_timer") => "8 ms".into(),
            "duration" => "50 ms".into(),
            "size" if entry.path == "accelerator.memory" => "1 MiB".into(),
            "size" => "2000 B".into(),
            "bit rate" => "5 Mb/s".into(),
            "frequency" if entry.path == "cell.frequency" => "3.75 GHz".into(),
            "frequency" if entry.path == "cell.subcarrier_spacing" => "15 kHz".into(),
            "frequency" => "5 MHz".into(),
            "ratio in decibels" => "10 dB".into(),
            "string" if entry.path == "station.name" => "BBR".into(),
            "string" => "generated:driving".into(),
            "string, a table or an array of two" => "DDDSU".into(),
            "array of whole numbers" => return "[4]".into(),
            kind => panic!("{}: {kind} has no example", entry.path),
        },
    };
    format!("\"{text}\"")
}

/// Cells for the keys that a cell of LTE FDD must leave out.
const CELLS: [&str; 3] = [
    "[cell]\nrat = \"nr\"\nfrequency = \"3.75 GHz\"\nbandwidth = \"20 MHz\"\n[[station]]\n",
    "[cell]\nrat = \"nr\"\nfrequency = \"3.75 GHz\"\nbandwidth = \"20 MHz\"\npattern = \"DDDSU\"\n[[station]]\n",
    "[cell]\nduplex = \"tdd\"\ntdd_configuration = 1\n[[station]]\n",
];

/// A cell with the optional table of configured grants.
const CELL_WITH_GRANT: &str = "[cell]\nrat = \"nr\"\nfrequency = \"3.75 GHz\"\nbandwidth = \"20 MHz\"\n\
     [cell.nr.configured_grant]\n[[station]]\n";

#[test]
fn the_loader_accepts_every_entry() {
    const HOP: &str = "[core]\nhops = [{ rate = \"1 Gb/s\", delay = \"1 ms\" }]\n";
    let managed_hop = HOP.replace(" }", ", queue_discipline = \"codel\", codel = {} }");
    for entry in entries() {
        let value = example(&entry);
        let base = TABLES.iter().find(|text| entry.path.starts_with(text[1..].split(']').next().unwrap()));
        let base = match &entry.path {
            path if path.starts_with("core.hops.codel.") => format!("{managed_hop}[[station]]\n"),
            path if path.starts_with("core.hops.police.") => {
                let limit = match path.rsplit('.').next().unwrap() {
                    "cir" | "drop_share" | "acks_per_rtt" => "",
                    "cbs" => "cir = \"1 Mb/s\"",
                    _ => "drop_share = 0.5",
                };
                HOP.replace(" }", &format!(", police = {{ {limit} }} }}")) + "[[station]]\n"
            }
            path if path.starts_with("core.hops.") => format!("{HOP}[[station]]\n"),
            path if path.starts_with("link.codel.") => {
                format!("[link]\nqueue_discipline = \"codel\"\n[link.codel]\n{}", TABLES[1])
            }
            path if path.starts_with("cell.proactive_grant.") => {
                "[cell.proactive_grant]\n[[station]]\n".to_owned()
            }
            path if path.starts_with("handover.") => DRIVE.replace("PATH\n", ""),
            path if path == "station.path_returns" || path.starts_with("station.path.") => {
                DRIVE.replace("PATH", "path = [{ x_m = 1.0, y_m = 2.0 }]")
            }
            path if path.starts_with("station.transfers.") => {
                "[[station]]\ntransfers = [{ start = \"1 s\", file = \"20 kB\", chunk = \"1 kB\", \
                 chunk_interval = \"1 s\" }]\n"
                    .to_owned()
            }
            path if ["sidelink.subchannel", "sidelink.psfch_period"].contains(&path.as_str()) => {
                CELLS[0].replace("[[station]]", "[sidelink]\n[[station]]")
            }
            path if ["sidelink.far_distance_m", "sidelink.speed_mps"].contains(&path.as_str()) => {
                "[sidelink]\nenb_distance_m = 100.0\ndistance_m = 20.0\n[[station]]\n".to_owned()
            }
            path if path == "station.peer"
                || path.starts_with("sidelink.") && !path.starts_with("sidelink.waypoints.") =>
            {
                "[sidelink]\n[[station]]\n".to_owned()
            }
            path if path == "link.trace.grant_delay" => {
                TABLES[2].replace("[[station]]", "sr_period = \"10 ms\"\n[[station]]")
            }
            path if base.is_none() && path.starts_with("link.") => TABLES[1].to_owned(),
            _ => base.map_or("[[station]]\n", |text| *text).to_owned(),
        };
        let bases = match &entry.path {
            path if path.starts_with("cell.nr.configured_grant.") => vec![CELL_WITH_GRANT],
            path if path.starts_with("cell.nr.") => CELLS.to_vec(),
            path if path.starts_with("cell.") => [&[base.as_str()], &CELLS[..]].concat(),
            _ => vec![base.as_str()],
        };
        let load =
            |base, set: &[String]| scenario::load_with("test.toml", base, set, &|_| Ok(b"1\n".to_vec()));
        let needed = reference::acts_with(&entry.path.replace("station.tcp.", "tcp."));
        let set: Vec<String> =
            needed.clone().into_iter().chain([format!("{}={value}", entry.path)]).collect();
        let loaded: Vec<_> = bases.into_iter().map(|base| (base, load(base, &set))).collect();
        let accepted = loaded.iter().find_map(|(base, loaded)| Some((*base, loaded.as_ref().ok()?)));
        let (base, with_key) = accepted.unwrap_or_else(|| panic!("{} = {value}: {loaded:?}", entry.path));
        if matches!(entry.default, Default::Value(_)) {
            let without = load(base, needed.as_slice()).unwrap();
            assert_eq!(*with_key, without, "{} = {value} is not the default", entry.path);
        }
        assert!(!entry.meaning.is_empty() && entry.meaning.ends_with('.'), "{}: no meaning", entry.path);
    }
}

#[test]
fn the_schema_has_every_entry_with_its_description() {
    let schema = reference::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for entry in entries() {
        let mut at = &schema;
        for part in entry.path.split('.') {
            let table = if at["items"].is_object() { &at["items"] } else { at };
            at = &table["properties"][part];
        }
        let description = at["description"].as_str().unwrap_or_else(|| panic!("{} is missing", entry.path));
        assert!(description.starts_with(&entry.meaning), "{}", entry.path);
        assert!(!entry.kind.contains("number") || at["type"].is_string(), "{}", entry.path);
    }
    let left: Vec<&String> = schema.as_object().unwrap().keys().filter(|key| key.starts_with("x-")).collect();
    assert_eq!(
        (left, &schema["properties"]["link"]["oneOf"][3]["required"][0]),
        (vec![], &Value::from("lte_early"))
    );
}
