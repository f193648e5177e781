//! `paceline police estimate`: what a policer would save on this traffic, before it is attached. At an
//! interface the kernel program decides and counts, and drops nothing; a capture goes through its Rust form.

use super::attach_args::{Direction, PolicyArgs};
use super::captured::{self, Estimate};
use super::host::{require, wait_while};
use super::text::{kept, percent};
use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::{Context, anyhow};
use ipnet::IpNet;
use paceline_linux::clock;
use paceline_linux::stop::StopSignals;
use paceline_net::Duration;
use paceline_police::{Police, Reason, State};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// Share of ACKs of connections that began earlier above which the estimate says so, percent. Chosen.
const MANY_EARLIER: f64 = 5.0;

#[derive(clap::Args)]
pub struct EstimateArgs {
    /// Network device, or a capture (pcap, pcapng) with both directions
    target: String,
    /// The direction in which ACKs would be dropped (a device only)
    #[arg(long)]
    direction: Option<Direction>,
    /// Network whose ACKs would be dropped (a capture only); the side of each connection that sends less data
    /// if left out
    #[arg(long, value_name = "PREFIX")]
    receivers: Option<IpNet>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// How long to count at a device, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// CPU time of the router for a packet in ns, for the CPU time that would be saved
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    ns_per_packet: Option<u32>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub fn run(args: &EstimateArgs) -> Outcome {
    let estimate = if Path::new(&args.target).is_file() { of_capture(args)? } else { of_device(args)? };
    output::print(&if args.json { estimate.as_json(args) } else { estimate.as_text(args) })?;
    Ok(ExitCode::SUCCESS)
}

fn of_device(args: &EstimateArgs) -> Outcome<Estimate> {
    let device = &args.target;
    paceline_police::interface(device)
        .with_context(|| format!("{device}: neither a capture nor a network device"))
        .map_err(Failure::Input)?;
    let refuse = |text: &str| Failure::input(format!("{device} is a network device: {text}"));
    let direction = args.direction.ok_or_else(|| refuse("--direction is missing: ingress or egress"))?;
    if args.receivers.is_some() {
        return Err(refuse("--receivers is for captures; --exempt leaves networks out"));
    }
    let config = args.policy.config(direction, true).map_err(Failure::input)?;
    require()?;
    let stop = StopSignals::register()?;
    let attached = Police::attach(device, &config)?;
    let began = clock::now();
    output::message(&format!("counting at {device} for {} s; Ctrl-C ends it earlier\n", args.seconds));
    let until = began + Duration::from_secs(args.seconds.into());
    wait_while(&stop, || clock::now() < until && attached.state() == State::Attached);
    let seconds = clock::now().as_secs_f64() - began.as_secs_f64();
    if attached.state() == State::DeviceGone {
        return Err(Failure::Failed(anyhow!("{device}: the network device is gone")));
    }
    let report = attached.report()?;
    Ok(Estimate {
        seconds,
        policed_packets: report.packets,
        data_packets: report.data_packets,
        acks: report.acks,
        decisions: report.decisions,
        interface: None,
    })
}

fn of_capture(args: &EstimateArgs) -> Outcome<Estimate> {
    let name = &args.target;
    if args.direction.is_some() {
        let text = "--direction is for devices; --receivers names the side whose ACKs would be dropped";
        return Err(Failure::input(format!("{name} is a capture: {text}")));
    }
    let config = args.policy.config(Direction::Ingress, true).map_err(Failure::input)?;
    captured::estimate(name, &config, args.receivers)
}

impl Estimate {
    fn count(&self, wanted: Reason) -> u64 {
        self.decisions.iter().find(|(reason, _)| *reason == wanted).map_or(0, |(_, count)| *count)
    }
    fn packets(&self) -> u64 {
        self.policed_packets + self.data_packets
    }
    fn per_s(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }
    /// Share of one CPU that the router would need less, percent.
    fn cpu_saved(&self, args: &EstimateArgs) -> Option<f64> {
        args.ns_per_packet.map(|ns| 100.0 * self.per_s(self.count(Reason::Dropped)) * f64::from(ns) / 1e9)
    }

    fn as_text(&self, args: &EstimateArgs) -> String {
        let dropped = self.count(Reason::Dropped);
        let mut text = format!(
            "{}, {:.1} s: {:.0} packets/s, of them {:.0} pure ACKs/s in the policed direction\n\
             would drop {:.0} ACKs/s: {:.1}% of these ACKs; a router behind the policer forwards {:.1}% fewer \
             packets\n",
            args.target,
            self.seconds,
            self.per_s(self.packets()),
            self.per_s(self.acks),
            self.per_s(dropped),
            percent(dropped, self.acks),
            percent(dropped, self.packets()),
        );
        if let Some(interface) = &self.interface {
            let _ = writeln!(
                text,
                "counted: {interface} alone, of several interfaces that with the most segments"
            );
        }
        match self.cpu_saved(args) {
            Some(saved) => {
                let _ = writeln!(text, "CPU time of the router: {saved:.2}% of one CPU less");
            }
            None => {
                text += "its CPU time falls by the same share where it is linear in packets \
                (--ns-per-packet for a figure)\n"
            }
        }
        for (reason, count) in self.decisions.iter().filter(|(reason, _)| *reason != Reason::Dropped) {
            let share = percent(*count, self.acks);
            let _ = writeln!(
                text,
                "  would keep {:<17} {:>10.0}/s  {share:>5.1}%",
                reason.name(),
                self.per_s(*count)
            );
        }
        if percent(self.count(Reason::MidStream), self.acks) > MANY_EARLIER {
            text += "mid-stream: their connections began before the count; a policer acts on later ones\n";
        }
        text
    }

    fn as_json(&self, args: &EstimateArgs) -> String {
        let dropped = self.count(Reason::Dropped);
        let value = json!({
            "target": args.target,
            "interface": self.interface,
            "seconds": self.seconds,
            "packets": self.packets(),
            "policed_packets": self.policed_packets,
            "acks": self.acks,
            "would_drop": dropped,
            "would_keep": kept(&self.decisions),
            "would_drop_per_s": self.per_s(dropped),
            "share_of_acks": percent(dropped, self.acks) / 100.0,
            "share_of_packets": percent(dropped, self.packets()) / 100.0,
            "cpu_share_saved": self.cpu_saved(args).map(|percent| percent / 100.0),
        });
        format!("{value}\n")
    }
}
