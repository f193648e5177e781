//! One change of path, and the sender's state around it, millisecond by millisecond.

use paceline_net::{Duration, Instant};
use paceline_ran::sidelink::{FlowDirection, Message, MessageKind};
use paceline_sim::Model;
use paceline_sim::scenario::Scenario;

/// Time of the change in s. Chosen: the window is full by then; `switch_settings` has the same.
const SWITCH_S: f64 = 5.0;
/// Time over which goodput after the change is measured, in s. Chosen: the published recoveries end within
/// some seconds.
const AFTER_S: f64 = 5.0;

/// A sender around a change of path. Times are in s since the change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwitchTrace {
    /// Retransmission timeouts.
    pub timeouts_s: Vec<f64>,
    /// Beginnings of fast recoveries.
    pub recoveries_s: Vec<f64>,
    /// Longest time in which nothing was acknowledged, in the 5 s after the change.
    pub silence_s: f64,
    /// Goodput in the second before the change, and in the 5 s after it, Mb/s.
    pub goodput_mbps: [f64; 2],
    /// Acknowledged segments per 42 ms, a round trip, from 0.2 s to 0.9 s after the change.
    pub segments_per_rtt: f64,
    /// Smallest congestion window in the 5 s after the change, segments.
    pub least_window: f64,
    /// End of the first second with 90% of the goodput before.
    pub back_at_s: Option<f64>,
    /// Data packets that were dropped, and bytes.
    pub dropped: (u64, u64),
    /// Congestion window in segments, every 10 ms from 1 s before to 10 s after the change.
    pub window: Vec<(f64, f64)>,
}

/// Runs a scenario with one change of path of one download at 5 s.
pub fn trace(scenario: &Scenario, seed: u64) -> SwitchTrace {
    let segment = scenario.tcp.segment_size.0 as f64;
    let mut model = Model::new(scenario, seed, &[]);
    let end_ms = (scenario.run.duration.as_secs_f64() * 1e3) as u64;
    let mut acked = Vec::with_capacity(end_ms as usize);
    let mut trace = SwitchTrace { least_window: f64::INFINITY, ..SwitchTrace::default() };
    let (mut timeouts, mut recoveries) = (0, 0);
    let mut last_progress = 0.0;
    for ms in 0..end_ms {
        model.engine.run_until(Instant::from_millis(ms) + Duration::from_micros(500));
        let flows = model.flows(0);
        let Some((server, _)) = flows.first() else { break };
        let (stats, window) = (server.stats(), server.snapshot().cwnd.0 as f64 / segment);
        let at = ms as f64 / 1e3 - SWITCH_S;
        if acked.last().is_none_or(|last| *last < stats.bytes_acked) {
            last_progress = at;
        }
        acked.push(stats.bytes_acked);
        let new = |count: u64, before: &mut u64, times: &mut Vec<f64>| {
            if at >= 0.0 && count > *before {
                times.push(at);
            }
            *before = count;
        };
        new(stats.timeouts, &mut timeouts, &mut trace.timeouts_s);
        new(stats.fast_recoveries, &mut recoveries, &mut trace.recoveries_s);
        if (0.0..AFTER_S).contains(&at) {
            trace.silence_s = trace.silence_s.max(at - last_progress.max(0.0));
            trace.least_window = trace.least_window.min(window);
        }
        if at >= -1.0 && ms % 10 == 0 {
            trace.window.push((at, window));
        }
    }
    let at = |s: f64| acked.get(((SWITCH_S + s) * 1e3) as usize).copied().unwrap_or_default() as f64;
    let mbps = |from: f64, to: f64| (at(to) - at(from)) * 8e-6 / (to - from);
    trace.goodput_mbps = [mbps(-1.0, 0.0), mbps(0.0, AFTER_S)];
    trace.segments_per_rtt = (at(0.9) - at(0.2)) / segment / (0.7 / 0.042);
    let steps = (0..90).map(|step| f64::from(step) / 10.0);
    let mut back = steps.filter(|from| mbps(*from, from + 1.0) >= 0.9 * trace.goodput_mbps[0]);
    trace.back_at_s = back.next().map(|from| from + 1.0);
    if let Some(sidelink) = model.sidelink() {
        let mut data = sidelink.switches().iter().filter(|s| s.direction == FlowDirection::ToStation);
        trace.dropped = data.next().map_or((0, 0), |switch| (switch.dropped.packets, switch.dropped.bytes));
    }
    trace
}

/// The messages of a first packet towards the station and of the answer to it: ms since the first request.
pub fn timeline(scenario: &Scenario, seed: u64) -> Vec<(f64, Message)> {
    let mut model = Model::new(scenario, seed, &[]);
    model.record_messages();
    model.engine.run_until(Instant::ZERO + scenario.run.duration);
    let Some(sidelink) = model.sidelink() else { return Vec::new() };
    let messages = sidelink.messages();
    let Some(first) = messages.first() else { return Vec::new() };
    let done = |message: &Message| {
        message.direction == FlowDirection::ToPeer && message.kind == MessageKind::Delivered
    };
    let last = messages.iter().position(done).map_or(messages.len(), |at| at + 1);
    let since = |message: &Message| message.slot.since(first.slot).0 as f64;
    messages[..last].iter().map(|message| (since(message), *message)).collect()
}
