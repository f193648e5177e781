//! What is done for a mobile device, by its address.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// An entry `[[policy]]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Addresses of mobile devices, such as `10.0.0.0/8` or `2001:db8::/32`.
    pub prefix: String,
    /// What is done for their connections.
    pub action: Action,
}

/// What is done for a connection; the numbers are those of the kernel program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Accelerated.
    #[default]
    Accelerate = 0,
    /// The ACK filter alone, in the uplink; what comes down goes through the kernel.
    Filter = 1,
    /// Sent at the rate of the radio and repaired as if accelerated, but nothing is acknowledged before the device
    /// has it.
    Pace = 2,
    /// Left to the kernel.
    Leave = 3,
}

/// Length and IPv6 or IPv4-mapped address of a prefix, as the kernel program has them.
pub(super) type Key = (u32, [u8; 16]);
/// All IPv4 addresses.
const V4: Key = (96, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);

/// What is done by prefix, of a configuration that was checked. A prefix of IPv6 is not meant for IPv4 addresses, which look
/// as if it covered them: they have a rule of their own.
pub(super) fn rules(policies: &[Policy]) -> BTreeMap<Key, Action> {
    let rule = |policy: &Policy| Some((policy.key()?, policy.action));
    let mut rules: BTreeMap<Key, Action> = policies.iter().filter_map(rule).collect();
    if !rules.is_empty() {
        rules.entry(V4).or_default();
    }
    rules
}

/// What is done by the length of a prefix and its bits: the price of a packet is one of lengths, not of prefixes.
#[derive(PartialEq, Eq)]
pub(super) struct Table(BTreeMap<u32, BTreeMap<u128, Action>>);

impl Table {
    /// Of a configuration that was checked.
    pub fn new(policies: &[Policy]) -> Self {
        let mut table: BTreeMap<u32, BTreeMap<u128, Action>> = BTreeMap::new();
        for ((len, address), action) in rules(policies) {
            table.entry(len).or_default().insert(u128::from_be_bytes(address), action);
        }
        Self(table)
    }
    /// What is done for a mobile device: the longest prefix counts.
    pub fn action(&self, mobile: IpAddr) -> Action {
        let address = mapped(mobile).to_bits();
        let network = |len: u32| address & u128::MAX.checked_shl(128 - len).unwrap_or(0);
        let mut found = self.0.iter().rev().filter_map(|(len, prefixes)| prefixes.get(&network(*len)));
        found.next().copied().unwrap_or_default()
    }
}

impl Policy {
    /// Address and length of the prefix.
    pub(super) fn parsed(&self) -> Result<(IpAddr, u8), String> {
        let bad = |allowed: &str| format!("policy.prefix = {:?}: allowed: {allowed}", self.prefix);
        let (address, len) = self
            .prefix
            .split_once('/')
            .ok_or_else(|| bad("an address with a length, such as 10.0.0.0/8 or 2001:db8::/32"))?;
        let address: IpAddr =
            address.parse().map_err(|_| bad("an IPv4 or IPv6 address ahead of the slash"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let len: u8 = len
            .parse()
            .ok()
            .filter(|len| *len <= bits)
            .ok_or_else(|| bad(&format!("0 to {bits} behind the slash")))?;
        let network = masked(address, len);
        if network != address {
            return Err(bad(&format!("no bits behind the prefix: {network}/{len}")));
        }
        Ok((address, len))
    }
    pub(super) fn check(&self) -> Result<(), String> {
        self.parsed().map(|_| ())
    }
    /// The kernel program's key.
    pub(super) fn key(&self) -> Option<Key> {
        let (address, len) = self.parsed().ok()?;
        let len = if address.is_ipv4() { 96 + u32::from(len) } else { len.into() };
        Some((len, mapped(address).octets()))
    }
}

/// An address as the kernel program has it.
pub(super) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

fn masked(address: IpAddr, len: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            std::net::Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_become_keys() {
        let key = |prefix: &str| Policy { prefix: prefix.into(), action: Action::Leave }.key().unwrap();
        assert_eq!(key("0.0.0.0/0"), (96, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]));
        assert_eq!(key("10.0.0.0/8").0, 104);
        assert_eq!(key("::/0"), (0, [0; 16]));
        assert_eq!(key("2001:db8::1/128").0, 128);
    }

    /// Sixty thousand prefixes, and as many packets.
    #[test]
    fn prefixes_may_be_many() {
        let prefix = |n: u32| format!("{}/24", std::net::Ipv4Addr::from_bits(n << 8));
        let policy = |n| Policy { prefix: prefix(n), action: Action::Pace };
        let table = Table::new(&(0..60_000).map(policy).collect::<Vec<_>>());
        let began = crate::clock::now();
        for n in 0..60_000 {
            let inside = std::net::Ipv4Addr::from_bits(n << 8 | 7).into();
            assert_eq!(table.action(inside), Action::Pace);
        }
        let took = crate::clock::now().since(began);
        assert!(took < paceline_net::Duration::from_secs(1), "{took}");
    }

    #[test]
    fn the_longest_prefix_counts() {
        let rule = |prefix: &str, action| Policy { prefix: prefix.into(), action };
        let table = Table::new(&[
            rule("10.0.0.0/8", Action::Leave),
            rule("10.1.0.0/16", Action::Pace),
            rule("10.1.2.3/32", Action::Accelerate),
            rule("::/0", Action::Filter),
            rule("0.0.0.0/0", Action::Accelerate),
        ]);
        for (address, action) in [
            ("10.2.0.1", Action::Leave),
            ("10.1.0.1", Action::Pace),
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
