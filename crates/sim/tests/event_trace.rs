//! Event traces agree with the results of their runs, and change nothing in them.

use paceline_net::event_trace::{Detail, Record};
use paceline_sim::{Run, RunResult, scenario, simulate};
use std::sync::{Arc, Mutex};

/// Runs a scenario with and without a trace; gives its results and events.
fn traced(text: &str) -> (RunResult, Vec<Record>) {
    let text = format!("[run]\nduration = \"3 s\"\nwarmup = \"0 s\"\n{text}");
    let scenario = scenario::load("traced.toml", &text, &[]).unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let mut run = Run::new(&scenario, 1, None);
    run.trace_events(&scenario, Box::new(move |record| sink.lock().unwrap().push(record.clone())));
    while !run.is_over() {
        run.step();
    }
    let result = run.finish();
    let untraced = simulate(&scenario, 1, None, &mut |_| {});
    let json = |run: &RunResult| serde_json::to_string(run).unwrap();
    assert!(json(&result) == json(&untraced) && result.samples == untraced.samples, "the trace acts");
    let events = std::mem::take(&mut *events.lock().unwrap());
    assert!(events.windows(2).all(|pair| pair[0].time_ms <= pair[1].time_ms), "not in the order of time");
    (result, events)
}

/// Sum over the events.
fn sum(events: &[Record], of: impl Fn(&Detail) -> Option<u64>) -> u64 {
    events.iter().filter_map(|record| of(&record.detail)).sum()
}

/// Retransmissions and completed transfers are those of the results.
fn agrees(run: &RunResult, events: &[Record]) {
    let resent = sum(events, |detail| match detail {
        Detail::Retransmitted(recovery) => Some(recovery.segments),
        _ => None,
    });
    assert_eq!(resent, run.flows.iter().map(|flow| flow.retransmissions).sum::<u64>());
    let completed = sum(events, |detail| (*detail == Detail::TransferCompleted {}).then_some(1));
    assert_eq!(completed, run.flows.iter().filter(|flow| flow.completed_s.is_some()).count() as u64);
}

#[test]
fn a_cell_with_losses_and_a_handover() {
    let (run, events) = traced(
        "[cell]\nrlc = \"um\"\ndownlink_buffer = \"40 kB\"\n[deployment]\nserved_sites = 7\n[handover]\n\
         trigger = \"scripted\"\ntimes = [\"1 s\"]\n[[station]]\n[[station]]\nfile = \"100 kB\"\n",
    );
    agrees(&run, &events);
    assert_eq!(run.handovers.len(), 2);
    for handover in &run.handovers {
        let own = |record: &&Record| record.station == Some(handover.station);
        let started = events.iter().filter(own).find(|record| match &record.detail {
            Detail::HandoverStarted { from_cell, to_cell, trigger } => {
                (*from_cell, *to_cell, &**trigger) == (handover.from_cell, handover.to_cell, "scripted")
            }
            _ => false,
        });
        assert!((started.expect("a start").time_ms - 1e3 * handover.time_s).abs() < 1e-6);
        let ended = events.iter().filter(own).find_map(|record| match &record.detail {
            Detail::HandoverEnded { outcome, interruption, .. } => Some((outcome, *interruption)),
            _ => None,
        });
        assert_eq!(ended, Some((&handover.outcome, handover.interruption_ms)));
    }
    let full = sum(&events, |detail| match detail {
        Detail::PacketDropped { trigger: "queue-full", .. } => Some(1),
        _ => None,
    });
    let state = |new: &str| {
        let is =
            |record: &Record| matches!(&record.detail, Detail::CongestionState(state) if state.new == new);
        events.iter().any(is)
    };
    assert!(full > 0 && state("recovery") && state("congestion_avoidance"), "{full} drops");
}

#[test]
fn the_accelerator_has_its_states_and_its_exposure() {
    let (run, events) = traced("[core]\nproxy = \"accelerator\"\n[[station]]\n");
    agrees(&run, &events);
    let metrics: Vec<_> = events
        .iter()
        .filter_map(|record| match &record.detail {
            Detail::Accelerator(metrics) => Some((record, metrics)),
            _ => None,
        })
        .collect();
    assert!(metrics.iter().all(|(record, _)| record.station == Some(0) && record.flow.is_some()));
    assert!(metrics.iter().any(|(_, metrics)| metrics.exposure > 10_000 && metrics.capacity > 1_000_000));
    let last = metrics.last().expect("metrics").1.delivered;
    assert!(last.abs_diff(run.flows[0].bytes) < 2_000_000, "{last} of {} bytes", run.flows[0].bytes);
    let left = |record: &Record| match &record.detail {
        Detail::AcceleratorState(state) => state.old.as_deref() == Some("startup"),
        _ => false,
    };
    assert!(events.iter().any(left));
}

#[test]
fn ack_filter_and_policer_have_an_event_for_each_ack() {
    let filtered = "[cell]\nuplink_bandwidth = \"1.4 MHz\"\n[ack_filter]\nscheme = \"hybrid-opt\"\n[[station]]\n\
                    count = 4\n";
    let policed = "[[core.hops]]\nrate = \"1 Gb/s\"\ndelay = \"5 ms\"\npolice = { drop_share = 0.5 }\n[link]\n\
                   [link.fixed]\n[[station]]\n";
    let count = |events: &[Record]| {
        let discarded = sum(events, |detail| matches!(detail, Detail::AckDiscarded { .. }).then_some(1));
        (discarded, sum(events, |detail| matches!(detail, Detail::AckPoliced { .. }).then_some(1)))
    };
    let (run, events) = traced(filtered);
    agrees(&run, &events);
    let discarded: u64 = run.stations.iter().map(|station| station.acks_discarded).sum();
    assert_eq!(count(&events), (discarded, 0));
    let requests = sum(&events, |detail| match detail {
        Detail::SchedulingRequested { requests, .. } => Some(*requests),
        _ => None,
    });
    assert_eq!(requests, run.stations.iter().map(|station| station.scheduling_requests).sum::<u64>());
    assert!(discarded > 100 && requests > 0, "{discarded}, {requests}");
    let (run, events) = traced(policed);
    agrees(&run, &events);
    assert_eq!(count(&events), (0, run.policers[0].dropped));
    assert!(run.policers[0].dropped > 100);
}
