//! Rules of nftables that look at the state of connections, read by netlink: neither `nft` nor `iptables` has
//! to be there. `iptables` of today (iptables-nft) writes such rules too.
//!
//! Left out: rules of the older iptables (`iptables-legacy`), which netlink does not list; jumps from the
//! elements of a verdict map.

use super::netlink::{attribute, dump_of};
use nix::sys::socket::SockProtocol;
use std::collections::BTreeSet;
use std::io;

/// Messages and attributes of Linux (linux/netfilter/nf_tables.h, nfnetlink.h).
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_GETCHAIN: u16 = 4;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_GETRULE: u16 = 7;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_CT_KEY: u16 = 2;
const NFTA_MATCH_NAME: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CHAIN: u16 = 2;
/// The state of the connection (`ct state`), among the keys of `ct`.
const NFT_CT_STATE: u32 = 0;
/// Hooks of packets that are forwarded: prerouting, forward and postrouting (linux/netfilter.h).
const FORWARDING_HOOKS: [u32; 3] = [0, 2, 4];
/// Bytes of `struct nfgenmsg`.
const HEADER: usize = 4;

/// A chain: family of its table (NFPROTO_*), table and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Chain {
    /// Family of its table (NFPROTO_*).
    pub family: u8,
    table: String,
    name: String,
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {}, chain {}", self.table, self.name)
    }
}

/// A rule, as far as it matters here.
#[derive(PartialEq, Debug)]
struct Rule {
    chain: Chain,
    looks_at_state: bool,
    /// Chains that it jumps to.
    jumps: Vec<Chain>,
}

/// The chains that forwarded packets can meet and that have a rule with the state of connections; none on a
/// kernel without nftables.
pub fn state_chains() -> io::Result<Vec<Chain>> {
    let (mut bases, mut rules) = (Vec::new(), Vec::new());
    messages(NFT_MSG_GETCHAIN, NFT_MSG_NEWCHAIN, |message| bases.extend(forwarding_base(message)))?;
    messages(NFT_MSG_GETRULE, NFT_MSG_NEWRULE, |message| rules.extend(rule(message)))?;
    Ok(reachable(bases, &rules))
}

fn messages(ask: u16, wanted: u16, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let kind = |message: u16| NFNL_SUBSYS_NFTABLES << 8 | message;
    let take = |found, message: &[u8]| {
        if found == kind(wanted) {
            take(message);
        }
    };
    match dump_of(SockProtocol::NetlinkNetFilter, kind(ask), &[0; HEADER], take) {
        // No nftables in this kernel.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPROTONOSUPPORT)) => Ok(()),
        answer => answer,
    }
}

/// Of the chains that can be reached from `bases`, those with a rule with the state of connections.
fn reachable(bases: Vec<Chain>, rules: &[Rule]) -> Vec<Chain> {
    let (mut open, mut met) = (bases, BTreeSet::new());
    while let Some(chain) = open.pop() {
        let own = rules.iter().filter(|rule| rule.chain == chain);
        open.extend(own.flat_map(|rule| &rule.jumps).filter(|next| !met.contains(*next)).cloned());
        met.insert(chain);
    }
    let has_state = |chain: &Chain| rules.iter().any(|rule| rule.looks_at_state && rule.chain == *chain);
    met.into_iter().filter(has_state).collect()
}

/// A chain at a hook of forwarded packets.
fn forwarding_base(message: &[u8]) -> Option<Chain> {
    let (family, attributes) = (*message.first()?, message.get(HEADER..)?);
    let hook = attribute(attribute(attributes, NFTA_CHAIN_HOOK)?, NFTA_HOOK_HOOKNUM)?;
    let hook = u32::from_be_bytes(*hook.first_chunk()?);
    let name = |kind| Some(text(attribute(attributes, kind)?));
    let chain = Chain { family, table: name(NFTA_CHAIN_TABLE)?, name: name(NFTA_CHAIN_NAME)? };
    FORWARDING_HOOKS.contains(&hook).then_some(chain)
}

fn rule(message: &[u8]) -> Option<Rule> {
    let (family, attributes) = (*message.first()?, message.get(HEADER..)?);
    let name = |kind| Some(text(attribute(attributes, kind)?));
    let chain = Chain { family, table: name(NFTA_RULE_TABLE)?, name: name(NFTA_RULE_CHAIN)? };
    let mut found = Rule { chain, looks_at_state: false, jumps: Vec::new() };
    let mut expressions = attribute(attributes, NFTA_RULE_EXPRESSIONS).unwrap_or_default();
    // A list of expressions, each in an element of type 1.
    while let Some(expression) = attribute(expressions, 1) {
        found.looks_at_state |= looks_at_state(expression);
        found.jumps.extend(jump(expression).map(|name| Chain { name, ..found.chain.clone() }));
        expressions = expressions.get((4 + expression.len()).next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some(found)
}

/// Whether an expression is `ct state`, or the match `conntrack` or `state` of iptables.
fn looks_at_state(expression: &[u8]) -> bool {
    let Some(data) = attribute(expression, NFTA_EXPR_DATA) else { return false };
    match attribute(expression, NFTA_EXPR_NAME).map(text).as_deref() {
        Some("ct") => attribute(data, NFTA_CT_KEY) == Some(&NFT_CT_STATE.to_be_bytes()),
        Some("match") => {
            let name = attribute(data, NFTA_MATCH_NAME).map(text);
            matches!(name.as_deref(), Some("conntrack" | "state"))
        }
        _ => false,
    }
}

/// The chain that an expression jumps to.
fn jump(expression: &[u8]) -> Option<String> {
    let name = attribute(expression, NFTA_EXPR_NAME).map(text)?;
    let data = attribute(expression, NFTA_EXPR_DATA).filter(|_| name == "immediate")?;
    let verdict = attribute(attribute(data, NFTA_IMMEDIATE_DATA)?, NFTA_DATA_VERDICT)?;
    attribute(verdict, NFTA_VERDICT_CHAIN).map(text)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in parts {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }
    fn parsed(chain: &[u8], expressions: &[(&[u8], Vec<u8>)]) -> Rule {
        let elements: Vec<Vec<u8>> = expressions
            .iter()
            .map(|(name, data)| list(&[(NFTA_EXPR_NAME, name), (NFTA_EXPR_DATA | 0x8000, data)]))
            .collect();
        let elements: Vec<(u16, &[u8])> = elements.iter().map(|element| (1, &element[..])).collect();
        let attributes = list(&[(1, b"f\0"), (2, chain), (4, &list(&elements))]);
        rule(&[&[2, 0, 0, 0][..], &attributes].concat()).unwrap()
    }
    fn base(name: &[u8], hook: u32) -> Option<Chain> {
        let hook = list(&[(NFTA_HOOK_HOOKNUM, &hook.to_be_bytes())]);
        let attributes = list(&[(1, b"f\0"), (3, name), (4 | 0x8000, &hook)]);
        forwarding_base(&[&[2, 0, 0, 0][..], &attributes].concat())
    }

    #[test]
    fn chains_of_forwarded_packets_with_the_state_of_connections_are_found() {
        let ct = |key: u32| (&b"ct\0"[..], list(&[(1, &[0; 4]), (NFTA_CT_KEY, &key.to_be_bytes())]));
        let matched = |name: &'static [u8]| (&b"match\0"[..], list(&[(NFTA_MATCH_NAME, name)]));
        let counter = (&b"counter\0"[..], list(&[(1, &[0; 8])]));
        let verdict = list(&[(1, &[0; 4]), (NFTA_VERDICT_CHAIN, b"sub\0")]);
        let jump = list(&[(NFTA_IMMEDIATE_DATA, &list(&[(NFTA_DATA_VERDICT, &verdict)]))]);
        let jump = (&b"immediate\0"[..], jump);
        let found = |bases: &[Option<Chain>], rules: &[Rule]| -> Vec<String> {
            let bases = bases.iter().flatten().cloned().collect();
            reachable(bases, rules).iter().map(Chain::to_string).collect()
        };
        let (forward, input) = (base(b"forward\0", 2), base(b"input\0", 1));
        assert_eq!((forward.is_some(), &input), (true, &None));
        let bases = [forward, input];
        let state = parsed(b"forward\0", &[counter.clone(), ct(0)]);
        assert_eq!(found(&bases, &[state]), ["table f, chain forward"]);
        let other = parsed(b"forward\0", &[ct(3), matched(b"comment\0"), counter]);
        assert_eq!(found(&bases, &[other, parsed(b"input\0", &[ct(0)])]), [""; 0], "a mark; another hook");
        let sub = || parsed(b"sub\0", &[matched(b"conntrack\0"), jump.clone()]);
        assert_eq!(found(&bases, &[sub()]), [""; 0], "a chain that nothing jumps to");
        let jumps = parsed(b"forward\0", std::slice::from_ref(&jump));
        assert_eq!(found(&bases, &[sub(), jumps]), ["table f, chain sub"]);
        assert_eq!((rule(&[2, 0]), forwarding_base(&[])), (None, None));
    }
}
