//! `paceline pattern`: the period of a TDD cell, learned from a capture of TCP traffic at either end.

mod connection;

use crate::failure::{Failure, Outcome};
use crate::output;
use connection::{Connection, Segment};
use etherparse::{TcpOptionElement, TransportSlice};
use paceline_explain::period::{Finding, Findings};
use paceline_import::capture::file;
use paceline_report::table::align;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Capture of TCP traffic, pcap or pcapng, made at the sender or at the receiver
    capture: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Interface of the capture and both ends of a connection, the lower address first.
type Key = (u32, SocketAddr, SocketAddr);

/// The connections of a capture, and the learners of each interface as a whole.
#[derive(Default)]
struct Analysis {
    connections: BTreeMap<Key, Connection>,
    interfaces: BTreeMap<u32, Findings>,
}

pub fn run(args: &Args) -> Outcome {
    let name = args.capture.display();
    let file = std::fs::read(&args.capture)
        .map_err(|error| Failure::input(format!("{name}: cannot be read: {error}")))?;
    if !file::is_capture(&file) {
        return Err(Failure::input(format!("{name}: is no capture; allowed: pcap, pcapng")));
    }
    let mut analysis = Analysis::default();
    let names = file::read(&file, |packet| analysis.on_packet(packet))
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    if analysis.connections.is_empty() {
        return Err(Failure::input(format!(
            "{name}: has no TCP segments; allowed link types: Ethernet, raw IP, Linux cooked, loopback"
        )));
    }
    output::print(&if args.json { analysis.json(&names) } else { analysis.text(&names) })?;
    Ok(ExitCode::SUCCESS)
}

impl Analysis {
    fn on_packet(&mut self, captured: &file::Captured<'_>) {
        let Some(datagram) = file::datagram(captured) else { return };
        let Some(TransportSlice::Tcp(tcp)) = &datagram.packet.transport else { return };
        let header_bytes = datagram.header_bytes + 4 * u64::from(tcp.data_offset());
        let sack = tcp.options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, rest)) => {
                Some(std::iter::once(Some(first)).chain(rest).flatten().collect())
            }
            _ => None,
        });
        let segment = Segment {
            at_ns: captured.at_ns,
            seq: tcp.sequence_number(),
            len: datagram.bytes.saturating_sub(header_bytes) as u32,
            ack: tcp.ack().then(|| tcp.acknowledgment_number()),
            sack: sack.unwrap_or_default(),
            opens: tcp.syn(),
        };
        let src = SocketAddr::new(datagram.src, tcp.source_port());
        let dst = SocketAddr::new(datagram.dst, tcp.destination_port());
        let (low, high) = (src.min(dst), src.max(dst));
        let connection = self.connections.entry((captured.interface, low, high)).or_default();
        let all = self.interfaces.entry(captured.interface).or_default();
        connection.on_segment(usize::from(src > dst), &segment, all);
    }
    /// Rows by interface: its connections, then all of them together.
    fn rows(&self) -> impl Iterator<Item = (u32, Option<(SocketAddr, SocketAddr)>, u64, Option<Finding>)> {
        self.interfaces.iter().flat_map(|(interface, all)| {
            let own = self.connections.iter().filter(move |((at, ..), _)| at == interface);
            let rows = own.map(|((_, low, high), connection)| {
                let (from, bytes, finding) = connection.finding();
                let ends = if from == 0 { (*low, *high) } else { (*high, *low) };
                (*interface, Some(ends), bytes, finding)
            });
            let bytes = |(_, connection): (&Key, &Connection)| connection.finding().1;
            let own = self.connections.iter().filter(move |((at, ..), _)| at == interface);
            rows.chain(std::iter::once((*interface, None, own.map(bytes).sum(), all.best())))
        })
    }
    fn text(&self, names: &[String]) -> String {
        let head = ["data from", "to", "MB", "period", "phase", "chance of noise", "seen in"];
        let mut text = String::new();
        for interface in self.interfaces.keys() {
            let mut lines = vec![head.map(str::to_owned).to_vec()];
            for (_, ends, bytes, finding) in self.rows().filter(|(at, ..)| at == interface) {
                let (from, to) = match ends {
                    Some((from, to)) => (from.to_string(), to.to_string()),
                    None => ("all connections".into(), String::new()),
                };
                let cells = finding.as_ref().map_or_else(
                    || ["none", "", "", ""].map(str::to_owned),
                    |finding| [finding.period(), finding.phase(), finding.chance(), finding.seen_in.into()],
                );
                let mut line = vec![from, to, format!("{:.3}", bytes as f64 / 1e6)];
                line.extend(cells);
                lines.push(line);
            }
            match names.get(*interface as usize).filter(|name| !name.is_empty()) {
                Some(name) if names.len() > 1 => drop(writeln!(text, "interface {name}:")),
                _ => {}
            }
            text += &align(&lines, 2);
        }
        text
    }
    fn json(&self, names: &[String]) -> String {
        let rows = self.rows().map(|(interface, ends, bytes, finding)| {
            json!({
                "interface": names.get(interface as usize),
                "from": ends.map(|(from, _)| from.to_string()),
                "to": ends.map(|(_, to)| to.to_string()),
                "bytes": bytes,
                "pattern": finding,
            })
        });
        output::json(&json!({"paceline": paceline_study::origin(), "flows": rows.collect::<Value>()}))
    }
}
