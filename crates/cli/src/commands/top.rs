//! `paceline top`: rates, devices and connections of a running gateway, refreshed every second.

use super::gateway::{Which, flow_table};
use crate::failure::Outcome;
use crate::output;
use crate::quantity::{bits, bytes};
use anyhow::Context;
use paceline_live::clock;
use paceline_live::gateway::{Client, Counter, DeviceStatus, FlowStatus, Status};
use paceline_live::terminal::{INTERRUPT, Terminal};
use paceline_net::Duration;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// Devices and connections on the page at most. Chosen: both tables fit into a terminal of 30 lines.
const SHOWN: usize = 10;
/// Refresh interval, over which rates are averages. Chosen: slow enough to be read.
const REFRESH_MS: u16 = 1000;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

/// Status, devices and connections at one time.
struct Snapshot {
    status: Status,
    devices: Vec<DeviceStatus>,
    flows: Vec<FlowStatus>,
}

impl Snapshot {
    fn take(which: &Which) -> anyhow::Result<Self> {
        let ask = || Client::find(which.control.as_deref());
        let status = ask()?.status()?;
        Ok(Self { status, devices: ask()?.devices()?, flows: ask()?.flows()? })
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
        output::print(&page(&before, &now))?;
        return Ok(ExitCode::SUCCESS);
    };
    loop {
        match terminal.key(REFRESH_MS) {
            Some(b'q' | b'Q' | INTERRUPT) => return Ok(ExitCode::SUCCESS),
            Some(_) => continue,
            None => {}
        }
        let now = Snapshot::take(&args.which)?;
        terminal.draw(&page(&before, &now)).context("cannot write to the terminal")?;
        before = now;
    }
}

fn page(before: &Snapshot, now: &Snapshot) -> String {
    let seconds = (now.status.uptime - before.status.uptime).max(1e-3);
    let rate = |counter| now.count(counter).saturating_sub(before.count(counter)) as f64 / seconds;
    let status = &now.status;
    let mut text = format!(
        "paceline {}  {} to {}  up {:.0} s{}{}\n",
        status.version,
        status.server,
        status.mobile,
        status.uptime,
        match (status.draining, status.aside) {
            (true, _) => "  STOPPING",
            (false, true) => "  ASIDE",
            (false, false) => "",
        },
        if status.filter_stopped.is_some() { "  ACK FILTER STOPPED" } else { "" }
    );
    let _ = writeln!(
        text,
        "down {}  up {}  accelerated {}  retransmitted {:.1} %\n{} connections  {} handshakes  held {}  exposed {}\n",
        bits(8.0 * rate(Counter::FrameBytesFromServers)),
        bits(8.0 * rate(Counter::FrameBytesFromDevices)),
        bits(8.0 * rate(Counter::BytesDelivered)),
        100.0 * rate(Counter::Retransmissions)
            / (rate(Counter::SegmentsSent) + rate(Counter::Retransmissions)).max(1.0),
        status.flows,
        status.openings,
        bytes(status.held),
        bytes(status.exposure)
    );
    let _ =
        writeln!(text, "{:40} {:>6} {:>10} {:>10} {:>10}", "device", "flows", "goodput", "rate", "in flight");
    let known: BTreeMap<_, u64> =
        before.devices.iter().map(|device| (device.address, device.delivered)).collect();
    for device in now.devices.iter().take(SHOWN) {
        let delivered =
            known.get(&device.address).map_or(0, |delivered| device.delivered.saturating_sub(*delivered));
        let _ = writeln!(
            text,
            "{:40} {:>6} {:>10} {:>10} {:>10}",
            device.address.to_string(),
            device.flows,
            bits(8.0 * delivered as f64 / seconds),
            bits(device.rate as f64),
            bytes(device.in_flight)
        );
    }
    text.push('\n');
    let known: BTreeMap<_, u64> =
        before.flows.iter().map(|flow| ((flow.server, flow.mobile), flow.delivered)).collect();
    let delivered = |flow: &FlowStatus| {
        flow.delivered.saturating_sub(*known.get(&(flow.server, flow.mobile)).unwrap_or(&0))
    };
    let mut busy: Vec<&FlowStatus> = now.flows.iter().collect();
    busy.sort_by_key(|flow| (Reverse(delivered(flow)), flow.server, flow.mobile));
    let busy: Vec<FlowStatus> = busy.into_iter().take(SHOWN).cloned().collect();
    text + &flow_table(&busy)
}
