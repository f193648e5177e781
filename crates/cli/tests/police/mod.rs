//! `paceline police` at a router between two namespaces: real TCP, real tools, mistakes, crashes. Needs root.

mod clsact;
mod lifetime;

use crate::common::namespace::{Program, is_running, signal, wait_for};
use crate::common::testbed::Testbed;
use crate::common::{Output, PACELINE, parse_json};
use serde_json::Value;

/// A router between client and server without offloads, so that the ACKs are those of TCP.
pub(crate) fn router() -> Option<Testbed> {
    let testbed = Testbed::new(&["curl", "ethtool", "python3"])?;
    testbed.route();
    for (namespace, device) in [
        (&testbed.client, "cli0"),
        (&testbed.middlebox, "mob"),
        (&testbed.middlebox, "srv"),
        (&testbed.server, "srv0"),
    ] {
        testbed.shell(namespace, &format!("ethtool -K {device} tso off gso off gro off"));
    }
    Some(testbed)
}

pub(crate) fn police(testbed: &Testbed, args: &str) -> Output {
    testbed.try_shell(&testbed.middlebox, &format!("{PACELINE} police {args}"))
}

/// Starts `attach` and waits until it is there.
pub(crate) fn attach(testbed: &Testbed, args: &str) -> Program {
    let line = format!("{PACELINE} police attach mob --direction ingress {args}");
    let mut program = testbed.start(&testbed.middlebox, "police", &line);
    wait_for("the policer", || program.output_so_far().stderr.contains("attached").then_some(()));
    program
}

pub(crate) fn show(testbed: &Testbed) -> Value {
    let output = police(testbed, "show mob --json");
    assert_eq!(output.code, 0, "{output:?}");
    parse_json(&output.stdout)["policers"][0].clone()
}

#[test]
fn downloads_are_byte_exact_with_the_safe_policer() {
    let Some(testbed) = router() else { return };
    testbed.dir.write("file", crate::common::namespace::random_bytes(20_000_000));
    let _server = testbed.serve_files();
    let mut policer = attach(&testbed, "--drop-share 80%");
    testbed.download("file", "http://10.20.0.1:8000");
    testbed.download("file", "http://[fd20::1]:8000");
    let report = show(&testbed);
    let (acks, dropped) = (report["acks"].as_u64().unwrap(), report["dropped"].as_u64().unwrap());
    let kept: u64 = report["kept"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(dropped + kept, acks, "{report}");
    assert!(acks > 400, "{report}");
    assert_eq!(report["flows"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(police(&testbed, "detach mob").code, 0);
    assert_eq!(policer.finish().code, 0, "the command ends when its policer is detached");
}

#[test]
fn the_published_policer_drops_its_share_of_all_acks() {
    let Some(testbed) = router() else { return };
    testbed.dir.write("file", crate::common::namespace::random_bytes(20_000_000));
    let _server = testbed.serve_files();
    let _policer = attach(&testbed, "--drop-share 80% --mode published");
    // The last ACKs of windows are dropped too: the transfer may wait for timeouts, and is not awaited.
    testbed.try_shell(&testbed.client, "curl -sS -m 3 -o downloaded http://10.20.0.1:8000/file");
    let report = show(&testbed);
    let (acks, dropped) = (report["acks"].as_u64().unwrap(), report["dropped"].as_u64().unwrap());
    assert!(acks >= 5, "{report}");
    // The kernel moves the server between cores. Two ACKs that are judged on two cores at once may count as
    // one in the connection's share; `equivalence.rs` of the crate police checks every decision on one core.
    assert!(dropped.abs_diff(acks * 52_429 / 65_536) <= 2, "four of five, evenly spread: {report}");
}

#[test]
fn nothing_stays_behind_a_killed_policer_unless_it_is_pinned() {
    let Some(testbed) = router() else { return };
    let policer = attach(&testbed, "--cir 1mbit --cbs 5000");
    let second = police(&testbed, "attach mob --direction ingress --drop-share 0.5");
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.stderr.contains("a policer is attached already"), "{second:?}");
    signal(policer.id(), "KILL");
    wait_for("the end of the policer", || (!is_running(policer.id())).then_some(()));
    wait_for("the kernel to remove the links", || {
        police(&testbed, "show mob").stderr.contains("no policer is attached").then_some(())
    });
    let pinned = testbed.shell(
        &testbed.middlebox,
        &format!(
            "unshare -m sh -c 'mount -t bpf bpf /sys/fs/bpf && \
             {PACELINE} police attach mob --direction egress --acks-per-rtt 8 --pin && {PACELINE} police show mob && \
             {PACELINE} police detach mob && ls -A /sys/fs/bpf'"
        ),
    );
    assert!(
        pinned.stdout.contains("egress, mode safe: 8 ACKs per round trip of each connection"),
        "{pinned:?}"
    );
    assert_eq!(police(&testbed, "show mob").code, 1, "detached");
}

#[test]
fn a_file_attaches_its_policers_and_its_unit_is_valid() {
    let Some(testbed) = router() else { return };
    testbed.dir.write(
        "police.toml",
        "[[policer]]\ndevice = \"mob\"\ndirection = \"ingress\"\ndrop_share = 0.8\n\
         [[policer]]\ndevice = \"srv\"\ndirection = \"ingress\"\ncir = \"1mbit\"\nmode = \"published\"\n",
    );
    assert_eq!(police(&testbed, "apply police.toml --check").code, 0);
    let line = format!("{PACELINE} police apply police.toml");
    let mut program = testbed.start(&testbed.middlebox, "apply", &line);
    wait_for("the policers", || {
        program.output_so_far().stderr.contains("attached to mob, srv").then_some(())
    });
    let text = police(&testbed, "show srv").stdout;
    assert!(text.starts_with("ingress, mode published: 1"), "{text}");
    assert!(police(&testbed, "show mob").stdout.starts_with("ingress, mode safe: drops 80.0%"));
    program.signal("TERM");
    assert_eq!(program.finish().code, 0);
    assert_eq!(police(&testbed, "show mob").code, 1, "nothing is left");
    testbed.dir.write("bad.toml", "[[policer]]\ndevice = \"mob\"\ndirection = \"ingress\"\n");
    let both = "[[policer]]\ndevice = \"mob\"\ndrop_share = \"80%\"\ndirection = ";
    testbed.dir.write("both.toml", format!("{both}\"ingress\"\n{both}\"egress\"\n"));
    testbed.dir.write(
        "burst.toml",
        format!("{both}\"ingress\"\n").replace("drop_share", "cbs = 5\ncir").replace("80%", "1mbit"),
    );
    for (file, part) in [
        ("bad.toml", "bad.toml: policer.0.cir: allowed: exactly one"),
        ("both.toml --check", "both.toml: policer.1.device = mob: policer.0 has it"),
        ("burst.toml --check", "burst.toml: policer.0.cbs: 5 bytes: a burst is 52 bytes"),
    ] {
        let refused = police(&testbed, &format!("apply {file}"));
        assert!(refused.code == 2 && refused.stderr.contains(part), "{refused:?}");
    }
    if !crate::common::has_program("systemd-analyze") {
        return;
    }
    let unit = include_str!("../../../../packaging/paceline-police.service");
    testbed.dir.write("paceline-police.service", unit.replace("/usr/bin/paceline", PACELINE));
    let verified = testbed.try_shell(&testbed.client, "systemd-analyze verify ./paceline-police.service");
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn an_estimate_drops_nothing_and_agrees_with_the_capture() {
    let Some(testbed) = router() else { return };
    testbed.dir.write("file", crate::common::namespace::random_bytes(20_000_000));
    let _server = testbed.serve_files();
    let estimate =
        "estimate mob --direction ingress --drop-share 80% --seconds 60 --ns-per-packet 2000 --json";
    let mut counting =
        testbed.start(&testbed.middlebox, "estimate", &format!("{PACELINE} police {estimate}"));
    wait_for("the estimate", || counting.output_so_far().stderr.contains("counting at mob").then_some(()));
    let mut capture = testbed.start(
        &testbed.middlebox,
        "capture",
        "tshark -q -i mob -s 120 -w estimated.pcapng tcp or icmp",
    );
    // tshark names the device some 100 ms before it captures: an echo in the file shows that it does.
    wait_for("the capture", || {
        testbed.shell(&testbed.client, "ping -q -c 1 -s 32 -p 7061636c 10.20.0.1");
        std::fs::read(testbed.dir.join("estimated.pcapng"))
            .is_ok_and(|bytes| bytes.windows(16).any(|part| part == b"paclpaclpaclpacl"))
            .then_some(())
    });
    testbed.download("file", "http://10.20.0.1:8000");
    capture.signal("INT");
    capture.finish();
    counting.signal("INT");
    let live = parse_json(&counting.finish().stdout);
    assert_eq!(police(&testbed, "show mob").code, 1, "nothing is left");
    let captured = police(&testbed, "estimate estimated.pcapng --drop-share 80% --ns-per-packet 2000 --json");
    assert_eq!(captured.code, 0, "{captured:?}");
    let captured = parse_json(&captured.stdout);
    let figure = |of: &Value, key: &str| of[key].as_f64().unwrap();
    for estimate in [&live, &captured] {
        let kept: u64 =
            estimate["would_keep"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(figure(estimate, "would_drop") + kept as f64, figure(estimate, "acks"), "{estimate}");
        let expected = figure(estimate, "would_drop_per_s") * 2000.0 / 1e9;
        assert!((figure(estimate, "cpu_share_saved") - expected).abs() < 1e-9, "{estimate}");
    }
    // Times of the capture and of the program differ by microseconds.
    let (acks, drops) = (figure(&live, "acks"), figure(&live, "would_drop"));
    assert!(acks > 200.0, "{live}");
    assert!((figure(&captured, "acks") - acks).abs() <= 0.05 * acks, "{live} {captured}");
    assert!((figure(&captured, "would_drop") - drops).abs() <= 0.05 * acks, "{live} {captured}");
}

#[test]
fn a_capture_of_two_interfaces_counts_one() {
    if !crate::common::namespace::have_programs(&["tshark"]) {
        return;
    }
    let dir = crate::common::TestDir::new();
    // Each packet is in this capture twice: at the servers and at the cell.
    dir.paceline_ok(&["run", "single-station", "--set", "run.duration=8 s", "--pcap", "--out", "r"]);
    let count = |file: &str| {
        parse_json(&dir.paceline_ok(&["police", "estimate", file, "--drop-share", "0.8", "--json"]))
    };
    let both = count("r/seed-1.pcapng");
    let name = both["interface"].as_str().expect("one of two");
    let filter =
        format!("tshark -q -r r/seed-1.pcapng -Y 'frame.interface_name == \"{name}\"' -w one.pcapng");
    let status = std::process::Command::new("sh").args(["-c", &filter]).current_dir(dir.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
    let one = count("one.pcapng");
    for key in ["packets", "acks", "would_drop", "would_keep"] {
        assert_eq!(both[key], one[key], "{key}");
    }
    assert!(both["acks"].as_u64().unwrap() > 1000, "{both}");
    let text = dir.paceline_ok(&["police", "estimate", "r/seed-1.pcapng", "--drop-share", "0.8"]);
    assert!(text.contains(&format!("counted: {name} alone, of several interfaces")), "{text}");
}

#[test]
fn output_without_an_end_ends_with_its_reader() {
    let Some(testbed) = router() else { return };
    let _policer = attach(&testbed, "--drop-share 80%");
    for format in ["", "--json"] {
        let line = format!("{PACELINE} police show mob --watch {format} | head -1; echo ${{PIPESTATUS[0]}}");
        let output = testbed.shell(&testbed.middlebox, &format!("timeout 20 bash -c '{line}'"));
        assert_eq!((output.stdout.lines().last(), output.stderr.as_str()), (Some("0"), ""), "{output:?}");
    }
}

#[test]
fn all_networks_of_a_version_exempt_that_version_alone() {
    let Some(testbed) = router() else { return };
    testbed.dir.write("file", crate::common::namespace::random_bytes(2_000_000));
    let _server = testbed.serve_files();
    for (network, exempt, other) in
        [("::/0", "[fd20::1]", "10.20.0.1"), ("0.0.0.0/0", "10.20.0.1", "[fd20::1]")]
    {
        let policer = attach(&testbed, &format!("--drop-share 80% --exempt {network}"));
        testbed.download("file", &format!("http://{exempt}:8000"));
        let exempted = show(&testbed)["kept"]["exempt"].as_u64().unwrap();
        assert!(exempted > 10, "{network}: {exempted}");
        testbed.download("file", &format!("http://{other}:8000"));
        let report = show(&testbed);
        assert_eq!(report["kept"]["exempt"].as_u64(), Some(exempted), "{network}: {report}");
        drop(policer);
        wait_for("its end", || (police(&testbed, "show mob").code == 1).then_some(()));
    }
}

#[test]
fn a_simulated_capture_has_an_estimate() {
    let dir = crate::common::TestDir::new();
    dir.paceline_ok(&["run", "single-station", "--set", "run.duration=8 s", "--pcap", "--out", "r"]);
    let estimate = |more: &[&str]| {
        dir.paceline(&[&["police", "estimate", "r/seed-1.pcapng", "--drop-share", "0.8"], more].concat())
    };
    let safe = estimate(&[]);
    assert!(safe.code == 0 && safe.stdout.contains("would drop"), "{safe:?}");
    let blind = parse_json(&estimate(&["--mode", "published", "--json"]).stdout);
    let share = blind["share_of_acks"].as_f64().unwrap();
    assert!((share - 0.8).abs() < 0.01, "four of five, evenly spread: {blind}");
    for (more, part) in [
        (&["--direction", "ingress"][..], "is a capture: --direction is for devices"),
        (&["--receivers", "x"], "invalid IP address"),
    ] {
        let refused = estimate(more);
        assert!(refused.code == 2 && refused.stderr.contains(part), "{more:?}: {refused:?}");
    }
}

#[test]
fn mistakes_are_one_clear_line() {
    let Some(testbed) = router() else { return };
    let attach = "attach mob --direction ingress";
    let many: String = (0..1025).map(|at| format!("--exempt 10.{}.{}.0/24 ", at / 256, at % 256)).collect();
    for (args, code, part) in [
        ("attach nodev --direction ingress --drop-share 80%", 2, "nodev: no such network device"),
        ("detach mob", 1, "mob: no policer is attached"),
        (&format!("{attach} --cir 1mbit --cbs 10"), 2, "cbs: 10 bytes: a burst is 52 bytes"),
        (&format!("{attach} --acks-per-rtt 8 --aggregate"), 2, "acks-per-rtt: needs mode safe"),
        (&format!("{attach} --drop-share 120%"), 2, "a share is 0 to 1"),
        (&format!("{attach} --drop-share 80% --cbs 5000"), 2, "cannot be used with"),
        (&format!("{attach} --acks-per-rtt 8 --cbs 5000"), 2, "cannot be used with"),
        (&format!("{attach} --drop-share 80% {many}"), 2, "exempt: 1025 networks; allowed: at most 1024"),
        (&format!("{attach} --cir 5parsec"), 2, "unit \"parsec\""),
        (attach, 2, "required"),
    ] {
        let output = police(&testbed, args);
        assert_eq!(output.code, code, "{args}: {output:?}");
        assert!(output.stderr.contains(part), "{args}: {output:?}");
    }
}
