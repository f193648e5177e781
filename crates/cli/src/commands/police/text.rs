//! The counters of a policer as text and as JSON.

use paceline_linux::bpf::tcx::Hook;
use paceline_police::{FlowReport, Limit, Mode, Reason, Report};
use serde_json::{Value, json};
use std::fmt::Write;

/// One, as a share of ACKs. By definition: shares are in parts of 65,536.
const ONE: f64 = 65_536.0;

fn limit_text(report: &Report) -> String {
    let scope = if report.per_flow { "of each connection" } else { "of all connections" };
    match report.policy.limit {
        Limit::Rate { bytes_per_s, burst } => {
            format!("{} {scope}, burst {burst} bytes", crate::quantity::bits(8.0 * bytes_per_s as f64))
        }
        Limit::Share(share) => format!("drops {:.1}% {scope}", 100.0 * f64::from(share) / ONE),
        Limit::PerRtt(count) => format!("{count} ACKs per round trip {scope}"),
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Safe => "safe",
        Mode::Published => "published",
    }
}

fn direction_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Ingress => "ingress",
        Hook::Egress => "egress",
    }
}

/// A share in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The counters of a policer as text, with at most `shown` connections.
pub fn as_text(report: &Report, shown: usize) -> String {
    let (dropped, acks) = (report.dropped(), report.acks);
    let mut text = format!(
        "{}, mode {}: {}\n{} packets, {} of them pure ACKs; {} dropped ({:.1}%); {} data packets\n",
        direction_name(report.direction),
        mode_name(report.policy.mode),
        limit_text(report),
        report.packets,
        acks,
        dropped,
        percent(dropped, acks),
        report.data_packets
    );
    for (reason, count) in report.decisions.iter().filter(|(reason, _)| *reason != Reason::Dropped) {
        let _ = writeln!(text, "  kept {:<17} {count:>12}  {:>5.1}%", reason.name(), percent(*count, acks));
    }
    for flow in report.flows.iter().take(shown) {
        let _ = writeln!(
            text,
            "  {} > {}: {} ACKs, {} dropped ({:.1}%)",
            flow.receiver,
            flow.sender,
            flow.seen(),
            flow.dropped(),
            percent(flow.dropped(), flow.seen())
        );
    }
    if report.flows.len() > shown {
        let _ = writeln!(text, "  and {} more connections (--all)", report.flows.len() - shown);
    }
    text
}

/// ACKs that were kept, by reason.
pub fn kept(decisions: &[(Reason, u64)]) -> Value {
    let kept = decisions.iter().filter(|(reason, _)| *reason != Reason::Dropped);
    kept.map(|(reason, count)| (reason.name().to_owned(), json!(count))).collect()
}

/// The same as JSON.
pub fn as_json(report: &Report, shown: usize) -> Value {
    let flow = |flow: &FlowReport| {
        json!({
            "receiver": flow.receiver.to_string(), "sender": flow.sender.to_string(), "vlan": flow.vlan,
            "rtt_ms": flow.rtt_ns as f64 / 1e6, "acks": flow.seen(), "dropped": flow.dropped(),
            "kept": kept(&flow.acks),
        })
    };
    json!({
        "direction": direction_name(report.direction),
        "mode": mode_name(report.policy.mode),
        "limit": limit_text(report),
        "packets": report.packets,
        "data_packets": report.data_packets,
        "acks": report.acks,
        "dropped": report.dropped(),
        "kept": kept(&report.decisions),
        "connections": report.flows.len(),
        "flows": report.flows.iter().take(shown).map(flow).collect::<Value>(),
    })
}
