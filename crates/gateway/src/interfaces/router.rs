//! Routed mode: this machine routes between the interfaces. The gateway sends its packets into one end of a
//! veth pair, and the kernel routes them from the other end like any packets that arrive: it finds
//! neighbours, decrements hop limits, and applies routes and filters.
//!
//! The pair is made at the start and removed at an orderly end. After a crash it stays, and only the guardian
//! sends by it; the next gateway uses it again.

use super::device::device;
use super::ports::{Ports, Role};
use crate::config::GatewayConfig;
use crate::datapath::socket::PacketSocket;
use anyhow::{Context, anyhow, bail};
use paceline_linux::network::netns::ip;
use std::fs;

/// Makes the veth pair, and returns the indices of the interfaces.
pub fn join(config: &GatewayConfig) -> anyhow::Result<Ports> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    for port in [&server, &mobile] {
        port.check_link_type(config.mode)?;
        port.check_gro_size()?;
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
        (Ok(one), Ok(other)) if one.is_veth() && other.is_veth() => {} // of an earlier gateway
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
        // A kernel without IPv6 has no such file. A service that must not change settings finds them right on
        // most routers; loose filtering (2) drops nothing here.
        let fits = |found: &str| found == value || key == "rp_filter" && found == "2";
        let found = fs::read_to_string(&path).ok();
        if found.is_some_and(|found| !fits(found.trim())) {
            fs::write(&path, value).with_context(|| format!("cannot write {path}"))?;
        }
    }
    let (own, kernels) = (device(&own)?, device(&kernels)?);
    let addresses = [kernels.ethernet_address()?, own.ethernet_address()?].concat();
    let addresses = addresses.try_into().map_err(|_| anyhow!("two addresses have twelve bytes"))?;
    let role = Role::Router { exit: own.ifindex, entry: kernels.ifindex, addresses };
    Ok(Ports { server: server.ifindex, mobile: mobile.ifindex, role })
}

/// Locks the pair for this gateway, as long as the socket is open.
pub fn lock_pair(config: &GatewayConfig, exit: u32) -> anyhow::Result<PacketSocket> {
    match PacketSocket::open_alone(exit) {
        Err(error) if PacketSocket::is_taken(&error) => {
            bail!("bridge = {:?}: allowed: a name that no other gateway uses", config.bridge)
        }
        lock => lock.context("cannot open a packet socket"),
    }
}

/// The reason why the kernel would not forward the packets that the gateway sends, if there is one.
pub fn inspect(config: &GatewayConfig) -> anyhow::Result<anyhow::Result<()>> {
    let (own, kernels) = names(config);
    for name in [&own, &kernels] {
        if !device(name)?.is_up() {
            return Ok(Err(anyhow!("{name} is shut, by which the gateway sends: `ip link set {name} up`")));
        }
    }
    Ok(check(config).and_then(|()| check_filter(config, &kernels)))
}

/// Warnings about settings with which the kernel does not forward between the interfaces.
pub fn warnings(config: &GatewayConfig) -> Vec<String> {
    let mut warnings: Vec<String> =
        check(config).err().map(|error| format!("{error:#}")).into_iter().collect();
    let off = |interface: &&String| {
        fs::read_to_string(sysctl("ipv4", interface, "forwarding")).is_ok_and(|value| value.trim() == "0")
    };
    // The check is content with one version of IP.
    if warnings.is_empty()
        && let Some(interface) = [&config.server, &config.mobile].iter().find(|name| off(name))
    {
        warnings.push(format!(
            "the kernel does not forward IPv4 that comes by {interface}: `sysctl net.ipv4.ip_forward=1`"
        ));
    }
    warnings
}

/// Removes the pair.
pub fn leave(config: &GatewayConfig) {
    let _ = ip(&[format!("link del {}", names(config).0)]); // the pair may have been removed by somebody else
}

/// Names of the gateway's and the kernel's end of the pair.
fn names(config: &GatewayConfig) -> (String, String) {
    (config.bridge.clone(), format!("{}r", config.bridge))
}

fn sysctl(family: &str, interface: &str, key: &str) -> String {
    format!("/proc/sys/net/{family}/conf/{interface}/{key}")
}

/// Checks that the kernel forwards packets that arrive on the interfaces.
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

/// Checks that reverse-path filtering (RFC 3704, strict) does not drop packets from the pair.
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
