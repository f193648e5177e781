//! The interfaces of a running gateway: the checks that are repeated, and interfaces that come back.

use super::{ANSWER_TIMEOUT, ControlPlane, Place, lock};
use crate::config::{GatewayConfig, Mode};
use crate::control_plane::away::Message;
use crate::control_plane::requests::WorkerRequest;
use crate::datapath::socket::PacketSocket;
use crate::datapath::steering::Steering;
use crate::experiment::Successor;
use crate::interfaces::{bridge, firewall, router};
use crate::service::log::{self, Level};
use anyhow::{Context, bail};
use paceline_pep::accelerator::Side;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

impl ControlPlane {
    /// Checks the interfaces, and passes changes on to the kernel programs. To be called about once a
    /// second. If the gateway cannot work between its interfaces, the error says why, and the kernel forwards
    /// everything until the problem is gone.
    pub fn check_interfaces(&self) -> anyhow::Result<()> {
        if lock(&self.away).gone().is_some() {
            return Ok(()); // a note says so
        }
        let config = self.config();
        let fit = match config.mode {
            Mode::Bridge => {
                let (bridge, fit) = bridge::inspect(&config)?;
                let set = |steering: &Steering| bridge.iter().try_for_each(|now| steering.set_bridge(now));
                lock(&self.steering).iter().try_for_each(set)?;
                fit.and_then(|()| firewall::check_bridge())
            }
            Mode::Routed => {
                let interfaces =
                    nix::ifaddrs::getifaddrs().context("cannot read this machine's addresses")?;
                let addresses: Vec<IpAddr> =
                    interfaces.filter_map(|interface| own_address(&interface)).collect();
                lock(&self.steering).iter().try_for_each(|steering| steering.set_local(&addresses))?;
                router::inspect(&config)?.and_then(|()| self.check_firewall(&config.server))
            }
        };
        self.update_clamp(&config)?;
        let paused = fit.is_err() || lock(&self.experiments).is_switched_off();
        if self.paused.swap(paused, Ordering::Relaxed) != paused {
            self.send_to_all(|| WorkerRequest::Pause(paused.then_some(config.drain)));
        }
        fit
    }
    fn check_firewall(&self, server: &str) -> anyhow::Result<()> {
        if lock(&self.leaving).is_found() {
            bail!(
                "early acknowledgments do not leave this machine by {server}: a firewall drops those that conntrack \
                 calls INVALID (`sysctl net.netfilter.nf_conntrack_tcp_be_liberal=1` has them pass), or a route \
                 goes elsewhere; `paceline gateway reload` tries again"
            );
        }
        Ok(())
    }

    /// Looks whether the interfaces are there, and works at those that have come back. To be called many
    /// times a second. True once when they have come back: [`Self::check_interfaces`] is due.
    pub fn follow_interfaces(&self) -> bool {
        let config = self.config();
        let works = lock(&self.place).works();
        let told = lock(&self.away).look(works, || self.attach_again(&config));
        if matches!(told, Some(Message::Gone(_))) {
            self.release_sockets(works);
        }
        let is_back = matches!(told, Some(Message::Back(_)));
        let (level, event, text) = match told {
            None => return false,
            Some(Message::Gone(names)) => (
                Level::Warning,
                "interface-gone",
                format!("{names} is gone; connections wait until it is there again"),
            ),
            Some(Message::Back(names)) => {
                (Level::Notice, "interface-back", format!("{names} is there again; accelerating again"))
            }
            Some(Message::Refused(problem)) => {
                (Level::Warning, "interface-gone", format!("cannot work at the interface yet: {problem}"))
            }
        };
        log::message(level, &text, &[("PACELINE_EVENT", event)]);
        is_back
    }
    /// Attaches programs and sockets to interfaces that have come back, and returns the indices.
    fn attach_again(&self, config: &GatewayConfig) -> anyhow::Result<[u32; 2]> {
        let ports = match config.mode {
            Mode::Bridge => bridge::join(config)?,
            Mode::Routed => router::join(config)?,
        };
        let mut place = lock(&self.place);
        let works = place.works();
        // Another one may have gone meanwhile.
        self.release_sockets_at(&mut place, works);
        {
            // The experiments are locked ahead of the kernel programs elsewhere.
            let mut steering = lock(&self.steering);
            let Some(steering) = steering.as_mut() else { bail!("the gateway ends") };
            let gone: Vec<u32> = place
                .indices
                .get()
                .into_iter()
                .zip(works)
                .filter(|(_, works)| !works)
                .map(|(own, _)| own)
                .collect();
            steering.attach_again(ports, &gone)?;
            for (side, index) in [(Side::Server, ports.server), (Side::Mobile, ports.mobile)] {
                if !works[side as usize] {
                    self.open_sockets(steering, &mut place, (side, index))?;
                }
            }
        }
        place.indices.set(&ports);
        if !works[Side::Mobile as usize] {
            let observe = |tap: &Successor| tap.open(ports.mobile);
            lock(&self.records).as_ref().map_or(Ok(()), observe).context("records")?;
            lock(&self.experiments).observe(ports.mobile).context("experiment")?;
        }
        Ok([ports.server, ports.mobile])
    }
    fn release_sockets(&self, works: [bool; 2]) {
        self.release_sockets_at(&mut lock(&self.place), works);
    }
    /// Takes the sockets of interfaces that are gone from the workers: they would fill the group of an
    /// interface that returns with the same index.
    fn release_sockets_at(&self, place: &mut Place, works: [bool; 2]) {
        for side in [Side::Server, Side::Mobile] {
            if works[side as usize] || place.sockets[side as usize].is_empty() {
                continue;
            }
            place.sockets[side as usize].clear();
            // Without descriptors the workers keep the former ones.
            let unbound =
                self.workers.iter().map(|_| PacketSocket::open()).collect::<std::io::Result<Vec<_>>>();
            self.hand_over(side, unbound.unwrap_or_default());
        }
    }
    /// Gives each worker a socket on an interface.
    fn open_sockets(
        &self,
        steering: &Steering,
        place: &mut Place,
        (side, interface): (Side, u32),
    ) -> anyhow::Result<()> {
        let open = || -> anyhow::Result<PacketSocket> {
            let mut socket = PacketSocket::open().context("cannot open a packet socket")?;
            steering.open(&mut socket, interface, self.workers.len())?;
            Ok(socket)
        };
        let sockets: Vec<PacketSocket> =
            self.workers.iter().map(|_| open()).collect::<anyhow::Result<_>>()?;
        place.sockets[side as usize] =
            sockets.iter().map(PacketSocket::duplicate).collect::<std::io::Result<_>>()?;
        self.hand_over(side, sockets);
        Ok(())
    }
    /// Gives each worker its socket of a side, and waits until it has closed the former one.
    fn hand_over(&self, side: Side, sockets: Vec<PacketSocket>) {
        let (answer, answers) = channel();
        for (worker, socket) in self.workers.iter().zip(sockets) {
            // The worker may have ended.
            let _ = worker.requests.send(WorkerRequest::Attach(side, socket, answer.clone()));
        }
        drop(answer);
        while answers.recv_timeout(ANSWER_TIMEOUT).is_ok() {}
    }
    /// The thread that writes records observes by this socket's successors.
    pub(crate) fn note_records(&self, successor: Successor) {
        *lock(&self.records) = Some(successor);
    }
}

fn own_address(interface: &nix::ifaddrs::InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}
