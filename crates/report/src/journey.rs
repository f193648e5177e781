//! The way of a segment and of its ACK as a ladder: an upright for the server, the base station and the
//! station, a row for each step with its time. The rows are even, since waits are a thousand times as long
//! as slots.

use crate::count;
use crate::picture::canvas::{Anchor, Canvas, LINE, WIDTH, short};
use paceline_sim::journey::{Journey, Place, Step};

/// Names and places of the uprights. Chosen: room for the outer names.
const UPRIGHTS: [(&str, f64); 3] =
    [("server", 60.0), ("base station", WIDTH / 2.0), ("station", WIDTH - 50.0)];
/// Height of a step. Chosen: a line of text and its arrow.
const ROW: f64 = 2.0 * LINE;
/// Length of the arms of an arrow's head. Chosen: that of the slots' arrows.
const HEAD: f64 = 5.0;

/// The ladder of a journey as SVG.
pub fn ladder(journey: &Journey) -> String {
    let top = 2.0 * LINE;
    let bottom = top + ROW * journey.steps.len() as f64 + 6.0;
    let mut canvas = Canvas::default();
    for (name, x) in UPRIGHTS {
        canvas.text("ink", (x, LINE), Anchor::Middle, name);
        canvas.line("axis", (x, top - 10.0), (x, bottom));
    }
    for (row, step) in journey.steps.iter().enumerate() {
        draw(&mut canvas, step, top + ROW * row as f64);
    }
    canvas.finish(bottom + 4.0, &format!("Ladder. {}", words(journey)))
}

fn draw(canvas: &mut Canvas, step: &Step, top: f64) {
    let text = format!("{} ms: {}", milliseconds(step.from_ms), described(step));
    canvas.rectangle("ground", (0.0, top), (WIDTH, LINE - 1.0), "");
    canvas.text("ink", (4.0, top + LINE - 4.0), Anchor::Start, &short(&text, WIDTH - 8.0));
    let y = top + LINE + 7.0;
    let (from, to) = (upright(step.from), upright(step.to));
    let colour = match (step.lost, step.to > step.from) {
        (true, _) => "3",
        (false, true) => "0",
        (false, false) => "1",
    };
    if step.from == step.to {
        canvas.rectangle(
            &format!("f{colour}"),
            (from - 4.0, top + LINE + 1.0),
            (8.0, ROW - LINE - 3.0),
            &text,
        );
        return;
    }
    let direction = if to > from { 1.0 } else { -1.0 };
    // A transmission that is not decoded ends before its upright, with a cross.
    let end = if step.lost { to - 30.0 * direction } else { to };
    canvas.path(&format!("l{colour}"), "", &[(from, y), (end, y)]);
    if step.lost {
        for slope in [1.0, -1.0] {
            let arm = HEAD * slope;
            canvas.path(&format!("l{colour}"), "", &[(end - HEAD, y - arm), (end + HEAD, y + arm)]);
        }
        return;
    }
    let tail = end - HEAD * direction;
    canvas.path(&format!("l{colour}"), "", &[(tail, y - HEAD), (end, y), (tail, y + HEAD)]);
}

/// The text of a step; of a wait with its length.
fn described(step: &Step) -> String {
    if step.from == step.to && step.to_ms > step.from_ms {
        return format!("{}, {} ms", step.text, milliseconds(step.to_ms - step.from_ms));
    }
    step.text.clone()
}

/// The journey in words: its length, its waits, its transmissions.
pub fn words(journey: &Journey) -> String {
    let Journey { at_s, bytes, steps } = journey;
    let last = steps.last().map_or(0.0, |step| step.to_ms);
    let on_air =
        |step: &&Step| step.from != step.to && step.from != Place::Server && step.to != Place::Server;
    let (sent, lost) =
        (steps.iter().filter(on_air).count(), steps.iter().filter(on_air).filter(|s| s.lost).count());
    let longest = steps.iter().filter(|step| step.from == step.to);
    let longest = longest.max_by(|a, b| (a.to_ms - a.from_ms).total_cmp(&(b.to_ms - b.from_ms)));
    let wait = longest.filter(|step| step.to_ms > step.from_ms).map_or(String::new(), |step| {
        let (what, at) = (&step.text, UPRIGHTS[step.from as usize].0);
        format!("; the longest step: {} ms at the {at} ({what})", milliseconds(step.to_ms - step.from_ms))
    });
    let transmissions = count(sent as u64, "transmission");
    format!(
        "A segment of {bytes} B left the server at {at_s:.3} s; {} ms later its ACK was there. {transmissions} on \
         the radio, {lost} not decoded{wait}.",
        milliseconds(last)
    )
}

/// A time with three digits or a tenth of a millisecond.
fn milliseconds(ms: f64) -> String {
    if ms >= 100.0 { format!("{ms:.0}") } else { format!("{ms:.1}") }
}

fn upright(place: Place) -> f64 {
    UPRIGHTS[place as usize].1
}
