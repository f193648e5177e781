//! The reasons to keep an ACK belong to the rules of docs/ack-filter.md. Rules, hazards and invariants of the
//! documents name their tests by comments `// keeps:` at the tests (scripts/draw/draw_tables.py).

use paceline_pep::KeepReason;

/// The doc comment of each reason names its rules.
#[test]
fn every_reason_to_keep_an_ack_belongs_to_a_rule() {
    let source = include_str!("../src/ack_filter/stats.rs");
    for reason in KeepReason::ALL {
        let text = reason.name().trim_start_matches("kept-");
        let before = source.split(&format!("=> \"{text}\"")).next().expect("a part");
        let comment = before.rsplit("///").next().expect("a part");
        assert!(comment.contains("(rule"), "{text}: {comment}");
    }
}
