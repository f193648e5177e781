//! Routed mode: this machine is a router between the interfaces. What the gateway sends goes through the kernel's
//! routing like any packet that arrives: it comes in by a device of our own, a pair of which the gateway holds the
//! other end. So the kernel finds neighbours, decrements hop limits, and applies routes and filters.
//!
//! The pair is made at the start and removed at an orderly end. After another end it is left, and carries nothing but what a
//! guardian sends; the next gateway takes it over.

use super::device::device;
use super::ports::{Ports, Role};
use crate::gateway::config::GatewayConfig;
use crate::gateway::datapath::socket::PacketSocket;
use crate::netns::ip;
use anyhow::{Context, anyhow, bail};
use std::fs;

/// Makes the pair and gives the indices of the interfaces.
pub fn join(config: &GatewayConfig) -> anyhow::Result<Ports> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    for port in [&server, &mobile] {
        port.check_merging()?;
        if !port.is_up() {
            bail!("{0} is shut: `ip link set {0} up`", port.ifname);
        }
    }
    check(config)?;
    let (own, kernels) = names(config);
    match (device(&own), device(&kernels)) {
        (Err(_), Err(_)) => {
            ip(&[format!("link add {own} mtu 65535 type veth peer name {kernels} mtu 65535")])
                .context("cannot make the pair of devices")?;
        }
        (Ok(one), Ok(other)) if one.is_of_a_pair() && other.is_of_a_pair() => {} // it was left
        _ => bail!(
            "bridge = {own:?}: allowed with mode = \"routed\": a name that no device has, nor with an `r` behind it"
        ),
    }
    ip(&[
        format!("link set {own} addrgenmode none arp off up"),
        format!("link set {kernels} addrgenmode none arp off up"),
    ])
    .context("cannot set up the pair of devices")?;
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
    let addresses = addresses.try_into().map_err(|_| anyhow!("two addresses have twelve bytes"))?;
    let role = Role::Router { exit: own.ifindex, addresses };
    Ok(Ports { server: server.ifindex, mobile: mobile.ifindex, role })
}

/// Takes the pair for this gateway alone, as long as the socket is open.
pub fn claim(config: &GatewayConfig, exit: u32) -> anyhow::Result<PacketSocket> {
    match PacketSocket::open_alone(exit) {
        Err(error) if PacketSocket::is_taken(&error) => {
            bail!("bridge = {:?}: allowed: a name that no other gateway uses", config.bridge)
        }
        claim => claim.context("cannot open a packet socket"),
    }
}

/// What stands in the gateway's way, if anything: what it sends would not be forwarded.
pub fn inspect(config: &GatewayConfig) -> anyhow::Result<anyhow::Result<()>> {
    let (own, kernels) = names(config);
    for name in [&own, &kernels] {
        if !device(name)?.is_up() {
            return Ok(Err(anyhow!("{name} is shut, by which the gateway sends: `ip link set {name} up`")));
        }
    }
    Ok(check(config).and_then(|()| check_filter(config, &kernels)))
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

/// Whether the kernel forwards what comes by the interfaces.
fn check(config: &GatewayConfig) -> anyhow::Result<()> {
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
    check_filter(config, "all")
}

/// Whether the kernel takes from the pair what came by another interface.
fn check_filter(config: &GatewayConfig, interface: &str) -> anyhow::Result<()> {
    let strict = fs::read_to_string(sysctl("ipv4", interface, "rp_filter"));
    if strict.is_ok_and(|value| value.trim() == "1") {
        bail!(
            "net.ipv4.conf.{interface}.rp_filter = 1: allowed: 0 or 2, since what the gateway sends comes by {}",
            names(config).1
        );
    }
    Ok(())
}
