//! Bridge mode: the kernel bridge below the gateway forwards what the gateway does not take, and everything when there
//! is no gateway. It stays when the gateway ends, since without it nothing would be forwarded.

use super::config::GatewayConfig;
use super::device::device;
use super::steering::{Ports, Role};
use crate::netns::ip;
use anyhow::{Context, bail};

/// Makes the interfaces ports of one bridge if they are not, and gives their indices.
pub fn join(config: &GatewayConfig) -> anyhow::Result<Ports> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    let bridge = match (&server.master, &mobile.master) {
        (Some(one), Some(other)) if one != other => bail!(
            "{} is in {one} and {} in {other}: both have to be in one bridge, or in none",
            config.server,
            config.mobile
        ),
        (Some(bridge), _) | (None, Some(bridge)) => bridge.clone(),
        (None, None) => {
            if device(&config.bridge).is_err() {
                ip(&[format!("link add {} type bridge stp_state 0 forward_delay 0", config.bridge)])
                    .context("cannot make the bridge")?;
            }
            config.bridge.clone()
        }
    };
    let found = device(&bridge)?;
    if !found.is_bridge() {
        bail!("{} and {} are in {bridge}, which is no bridge", config.server, config.mobile);
    }
    for port in [&server, &mobile] {
        if port.master.is_none() {
            ip(&[format!("link set {} master {bridge}", port.ifname)])
                .with_context(|| format!("cannot make {} a port of {bridge}", port.ifname))?;
        }
    }
    // What is on already needs no privileges of `ip`.
    for device in [&server, &mobile, &found].into_iter().filter(|device| !device.is_up()) {
        ip(&[format!("link set {} up", device.ifname)])?;
    }
    // It takes the address of a port as it gets one.
    let role = Role::Bridge { address: device(&bridge)?.ethernet_address()? };
    Ok(Ports { server: server.ifindex, mobile: mobile.ifindex, role })
}
