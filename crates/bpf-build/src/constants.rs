//! Constants of the algorithms, read from the Rust files that define them, as a header for the kernel
//! programs.

use std::fmt::Write;

/// A Rust file with constants.
pub struct Source {
    /// The file in the folder of all crates.
    pub file: &'static str,
    /// The module in the file; empty for the file's own constants.
    pub module: &'static str,
    /// The beginning of the names in C.
    pub prefix: &'static str,
}

/// The definitions of the integer constants of all sources; panics where a source has none.
pub fn header(sources: &[Source]) -> String {
    let mut text = String::new();
    for Source { file, module, prefix } in sources {
        let path = format!("../{file}");
        println!("cargo:rerun-if-changed={path}");
        let rust = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found = constants(&rust, module);
        assert!(!found.is_empty(), "{path}: no constants in module `{module}`");
        for (name, kind, value) in found {
            let _ = writeln!(text, "#define {prefix}{name} {}", expression(kind, value));
        }
    }
    text
}

/// Name, type and value of each constant of an unsigned type. Constants of functions and of other modules are
/// indented deeper.
fn constants<'a>(rust: &'a str, module: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let (mut inside, indent) = ("", if module.is_empty() { "" } else { "    " });
    let mut found = Vec::new();
    for line in rust.lines() {
        let declared = line.trim_start_matches("pub ").trim_start_matches("pub(super) ");
        if let Some(name) = declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            inside = name;
        } else if line == "}" {
            inside = "";
        }
        let own = line.strip_prefix(indent).unwrap_or_default();
        let declared = own.trim_start_matches("pub ").trim_start_matches("pub(super) ");
        let Some(declaration) = declared.strip_prefix("const ").filter(|_| inside == module) else {
            continue;
        };
        let parts =
            declaration.split_once(": ").and_then(|(name, rest)| Some((name, rest.split_once(" = ")?)));
        let Some((name, (kind, value))) = parts else { continue };
        let value = value.split(';').next().unwrap_or_default();
        if ["u8", "u16", "u32", "u64", "usize"].contains(&kind) {
            found.push((name, kind, value));
        }
    }
    found
}

/// A value of numbers, names and operators in C. `usize` stands for counts, which are `int` in C.
fn expression(kind: &str, value: &str) -> String {
    let suffix = match kind {
        "u64" => "ULL",
        "u32" => "U",
        _ => "",
    };
    let part = |part: &str| match part.replace('_', "") {
        digits if digits.parse::<u64>().is_ok() => digits + suffix,
        hex if hex.starts_with("0x") => hex + suffix,
        _ => part.to_owned(),
    };
    let plain = value.split(" as ").next().unwrap_or(value); // a conversion between integers
    format!("({})", plain.split(' ').map(part).collect::<Vec<_>>().join(" "))
}
