//! The command lines of README.md and docs/commands.md work in the order in which they are given.
//!
//! Simulations are shortened, as docs/commands.md says. Emulations run where the host allows them. Of
//! commands that need interfaces of their own, and of those that take minutes, only the options are checked.

use crate::common::emulation::EmulationHost;
use crate::common::{PACELINE, TestDir};
use std::fmt::Write;

const README: &str = include_str!("../../../README.md");
const COMMANDS: &str = include_str!("../../../docs/commands.md");

/// Commands whose options alone are checked: they take minutes, or need interfaces, a terminal or a gateway.
const OPTIONS_ONLY: [&str; 7] =
    ["reproduce accelerator", "reproduce tdd-pacing", "parity", "gateway", "police", "top", "trace survey"];
/// Appended to simulations.
const SHORT: &str = "--set run.duration=60ms --set run.warmup=20ms";

/// The same for a capture, which has packets then.
const SHORT_CAPTURE: &str = "--set run.duration=60ms --set run.warmup=20ms --set station.0.start_spread=0s";

/// The command lines of a document, without comments: code between backquotes, and indented lines.
fn command_lines(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut indented = String::new();
    let mut prose = String::new();
    let finish = |prose: &mut String, found: &mut Vec<String>| {
        let spans = prose.split('`').skip(1).step_by(2);
        found.extend(spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")));
        prose.clear();
    };
    for line in document.lines() {
        if line.starts_with("    ") {
            finish(&mut prose, &mut found);
            let code = line.split(" # ").next().unwrap_or(line).trim();
            indented += code.trim_end_matches('\\');
            if !code.ends_with('\\') {
                found.push(std::mem::take(&mut indented));
            }
        } else if !line.trim_start().starts_with("```") {
            prose += &format!("{line}\n");
        }
    }
    finish(&mut prose, &mut found);
    for line in &mut found {
        *line = line.replace("$(command -v paceline)", "paceline");
    }
    found.retain(|line| {
        let mut words = line.trim_start_matches("sudo ").split(' ');
        words.next() == Some("paceline") && words.next().is_some_and(|word| word != "help")
    });
    found
}

/// The scenario that the README shows as `my.toml`.
fn scenario() -> String {
    let text = README.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    text.expect("the README shows a scenario").lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", line.trim());
        text
    })
}

/// A command as the tests run it.
fn shortened(line: &str) -> String {
    let line = line.trim_start_matches("sudo ");
    let command = line.strip_prefix("paceline ").unwrap_or(line);
    let more = if OPTIONS_ONLY.iter().any(|only| command.starts_with(only)) {
        "--help"
    } else if command.contains("--pcap") {
        SHORT_CAPTURE
    } else if ["run ", "sweep ", "reproduce ack-filter"].iter().any(|start| command.starts_with(start)) {
        SHORT
    } else {
        ""
    };
    match command.split_once(" > ") {
        Some((command, file)) => format!("\"$PACELINE\" {command} {more} > {file}"),
        None => format!("\"$PACELINE\" {command} {more}"),
    }
}

fn work_in_order(document: &str, least: usize) {
    let dir = TestDir::new();
    dir.write("my.toml", scenario());
    let lines = command_lines(document);
    assert!(lines.len() >= least, "{lines:?}");
    for line in lines.iter().filter(|line| !line.contains("paceline emulate")) {
        let output = dir.shell(&shortened(line));
        assert_eq!(output.code, 0, "{line}: {output:?}");
    }
}

#[test]
fn command_lines_of_the_readme_work() {
    work_in_order(README, 10);
}

#[test]
fn command_lines_of_the_list_of_commands_work() {
    work_in_order(COMMANDS, 20);
}

#[test]
fn emulations_in_the_documents_work() {
    let lines = [command_lines(README), command_lines(COMMANDS)].concat();
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("my.toml", scenario());
    host.dir.write("file", "x".repeat(20_000));
    let _server = host.serve_files();
    let emulations: Vec<&String> = lines.iter().filter(|line| line.contains("paceline emulate")).collect();
    assert!(emulations.len() >= 4, "{emulations:?}");
    for line in emulations {
        let output = host.run(&["sh", "-c", &shortened(line).replace("$PACELINE", PACELINE)]);
        assert_eq!(output.code, 0, "{line}: {output:?}");
    }
}
