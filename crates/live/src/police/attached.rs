//! A policer of this process.

use super::device::{exists, interface, is_ip_link};
use super::report::{self, Report};
use super::{Loaded, OBSERVE, POLICE, PoliceConfig, find, pins};
use crate::tcx::{self, Hook};
use anyhow::{Context, bail};
use std::os::fd::OwnedFd;

/// A policer that this process attached; it ends with the process, unless it is pinned.
pub struct Police {
    loaded: Loaded,
    links: [OwnedFd; 2],
    interface: u32,
    direction: Hook,
}

/// What has become of a policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Both programs are at their hooks.
    Attached,
    /// Somebody detached it.
    Detached,
    /// The network device is gone.
    DeviceGone,
}

impl Police {
    /// Attaches a policer to a device. Fails if one is there.
    pub fn attach(device: &str, config: &PoliceConfig) -> anyhow::Result<Self> {
        let interface = interface(device)?;
        pins::remove_stale();
        if !find(interface).with_context(|| device.to_owned())?.is_empty() {
            bail!("{device}: a policer is attached already; detach it first, or see `paceline police show`");
        }
        let loaded = Loaded::new(config, is_ip_link(device)?, false)?;
        // First the reader of data, so that no ACK is judged without it.
        let reader = loaded.attach(OBSERVE, interface, config.direction.opposite())?;
        let judge = loaded.attach(POLICE, interface, config.direction)?;
        Ok(Self { loaded, links: [reader, judge], interface, direction: config.direction })
    }
    /// What has become of it. Its own descriptors tell: no privilege is needed.
    pub fn state(&self) -> State {
        if self.links.iter().all(|link| matches!(tcx::interface(link), Ok(Some(_)))) {
            State::Attached
        } else if exists(self.interface) {
            State::Detached
        } else {
            State::DeviceGone
        }
    }
    /// Keeps the programs at their hooks when this process ends.
    pub fn pin(&self) -> anyhow::Result<()> {
        pins::add(self.links.iter().zip([OBSERVE, POLICE]))
    }
    /// Its configuration and counters, with the connections it remembers, busiest first.
    pub fn report(&self) -> anyhow::Result<Report> {
        report::read(self.direction, |name| self.loaded.map(name))
    }
}
