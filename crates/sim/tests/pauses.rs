//! The accelerator on a radio that serves with pauses, as in loaded cells and with discontinuous reception.

use paceline_sim::results::Totals;
use paceline_sim::{scenario, simulate};

/// A trace of 30 s: turns with two opportunities per ms, and pauses, with these mean lengths in ms.
fn turns(turn: u64, pause: u64) -> String {
    let (mut now, mut state, mut text) = (0, 1u64, String::new());
    while now < 30_000 {
        let mut about = |mean: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            mean * (30 + (state >> 33) % 140) / 100
        };
        let until = now + about(turn).max(1);
        (now..until).for_each(|ms| text += &format!("{ms}\n{ms}\n"));
        now = until + about(pause);
    }
    text
}

fn run(trace: &str, queue: &str, jitter: &str) -> Totals {
    let text = include_str!("../../../scenarios/accelerator-trace.toml");
    let set = ["run.duration=30 s", "core.proxy=accelerator"].map(String::from).to_vec();
    let set = [set, vec![format!("link.queue={queue}"), format!("link.jitter={jitter}")]].concat();
    let scenario =
        scenario::load_with("pauses.toml", text, &set, &|_| Ok(trace.as_bytes().to_vec())).unwrap();
    simulate(&scenario, 1, None, &mut |_| {}).totals
}

/// The rate to use is that over turns and pauses, with a queue that lasts from one turn to the next.
#[test]
fn a_radio_with_pauses_is_used_without_a_long_queue() {
    for (turn, pause) in [(40, 110), (150, 130), (60, 125)] {
        let totals = run(&turns(turn, pause), "4 MB", "0 ms");
        let share = totals.link_sent_mbps / totals.link_capacity_mbps;
        let cycles = totals.link_delay_p95_ms / (turn + pause) as f64;
        assert!(share > 0.93 && cycles < 3.0, "{turn} and {pause} ms: {share:.3} used, {cycles:.1} cycles");
    }
}

/// Every round-trip time contains a pause, so that none is that of an empty queue. The window must not shrink
/// with the rate that it allows.
#[test]
fn long_pauses_do_not_shrink_the_window() {
    for (turn, pause, jitter) in [(20, 190, "0 ms"), (25, 230, "0 ms"), (35, 150, "20 ms")] {
        let totals = run(&turns(turn, pause), "1 MB", jitter);
        let share = totals.link_sent_mbps / totals.link_capacity_mbps;
        assert!(share > 0.5, "{turn} and {pause} ms: {share:.3} used");
    }
}

/// Packets dropped by a full buffer during a pause are not losses of a fade: early retransmissions would be
/// dropped again.
#[test]
fn drops_in_a_pause_are_not_retransmitted_early() {
    for (turn, pause) in [(40, 110), (150, 130), (60, 200)] {
        let totals = run(&turns(turn, pause), "200 kB", "0 ms");
        let again = totals.retransmission_share;
        assert!(again < 0.3, "{turn} and {pause} ms: {again:.2} sent again");
    }
}
