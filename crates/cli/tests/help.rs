//! Help of every command, completions, manual pages, and `doctor`.

use crate::common::{TestDir, parse_json};
use insta::assert_snapshot;

/// The help of a command and of those below it.
fn help(dir: &TestDir, command: &[&str], all: &mut String) {
    let line = [&["paceline"], command, &["--help"]].concat().join(" ");
    let output = dir.shell(&format!("COLUMNS=100 {}", line.replacen("paceline", "$PACELINE", 1)));
    assert_eq!(output.code, 0, "{line}: {output:?}");
    let text = output.stdout;
    *all += &format!("$ {line}\n{text}\n");
    let commands = text.split("\nCommands:\n").nth(1).unwrap_or_default();
    // Names are indented by two spaces, further lines of their descriptions by more.
    let commands = commands.lines().take_while(|line| !line.is_empty());
    for line in commands.filter(|line| !line.starts_with("   ")) {
        match line.split_whitespace().next() {
            Some("help") | None => {}
            Some(name) => help(dir, &[command, &[name]].concat(), all),
        }
    }
}

#[test]
fn every_command_has_a_help() {
    let mut all = String::new();
    help(&TestDir::new(), &[], &mut all);
    assert_snapshot!(all);
}

#[test]
fn completions_name_the_commands() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = dir.paceline_ok(&["completions", shell]);
        assert!(
            text.contains("paceline") && text.contains("sweep") && text.contains("pcap-limit"),
            "{shell}"
        );
    }
    let bash = dir.shell("$PACELINE completions bash > c && bash -n c");
    assert_eq!(bash.code, 0, "{bash:?}");
    assert_eq!(dir.paceline(&["completions", "tcsh"]).code, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = TestDir::new();
    let output = dir.paceline(&["man", "pages"]);
    assert!(output.code == 0 && output.stderr.ends_with("pages in pages\n"), "{output:?}");
    let page = dir.read("pages/paceline-run.1");
    assert!(page.contains("pcap") && page.contains(".TH paceline-run 1"), "{page}");
    for name in ["paceline", "paceline-gateway-status", "paceline-trace-info", "paceline-man"] {
        assert!(dir.join(&format!("pages/{name}.1")).is_file(), "{name}");
    }
    assert!(!dir.join("pages/paceline-receive.1").exists());
    assert_eq!(dir.paceline(&["man", "good.toml"]).code, 2);
}

#[test]
fn doctor_prints_json() {
    let json = parse_json(&TestDir::new().paceline_ok(&["doctor", "--json"]));
    assert!(json["cores"].as_u64().unwrap() >= 1);
    let names: Vec<_> =
        json["features"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"emulate"), "{names:?}");
}
