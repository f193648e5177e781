//! Routed mode: this machine is a router between the interfaces. What the gateway sends goes through the kernel's
//! routing like any packet that arrives: it comes in by a device of our own, a pair of which the gateway holds the
//! other end. So the kernel finds neighbours, decrements hop limits, and applies routes and filters.
//!
//! The pair is made anew at each start and removed at an orderly end; after another end it is left, and carries nothing.

use super::config::GatewayConfig;
use super::device::device;
use super::steering::{Ports, Role};
use crate::netns::ip;
use anyhow::{Context, bail};
use std::fs;

/// Makes the pair and gives the indices of the interfaces.
pub fn join(config: &GatewayConfig) -> anyhow::Result<Ports> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    server.check_merging()?;
    mobile.check_merging()?;
    check_forwarding(config)?;
    let (own, kernels) = names(config);
    let _ = ip(&[format!("link del {own}")]); // one that was left; there may be none
    ip(&[
        format!("link add {own} mtu 65535 type veth peer name {kernels} mtu 65535"),
        format!("link set {own} addrgenmode none arp off up"),
        format!("link set {kernels} addrgenmode none arp off up"),
    ])
    .context("cannot make the pair of devices")?;
    for (family, key, value) in
        [("ipv4", "forwarding", "1"), ("ipv4", "rp_filter", "0"), ("ipv6", "forwarding", "1")]
    {
        let path = sysctl(family, &kernels, key);
        // A kernel without IPv6 has no such file.
        if fs::exists(&path).unwrap_or(false) {
            fs::write(&path, value).with_context(|| format!("cannot write {path}"))?;
        }
    }
    let (own, kernels) = (device(&own)?, device(&kernels)?);
    let addresses = [kernels.ethernet_address()?, own.ethernet_address()?].concat();
    let addresses = addresses.try_into().map_err(|_| anyhow::anyhow!("two addresses have twelve bytes"))?;
    let role = Role::Router { exit: own.ifindex, addresses };
    Ok(Ports { server: server.ifindex, mobile: mobile.ifindex, role })
}

/// Removes the pair.
pub fn leave(config: &GatewayConfig) {
    let _ = ip(&[format!("link del {}", names(config).0)]); // the interfaces' end may have been first
}

/// The gateway's end and the kernel's.
fn names(config: &GatewayConfig) -> (String, String) {
    (config.bridge.clone(), format!("{}r", config.bridge))
}

fn sysctl(family: &str, interface: &str, key: &str) -> String {
    format!("/proc/sys/net/{family}/conf/{interface}/{key}")
}

fn check_forwarding(config: &GatewayConfig) -> anyhow::Result<()> {
    let on = |family: &str, interface: &str| {
        fs::read_to_string(sysctl(family, interface, "forwarding")).is_ok_and(|value| value.trim() == "1")
    };
    for interface in [&config.server, &config.mobile] {
        if !on("ipv4", interface) && !on("ipv6", interface) {
            bail!(
                "the kernel does not forward what comes by {interface}: `sysctl net.ipv4.ip_forward=1 \
                 net.ipv6.conf.all.forwarding=1`"
            );
        }
    }
    let strict = fs::read_to_string(sysctl("ipv4", "all", "rp_filter"));
    if strict.is_ok_and(|value| value.trim() == "1") {
        bail!(
            "net.ipv4.conf.all.rp_filter = 1: allowed: 0 or 2, since what the gateway sends comes by {}",
            names(config).1
        );
    }
    Ok(())
}
