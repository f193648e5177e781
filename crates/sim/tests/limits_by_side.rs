//! The verdict on TCP behind a proxy names the side that limits: scenarios whose limit is known by
//! construction, each without a proxy, with split TCP and with the accelerator.

use paceline_sim::results::{GroupResult, Origin, Side};
use paceline_sim::{Summary, scenario, simulate};

/// Two hops with the proxy between them, and a cell of 20 MHz.
const WIRED: &str = "[core]\nproxy_after = 1\nhops = [\
    { rate = \"1 Gb/s\", delay = \"20 ms\" }, { rate = \"1 Gb/s\", delay = \"10 ms\" }]\n";

fn group(path: &str, text: &str, sets: &[&str]) -> GroupResult {
    let text = format!("[run]\nduration = \"10 s\"\nwarmup = \"1 s\"\n{text}");
    let path = format!("core.proxy={path}");
    let sets: Vec<String> = sets.iter().chain([&&*path]).map(|set| (*set).to_owned()).collect();
    let scenario = scenario::load("limits.toml", &text, &sets).unwrap();
    let run = simulate(&scenario, 3, None, &mut |_| {});
    let origin = Origin { version: String::from("0"), commit: String::from("none") };
    let group = Summary::new(origin, "limits", "simulated", &scenario, vec![run]).groups.remove(0);
    println!("{path}: {}", group.verdict);
    for side in &group.sides {
        println!("    {:?}: {}", side.side, side.verdict);
    }
    group
}

/// Checks the verdicts on the three paths: the side that a proxy must name, and words of each.
fn verdicts(text: &str, sets: &[&str], side: Side, words: [&str; 3]) {
    let paths = ["none", "split-tcp", "accelerator"].into_iter().zip([None, Some(side), Some(side)]);
    for ((path, side), words) in paths.zip(words) {
        let GroupResult { verdict, limiting_side, sides, .. } = group(path, text, sets);
        assert_eq!(limiting_side, side, "{path}: {verdict}");
        let prefix = side.map_or(String::new(), |side| format!("on the {} side ", side.word()));
        let rest = verdict.strip_prefix(&prefix).unwrap_or_else(|| panic!("{path}: {verdict}"));
        assert!(rest.contains(words) && !rest.starts_with("on the"), "{path}: {words:?} in {verdict}");
        assert_eq!(sides.len(), if side.is_some() { 2 } else { 0 });
        for of in sides {
            assert!(of.limits.values().iter().sum::<f64>() > 0.999, "{of:?}");
            assert!(Some(of.side) != side || verdict.ends_with(&of.verdict), "{of:?}");
        }
    }
}

#[test]
fn the_capacity_of_the_radio_is_on_the_radio_side() {
    let text = format!("{WIRED}[cell]\nbandwidth = \"3 MHz\"\n[[station]]\ncount = 2\n");
    verdicts(&text, &[], Side::Radio, ["limited by the downlink"; 3]);
}

#[test]
fn the_clients_receive_window_is_on_the_radio_side() {
    let sets = ["tcp.receive_buffer=32 kB", "tcp.autotune=false", "accelerator.overshoot=false"];
    let text = format!("{WIRED}[[station]]\ncount = 2\n");
    verdicts(&text, &sets, Side::Radio, ["limited by the receive window"; 3]);
}

#[test]
fn the_servers_send_buffer_is_on_the_server_side() {
    let text = format!("{WIRED}[[station]]\ncount = 2\n");
    verdicts(&text, &["tcp.send_buffer=32 kB"], Side::Server, ["limited by the send buffer"; 3]);
}

#[test]
fn a_narrow_hop_is_on_the_side_where_it_is() {
    let hop = "{ rate = \"5 Mb/s\", delay = \"20 ms\", queue = \"60 kB\" }";
    let wide = "{ rate = \"1 Gb/s\", delay = \"10 ms\" }";
    for (hops, side) in [([hop, wide], Side::Server), ([wide, hop], Side::Radio)] {
        let text = format!("[core]\nproxy_after = 1\nhops = [{}]\n[[station]]\ncount = 2\n", hops.join(", "));
        verdicts(&text, &[], side, ["limited by the wired path"; 3]);
    }
}

#[test]
fn drops_at_a_hop_before_the_proxy_are_on_the_server_side() {
    let hop = "{ rate = \"20 Mb/s\", delay = \"30 ms\", queue = \"4500 B\" }";
    let text = format!("[core]\nhops = [{hop}]\n[[station]]\n");
    let words = ["limited by drops at a full queue of the wired path"; 3];
    verdicts(&text, &["tcp.congestion_control=newreno"], Side::Server, words);
}

#[test]
fn losses_on_the_radio_are_on_the_radio_side() {
    let link = "[link]\nloss_percent = 1\ndelay = \"20 ms\"\n[link.fixed]\ndownlink_rate = \"30 Mb/s\"\n";
    let sets = ["tcp.congestion_control=newreno"];
    // The accelerator repairs losses at an unchanged rate: its limit is the capacity of the link.
    let words =
        ["limited by losses on the radio", "limited by losses on the radio", "limited by the downlink"];
    verdicts(&format!("{link}[[station]]\n"), &sets, Side::Radio, words);
}

#[test]
fn an_application_without_data_is_on_the_server_side() {
    let text = format!("{WIRED}[[station]]\ncount = 2\nchunk = \"2 kB\"\nchunk_interval = \"200 ms\"\n");
    verdicts(&text, &[], Side::Server, ["without data to send"; 3]);
}

#[test]
fn a_small_buffer_of_the_proxy_is_its_window_on_the_server_side() {
    // 64 KiB in 80 ms are 6.6 Mb/s.
    let far = "[core]\nhops = [{ rate = \"1 Gb/s\", delay = \"40 ms\" }]\n[[station]]\n";
    let split = group("split-tcp", far, &["split_tcp.buffer=64 KiB"]);
    assert!(split.verdict.starts_with("on the server side limited by the proxy's receive window"));
    let accelerated = group("accelerator", far, &["accelerator.flow_buffer=64 KiB"]);
    let words = "on the server side limited by the accelerator's receive window";
    assert!(accelerated.verdict.starts_with(words), "{}", accelerated.verdict);
}

#[test]
fn the_published_ceiling_of_the_accelerators_rate_is_named() {
    let text = format!("{WIRED}[[station]]\n");
    let paper = group("accelerator", &text, &["accelerator.profile=paper", "accelerator.r_cap=3 Mb/s"]);
    assert!(paper.verdict.starts_with("on the radio side limited by the accelerator's rate"));
    assert!(paper.verdict.contains("Mb/s at"), "{}", paper.verdict);
}

#[test]
fn an_upload_through_split_tcp_is_limited_on_the_radio_side_and_through_the_accelerator_end_to_end() {
    let text = format!("{WIRED}[[station]]\ncount = 2\ndirection = \"upload\"\nuplink_sinr = \"3 dB\"\n");
    let split = group("split-tcp", &text, &[]);
    assert_eq!(split.limiting_side, Some(Side::Radio));
    assert!(split.verdict.contains("limited by the uplink"), "{}", split.verdict);
    let accelerated = group("accelerator", &text, &[]);
    assert_eq!((accelerated.limiting_side, accelerated.sides.len()), (None, 0));
    assert!(accelerated.verdict.starts_with("limited by the uplink"), "{}", accelerated.verdict);
}
