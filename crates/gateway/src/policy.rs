//! The policy: what the gateway does for a mobile device, by the longest matching prefix of the device's
//! address.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An entry `[[policy]]` of the configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Addresses of mobile devices, such as `10.0.0.0/8` or `2001:db8::/32`.
    pub prefix: String,
    /// The action for their connections.
    pub action: Action,
}

/// The treatment of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Data are acknowledged early, sent at the rate of the radio, and retransmitted from here.
    #[default]
    Accelerate,
    /// The ACK filter acts on uplink packets; downlink packets stay in the kernel.
    Filter,
    /// Data are buffered, sent at the rate of the radio, and retransmitted from here, but acknowledgments
    /// stay end to end: the server gets none before the device has acknowledged. Formerly called `pace`.
    #[serde(alias = "pace")]
    Relay,
    /// The kernel forwards.
    Leave,
}

/// The former name of [`Action::Relay`], which is still accepted.
pub(crate) const FORMER_RELAY: &str = "pace";

/// Actions by network, of a configuration that was checked. IPv4 networks are mapped into `::ffff:0:0/96`. A
/// rule for an IPv6 network that contains this one is not meant for IPv4, so IPv4 gets a rule of its own.
pub(crate) fn rules(policies: &[Policy]) -> BTreeMap<Ipv6Net, Action> {
    let rule = |policy: &Policy| Some((policy.mapped_network()?, policy.action));
    let mut rules: BTreeMap<Ipv6Net, Action> = policies.iter().filter_map(rule).collect();
    if !rules.is_empty() {
        rules.entry(mapped_network(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0).into())).or_default();
    }
    rules
}

/// Actions by prefix length and network: a lookup costs one step for each length in use, however many
/// prefixes there are.
#[derive(PartialEq, Eq)]
pub(crate) struct Table(BTreeMap<u8, BTreeMap<Ipv6Net, Action>>);

impl Table {
    /// The table of a configuration that was checked.
    pub fn new(policies: &[Policy]) -> Self {
        let mut table: BTreeMap<u8, BTreeMap<Ipv6Net, Action>> = BTreeMap::new();
        for (network, action) in rules(policies) {
            table.entry(network.prefix_len()).or_default().insert(network, action);
        }
        Self(table)
    }
    /// The action for a mobile device: that of the longest matching prefix.
    pub fn action(&self, mobile: IpAddr) -> Action {
        let address = mapped(mobile);
        let network = |len: u8| Ipv6Net::new_assert(address, len).trunc();
        let mut found = self.0.iter().rev().filter_map(|(len, networks)| networks.get(&network(*len)));
        found.next().copied().unwrap_or_default()
    }
}

impl Policy {
    fn network(&self) -> Result<IpNet, String> {
        let refused = |allowed: &str| format!("policy.prefix = {:?}: allowed: {allowed}", self.prefix);
        let network: IpNet = self.prefix.parse().map_err(|_| {
            refused(
                "an IPv4 prefix such as 10.0.0.0/8, with a length of 0 to 32, or an IPv6 prefix such as \
                 2001:db8::/32, with a length of 0 to 128",
            )
        })?;
        if network.trunc() != network {
            return Err(refused(&format!("no bits behind the prefix length: {}", network.trunc())));
        }
        Ok(network)
    }
    /// Refuses a prefix that is malformed. The error names the allowed values.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.network().map(|_| ())
    }
    /// The network of the prefix; IPv4 is mapped into `::ffff:0:0/96`. None if the prefix is malformed.
    pub(crate) fn mapped_network(&self) -> Option<Ipv6Net> {
        self.network().ok().map(mapped_network)
    }
}

/// An IPv6 address, or an IPv4 address mapped into `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
pub(crate) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

fn mapped_network(network: IpNet) -> Ipv6Net {
    match network {
        IpNet::V4(v4) => Ipv6Net::new_assert(v4.addr().to_ipv6_mapped(), 96 + v4.prefix_len()),
        IpNet::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_networks_are_mapped_into_ipv6() {
        let network = |prefix: &str| {
            let policy = Policy { prefix: prefix.into(), action: Action::Leave };
            policy.mapped_network().unwrap().to_string()
        };
        assert_eq!(network("0.0.0.0/0"), "::ffff:0.0.0.0/96");
        assert_eq!(network("10.0.0.0/8"), "::ffff:10.0.0.0/104");
        assert_eq!(network("::/0"), "::/0");
        assert_eq!(network("2001:db8::1/128"), "2001:db8::1/128");
        assert_eq!(rules(&[]), BTreeMap::new());
    }

    /// Sixty thousand prefixes: a lookup looks into one map for each prefix length, here that of /24 and of
    /// all IPv4.
    #[test]
    fn the_cost_of_a_lookup_does_not_grow_with_the_number_of_prefixes() {
        let prefix = |n: u32| format!("{}/24", Ipv4Addr::from_bits(n << 8));
        let policy = |n| Policy { prefix: prefix(n), action: Action::Relay };
        let table = Table::new(&(0..60_000).map(policy).collect::<Vec<_>>());
        for n in 0..60_000 {
            let inside = Ipv4Addr::from_bits(n << 8 | 7).into();
            assert_eq!(table.action(inside), Action::Relay);
        }
        assert_eq!(table.0.len(), 2);
    }

    #[test]
    fn the_longest_matching_prefix_decides() {
        let rule = |prefix: &str, action| Policy { prefix: prefix.into(), action };
        let table = Table::new(&[
            rule("10.0.0.0/8", Action::Leave),
            rule("10.1.0.0/16", Action::Relay),
            rule("10.1.2.3/32", Action::Accelerate),
            rule("::/0", Action::Filter),
            rule("0.0.0.0/0", Action::Accelerate),
        ]);
        for (address, action) in [
            ("10.2.0.1", Action::Leave),
            ("10.1.0.1", Action::Relay),
            ("10.1.2.3", Action::Accelerate),
            ("192.0.2.1", Action::Accelerate),
            ("2001:db8::1", Action::Filter),
        ] {
            assert_eq!(table.action(address.parse().unwrap()), action, "{address}");
        }
        assert_eq!(Table::new(&[]).action("10.0.0.1".parse().unwrap()), Action::Accelerate);
        let table = Table::new(&[rule("::/0", Action::Leave)]);
        for (address, action) in [("10.0.0.1", Action::Accelerate), ("2001:db8::1", Action::Leave)] {
            assert_eq!(table.action(address.parse().unwrap()), action, "{address}");
        }
    }
}
