//! Packets that pass an interface of this host, for as long as the user asks.

use crate::failure::{Failure, Outcome};
use anyhow::Context;
use paceline_explain::Explainer;
use paceline_import::capture::stream::{Captured, DataLink};
use paceline_linux::clock::{Clock, Monotonic};
use paceline_linux::network::sniffer::Sniffer;
use paceline_linux::stop::StopSignals;
use paceline_net::Duration;
use std::os::fd::AsFd;

/// Time between two looks at signals and at the end. Chosen: not noticed by an operator.
const CHECK: Duration = Duration::from_millis(100);

/// Gives the packets to `explainer` until the time is over or a signal arrives.
pub fn read(explainer: &mut Explainer, interface: &str, duration: Option<Duration>) -> Outcome<()> {
    let failed = |error: std::io::Error| {
        let hint = if error.kind() == std::io::ErrorKind::PermissionDenied { "; needs root" } else { "" };
        Failure::input(format!("--interface {interface}: {error}{hint}"))
    };
    let mut sniffer = Sniffer::open(interface).map_err(failed)?;
    let link = if sniffer.has_link_header().map_err(failed)? { DataLink::ETHERNET } else { DataLink::RAW };
    explainer.name_interface(interface);
    let stop = StopSignals::register()?;
    let mut clock = Monotonic::start();
    let end = duration.map(|duration| clock.now() + duration);
    let reading = || format!("cannot read the packets of {interface}");
    while !stop.stopped() && end.is_none_or(|end| clock.now() < end) {
        let until = clock.now() + CHECK;
        while let Some(packet) = sniffer.receive().with_context(reading)? {
            let (at_ns, data, len) = (packet.at_ns, packet.data, packet.len);
            explainer.on_packet(&Captured { interface: 0, link, at_ns, data, len });
            if clock.now() > until {
                break;
            }
        }
        let until = clock.now() + CHECK;
        clock.wait(&[sniffer.as_fd()], until).with_context(reading)?;
    }
    let lost = sniffer.lost().with_context(reading)?;
    if lost > 0 {
        explainer.note(format!("{lost} packets were lost before they were read: they count as missing"));
    }
    Ok(())
}
