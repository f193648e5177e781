//! Pictures of packets in a TDD cell: their arrivals over the slots, and round-trip times folded over the
//! pattern.

use super::parts::Part;
use crate::plan::{scenario, strings};
use paceline_net::{Instant, Packet};
use paceline_report::html;
use paceline_report::picture::{Panel, packets};
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::{Capture, Scenario, simulate};
use paceline_study::InputError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Settings of the runs: a second after the start, which slow start has left.
const SHORT: [&str; 2] = ["run.duration=3 s", "run.warmup=1 s"];
/// The time from which packets are shown. Chosen: past the slow start.
const FROM_MS: f64 = 2000.0;
/// Periods whose packets are shown side by side. Chosen: two round trips to an edge server.
const PERIODS: f64 = 4.0;
/// Periods whose packets are folded. Chosen: enough dots to show the shape, few enough to tell them apart.
const FOLDED: f64 = 40.0;

/// A segment: the time at which it reaches the cell, of its delivery to the station, and of its ACK, in ms.
#[derive(Clone, Copy, Default)]
struct Times {
    arrived: f64,
    delivered: Option<f64>,
    acked: Option<f64>,
}

/// Names and contents of the pictures for CUBIC in the first buffers of a part.
pub(super) fn pictures(
    part: &Part,
    buffer: &str,
    delay: &str,
    set: &[String],
) -> Result<Vec<(String, String)>, InputError> {
    let (mut over_slots, mut folded) = (Vec::new(), Vec::new());
    let mut facts = None;
    for mode in ["none", "linux", "tdd-published", "tdd"] {
        let own = [
            format!("cell.downlink_buffer={buffer}"),
            format!("core.hops.0.delay={delay}"),
            format!("tcp.pacing={mode}"),
            String::from("tcp.congestion_control=cubic"),
        ];
        let all = [part.settings(), set.to_vec(), strings(&SHORT), own.to_vec()].concat();
        let scenario = scenario(part.cell.scenario, &all)?;
        let cell = facts.get_or_insert_with(|| CellFacts::of(scenario.cell().expect("the paper has a cell")));
        let period = cell.period_ms;
        let first = (FROM_MS / period).ceil() * period;
        let times = segments(&scenario);
        let within = |periods: f64| {
            times.iter().filter(move |times| (first..first + periods * period).contains(&times.arrived))
        };
        let wait = |times: &Times| Some((times.arrived - first, times.delivered? - times.arrived));
        let trip = |times: &Times| Some(((times.arrived - first) % period, times.acked?));
        over_slots.push(Panel { name: mode.into(), packets: within(PERIODS).filter_map(wait).collect() });
        folded.push(Panel { name: mode.into(), packets: within(FOLDED).filter_map(trip).collect() });
    }
    let facts = facts.expect("a mode ran");
    let period = facts.period_ms;
    let slots = packets(
        &format!("Segments over the slots of {}", part.cell.name),
        &facts,
        &over_slots,
        PERIODS * period,
        "time from the cell to the station, ms, over the arrival at the cell",
    );
    let folded = packets(
        &format!("Round-trip times folded over {}", part.cell.name),
        &facts,
        &folded,
        period,
        "round-trip time, ms, over the arrival at the cell",
    );
    Ok([("packets.svg", slots), ("round-trips.svg", folded)]
        .map(|(name, picture)| (name.to_owned(), html::standalone(&picture)))
        .to_vec())
}

/// The segments of the first flow, in the order of their first transmission.
fn segments(scenario: &Scenario) -> Vec<Times> {
    let hop_ms: f64 = scenario.core.hops.iter().map(|hop| hop.delay.as_millis_f64()).sum();
    let seen: Arc<Mutex<BTreeMap<u32, Times>>> = Arc::default();
    let recorded = Arc::clone(&seen);
    let record = move |now: Instant, interface: u32, packet: &Packet| {
        let Some(tcp) = packet.tcp_header() else { return };
        let (ms, mut seen) = (1e3 * now.as_secs_f64(), recorded.lock().expect("one thread"));
        match (tcp.payload_len > 0, interface) {
            (true, 0) => {
                let end = (tcp.seq + tcp.payload_len).0;
                seen.entry(end).or_insert(Times { arrived: ms + hop_ms, ..Times::default() });
            }
            (true, _) => {
                if let Some(times) = seen.get_mut(&(tcp.seq + tcp.payload_len).0) {
                    times.delivered.get_or_insert(ms);
                }
            }
            (false, 0) => {
                if let Some(times) = seen.get_mut(&tcp.ack.0) {
                    let trip = ms - (times.arrived - hop_ms);
                    times.acked.get_or_insert(trip);
                }
            }
            (false, _) => {}
        }
    };
    let capture = Capture { packets: Box::new(record), blocks: None };
    simulate(scenario, scenario.run.seed, Some(capture), &mut |_| {});
    let seen = seen.lock().expect("the run has ended");
    seen.values().copied().collect()
}
