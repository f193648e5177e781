//! The runner of behaviour scripts: reports for wrong scripts and for endpoints that behave differently.

use crate::script::run_text;

const OPENED: &str = "established = 20ms\nsource = bulk\ninitial_window = 2\ntimestamps = off\n";

/// The report of a script that must fail.
fn report(lines: &str) -> String {
    run_text("a.script", &format!("{OPENED}{lines}")).expect_err("this script must fail")
}

#[test]
fn a_script_that_matches_the_behaviour_passes() {
    let lines =
        "+0 > A 1..2001/1000 ack 1\n+0 > nothing for 10ms\n+10ms < A 1 ack 2001\n+0 ? in_flight == 2\n";
    let all = format!("{OPENED}variant = newreno\n{lines}");
    // With two segments acknowledged, four more leave, which no line expects.
    assert!(run_text("a.script", &all).expect_err("unexpected").contains("in_flight is 4000B"));
    let lines = lines.replace("in_flight == 2", "in_flight == 4");
    let all = format!("{OPENED}variant = newreno\n{lines}+0 > A 2001..6001/1000 ack 1\n");
    run_text("a.script", &all).expect("this is what happens");
}

#[test]
fn an_unexpected_segment_fails_the_script_at_any_time() {
    for (lines, line) in [
        ("+0 > A 1..1001 ack 1\n", 5),                                // at the end
        ("+0 > A 1..1001 ack 1\n+5ms < A 1 ack 1\n", 6),              // before an arrival
        ("+0 > A 1..2001/1000 ack 1\n+300ms ? cwnd == 1\n", 6),       // before a check
        ("+0 > A 1..2001/1000 ack 1\n+0 > nothing for 300ms\n", 6),   // while all should be quiet
        ("+0 > A 1..2001/1000 ack 1\n+300ms > A 1..1001 ack 1\n", 6), // too early
        ("+0 > A 1..2001/1000 ack 1\n+100ms > A 1..1001 ack 1\n", 6), // not yet
    ] {
        let report = report(lines);
        assert!(report.starts_with(&format!("a.script:{line}: failed")), "{lines}{report}");
        assert!(report.contains("last packets:") && report.contains("> A 1..1001"), "{report}");
    }
}

#[test]
fn every_field_that_is_written_is_compared() {
    let first = "+0 > A 1..1001 ack 1 win 65535 nots noect\n+0 > A 1001..2001 ack 1\n";
    run_text("a.script", &format!("{OPENED}{first}")).expect("this is what happens");
    for (from, to) in [
        ("A 1..1001 ack 1", "PA 1..1001 ack 1"),
        ("1..1001 ack", "2..1002 ack"),
        ("1..1001 ack", "1..1000 ack"),
        ("ack 1 win", "ack 2 win"),
        ("65535", "65534"),
        ("nots", "ts *:*"),
        ("nots", "sack 5..6"),
        ("nots", "mss 1000"),
        ("nots", "wscale 1"),
        ("nots", "sackok"),
        ("noect", "ect0"),
    ] {
        let report = report(&first.replacen(from, to, 1));
        assert!(
            report.contains("expected") && report.contains("got       A 1..1001 ack 1 win 65535"),
            "{report}"
        );
    }
}

#[test]
fn a_line_without_sack_blocks_expects_none() {
    let header = "established = 20ms\ntimestamps = off\n";
    let lines = "+0 > A 1 ack 1\n+0 < A 1001..2001 ack 1\n+0 > A 1 ack 1\n";
    let report = run_text("a.script", &format!("{header}{lines}")).expect_err("a block is there");
    assert!(report.contains("got       A 1 ack 1 win 65535 sack 1001..2001"), "{report}");
}

#[test]
fn a_segment_must_leave_within_its_range_of_times() {
    let begin = "+0 > A 1..2001/1000 ack 1\n";
    for (time, holds) in [
        ("+220ms", true),
        ("+219ms..221ms", true),
        ("+~220ms", true),
        ("+~219ms", true),
        ("+~218ms", false),
        ("+221ms..300ms", false),
        ("+0..219ms", false),
        ("+0.22s", true),
    ] {
        let text = format!("{OPENED}{begin}{time} > A 1..1001 ack 1\n");
        assert_eq!(run_text("a.script", &text).is_ok(), holds, "{time}");
    }
}

#[test]
fn a_malformed_line_is_refused_with_number_and_reason() {
    for (line, reason) in [
        ("+5 > A 1 ack 1", "`5` is not a time"),
        ("+0 > X 1", "are not flags"),
        ("+0 > A 1", "`ack` is written exactly where"),
        ("+0 > S 1 ack 5", "`ack` is written exactly where"),
        ("+0 > A 5..5 ack 1", "empty range"),
        ("+0 > A 5/10 ack 1", "no range"),
        ("+0 > A 1 ack 1 colour blue", "`colour` is not a field"),
        ("+0 > A 1 ack 1 sack", "one to four blocks"),
        ("+0 > A 1 ack 1 ts 5", "not TSval:TSecr"),
        ("+0 > A 1 ack one", "not an acknowledgment number"),
        ("+0 > nothing", "> nothing for TIME"),
        ("+0..1ms < A 1 ack 1", "only a segment that leaves"),
        ("+3ms..1ms > A 1 ack 1", "ends before it begins"),
        ("+0 ? window == 1", "`window` is not a quantity"),
        ("+0 ? cwnd = 1", "not an operator"),
        ("+0 ? cwnd == many", "not a value of cwnd"),
        ("+0 ? state < closed", "compare it with == or !="),
        ("+0 ! A 1", "is not a call"),
        ("+0 ! write", "is not a call"),
        ("+0 ! read some", "is not a call"),
        ("+0 = A 1", "after the time comes <"),
        ("+0", "after the time comes <"),
        ("colour = blue", "`colour` is not a key"),
        ("variant = hubert", "is not a congestion control"),
        ("sack = yes", "neither on nor off"),
        ("source = file", "not a source"),
        ("nonsense", "KEY = VALUE"),
    ] {
        let report = run_text("b.script", &format!("# comment\n{line}\n")).expect_err(line);
        assert!(report.starts_with("b.script:2: ") && report.contains(reason), "{line}: {report}");
    }
    assert!(run_text("b.script", "# nothing\n").expect_err("empty").contains("nothing happens"));
    let late = run_text("b.script", "+0 ? cwnd == 10\nsack = off\n").expect_err("late");
    assert!(late.starts_with("b.script:2: ") && late.contains("every line begins with one"), "{late}");
}
