//! What the kernel tells of network devices.

use crate::netns::ip_says;
use anyhow::{Context, bail};
use serde::Deserialize;

/// Bytes of a merged packet at most; what Linux has by default.
const LONGEST: u64 = 65_536;

/// A device, as `ip` tells of it.
#[derive(Deserialize)]
pub struct Device {
    /// Name.
    pub ifname: String,
    /// Index.
    pub ifindex: u32,
    /// What it is a part of.
    pub master: Option<String>,
    flags: Vec<String>,
    /// Longest datagram, in bytes.
    pub mtu: u32,
    address: Option<String>,
    linkinfo: Option<LinkInfo>,
    gro_max_size: Option<u64>,
    /// `ip` tells it since its version 6.3.
    gro_ipv4_max_size: Option<u64>,
}

#[derive(Deserialize)]
struct LinkInfo {
    info_kind: Option<String>,
    info_data: Option<InfoData>,
}

#[derive(Deserialize)]
struct InfoData {
    vlan_filtering: Option<u8>,
    stp_state: Option<u8>,
}

/// A device by name.
pub fn device(name: &str) -> anyhow::Result<Device> {
    let text = ip_says(&format!("-json -details link show dev {name}"))
        .with_context(|| format!("there is no network interface {name}"))?;
    let devices = read(&text)?;
    devices.into_iter().next().with_context(|| format!("there is no network interface {name}"))
}

/// What is in a bridge.
pub fn ports(bridge: &str) -> anyhow::Result<Vec<Device>> {
    let text = ip_says(&format!("-json -details link show master {bridge}"))
        .with_context(|| format!("there is no bridge {bridge}"))?;
    read(&text)
}

/// What `ip -json -details link` says.
pub fn read(text: &str) -> anyhow::Result<Vec<Device>> {
    serde_json::from_str(text).context("cannot read what `ip -json` says")
}

impl Device {
    /// Whether it is a bridge.
    pub fn is_bridge(&self) -> bool {
        self.is("bridge")
    }
    /// Whether it is one of a pair of devices.
    pub fn is_of_a_pair(&self) -> bool {
        self.is("veth")
    }
    fn is(&self, kind: &str) -> bool {
        self.linkinfo.as_ref().and_then(|info| info.info_kind.as_deref()) == Some(kind)
    }
    /// Whether it is a bridge that looks at VLAN tags.
    pub fn filters_vlans(&self) -> bool {
        self.has_on(|data| data.vlan_filtering)
    }
    /// Whether it is a bridge that may keep a port shut (IEEE 802.1D's spanning tree).
    pub fn spans_a_tree(&self) -> bool {
        self.has_on(|data| data.stp_state)
    }
    fn has_on(&self, key: impl Fn(&InfoData) -> Option<u8>) -> bool {
        let data = self.linkinfo.as_ref().and_then(|info| info.info_data.as_ref());
        data.and_then(key).is_some_and(|value| value != 0)
    }
    /// Refuses a device whose merged packets may be longer than a datagram (BIG TCP): their length is in no header that the
    /// gateway reads.
    pub fn check_merging(&self) -> anyhow::Result<()> {
        let sizes = [("gro_max_size", self.gro_max_size), ("gro_ipv4_max_size", self.gro_ipv4_max_size)];
        for (key, size) in sizes {
            if let Some(size) = size.filter(|size| *size > LONGEST) {
                let name = &self.ifname;
                bail!(
                    "{key} of {name} = {size}: allowed: up to {LONGEST}, since the gateway takes no longer \
                     packets: `ip link set {name} {key} {LONGEST}`"
                );
            }
        }
        Ok(())
    }
    /// Whether it is switched on.
    pub fn is_up(&self) -> bool {
        self.flags.iter().any(|flag| flag == "UP")
    }
    /// Its link address.
    pub fn ethernet_address(&self) -> anyhow::Result<[u8; 6]> {
        let text = self.address.as_deref().unwrap_or("");
        let bytes: Vec<u8> = text.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        bytes.try_into().ok().with_context(|| format!("{} has no Ethernet address: {text}", self.ifname))
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn packets_longer_than_a_datagram_are_refused() {
        let device = |sizes: &str| {
            let text = format!(r#"[{{"ifname":"eth0","ifindex":2,"mtu":1500,"flags":[]{sizes}}}]"#);
            read(&text).unwrap()[0].check_merging().map_err(|error| error.to_string())
        };
        assert_eq!(device(""), Ok(()), "an older `ip` does not tell");
        assert_eq!(device(r#","gro_max_size":65536,"gro_ipv4_max_size":65536"#), Ok(()));
        let error = device(r#","gro_max_size":185000,"gro_ipv4_max_size":65536"#).unwrap_err();
        assert!(error.starts_with("gro_max_size of eth0 = 185000: allowed: up to 65536"), "{error}");
        let error = device(r#","gro_max_size":65536,"gro_ipv4_max_size":185000"#).unwrap_err();
        assert!(error.starts_with("gro_ipv4_max_size of eth0 = 185000: allowed: up to 65536"), "{error}");
    }
}
