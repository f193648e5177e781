//! A policer of this process.

use super::clsact::OwnFilters;
use super::device::{exists, interface, is_ip_link};
use super::report::{self, Report};
use super::{Loaded, OBSERVE, POLICE, PoliceConfig, Via, find, is_without_tcx, pins};
use anyhow::{Context, bail};
use paceline_linux::bpf::tcx::{self, Hook};
use std::io;
use std::os::fd::OwnedFd;

/// Message of an attachment that fails.
const CANNOT_ATTACH: &str = "cannot attach to the interface";

/// A policer that this process attached; it ends with the process, unless it is pinned.
pub struct Police {
    // Dropped first: the programs leave their hooks before they are unloaded.
    place: Place,
    loaded: Loaded,
    interface: u32,
    direction: Hook,
}

/// Where the programs are: the reader of data first.
enum Place {
    Tcx([OwnedFd; 2]),
    Clsact(OwnFilters),
}

/// State of a policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Both programs are at their hooks.
    Attached,
    /// A program was detached, by another process.
    Detached,
    /// The network device is gone.
    DeviceGone,
}

impl Police {
    /// Attaches a policer to a device. Fails if one is there.
    pub fn attach(device: &str, config: &PoliceConfig) -> anyhow::Result<Self> {
        let interface = interface(device)?;
        pins::remove_stale();
        for found in find(interface).with_context(|| device.to_owned())? {
            if !found.is_left_behind() {
                bail!(
                    "{device}: a policer is attached already; detach it first, or see `paceline police show`"
                );
            }
            found.detach()?;
        }
        let loaded = Loaded::new(config, is_ip_link(device)?, false)?;
        let place = place(&loaded, interface, config).with_context(|| device.to_owned())?;
        Ok(Self { place, loaded, interface, direction: config.direction })
    }
    /// Its state, by its own descriptors: no privilege is needed.
    pub fn state(&self) -> State {
        let is_attached = match &self.place {
            Place::Tcx(links) => links.iter().all(|link| matches!(tcx::interface(link), Ok(Some(_)))),
            Place::Clsact(filters) => filters.are_attached(),
        };
        if is_attached {
            State::Attached
        } else if exists(self.interface) {
            State::Detached
        } else {
            State::DeviceGone
        }
    }
    /// Keeps the programs at their hooks when this process ends.
    pub fn pin(&mut self) -> anyhow::Result<()> {
        match &mut self.place {
            Place::Tcx(links) => pins::add(links.iter().zip([OBSERVE, POLICE])),
            Place::Clsact(filters) => filters.pin().context("cannot pin"),
        }
    }
    /// Its configuration and counters, with the connections it remembers, busiest first.
    pub fn report(&self) -> anyhow::Result<Report> {
        report::read(self.direction, |name| self.loaded.map(name))
    }
}

/// Attaches both programs.
fn place(loaded: &Loaded, interface: u32, config: &PoliceConfig) -> anyhow::Result<Place> {
    let programs = [loaded.program(OBSERVE)?, loaded.program(POLICE)?];
    if config.via != Via::Clsact {
        // First the reader of data, so that no ACK is judged without it.
        match tcx::attach(programs[0], interface, config.direction.opposite()) {
            Ok(reader) => {
                let judge = tcx::attach(programs[1], interface, config.direction).context(CANNOT_ATTACH)?;
                return Ok(Place::Tcx([reader, judge]));
            }
            Err(error) if config.via == Via::Auto && is_without_tcx(&error) => {}
            Err(error) if is_without_tcx(&error) => {
                return Err(error)
                    .context("via = tcx: this kernel has no TCX (Linux 6.6); allowed: auto, clsact");
            }
            Err(error) => return Err(error).context(CANNOT_ATTACH),
        }
    }
    match OwnFilters::attach(programs, interface, config.direction) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!("a policer of another process is about to be attached")
        }
        result => result.map(Place::Clsact).context("cannot attach by clsact"),
    }
}
