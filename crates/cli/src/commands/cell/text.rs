//! The facts of a cell as text.

use paceline_report::table::align;
use paceline_sim::cell_facts::{CellFacts, DirectionRate, SlotFacts, Span, Term};

/// All tables.
pub fn describe(name: &str, facts: &CellFacts) -> String {
    let parts = [heading(name, facts), slots(facts), overheads(facts), rates(facts), latencies(facts)];
    let latency = &facts.latency;
    let note = "uplink: the first PUSCH after a scheduling request.\n";
    let mut text = parts.join("\n") + "\n" + &terms("part of the idle latency", &latency.terms) + note;
    if !latency.path_terms.is_empty() {
        text += "\n";
        text += &terms("beside the cell", &latency.path_terms);
    }
    text
}

fn heading(name: &str, facts: &CellFacts) -> String {
    let CellFacts { rat, duplex, slot_ms, subcarrier_spacing_khz, period_ms, .. } = facts;
    let carrier = match facts.frequency_range {
        Some(range) => format!("{} {} {range}", rat.to_uppercase(), duplex.to_uppercase()),
        None => format!("{} {}", rat.to_uppercase(), duplex.to_uppercase()),
    };
    let (down, up) = (mhz(facts.bandwidth_mhz), mhz(facts.uplink_bandwidth_mhz));
    let (down_prb, up_prb) = (facts.downlink_prb, facts.uplink_prb);
    let bandwidth = if facts.pattern.is_some() {
        format!("{down}, {down_prb} PRBs")
    } else {
        format!("downlink {down}, {down_prb} PRBs, uplink {up}, {up_prb} PRBs")
    };
    let pattern = facts
        .pattern
        .as_ref()
        .map_or(String::new(), |pattern| format!(", pattern {pattern} of {period_ms} ms"));
    format!(
        "{name}: {carrier}, {bandwidth}, subcarriers of {subcarrier_spacing_khz} kHz, slots of {slot_ms} ms{pattern}\n"
    )
}

fn slots(facts: &CellFacts) -> String {
    let head =
        ["slot", "kind", "DL:guard:UL", "K1", "ACK in", "K2", "PUSCH in", "DL block bit", "UL block bit"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let period = facts.slots.len();
    let target = |from: usize, distance: u8| {
        if period == 1 {
            return format!("n+{distance}");
        }
        let at = from + usize::from(distance);
        match (at % period, at / period) {
            (slot, 0) => slot.to_string(),
            (slot, later) => format!("{slot}+{later}P"),
        }
    };
    lines.extend(facts.slots.iter().map(|slot| {
        let SlotFacts { downlink_symbols, guard_symbols, uplink_symbols, .. } = slot;
        let k2: Vec<String> = slot.k2.iter().map(u8::to_string).collect();
        let pusch: Vec<String> = slot.k2.iter().map(|k2| target(slot.slot, *k2)).collect();
        vec![
            slot.slot.to_string(),
            slot.kind.clone(),
            format!("{downlink_symbols}:{guard_symbols}:{uplink_symbols}"),
            slot.k1.map_or_else(String::new, |k1| k1.to_string()),
            slot.k1.map_or_else(String::new, |k1| target(slot.slot, k1)),
            k2.join(" "),
            pusch.join(" "),
            bits(slot.downlink_block_bits),
            bits(slot.uplink_block_bits),
        ]
    }));
    let periods = if period == 1 { "" } else { " +P: in a later period." };
    let note =
        format!("K1: slots from a PDSCH to its HARQ-ACK. K2: slots from a grant to its PUSCH.{periods}");
    format!("{}{note}\n", align(&lines, 2))
}

fn overheads(facts: &CellFacts) -> String {
    let mut lines = vec![["overhead", "amount", "%"].map(str::to_owned).to_vec()];
    lines.extend(facts.overheads.iter().map(|overhead| {
        let percent = overhead.percent.map_or_else(String::new, |percent| format!("{percent:.2}"));
        vec![overhead.name.to_owned(), overhead.amount.clone(), percent]
    }));
    align(&lines, 2)
}

fn rates(facts: &CellFacts) -> String {
    let head = ["peak rate", "layers", "modulation", "38.306 Mb/s", "in the pattern", "scheduler Mb/s"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let row = |name: &str, rate: &DirectionRate| {
        let mbps = |mbps: Option<f64>| mbps.map_or_else(String::new, |mbps| format!("{mbps:.1}"));
        let modulation = if rate.modulation_bits == 2 {
            String::from("QPSK")
        } else {
            format!("{}QAM", 1u32 << rate.modulation_bits)
        };
        vec![
            name.to_owned(),
            rate.layers.to_string(),
            modulation,
            mbps(rate.formula_mbps),
            mbps(rate.formula_of_pattern_mbps),
            mbps(Some(rate.ceiling_mbps)),
        ]
    };
    lines.push(row("downlink", &facts.rates.downlink));
    lines.push(row("uplink", &facts.rates.uplink));
    align(&lines, 1) + "scheduler: the largest transport block in every slot of the direction.\n"
}

fn latencies(facts: &CellFacts) -> String {
    let latency = &facts.latency;
    let mut lines = vec![["idle, one way", "mean ms", "max ms"].map(str::to_owned).to_vec()];
    let mut add = |name: String, span: &Span| {
        lines.push(vec![name, format!("{:.2}", span.mean_ms), format!("{:.2}", span.max_ms)]);
    };
    add("downlink".into(), &latency.downlink);
    if let Some(span) = &latency.uplink_with_configured_grant {
        add("uplink with a configured grant".into(), span);
    }
    let sr = latency.sr_period_ms;
    add(format!("uplink by a scheduling request every {sr} ms: first PUSCH"), &latency.uplink_first_pusch);
    add("uplink by a scheduling request: data after its buffer status report".into(), &latency.uplink_data);
    add("HARQ round trip of the downlink".into(), &latency.downlink_harq);
    add("HARQ round trip of the uplink".into(), &latency.uplink_harq);
    align(&lines, 1)
}

fn terms(heading: &str, terms: &[Term]) -> String {
    let mut lines = vec![[heading, "", "from", "mean ms"].map(str::to_owned).to_vec()];
    lines.extend(terms.iter().map(|term| {
        let ms = format!("{:.2}", term.mean_ms);
        vec![term.direction.to_owned(), term.part.to_owned(), term.source.clone(), ms]
    }));
    align(&lines, 3)
}

fn mhz(mhz: f64) -> String {
    format!("{mhz} MHz")
}

/// A number of bits with separators of thousands; empty for none.
fn bits(bits: u32) -> String {
    let digits = bits.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    if bits == 0 { String::new() } else { groups.join(",") }
}
