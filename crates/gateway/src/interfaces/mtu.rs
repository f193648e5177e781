//! The MTUs of both interfaces, and the segment size that follows from them.

use super::device::device;
use crate::config::{GatewayConfig, Mode};
use crate::interfaces::mss_clamp::{Clamp, MssClamp};
use paceline_net::mss::{IPV4_LEN, IPV6_LEN, TCP_LEN};

/// MTU of devices in most networks, in bytes. Same as that of Ethernet (IEEE 802.3).
const USUAL_MTU: u32 = 1500;
/// Bytes of IPv4 and TCP headers. Derived from their lengths.
const HEADERS_V4: u16 = IPV4_LEN + TCP_LEN;
/// Bytes of PPPoE and PPP headers (RFC 2516, section 7).
const PPPOE: u16 = 8;
/// Bytes of a GTP-U encapsulation with one extension header of 4 bytes (TS 29.281, clause 5), without IP.
const GTPU: u16 = 8 + 8 + 4 + 4;
/// Bytes of a GTP-U encapsulation over IPv4. Derived from the lengths of its headers.
const GTPU_V4: u16 = IPV4_LEN + GTPU;
/// Bytes of a GTP-U encapsulation over IPv6. Derived from the lengths of its headers.
const GTPU_V6: u16 = IPV6_LEN + GTPU;

/// The highest segment size that SYNs may announce, by the configuration and the present MTUs.
pub fn clamp(config: &GatewayConfig) -> anyhow::Result<Clamp> {
    let shorter = match config.mss_clamp {
        Some(MssClamp::Auto) => device(&config.server)?.mtu.min(device(&config.mobile)?.mtu),
        _ => 0,
    };
    Ok(Clamp::new(config.mss_clamp, shorter))
}

/// The result of [`check`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MtuReport {
    /// The MTUs, and the room inside encapsulations.
    pub facts: Vec<String>,
    /// Settings with which packets of full size may be lost.
    pub warnings: Vec<String>,
}

/// Looks at the MTUs of both interfaces. Changes nothing.
pub fn check(config: &GatewayConfig) -> anyhow::Result<MtuReport> {
    let (server, mobile) = (device(&config.server)?, device(&config.mobile)?);
    Ok(report(config, server.mtu, mobile.mtu))
}

fn report(config: &GatewayConfig, server: u32, mobile: u32) -> MtuReport {
    let mut report = MtuReport::default();
    let GatewayConfig { server: towards_servers, mobile: towards_devices, .. } = config;
    let shorter = server.min(mobile);
    report.facts.push(format!("MTU of {towards_servers} {server}, of {towards_devices} {mobile}"));
    if config.mode == Mode::Bridge {
        let room = |overhead: u16| shorter.saturating_sub(overhead.into());
        report.facts.push(format!(
            "longest packet inside a PPPoE session {}, inside GTP-U with an extension header {} (over IPv6 {})",
            room(PPPOE),
            room(GTPU_V4),
            room(GTPU_V6)
        ));
        if room(GTPU_V4) < USUAL_MTU {
            report.facts.push(format!(
                "devices behind GTP-U tunnels that use {USUAL_MTU} bytes need an MTU of {} here (over IPv6 {}), or \
                 mss_clamp = \"auto\"",
                USUAL_MTU + u32::from(GTPU_V4),
                USUAL_MTU + u32::from(GTPU_V6)
            ));
        }
    }
    if server != mobile {
        let (short, long) = if server < mobile {
            (towards_servers, towards_devices)
        } else {
            (towards_devices, towards_servers)
        };
        let mtus = format!("MTU of {towards_servers} = {server} and of {towards_devices} = {mobile}");
        let longest = server.max(mobile);
        match (config.mode, config.mss_clamp) {
            (Mode::Bridge, _) => report.warnings.push(format!(
                "{mtus}: a bridge drops longer packets without a message to their sender: give both the same MTU \
                 (`ip link set {short} mtu {longest}`, or `ip link set {long} mtu {shorter}` and the same in all hosts \
                 behind it); mss_clamp = \"auto\" helps TCP alone"
            )),
            (Mode::Routed, None) => report.warnings.push(format!(
                "{mtus}: senders learn the shorter one from packet-too-big messages alone; where those are filtered, \
                 mss_clamp = \"auto\" keeps TCP within {shorter} bytes"
            )),
            (Mode::Routed, Some(_)) => {}
        }
    }
    if let Some(MssClamp::Bytes(mss)) = config.mss_clamp
        && u32::from(mss) + u32::from(HEADERS_V4) > shorter
    {
        let most = shorter.saturating_sub(HEADERS_V4.into());
        report.warnings.push(format!(
            "mss_clamp = {mss}: up to {most} fits into the MTU of {shorter}; packets of this size are {} bytes long",
            u32::from(mss) + u32::from(HEADERS_V4)
        ));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keys: &str, server: u32, mobile: u32) -> MtuReport {
        let text = format!("server = \"eth0\"\nmobile = \"upf0\"\n{keys}");
        report(&GatewayConfig::parse("box.toml", &text).unwrap(), server, mobile)
    }

    #[test]
    fn equal_mtus_are_reported_without_a_warning() {
        let report = found("", 1500, 1500);
        assert_eq!(report.warnings, [""; 0]);
        assert_eq!(report.facts[0], "MTU of eth0 1500, of upf0 1500");
        assert!(
            report.facts[1].contains("PPPoE session 1492")
                && report.facts[1].contains("1456 (over IPv6 1436)")
        );
        assert!(report.facts[2].contains("need an MTU of 1544 here (over IPv6 1564)"), "{report:?}");
        assert_eq!(found("", 1550, 1550).facts.len(), 2, "there is room for a tunnel");
        assert_eq!(found("mode = \"routed\"", 1500, 1500).facts.len(), 1, "tunnels are left alone");
    }

    #[test]
    fn different_mtus_are_warned_of() {
        for keys in ["", "mss_clamp = \"auto\""] {
            let report = found(keys, 1500, 1400);
            assert!(report.warnings[0].contains("`ip link set upf0 mtu 1500`"), "{report:?}");
            assert!(report.warnings[0].contains("`ip link set eth0 mtu 1400`"), "{report:?}");
        }
        let routed = found("mode = \"routed\"", 1500, 1400);
        assert!(routed.warnings[0].contains("keeps TCP within 1400 bytes"), "{routed:?}");
        assert_eq!(found("mode = \"routed\"\nmss_clamp = \"auto\"", 1500, 1400).warnings, [""; 0]);
    }

    #[test]
    fn a_clamp_that_does_not_fit_is_warned_of() {
        assert_eq!(found("mss_clamp = 1460", 1500, 1500).warnings, [""; 0]);
        let report = found("mss_clamp = 1460", 1400, 1400);
        assert!(report.warnings[0].starts_with("mss_clamp = 1460: up to 1360 fits"), "{report:?}");
    }
}
