//! One connection of a capture: its data, the ACKs of these, and round-trip times by Karn's rule (RFC 6298
//! section 3).

use paceline_explain::period::{Finding, Findings};
use paceline_net::Duration;
use std::collections::VecDeque;

/// The fields of a segment that are used.
pub struct Segment {
    pub at_ns: u64,
    pub seq: u32,
    pub len: u32,
    pub ack: Option<u32>,
    pub sack: Vec<(u32, u32)>,
    /// SYN: the sequence number begins anew.
    pub opens: bool,
}

/// Both directions, by the sender of the data.
#[derive(Default)]
pub struct Connection {
    directions: [Direction; 2],
}

/// Data in one direction.
#[derive(Default)]
struct Direction {
    bytes: u64,
    /// Next sequence number, none before the first segment.
    next: Option<u32>,
    /// Segments that were sent once and are not acknowledged: start, end, time.
    in_flight: VecDeque<(u32, u32, u64)>,
    findings: Findings,
}

/// Whether `a` comes before `b` (RFC 9293 section 3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Connection {
    /// A segment from end `from`, 0 or 1; `all` learns from every connection of the interface.
    pub fn on_segment(&mut self, from: usize, segment: &Segment, all: &mut Findings) {
        if segment.opens {
            self.directions[from] = Direction::default();
        }
        if segment.len > 0 {
            self.directions[from].on_data(segment, all);
        }
        if let Some(ack) = segment.ack {
            self.directions[1 - from].on_ack(ack, segment, all);
        }
    }
    /// The end that sent more data, its bytes, and the period that these and their ACKs show.
    pub fn finding(&self) -> (usize, u64, Option<Finding>) {
        let from = usize::from(self.directions[1].bytes > self.directions[0].bytes);
        let direction = &self.directions[from];
        (from, direction.bytes, direction.findings.best())
    }
}

impl Direction {
    fn on_data(&mut self, segment: &Segment, all: &mut Findings) {
        let (start, end) = (segment.seq, segment.seq.wrapping_add(segment.len));
        self.bytes += u64::from(segment.len);
        self.findings.on_data(segment.at_ns);
        all.on_data(segment.at_ns);
        if self.next.is_some_and(|next| before(start, next)) {
            // The ACK of data that were sent twice does not tell which copy it answers.
            self.in_flight.retain(|(first, last, _)| !(before(*first, end) && before(start, *last)));
        } else {
            self.in_flight.push_back((start, end, segment.at_ns));
        }
        if self.next.is_none_or(|next| before(next, end)) {
            self.next = Some(end);
        }
    }
    fn on_ack(&mut self, ack: u32, segment: &Segment, all: &mut Findings) {
        if self.next.is_none() {
            return;
        }
        let mut sent_at = None;
        while let Some(&(first, last, at_ns)) = self.in_flight.front() {
            if !before(first, ack) {
                break;
            }
            sent_at = Some(at_ns);
            if before(ack, last) {
                break; // the ACK ends within a merged segment
            }
            self.in_flight.pop_front();
        }
        for (left, right) in &segment.sack {
            self.in_flight.retain(|(first, last, at_ns)| {
                let is_covered = !before(*first, *left) && !before(*right, *last);
                if is_covered {
                    sent_at = sent_at.max(Some(*at_ns));
                }
                !is_covered
            });
        }
        let rtt = sent_at.map(|sent_ns| Duration::from_nanos(segment.at_ns.saturating_sub(sent_ns)));
        self.findings.on_ack(segment.at_ns, rtt);
        all.on_ack(segment.at_ns, rtt);
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
