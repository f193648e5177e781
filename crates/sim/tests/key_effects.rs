//! No key is accepted that has no effect. In a scenario of each form, each key of the reference is set to
//! other values: all of them are refused, or one of them changes the results. The exceptions act on events
//! that are missing in this second.
//!
//! `cargo test -p paceline-sim --test main key_effects -- --nocapture` prints the keys by form and verdict.

use paceline_sim::scenario::reference::{self, Default, Entry};
use paceline_sim::{Scenario, scenario, simulate};
use std::collections::{BTreeMap, BTreeSet};

/// Two stations that load a cell, a link or a direct link.
const RUN: &str = "[run]\nduration = \"1 s\"\nwarmup = \"100 ms\"\n";
const NR: &str = "[cell]\nrat = \"nr\"\nbandwidth = \"15 MHz\"\n";
const LINK: &str =
    "[link]\nqueue = \"100 kB\"\n[link.fixed]\ndownlink_rate = \"10 Mb/s\"\nuplink_rate = \"2 Mb/s\"\n";

/// Keys by the reason for which they may leave these runs as they are.
const EXCEPTIONS: [(&str, &str); 8] = [
    ("no part of the results that are compared", "run.seed run.sample station.name"),
    (
        "it acts on lost packets, timeouts, reordering or marks",
        "tcp.loss_recovery tcp.newreno_timer tcp.newreno_careful tcp.prr tcp.tail_loss_probe tcp.frto tcp.undo \
         tcp.limited_transmit tcp.rto_style tcp.min_rto tcp.retries tcp.syn_retries tcp.syn_ack_retries \
         tcp.syn_linear_timeouts tcp.ecn tcp.sack tcp.dsack tcp.sack_compression tcp.beyond_window \
         tcp.fast_convergence cell.nr.t_reassembly cell.nr.pdcp_t_reordering cell.t_reordering cell.max_harq_tx \
         cell.t_poll_retransmit cell.poll_pdu cell.poll_byte cell.max_retx_threshold cell.t_status_prohibit \
         link.ecn_threshold core.hops.ecn_threshold",
    ),
    (
        "it acts on small segments, idle connections, slow readers or one family of congestion controls",
        "tcp.idle_restart tcp.nagle tcp.keepalive tcp.autotune tcp.delayed_ack_timeout tcp.delayed_ack_adaptive \
         tcp.abc tcp.delay_signal tcp.pacing_pattern tcp.pacing_phase",
    ),
    (
        "it acts at random access, failures of the link and changes of the cell or the path",
        "cell.cell_selection cell.reestablishment_signalling cell.dsr_trans_max cell.sr_prohibit \
         cell.connection_setup cell.prach_config_index cell.preamble_trans_max cell.ra_response_window \
         cell.ra_responses cell.backoff_indicator cell.contention_resolution_timer cell.max_harq_msg3_tx \
         cell.retx_bsr_timer link.fixed.interruption sidelink.fate sidelink.interrupt_harq sidelink.rac_timeout sidelink.max_harq_tx",
    ),
    (
        "it acts with fading, with more load, at another SINR, or where the hop is the narrowest part",
        "core.hops.queue core.hops.queue_discipline core.hops.police.cir core.hops.police.drop_share \
         core.hops.police.acks_per_rtt cell.cqi_period cell.cqi_delay cell.downlink_grants \
         cell.uplink_scheduler cell.uplink_buffer cell.uplink_64qam cell.pucch_prb cell.nr.uplink_layers \
         cell.nr.uplink_antennas cell.nr.capability cell.nr.min_k1 cell.nr.k1 sidelink.buffer \
         sidelink.cqi_margin_db sidelink.subchannel",
    ),
    (
        "it acts on the path through the base station, which these pairs do not take",
        "ack_filter.scheme sidelink.selection sidelink.trailing_bsr sidelink.enb_power_dbm cell.nr.mcs_table \
         cell.nr.pdcch_symbols cell.nr.ssb_beams cell.nr.ssb_period",
    ),
    ("it acts with several cells", "core.hops.per_cell"),
    ("the only value that these forms have besides is the default", "cell.duplex cell.frequency"),
];

/// Other values of a key: its words; multiples and neighbours of its default; usual quantities.
fn candidates(entry: &Entry) -> Vec<String> {
    if !entry.values.is_empty() {
        return entry.values.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    }
    if entry.kind == "boolean" {
        return vec!["true".into(), "false".into()];
    }
    let number = ["whole number", "number"].contains(&entry.kind.as_str());
    let quote = |text: String| if number { text } else { format!("\"{text}\"") };
    let mut values = Vec::new();
    if let Default::Value(value) = &entry.default {
        let value = value.trim_matches('"');
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(value.len());
        let (given, unit) = value.split_at(end);
        let given: f64 = given.parse().unwrap_or(1.0);
        let other = [
            0.1 * given,
            0.02 * given,
            0.5 * given,
            0.9 * given,
            1.1 * given,
            2.0 * given,
            10.0 * given,
            given - 1.0,
        ];
        let whole = |value: f64| if entry.kind == "whole number" { value.round() } else { value };
        values.extend(other.map(|value| quote(format!("{}{unit}", whole(value)))));
    }
    let usual: &[&str] = match entry.kind.as_str() {
        "whole number" | "number" => &["0", "1", "2", "3", "5", "10", "0.5"],
        kind if kind.starts_with("array") => return values,
        _ => &[
            "5 ms", "40 ms", "300 ms", "1 Mb/s", "20 Mb/s", "3000 B", "50 kB", "1 MB", "-3 dB", "3 dB",
            "12 dB", "3.5 GHz", "10 MHz", "0.5", "2",
        ],
    };
    values.extend(usual.iter().map(|value| quote((*value).to_owned())));
    values
}

fn results(scenario: &Scenario) -> String {
    let run = simulate(scenario, 1, None, &mut |_| ());
    format!("{:?} {:?} {:?}", run.totals, run.stations, run.flows)
}

/// The verdict on a key in a form: refused, an effect, or none.
fn verdict(entry: &Entry, text: &str, base: &Scenario, before: &str) -> &'static str {
    let path = entry.path.replace("station.", "station.0.").replace("core.hops.", "core.hops.0.");
    let mut accepted = 0;
    for value in candidates(entry) {
        let loaded = scenario::load("key.toml", text, &[format!("{path}={value}")]);
        let Some(changed) = loaded.ok().filter(|changed| changed != base) else { continue };
        if results(&changed) != before {
            return "effect";
        }
        accepted += 1;
        if accepted == 3 {
            break;
        }
    }
    if accepted > 0 { "none" } else { "refused" }
}

#[test]
fn every_accepted_key_has_an_effect() {
    let entries = reference::entries();
    // The keys of a group's own TCP are those of all, and the tables of other forms are these or refused.
    let entries: Vec<&Entry> =
        entries.iter().filter(|entry| !entry.path.starts_with("station.tcp.")).collect();
    let exceptions: BTreeSet<&str> = EXCEPTIONS.iter().flat_map(|(_, keys)| keys.split(' ')).collect();
    let station = "[[station]]\ncount = 2\n";
    for (form, text) in [
        ("LTE cell", String::new()),
        ("NR cell", NR.to_owned()),
        ("link", LINK.to_owned()),
        ("pairs", String::from("[sidelink]\n")),
        ("pairs in NR", format!("{NR}[sidelink]\n")),
    ] {
        let text = format!("{RUN}{text}{station}");
        let base = scenario::load("key.toml", &text, &[]).unwrap_or_else(|error| panic!("{form}: {error}"));
        let before = results(&base);
        let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in &entries {
            keys.entry(verdict(entry, &text, &base, &before)).or_default().push(&entry.path);
        }
        keys.iter().for_each(|(verdict, keys)| println!("{form}: {verdict}: {}", keys.join(" ")));
        let without: Vec<&&str> = keys["none"].iter().filter(|key| !exceptions.contains(**key)).collect();
        assert!(without.is_empty(), "{form}: accepted without an effect: {without:?}");
        assert!(keys["effect"].len() > 40 && keys["refused"].len() > 80, "{form}");
    }
}
