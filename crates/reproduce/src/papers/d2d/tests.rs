//! The published behaviour of each TCP after a change of path that drops the former path's packets, on traces
//! of the sender (Nardini, Stea, Virdis, IEEE VTC Spring 2016).

use super::parts::{TCPS, switch_settings};
use super::switch::{SwitchTrace, trace};
use paceline_sim::scenario;

const STATIC: &str = include_str!("../../../../../scenarios/d2d-static.toml");

fn of(tcp: &str, more: &[&str]) -> SwitchTrace {
    let tcp = TCPS.iter().find(|known| known.name == tcp).expect("a TCP of the experiment");
    let set: Vec<String> =
        switch_settings(tcp).into_iter().chain(more.iter().map(|set| (*set).to_owned())).collect();
    trace(&scenario::load("static.toml", STATIC, &set).unwrap(), 1)
}

#[test]
fn reno_stalls_until_its_timeout_and_has_a_second_congestion_event() {
    let reno = of("reno", &[]);
    // The content of RLC and of the buffers with a window of 128 KB: 126 to 153 segments by a separate model.
    assert!((126..=153).contains(&reno.dropped.0), "{:?}", reno.dropped);
    assert!(reno.timeouts_s.len() == 1 && (1.0..1.13).contains(&reno.timeouts_s[0]), "{:?}", reno.timeouts_s);
    let [first, second] = reno.recoveries_s[..] else { panic!("{:?}", reno.recoveries_s) };
    assert!(first < 0.1 && second > reno.timeouts_s[0], "{first} {second}");
    assert!(reno.silence_s > 0.85, "{}", reno.silence_s);
}

#[test]
fn impatient_newreno_sends_a_segment_per_round_trip_until_its_timeout() {
    let newreno = of("newreno-impatient", &[]);
    assert!(newreno.segments_per_rtt < 2.5, "{}", newreno.segments_per_rtt);
    assert!(newreno.least_window < 1.5 && !newreno.timeouts_s.is_empty(), "{newreno:?}");
    assert!(newreno.silence_s < 0.2, "partial ACKs arrive: {}", newreno.silence_s);
}

#[test]
fn westwood_with_samples_of_zero_is_far_below_westwood_plus() {
    let [zero, plus] = ["westwood", "westwood+"].map(|tcp| of(tcp, &[]));
    assert!(2.0 * zero.goodput_mbps[1] < plus.goodput_mbps[1], "{zero:?}");
    assert!(!plus.timeouts_s.is_empty());
}

#[test]
fn sack_has_neither_a_timeout_nor_a_second_event_and_cubic_regrows_faster_than_reno() {
    let [reno, sack, cubic] = ["reno", "sack-reno", "cubic"].map(|tcp| of(tcp, &[]));
    assert_eq!((sack.timeouts_s.len(), sack.recoveries_s.len()), (0, 1));
    assert!(!cubic.timeouts_s.is_empty() && cubic.recoveries_s.len() == 2);
    assert!(cubic.goodput_mbps[1] > 1.5 * reno.goodput_mbps[1], "{:?}", cubic.goodput_mbps);
}

#[test]
fn a_change_with_packets_forwarded_or_duplicated_is_no_loss_event_for_any_tcp() {
    let kept: [&[&str]; 3] = [
        &["sidelink.fate=forward", "sidelink.rlc=am"],
        &["sidelink.fate=duplicate", "sidelink.rlc=am"],
        &["sidelink.fate=duplicate"],
    ];
    for set in kept {
        for tcp in TCPS {
            let trace = of(tcp.name, set);
            assert_eq!(trace.dropped, (0, 0));
            assert_eq!(trace.timeouts_s.len() + trace.recoveries_s.len(), 0, "{} {set:?}", tcp.name);
        }
    }
}
