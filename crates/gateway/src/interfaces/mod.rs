//! The two network interfaces: how the kernel forwards between them, and which of them has which side.
//!
//! - [`side_detection`] finds out, if the configuration leaves it open, which interface is towards the
//!   servers.
//! - [`bridge`] makes the interfaces ports of one kernel bridge; [`router`] prepares a machine that routes
//!   between them. Both return the interface indices ([`ports`]) that the data path is attached to, and both
//!   are asked once a second whether the gateway can still work between its interfaces.
//! - [`bridge_watch`] follows the states of the ports and the forwarding database.
//! - [`firewall`] looks for a firewall on this machine that follows connections too.
//! - [`mtu`] has the MTUs of both, [`path_mtu`] measures that of a path, [`mss_clamp`] has the highest
//!   segment size.
//! - [`device`] reads the state of a network device from `ip -json`.
//!
//! No packet passes this module, except the SYN-ACKs that side detection counts before the gateway starts.

pub mod bridge;
mod bridge_state;
pub mod bridge_watch;
pub mod device;
pub mod firewall;
pub mod mss_clamp;
pub mod mtu;
pub mod path_mtu;
pub mod ports;
pub mod router;
pub mod side_detection;

use crate::config::GatewayConfig;
use ports::{Interface, Ports, Role};

/// The interfaces of a gateway by name and index: towards the servers, towards the devices, and in routed
/// mode the device by which packets enter the kernel's routing.
pub fn watched(config: &GatewayConfig, ports: Ports) -> Vec<Interface> {
    let interface = |name: &str, index| Interface { name: name.to_owned(), index };
    let sides = [interface(&config.server, ports.server), interface(&config.mobile, ports.mobile)];
    let exit = match ports.role {
        Role::Bridge { .. } => None,
        Role::Router { exit, .. } => Some(interface(&config.bridge, exit)),
    };
    sides.into_iter().chain(exit).collect()
}
