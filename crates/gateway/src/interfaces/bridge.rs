//! Bridge mode: both interfaces are ports of one kernel bridge, which forwards the packets that the gateway
//! does not take. The bridge stays when the gateway ends, so that it forwards everything then.
//!
//! The gateway sends a packet that arrived on one interface on the other one. A bridge with more ports could
//! have to send it to a third port, and a bridge with VLAN filtering could have to change its tags: such
//! bridges are refused.

use super::device::{Device, device, ports};
use super::ports::{Bridge, Ports, Role};
use crate::config::GatewayConfig;
use anyhow::{Context, anyhow, bail};
use paceline_linux::network::netns::ip;

/// Bytes of an Ethernet header (IEEE 802.3) and one VLAN tag (IEEE 802.1Q), which Linux' bridge allows beyond
/// the MTU.
const HEADER_AND_TAG: u32 = 14 + 4;

/// Makes the interfaces ports of one bridge if they are not, and returns their indices.
pub fn join(config: &GatewayConfig) -> anyhow::Result<Ports> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    for port in [&server, &mobile] {
        port.check_link_type(config.mode)?;
        port.check_gro_size()?;
    }
    let mut made = false;
    let bridge = match (&server.master, &mobile.master) {
        (Some(one), Some(other)) if one != other => bail!(
            "{} is in {one} and {} in {other}: both have to be in one bridge, or in none",
            config.server,
            config.mobile
        ),
        (Some(bridge), _) | (None, Some(bridge)) => bridge.clone(),
        (None, None) => {
            made = device(&config.bridge).is_err();
            if made {
                ip(&[format!("link add {} type bridge stp_state 0 forward_delay 0", config.bridge)])
                    .context("cannot make the bridge")?;
            }
            config.bridge.clone()
        }
    };
    let found = device(&bridge)?;
    if !found.is_bridge() {
        if server.master.is_none() && mobile.master.is_none() {
            bail!("bridge = {bridge:?}: allowed: a bridge, or a name that no device has");
        }
        bail!("{} and {} are in {bridge}, which is no bridge", config.server, config.mobile);
    }
    check(&found, &ports(&bridge)?, [&server, &mobile])?;
    let new: Vec<&Device> = [&server, &mobile].into_iter().filter(|port| port.master.is_none()).collect();
    add(&bridge, &new).inspect_err(|_| {
        if made {
            let _ = ip(&[format!("link del {bridge}")]);
        }
    })?;
    // Devices that are up are left out: for them `ip` needs no privileges.
    for device in [&server, &mobile, &found].into_iter().filter(|device| !device.is_up()) {
        ip(&[format!("link set {} up", device.ifname)])?;
    }
    // The bridge takes the address of one of its ports, hence it is read last.
    let role = Role::Bridge { address: device(&bridge)?.ethernet_address()? };
    Ok(Ports { server: server.ifindex, mobile: mobile.ifindex, role })
}

/// Makes these interfaces ports of a bridge, or on a failure none of them: the IP addresses of a port do not
/// work.
fn add(bridge: &str, new: &[&Device]) -> anyhow::Result<()> {
    for (n, port) in new.iter().enumerate() {
        let added = ip(&[format!("link set {} master {bridge}", port.ifname)])
            .with_context(|| format!("cannot make {} a port of {bridge}", port.ifname));
        if added.is_err() {
            let back: Vec<String> =
                new[..n].iter().map(|port| format!("link set {} nomaster", port.ifname)).collect();
            let _ = ip(&back);
            return added;
        }
    }
    Ok(())
}

/// The present state of the bridge, if there is one, and the reason why the gateway cannot work on it, if
/// there is one.
pub fn inspect(config: &GatewayConfig) -> anyhow::Result<(Option<Bridge>, anyhow::Result<()>)> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    let Some(name) = &server.master else { return Ok((None, Err(left_bridge(&server)))) };
    let (bridge, ports) = (device(name)?, ports(name)?);
    let check_sizes = || ports.iter().try_for_each(Device::check_gro_size);
    let fit = match mobile.master.as_ref() == Some(name) {
        true => check(&bridge, &ports, [&server, &mobile]).and_then(|()| check_sizes()),
        false => Err(left_bridge(&mobile)),
    };
    let longest_frame = if fit.is_ok() { longest_frame(&bridge, [&server, &mobile]) } else { None };
    Ok((Some(Bridge { address: bridge.ethernet_address()?, longest_frame }), fit))
}

/// Bytes of the longest frame that may be redirected from port to port: the kernel's bridge forwards a tag
/// beyond the MTU. None with a spanning tree, which may block a port.
fn longest_frame(bridge: &Device, ports: [&Device; 2]) -> Option<u32> {
    let [server, mobile] = ports.map(|port| port.mtu.saturating_add(HEADER_AND_TAG));
    (!bridge.has_spanning_tree()).then_some(server.min(mobile))
}

fn left_bridge(port: &Device) -> anyhow::Error {
    let name = &port.ifname;
    match &port.master {
        Some(other) => anyhow!("{name} is in {other} now: allowed: one bridge for both interfaces"),
        None => anyhow!("{name} is in no bridge any more"),
    }
}

/// Checks that the gateway can work on a bridge with these ports.
fn check(bridge: &Device, ports: &[Device], [server, mobile]: [&Device; 2]) -> anyhow::Result<()> {
    // Compared by index: an interface may have several names.
    let is_own = |port: &&Device| [server.ifindex, mobile.ifindex].contains(&port.ifindex);
    let (name, [server, mobile]) = (&bridge.ifname, [&server.ifname, &mobile.ifname]);
    if let Some(Device { ifname: other, .. }) = ports.iter().find(|port| !is_own(port)) {
        let all: Vec<&str> = ports.iter().map(|port| port.ifname.as_str()).collect();
        bail!(
            "ports of {name} = {}: allowed: {server} and {mobile} alone, since the gateway sends by one what comes by \
             the other, also what is for a host elsewhere: `ip link set {other} nomaster`",
            all.join(", ")
        );
    }
    if let Some(Device { ifname: port, .. }) = ports.iter().find(|port| port.is_locked()) {
        bail!(
            "locked of {port} = on: allowed: off, since the gateway does not know the admitted stations: \
             `bridge link set dev {port} locked off`"
        );
    }
    if ports.len() > 1 && ports.iter().all(Device::is_isolated) {
        bail!(
            "isolated of {server} and {mobile} = on: allowed: off, since {name} forwards nothing between them: \
             `bridge link set dev {mobile} isolated off`"
        );
    }
    if bridge.filters_vlans() {
        bail!(
            "vlan_filtering of {name} = 1: allowed: 0, since the gateway leaves VLAN tags as they are: `ip link set \
             {name} type bridge vlan_filtering 0`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::device::read;

    /// A bridge and ports, as `ip -json -details link` prints them.
    fn devices(bridge: &str, names: &[&str]) -> (Device, Vec<Device>) {
        let port = |name: &&str| {
            let (name, set) = name.split_once(' ').unwrap_or((name, "hairpin"));
            let index = 3 + ["srv", "mob", "lan3"].iter().position(|known| *known == name).unwrap();
            format!(
                r#"{{"ifname":"{name}","ifindex":{index},"mtu":1500,"master":"br0","flags":["UP"],
                    "linkinfo":{{"info_slave_data":{{"{set}":true}}}}}}"#
            )
        };
        let bridge = format!(
            r#"[{{"ifname":"br0","ifindex":2,"mtu":1500,"flags":["UP"],"address":"02:00:00:00:00:01",
                "linkinfo":{{"info_kind":"bridge","info_data":{{{bridge}}}}}}}]"#
        );
        let ports = names.iter().map(port).collect::<Vec<_>>().join(",");
        (read(&bridge).unwrap().remove(0), read(&format!("[{ports}]")).unwrap())
    }

    #[test]
    fn a_bridge_with_other_ports_or_vlan_filtering_is_refused() {
        let check = |bridge: &str, names: &[&str]| {
            let (bridge, ports) = devices(bridge, names);
            let (_, own) = devices(r#""vlan_filtering":0"#, &["srv", "mob"]);
            check(&bridge, &ports, [&own[0], &own[1]]).map_err(|error| error.to_string())
        };
        let plain = r#""vlan_filtering":0"#;
        for ports in [&["mob", "srv"][..], &["srv"], &[]] {
            assert_eq!(check(plain, ports), Ok(()));
        }
        let error = check(plain, &["mob", "lan3", "srv"]).unwrap_err();
        assert!(error.starts_with("ports of br0 = mob, lan3, srv: allowed: srv and mob alone"), "{error}");
        assert!(error.ends_with("`ip link set lan3 nomaster`"), "{error}");
        let error = check(r#""vlan_filtering":1"#, &["mob", "srv"]).unwrap_err();
        assert!(error.starts_with("vlan_filtering of br0 = 1: allowed: 0"), "{error}");
        assert_eq!(check(plain, &["mob isolated", "srv"]), Ok(()));
        let error = check(plain, &["mob isolated", "srv isolated"]).unwrap_err();
        assert!(error.starts_with("isolated of srv and mob = on: allowed: off"), "{error}");
        let error = check(plain, &["mob", "srv locked"]).unwrap_err();
        assert!(error.starts_with("locked of srv = on: allowed: off"), "{error}");
    }

    #[test]
    fn frames_up_to_both_mtus_may_be_redirected_unless_the_bridge_has_a_spanning_tree() {
        let longest = |bridge: &str, mtus: [u32; 2]| {
            let (bridge, mut ports) = devices(bridge, &["srv", "mob"]);
            ports.iter_mut().zip(mtus).for_each(|(port, mtu)| port.mtu = mtu);
            longest_frame(&bridge, [&ports[0], &ports[1]])
        };
        let [off, on] = [r#""stp_state":0"#, r#""stp_state":1"#];
        assert_eq!(longest(off, [1500, 9000]), Some(1518));
        assert_eq!(longest(off, [9000, 1280]), Some(1298));
        assert_eq!(longest(on, [1500, 1500]), None);
    }
}
