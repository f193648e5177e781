//! The slots of a cell: a column for each slot with its symbols, arrows from data to their HARQ-ACKs and from
//! grants to their transmissions.

use super::canvas::{Anchor, Canvas, LINE, WIDTH, short};
use paceline_sim::cell_facts::{CellFacts, SlotFacts};

/// Columns of a row at most. Chosen: a column is as wide as two digits.
const COLUMNS: usize = 20;
/// Height of a slot. Chosen: 4 units for each of its 14 symbols.
const HEIGHT: f64 = 56.0;
/// Height of a symbol.
const SYMBOL: f64 = HEIGHT / 14.0;
/// Height of the arrows above and below the slots. Chosen: room for the longest distance.
const ARROWS: f64 = 44.0;
/// Height of a row with the numbers of its slots.
const ROW: f64 = HEIGHT + 2.0 * ARROWS + LINE;
/// Largest period in slots whose distances are drawn as arrows. Chosen: two periods stand in one row.
const MOST_WITH_ARROWS: usize = COLUMNS / 2;

/// The picture; `name` is that of the scenario.
pub fn slot_map(name: &str, facts: &CellFacts) -> String {
    let period = facts.slots.len();
    let arrows = period <= MOST_WITH_ARROWS;
    // Two periods, so that arrows end in the picture.
    let shown = if period == 1 { COLUMNS / 2 } else { period * if arrows { 2 } else { 1 } };
    let columns = shown.min(COLUMNS);
    let step = (WIDTH - 20.0) / columns as f64;
    let row = if arrows { ROW } else { HEIGHT + 2.0 * LINE };
    let mut canvas = Canvas::default();
    canvas.text("ink", (10.0, LINE - 3.0), Anchor::Start, &short(&heading(name, facts), WIDTH - 20.0));
    let above = if arrows { ARROWS } else { 0.0 };
    let top = LINE + 6.0 + above;
    for number in 0..shown {
        let (x, y) = place(number, columns, step, top, row);
        let slot = &facts.slots[number % period];
        symbols(&mut canvas, slot, (x, y), step - 2.0, number >= period && period > 1);
        let below = y + HEIGHT + above + LINE - 4.0;
        canvas.text("faint", (x + step / 2.0 - 1.0, below), Anchor::Middle, &number.to_string());
    }
    if arrows {
        for number in 0..shown.min(period.max(1)) {
            distances(&mut canvas, facts, number, shown, (step, top));
        }
    }
    let end = legend(&mut canvas, arrows, top + row * shown.div_ceil(columns) as f64 - above + 8.0);
    canvas.finish(end, &format!("Slots of {name}"))
}

fn heading(name: &str, facts: &CellFacts) -> String {
    let pattern = facts.pattern.as_deref().unwrap_or("FDD");
    format!("{name}: {pattern}, slots of {} ms", facts.slot_ms)
}

/// The upper left corner of a slot.
fn place(number: usize, columns: usize, step: f64, top: f64, row: f64) -> (f64, f64) {
    (10.0 + (number % columns) as f64 * step, top + (number / columns) as f64 * row)
}

/// The symbols of a slot from its top to its bottom; in FDD both carriers side by side.
fn symbols(canvas: &mut Canvas, slot: &SlotFacts, (x, y): (f64, f64), width: f64, faint: bool) {
    let SlotFacts { kind, downlink_symbols: down, guard_symbols: guard, uplink_symbols: up, .. } = slot;
    let k1 = slot.k1.map_or(String::new(), |k1| format!("\nK1 {k1}"));
    let k2: Vec<String> = slot.k2.iter().map(u8::to_string).collect();
    let k2 = if k2.is_empty() { String::new() } else { format!("\nK2 {}", k2.join(", ")) };
    let tip =
        format!("slot {} {kind}: {down} downlink, {guard} guard, {up} uplink symbols{k1}{k2}", slot.slot);
    let fade = if faint { "faded " } else { "" };
    let mut part = |class: &str, x: f64, from: f64, count: f64, width: f64| {
        if count > 0.0 {
            let place = (x, y + from * SYMBOL);
            canvas.rectangle(&format!("{fade}{class}"), place, (width, count * SYMBOL), &tip);
        }
    };
    let (down, guard, up) = (f64::from(*down), f64::from(*guard), f64::from(*up));
    if down + up > 14.0 {
        part("f0", x, 0.0, down, width / 2.0);
        part("f1", x + width / 2.0, 0.0, up, width / 2.0);
        return;
    }
    part("f0", x, 0.0, down, width);
    part("fx", x, down, guard, width);
    part("f1", x, down + guard, up, width);
}

/// The arrows that begin in a slot.
fn distances(canvas: &mut Canvas, facts: &CellFacts, number: usize, shown: usize, (step, top): (f64, f64)) {
    let slot = &facts.slots[number];
    let middle = |slot: usize| 10.0 + (slot as f64 + 0.5) * step - 1.0;
    let bend = |distance: usize| (6.0 + 3.0 * distance as f64).min(ARROWS - 6.0);
    let mut arrow = |class: &str, distance: u8, y: f64, direction: f64| {
        let (distance, target) = (usize::from(distance), number + usize::from(distance));
        if target < shown {
            let (from, to) = ((middle(number) + 2.0, y), (middle(target) - 2.0, y));
            canvas.arrow(class, from, to, direction * bend(distance));
        }
    };
    slot.k2.iter().for_each(|k2| arrow("l2", *k2, top - 2.0, -1.0));
    slot.k1.iter().for_each(|k1| arrow("l3", *k1, top + HEIGHT + 2.0, 1.0));
}

/// The meaning of the colours; gives the end of the picture.
fn legend(canvas: &mut Canvas, arrows: bool, top: f64) -> f64 {
    let entries: [(&str, &str, f64); 3] =
        [("f0", "downlink", 10.0), ("f1", "uplink", 110.0), ("fx", "guard, flexible", 200.0)];
    for (class, text, x) in entries {
        canvas.rectangle(class, (x, top), (11.0, 11.0), "");
        canvas.text("ink", (x + 16.0, top + 10.5), Anchor::Start, text);
    }
    if !arrows {
        return top + LINE;
    }
    let next = top + LINE;
    for (class, text, x) in [("l2", "grant to PUSCH (K2)", 10.0), ("l3", "PDSCH to HARQ-ACK (K1)", 200.0)] {
        canvas.line(&format!("l {class}"), (x, next + 6.0), (x + 12.0, next + 6.0));
        canvas.text("ink", (x + 18.0, next + 10.5), Anchor::Start, text);
    }
    next + LINE
}
