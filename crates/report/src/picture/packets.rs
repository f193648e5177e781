//! Packets over the slots of a cell: a panel for each way of sending, a dot for each packet, behind it the
//! slots of the pattern.

use super::canvas::{Anchor, Canvas, LINE, WIDTH, short};
use super::scale::significant;
use paceline_sim::cell_facts::CellFacts;

/// Height of a panel's dots. Chosen: four panels fit on a page.
const HEIGHT: f64 = 90.0;
/// Height of the strip of slots below the dots.
const STRIP: f64 = 14.0;
/// Left edge of the dots. Chosen: room for the numbers of the axis.
const LEFT: f64 = 36.0;
/// Radius of a dot.
const RADIUS: f64 = 1.3;

/// Packets of one way of sending: its name, and place in ms and value of each packet.
pub struct Panel {
    /// Name.
    pub name: String,
    /// Place in ms and value of each packet.
    pub packets: Vec<(f64, f64)>,
}

/// The picture; `span_ms` begins with a period of the cell, `quantity` names the values with their unit.
pub fn packets(title: &str, facts: &CellFacts, panels: &[Panel], span_ms: f64, quantity: &str) -> String {
    let most = panels.iter().flat_map(|panel| &panel.packets).map(|(_, value)| *value).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let x = |ms: f64| LEFT + (WIDTH - LEFT - 8.0) * ms / span_ms;
    let mut canvas = Canvas::default();
    canvas.text("ink", (4.0, LINE - 3.0), Anchor::Start, &short(title, WIDTH - 8.0));
    canvas.text("faint", (4.0, 2.0 * LINE - 3.0), Anchor::Start, &short(quantity, WIDTH - 8.0));
    let mut top = 2.0 * LINE + 4.0;
    for panel in panels {
        canvas.text("ink", (LEFT, top + LINE - 4.0), Anchor::Start, &panel.name);
        top += LINE;
        canvas.line("axis", (LEFT, top), (LEFT, top + HEIGHT));
        canvas.line("axis", (LEFT, top + HEIGHT), (WIDTH - 8.0, top + HEIGHT));
        canvas.text("faint", (LEFT - 4.0, top + 10.0), Anchor::End, &significant(most));
        canvas.text("faint", (LEFT - 4.0, top + HEIGHT), Anchor::End, "0");
        for (ms, value) in panel.packets.iter().filter(|(ms, _)| (0.0..=span_ms).contains(ms)) {
            canvas.circle("f6", (x(*ms), top + HEIGHT * (1.0 - value / most)), RADIUS, "");
        }
        top += HEIGHT;
        let count = (span_ms / facts.slot_ms).round() as usize;
        for (number, slot) in (0..count).map(|number| (number, &facts.slots[number % facts.slots.len()])) {
            let style = match (slot.downlink_symbols, slot.uplink_symbols) {
                (0, 0) => "fx",
                (0, _) => "f1",
                (down, up) if down >= up => "f0",
                _ => "fx",
            };
            let (from, to) = (x(number as f64 * facts.slot_ms), x((number + 1) as f64 * facts.slot_ms));
            canvas.rectangle(style, (from, top + 1.0), (to - from - 1.0, STRIP), "");
        }
        top += STRIP + 6.0;
    }
    for (class, text, at) in [("f0", "downlink slot", LEFT), ("f1", "uplink slot", LEFT + 130.0)] {
        canvas.rectangle(class, (at, top), (11.0, 11.0), "");
        canvas.text("ink", (at + 16.0, top + 10.5), Anchor::Start, text);
    }
    let span = format!("{} ms", significant(span_ms));
    canvas.text("faint", (WIDTH - 8.0, top + 10.5), Anchor::End, &span);
    canvas.finish(top + LINE, title)
}
