//! Which interface is towards the servers, where the configuration leaves it open: connections are opened from the mobile
//! side and answered from the other. Until that is clear the kernel forwards everything.

use super::config::{GatewayConfig, Mode, Sides};
use super::device::device;
use super::frame::{self, Arrival};
use super::socket::{PacketSocket, Slot};
use super::{bridge, steering::Ports};
use anyhow::Context;
use paceline_net::TcpFlags;

/// First bytes of a packet that are looked at: the longest SYN with its headers.
const LOOK: u32 = 192;
/// So many more connections have to be answered from one interface than from the other.
const LEAD: u32 = 3;
/// Packets taken in at once.
const BATCH: usize = 32;

/// Answered handshakes, by the interface from which the answer came.
#[derive(Default, Debug)]
struct Tally {
    answers: [u32; 2],
}

impl Tally {
    fn count(&mut self, interface: usize, arrival: &Arrival) {
        let Arrival::Datagram(_, packet) = arrival else { return };
        let answer = TcpFlags::SYN.with(TcpFlags::ACK);
        if packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(answer)) {
            self.answers[interface] += 1;
        }
    }
    /// The interface that is towards the servers.
    fn server(&self) -> Option<usize> {
        let [first, second] = self.answers;
        (first.abs_diff(second) >= LEAD).then_some(usize::from(second > first))
    }
}

/// The configuration with `server` and `mobile` as they really are: at once, or when connections have shown it. `waiting`
/// is called again and again meanwhile, lets some time pass, and may end it; there is no configuration then.
pub fn settle(
    mut config: GatewayConfig,
    mut waiting: impl FnMut() -> bool,
) -> anyhow::Result<Option<GatewayConfig>> {
    if config.sides == Sides::Configured {
        return Ok(Some(config));
    }
    let interfaces = match config.mode {
        Mode::Bridge => {
            let Ports { server, mobile, .. } = bridge::join(&config)?;
            [server, mobile]
        }
        Mode::Routed => [device(&config.server)?.ifindex, device(&config.mobile)?.ifindex],
    };
    let open =
        |interface| PacketSocket::open_watching(interface, LOOK).context("cannot open a packet socket");
    let mut sockets = [open(interfaces[0])?, open(interfaces[1])?];
    let mut slots: Vec<Slot> = (0..BATCH).map(|_| Slot::new()).collect();
    let mut tally = Tally::default();
    while waiting() {
        for (interface, socket) in sockets.iter_mut().enumerate() {
            let received = socket.receive(&mut slots).unwrap_or(0);
            slots[..received].iter_mut().for_each(|slot| tally.count(interface, &frame::read(slot)));
        }
        if let Some(server) = tally.server() {
            if server == 1 {
                config.swap_sides();
            }
            return Ok(Some(config));
        }
    }
    Ok(None)
}
