//! The state of network devices, read from `ip -json -details link`.

use crate::config::{GatewayConfig, Mode};
use anyhow::{Context, bail};
use paceline_linux::network::link_type;
use paceline_linux::network::netns::ip_output;
use serde::Deserialize;

/// Bytes of the longest packet that the kernel may merge (GRO). Same as the default of Linux
/// (GRO_LEGACY_MAX_SIZE).
const MAX_GRO_BYTES: u64 = 65_536;
/// Link types, as `ip` names the ARPHRD numbers of linux/if_arp.h, whose packets have an Ethernet header.
const ETHERNET_TYPES: [&str; 2] = ["ether", "loopback"];

/// A network device, with the keys of `ip -json`.
#[derive(Deserialize)]
pub struct Device {
    /// Name.
    pub ifname: String,
    /// Index.
    pub ifindex: u32,
    /// Name of the bridge (or other master device) that it is a port of.
    pub master: Option<String>,
    flags: Vec<String>,
    /// Kind of the link header: `ether`, `none` (TUN, WireGuard), `ppp`, ...
    link_type: Option<String>,
    /// MTU in bytes.
    pub mtu: u32,
    address: Option<String>,
    linkinfo: Option<LinkInfo>,
    gro_max_size: Option<u64>,
    /// Absent before version 6.3 of `ip`.
    gro_ipv4_max_size: Option<u64>,
}

#[derive(Deserialize)]
struct LinkInfo {
    info_kind: Option<String>,
    info_data: Option<InfoData>,
    info_slave_data: Option<PortData>,
}

/// The settings of a bridge's port.
#[derive(Deserialize)]
struct PortData {
    isolated: Option<bool>,
    locked: Option<bool>,
}

#[derive(Deserialize)]
struct InfoData {
    vlan_filtering: Option<u8>,
    stp_state: Option<u8>,
}

/// The device of this name.
pub fn device(name: &str) -> anyhow::Result<Device> {
    let text = ip_output(&format!("-json -details link show dev {name}"))
        .with_context(|| format!("there is no network interface {name}"))?;
    let devices = read(&text)?;
    devices.into_iter().next().with_context(|| format!("there is no network interface {name}"))
}

/// Checks that the interfaces of a configuration exist and have packets that the gateway can read. Changes
/// nothing.
pub fn check_interfaces(config: &GatewayConfig) -> anyhow::Result<()> {
    for (key, name) in [("server", &config.server), ("mobile", &config.mobile)] {
        let check = || {
            let device = device(name)?;
            device.check_link_type(config.mode)?;
            device.check_gro_size()
        };
        check().with_context(|| format!("{key} = {name:?}"))?;
    }
    Ok(())
}

/// The ports of a bridge.
pub fn ports(bridge: &str) -> anyhow::Result<Vec<Device>> {
    let text = ip_output(&format!("-json -details link show master {bridge}"))
        .with_context(|| format!("there is no bridge {bridge}"))?;
    read(&text)
}

/// Parses the output of `ip -json -details link`.
pub fn read(text: &str) -> anyhow::Result<Vec<Device>> {
    serde_json::from_str(text).context("cannot parse the output of `ip -json`")
}

impl Device {
    /// Whether it is a bridge.
    pub fn is_bridge(&self) -> bool {
        self.is("bridge")
    }
    /// Whether it is a veth device.
    pub fn is_veth(&self) -> bool {
        self.is("veth")
    }
    fn is(&self, kind: &str) -> bool {
        self.linkinfo.as_ref().and_then(|info| info.info_kind.as_deref()) == Some(kind)
    }
    /// Whether it is a bridge with VLAN filtering.
    pub fn filters_vlans(&self) -> bool {
        self.has_on(|data| data.vlan_filtering)
    }
    /// Whether it is an isolated port, which sends no frames to other isolated ones.
    pub fn is_isolated(&self) -> bool {
        self.port_has(|port| port.isolated)
    }
    /// Whether it is a locked port, which admits known stations alone (IEEE 802.1X).
    pub fn is_locked(&self) -> bool {
        self.port_has(|port| port.locked)
    }
    fn port_has(&self, key: impl Fn(&PortData) -> Option<bool>) -> bool {
        let data = self.linkinfo.as_ref().and_then(|info| info.info_slave_data.as_ref());
        data.and_then(key).unwrap_or(false)
    }
    /// Whether it is a bridge with a spanning tree (IEEE 802.1D), which may block a port.
    pub fn has_spanning_tree(&self) -> bool {
        self.has_on(|data| data.stp_state)
    }
    fn has_on(&self, key: impl Fn(&InfoData) -> Option<u8>) -> bool {
        let data = self.linkinfo.as_ref().and_then(|info| info.info_data.as_ref());
        data.and_then(key).is_some_and(|value| value != 0)
    }
    /// Refuses a device that may merge packets to more than 64 KiB (BIG TCP): the IP header's length field
    /// does not hold their length.
    pub fn check_gro_size(&self) -> anyhow::Result<()> {
        let sizes = [("gro_max_size", self.gro_max_size), ("gro_ipv4_max_size", self.gro_ipv4_max_size)];
        for (key, size) in sizes {
            if let Some(size) = size.filter(|size| *size > MAX_GRO_BYTES) {
                let name = &self.ifname;
                bail!(
                    "{key} of {name} = {size}: allowed: up to {MAX_GRO_BYTES}, since the gateway takes no longer \
                     packets: `ip link set {name} {key} {MAX_GRO_BYTES}`"
                );
            }
        }
        Ok(())
    }
    /// Refuses a device whose packets have neither an Ethernet header nor, in routed mode, none at all.
    pub fn check_link_type(&self, mode: Mode) -> anyhow::Result<()> {
        let kind = self.link_type.as_deref().unwrap_or(ETHERNET_TYPES[0]);
        let is_bare = link_type::is_bare_name(kind);
        let is_ethernet = ETHERNET_TYPES.contains(&kind);
        match mode {
            _ if is_ethernet => Ok(()),
            Mode::Routed if is_bare => Ok(()),
            Mode::Bridge if is_bare => bail!(
                "{}: its packets have no Ethernet header (link type {kind}): allowed: Ethernet interfaces; \
                 mode = \"routed\" takes this one",
                self.ifname
            ),
            _ => bail!(
                "{}: its packets have another link header than Ethernet (link type {kind}): allowed: Ethernet \
                 interfaces, and with mode = \"routed\" those without a link header (TUN, WireGuard, PPP, raw-IP \
                 modems, IP-in-IP tunnels)",
                self.ifname
            ),
        }
    }
    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        self.flags.iter().any(|flag| flag == "UP")
    }
    /// Its Ethernet address.
    pub fn ethernet_address(&self) -> anyhow::Result<[u8; 6]> {
        let text = self.address.as_deref().unwrap_or("");
        let bytes: Vec<u8> = text.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        bytes.try_into().ok().with_context(|| format!("{} has no Ethernet address: {text}", self.ifname))
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, read};

    #[test]
    fn devices_without_a_link_header_are_for_routed_mode_and_other_headers_are_refused() {
        let check = |mode, kind: &str| {
            let text = format!(r#"[{{"ifname":"dev0","ifindex":2,"mtu":1500,"flags":[]{kind}}}]"#);
            read(&text).unwrap()[0].check_link_type(mode).map_err(|error| error.to_string())
        };
        for mode in [Mode::Bridge, Mode::Routed] {
            assert_eq!(check(mode, ""), Ok(()));
            assert_eq!(check(mode, r#","link_type":"ether""#), Ok(()));
            for kind in ["gre", "infiniband", "[65535]"] {
                let error = check(mode, &format!(r#","link_type":"{kind}""#)).unwrap_err();
                assert!(
                    error.starts_with("dev0: ") && error.contains(&format!("link type {kind}")),
                    "{error}"
                );
            }
        }
        let tun = r#","link_type":"none","linkinfo":{"info_kind":"tun","info_data":{"type":"tun"}}"#;
        let wireguard = r#","link_type":"none","linkinfo":{"info_kind":"wireguard"}"#;
        let [ppp, raw, ipip] =
            ["ppp", "[519]", "ipip"].map(|kind| format!(r#","link_type":"{kind}","address":"0.0.0.0""#));
        for kind in [tun, wireguard, &ppp, &raw, &ipip] {
            assert_eq!(check(Mode::Routed, kind), Ok(()));
            let error = check(Mode::Bridge, kind).unwrap_err();
            assert!(error.ends_with("mode = \"routed\" takes this one"), "{error}");
        }
    }

    #[test]
    fn devices_that_merge_packets_beyond_64_kib_are_refused() {
        let device = |sizes: &str| {
            let text = format!(r#"[{{"ifname":"eth0","ifindex":2,"mtu":1500,"flags":[]{sizes}}}]"#);
            read(&text).unwrap()[0].check_gro_size().map_err(|error| error.to_string())
        };
        assert_eq!(device(""), Ok(()), "older versions of `ip` print no size");
        assert_eq!(device(r#","gro_max_size":65536,"gro_ipv4_max_size":65536"#), Ok(()));
        let error = device(r#","gro_max_size":185000,"gro_ipv4_max_size":65536"#).unwrap_err();
        assert!(error.starts_with("gro_max_size of eth0 = 185000: allowed: up to 65536"), "{error}");
        let error = device(r#","gro_max_size":65536,"gro_ipv4_max_size":185000"#).unwrap_err();
        assert!(error.starts_with("gro_ipv4_max_size of eth0 = 185000: allowed: up to 65536"), "{error}");
    }
}
