//! `paceline top`: rates, devices and connections of a running gateway, refreshed every second.
//!
//! Rows of devices are sums over the listed connections, so that both tables, the totals above them and
//! `paceline gateway flows` have the same figures. Three lines of block characters show the rates of the last
//! two minutes at most.

use super::gateway::{Which, flow_table};
use crate::failure::Outcome;
use crate::output;
use crate::quantity::{bits, bytes};
use anyhow::Context;
use paceline_gateway::{Client, Counter, FlowStatus, Status};
use paceline_linux::clock;
use paceline_linux::terminal::{INTERRUPT, Terminal};
use paceline_net::Duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::process::ExitCode;

/// Devices and connections on the page at most. Chosen: both tables fit into a terminal of 30 lines.
const SHOWN: usize = 10;
/// Refresh interval, over which rates are averages. Chosen: slow enough to be read.
const REFRESH_MS: u16 = 1000;

/// Refreshes in the history. Chosen: fits into 80 columns behind the names.
const REMEMBERED: usize = 60;
/// Block characters of one to eight eighths (Unicode, U+2581 to U+2588).
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The rates of the last refreshes, in b/s.
#[derive(Default)]
struct History([VecDeque<f64>; 3]);

impl History {
    const NAMES: [&str; 3] = ["down", "up", "accelerated"];

    fn add(&mut self, rates: [f64; 3]) {
        for (series, rate) in self.0.iter_mut().zip(rates) {
            if series.len() == REMEMBERED {
                series.pop_front();
            }
            series.push_back(rate);
        }
    }
    /// A line for each rate, with its maximum; nothing before there is a history.
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, series) in Self::NAMES.iter().zip(&self.0).filter(|(_, series)| series.len() > 1) {
            let most = series.iter().fold(0.0f64, |most, rate| most.max(*rate));
            let eighths = |rate: &f64| (8.0 * rate / most.max(1.0)).ceil().clamp(1.0, 8.0) as usize;
            let blocks = series.iter().map(|rate| if *rate > 0.0 { BLOCKS[eighths(rate) - 1] } else { ' ' });
            let _ = writeln!(
                text,
                "{name:11} {:>width$} at most {}",
                blocks.collect::<String>(),
                bits(most),
                width = REMEMBERED
            );
        }
        text
    }
}

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

/// The connections of one device, added up.
#[derive(Default)]
struct Device {
    flows: usize,
    /// Payload bytes acknowledged since the last refresh.
    delivered: u64,
    /// Sending rate towards the device, which its connections share, in b/s.
    allowed: u64,
    in_flight: u64,
}

/// Status and connections at one time.
struct Snapshot {
    status: Status,
    flows: Vec<FlowStatus>,
}

impl Snapshot {
    fn take(which: &Which) -> anyhow::Result<Self> {
        let ask = || Client::find(which.control.as_deref());
        let status = ask()?.status()?;
        Ok(Self { status, flows: ask()?.flows()? })
    }
    fn count(&self, counter: Counter) -> u64 {
        self.status.counters.get(counter.name()).copied().unwrap_or(0)
    }
}

pub fn run(args: &Args) -> Outcome {
    let mut before = Snapshot::take(&args.which)?;
    let Some(terminal) = Terminal::open()? else {
        clock::pause(Duration::from_millis(REFRESH_MS.into()));
        let now = Snapshot::take(&args.which)?;
        output::print(&page(&before, &now, &mut History::default()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut history = History::default();
    loop {
        match terminal.key(REFRESH_MS) {
            Some(b'q' | b'Q' | INTERRUPT) => return Ok(ExitCode::SUCCESS),
            Some(_) => continue,
            None => {}
        }
        let now = Snapshot::take(&args.which)?;
        terminal.draw(&page(&before, &now, &mut history)).context("cannot write to the terminal")?;
        before = now;
    }
}

fn page(before: &Snapshot, now: &Snapshot, history: &mut History) -> String {
    let seconds = (now.status.uptime - before.status.uptime).max(1e-3);
    let rate = |counter| now.count(counter).saturating_sub(before.count(counter)) as f64 / seconds;
    let status = &now.status;
    let [down, up, accelerated] =
        [Counter::FrameBytesFromServers, Counter::FrameBytesFromDevices, Counter::BytesDelivered]
            .map(|counter| 8.0 * rate(counter));
    history.add([down, up, accelerated]);
    let mut text = format!(
        "paceline {}  {} to {}  up {:.0} s{}{}{}{}\n",
        status.version,
        status.server,
        status.mobile,
        status.uptime,
        match (status.draining, status.paused) {
            (true, _) => "  STOPPING",
            (false, true) => "  PAUSED",
            (false, false) => "",
        },
        if status.filter_stopped.is_some() { "  ACK FILTER STOPPED" } else { "" },
        if status.switched_off { "  SWITCHED OFF: HARM" } else { "" },
        if status.notes.is_empty() { "" } else { "  NOTE (see status)" }
    );
    let _ = writeln!(
        text,
        "down {}  up {}  accelerated {}  retransmitted {:.1} %\n{} connections  {} handshakes  held {}  exposed {}",
        bits(down),
        bits(up),
        bits(accelerated),
        100.0 * rate(Counter::Retransmissions)
            / (rate(Counter::SegmentsSent) + rate(Counter::Retransmissions)).max(1.0),
        now.flows.len(),
        status.openings,
        bytes(now.flows.iter().map(|flow| flow.held).sum()),
        bytes(now.flows.iter().map(|flow| flow.exposure).sum())
    );
    text += &history.text();
    text.push('\n');
    let _ = writeln!(
        text,
        "{:40} {:>6} {:>10} {:>10} {:>10}",
        "device", "flows", "goodput", "allowed", "in flight"
    );
    let known: BTreeMap<_, u64> =
        before.flows.iter().map(|flow| ((flow.server, flow.mobile), flow.delivered)).collect();
    let delivered = |flow: &FlowStatus| {
        flow.delivered.saturating_sub(*known.get(&(flow.server, flow.mobile)).unwrap_or(&0))
    };
    let mut devices: BTreeMap<IpAddr, Device> = BTreeMap::new();
    for flow in &now.flows {
        let device = devices.entry(device_address(flow.mobile.ip())).or_default();
        device.flows += 1;
        device.delivered += delivered(flow);
        device.allowed = device.allowed.max(flow.allowed);
        device.in_flight += flow.in_flight;
    }
    let mut devices: Vec<_> = devices.into_iter().collect();
    devices.sort_by_key(|(address, device)| (Reverse(device.delivered), *address));
    for (address, device) in devices.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "{:40} {:>6} {:>10} {:>10} {:>10}",
            address.to_string(),
            device.flows,
            bits(8.0 * device.delivered as f64 / seconds),
            bits(device.allowed as f64),
            bytes(device.in_flight)
        );
    }
    text.push('\n');
    let mut busy: Vec<&FlowStatus> = now.flows.iter().collect();
    busy.sort_by_key(|flow| (Reverse(delivered(flow)), flow.server, flow.mobile));
    let busy: Vec<FlowStatus> = busy.into_iter().take(SHOWN).cloned().collect();
    text + &flow_table(&busy)
}

/// The device that has an address: an IPv6 /64 belongs to one device.
fn device_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(mobile: &str, delivered: u64) -> FlowStatus {
        FlowStatus {
            server: "192.0.2.1:443".parse().unwrap(),
            mobile: mobile.parse().unwrap(),
            exposure: 1000,
            held: 2000,
            in_flight: 3000,
            delivered,
            rtt_ms: Some(20.0),
            queue_ms: Some(5.0),
            stored_ms: 4.0,
            rate: 1_000_000,
            allowed: 8_000_000,
            window: 100_000,
            capacity: 9_000_000,
            target_ms: 10.0,
            control: "steady".into(),
            limit: "radio".into(),
            pattern: None,
        }
    }
    fn snapshot(uptime: f64, flows: Vec<FlowStatus>) -> Snapshot {
        let status = Status {
            version: "0".into(),
            process: 1,
            server: "srv".into(),
            mobile: "mob".into(),
            workers: 1,
            uptime,
            draining: false,
            paused: false,
            guarded: true,
            filter_stopped: None,
            notes: Vec::new(),
            switched_off: false,
            // Of another time than the list of connections.
            flows: 77,
            openings: 0,
            exposure: 77,
            held: 77,
            sharing_devices: 0,
            counters: BTreeMap::default(),
        };
        Snapshot { status, flows }
    }

    #[test]
    fn devices_and_totals_are_sums_of_the_listed_connections() {
        let [one, two, other] = ["[2001:db8::1]:5", "[2001:db8::2]:5", "10.0.0.2:5"];
        let before = snapshot(1.0, vec![flow(one, 100_000), flow(other, 9_000_000)]);
        let now = snapshot(2.0, vec![flow(one, 300_000), flow(two, 50_000), flow(other, 9_100_000)]);
        let page = page(&before, &now, &mut History::default());
        let line = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap();
        let columns = |start: &str| {
            line(start).split("  ").map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(columns("2001:db8:: ")[1..], ["2", &bits(2e6), &bits(8e6), &bytes(6000)], "{page}");
        assert_eq!(columns("10.0.0.2 ")[1..], ["1", &bits(8e5), &bits(8e6), &bytes(3000)], "{page}");
        let totals = format!("3 connections  0 handshakes  held {}  exposed {}", bytes(6000), bytes(3000));
        assert!(page.contains(&totals), "{page}");
        // The busiest device of this second is first, not the one with most bytes ever; all rows of
        // `paceline gateway flows` are there.
        assert!(page.find("2001:db8:: ") < page.find("10.0.0.2 "), "{page}");
        assert!(flow_table(&now.flows).lines().all(|row| page.contains(row)), "{page}");
    }

    #[test]
    fn the_history_is_as_high_as_the_rates_and_has_a_limit() {
        let mut history = History::default();
        history.add([1e6, 0.0, 5.0]);
        assert_eq!(history.text(), "");
        history.add([4e6, 0.0, 5.0]);
        history.add([8e6, 1.0, 0.0]);
        let text = history.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("down ") && lines[0].contains(" ▁▄█ at most "), "{text}");
        assert!(lines[0].ends_with(&bits(8e6)) && lines[1].contains("  █ at most"), "{text}");
        assert!(lines[2].contains(" ██  at most"), "{text}");
        (0..200).for_each(|n| history.add([f64::from(n); 3]));
        assert!(history.0.iter().all(|series| series.len() == REMEMBERED && series[0] == 140.0));
    }
}
