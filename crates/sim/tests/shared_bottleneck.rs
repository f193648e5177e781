//! Devices behind one queue, between the accelerator and all of them, alone and beside devices that the
//! accelerator does not serve.
//!
//! `cargo test -p paceline-sim --test main shared_bottleneck -- --nocapture` prints the rows.

use paceline_sim::{RunResult, scenario, simulate};

/// Queues of 0.25, 1 and 4 bandwidth-delay products.
const QUEUES: [u32; 3] = [137_500, 550_000, 2_200_000];

/// Stations behind one hop of 100 Mb/s with a round trip of 44 ms, each with a link of twice its rate.
fn one_queue(path: &str, queue: u32, stations: &str) -> RunResult {
    let after = if path == "accelerator" { "proxy_after = 1\n" } else { "" };
    let text = format!(
        "[run]\nduration = \"25 s\"\nwarmup = \"5 s\"\n[core]\nproxy = \"{path}\"\n{after}\
         hops = [{{ rate = \"10 Gb/s\", delay = \"5 ms\" }}, \
         {{ rate = \"100 Mb/s\", delay = \"15 ms\", queue = \"{queue} B\" }}]\n\
         [link]\ndelay = \"2 ms\"\nqueue = \"4 MB\"\n[link.fixed]\ndownlink_rate = \"200 Mb/s\"\n\
         uplink_rate = \"100 Mb/s\"\n{stations}"
    );
    let scenario = scenario::load_with("one queue", &text, &[], &|_| unreachable!("no files"));
    simulate(&scenario.unwrap_or_else(|error| panic!("{error}")), 1, None, &mut |_| ())
}

/// A deep queue seldom loses: there the windows are not equal after 20 s yet.
#[test]
fn devices_behind_one_queue_lose_little_and_share_it() {
    for queue in QUEUES {
        for stations in [1, 2, 8, 32] {
            let stations = format!("[[station]]\ncount = {stations}\n");
            let [own, direct] = ["accelerator", "none"].map(|path| one_queue(path, queue, &stations).totals);
            println!(
                "{queue} B, {stations}: {:.1} Mb/s, {:.1}% again, Jain {:.2}, p95 {:.0} ms; CUBIC p95 {:.0} ms",
                own.goodput_mbps,
                100.0 * own.retransmission_share,
                own.jain_index,
                own.rtt_p95_ms,
                direct.rtt_p95_ms
            );
            assert!(own.retransmission_share < 0.02 && own.goodput_mbps > 0.98 * direct.goodput_mbps);
            assert!(own.rtt_p95_ms <= direct.rtt_p95_ms && (queue > 1_000_000 || own.jain_index > 0.9));
        }
    }
}

#[test]
fn devices_leave_connections_that_are_not_accelerated_their_part_of_a_queue() {
    for queue in QUEUES {
        for others in ["cubic", "reno", "bbr"] {
            let tcp = format!("[station.tcp]\ncongestion_control = \"{others}\"\n");
            let mean = |result: &RunResult, of: std::ops::Range<usize>| {
                of.clone().map(|n| result.stations[n].goodput_mbps).sum::<f64>() / of.len() as f64
            };
            let five = "[[station]]\ncount = 5\n";
            let beside = one_queue("accelerator", queue, &format!("{five}{five}proxy = false\n{tcp}"));
            let direct = one_queue("none", queue, &format!("{five}{five}{tcp}"));
            println!(
                "{queue} B beside {others}: devices {:.1} Mb/s, others {:.1}, {:.1}% again; direct {:.1} and {:.1}",
                mean(&beside, 0..5),
                mean(&beside, 5..10),
                100.0 * beside.totals.retransmission_share,
                mean(&direct, 0..5),
                mean(&direct, 5..10)
            );
            if others != "bbr" && queue < 1_000_000 {
                assert!(mean(&beside, 5..10) > 0.7 * mean(&direct, 5..10), "{queue}, {others}");
                assert!(mean(&beside, 0..5) > 0.7 * mean(&direct, 0..5), "{queue}, {others}");
            }
        }
    }
}
