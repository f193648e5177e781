//! A second observer of connections on this machine: netfilter's conntrack. It sees the segments that the
//! gateway sends and not those that it takes, so that an early acknowledgment is of data that conntrack does
//! not know, hence INVALID, and a firewall drops it (`ct state invalid drop`).
//!
//! - Routed mode: the gateway's packets pass the firewall. Rules with the state of connections are named in
//!   warnings, and the control plane watches whether the packets leave.
//! - Bridge mode: taken packets do not pass it. With bridge netfilter, or rules of the family bridge,
//!   conntrack would meet a connection in the middle that the gateway leaves to the kernel: the gateway
//!   pauses.

use crate::config::{GatewayConfig, Mode};
use anyhow::bail;
use paceline_linux::network::nftables::{Chain, state_chains};
use std::fs;

/// Families of tables: those of NFPROTO_* in linux/netfilter.h, of which BOTH is `inet`.
const IPV4: u8 = 2;
/// By definition of Linux, as above.
const BRIDGE: u8 = 7;
/// By definition of Linux, as above.
const IPV6: u8 = 10;
/// By definition of Linux, as above.
const BOTH: u8 = 1;
/// The setting by which conntrack accepts segments outside of the windows that it knows.
const LIBERAL: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";

/// The first chain with the state of connections that forwarded packets of this mode can meet.
fn chain(mode: Mode) -> Option<Chain> {
    let on = |version: &str| is_on(&format!("/proc/sys/net/bridge/bridge-nf-call-{version}"));
    let (ip, ip6) = (on("iptables"), on("ip6tables"));
    let meets = |chain: &Chain| match (mode, chain.family) {
        (Mode::Routed, BRIDGE) => false,
        (Mode::Routed, _) | (Mode::Bridge, BRIDGE) => true,
        (Mode::Bridge, IPV4) => ip,
        (Mode::Bridge, IPV6) => ip6,
        (Mode::Bridge, BOTH) => ip || ip6,
        (Mode::Bridge, _) => false,
    };
    // Without the privilege to read rules, nothing is known.
    state_chains().unwrap_or_default().into_iter().find(meets)
}

fn is_on(path: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|value| value.trim() != "0")
}

/// A warning about a firewall between the gateway and the network (routed mode).
pub fn warning(config: &GatewayConfig) -> Option<String> {
    if config.mode == Mode::Bridge || is_on(LIBERAL) {
        return None;
    }
    let place = chain(Mode::Routed)?;
    Some(format!(
        "this machine's firewall looks at the state of connections ({place}), where early acknowledgments count \
         as INVALID: if a rule drops these, the gateway pauses; `sysctl \
         net.netfilter.nf_conntrack_tcp_be_liberal=1` has them pass"
    ))
}

/// A remark on this machine's firewall, for both modes.
pub fn remark() -> Option<String> {
    let routed = chain(Mode::Routed).filter(|_| !is_on(LIBERAL)).map(|own| (own, "routed mode may pause"));
    let bridged = chain(Mode::Bridge).map(|own| (own, "bridge mode pauses"));
    let effects: Vec<&str> = [&routed, &bridged].into_iter().flatten().map(|(_, effect)| *effect).collect();
    let effects = effects.join(", ");
    let (place, _) = routed.or(bridged)?;
    Some(format!("a firewall looks at the state of connections, {place}: {effects}"))
}

/// Refuses a bridge whose frames pass a firewall that looks at the state of connections.
pub fn check_bridge() -> anyhow::Result<()> {
    if let Some(place) = chain(Mode::Bridge) {
        let remedy = match place.family {
            BRIDGE => "remove the rule, or leave it to routed mode",
            _ => "`sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0`",
        };
        bail!(
            "the bridge's frames pass a firewall that looks at the state of connections ({place}), which would \
             not know those that the gateway takes: {remedy}"
        );
    }
    Ok(())
}
