//! A ladder of messages: an upright for each end, time downwards, an arrow for each message.

use super::canvas::{Anchor, Canvas, LINE, WIDTH};
use paceline_ran::sidelink::{FlowDirection, Message, MessageKind};

/// Height of a millisecond. Chosen: names of messages 2 ms apart do not touch.
const MS: f64 = 16.0;
/// Places of the uprights: the sending station, the eNB, the other station.
const ENDS: [(&str, f64); 3] = [("sender", 60.0), ("eNB", WIDTH / 2.0), ("receiver", WIDTH - 60.0)];
/// Time that a message is in the air, ms (TS 36.211 §4: a subframe).
const AIR_MS: f64 = 1.0;

/// The picture of messages with their times in ms, those of a packet and of its answer.
pub fn ladder(messages: &[(f64, Message)]) -> String {
    const TITLE: &str = "Messages of a packet and its answer on the direct link";
    let top = 3.0 * LINE;
    let last = messages.iter().map(|(ms, _)| *ms).fold(0.0, f64::max);
    let bottom = top + (last + AIR_MS) * MS;
    let mut canvas = Canvas::default();
    canvas.text("ink", (4.0, LINE - 3.0), Anchor::Start, TITLE);
    for (name, x) in ENDS {
        canvas.text("ink", (x, top - 6.0), Anchor::Middle, name);
        canvas.line("axis", (x, top), (x, bottom));
    }
    for (ms, message) in messages {
        let answer = message.direction == FlowDirection::ToPeer;
        let (own, peer) = if answer { (ENDS[2].1, ENDS[0].1) } else { (ENDS[0].1, ENDS[2].1) };
        let enb = ENDS[1].1;
        let (name, from, to) = match message.kind {
            MessageKind::Request => ("RAC", own, enb),
            MessageKind::ShortGrant => ("BSR", own, enb),
            MessageKind::ReportDecoded => ("BSR decoded", enb, enb),
            MessageKind::Data => (if answer { "answer" } else { "data" }, own, peer),
            MessageKind::Relayed => ("relayed", enb, peer),
            MessageKind::Delivered => ("delivered", peer, peer),
        };
        let y = top + ms * MS;
        if from == to {
            canvas.circle(if answer { "f1" } else { "f0" }, (to, y), 3.0, name);
        } else {
            let colour = if answer { "l1" } else { "l0" };
            canvas.path(colour, "", &[(from, y), (to, y + AIR_MS * MS)]);
        }
        let text = format!("{ms:.0} ms {name}");
        let (x, anchor) = if answer { (WIDTH - 56.0, Anchor::End) } else { (64.0, Anchor::Start) };
        canvas.text("faint", (x, y - 2.0), anchor, &text);
    }
    canvas.finish(bottom + LINE, TITLE)
}
