//! Rules of nftables that look at the state of connections, read by netlink: neither `nft` nor `iptables` has
//! to be there. `iptables` of today (iptables-nft) writes such rules too.
//!
//! Left out: rules of the older iptables (`iptables-legacy`), which netlink does not list.

use super::bridge_state::attribute;
use super::netlink::dump_of;
use nix::sys::socket::SockProtocol;
use std::io;

/// Messages and attributes of Linux (linux/netfilter/nf_tables.h, nfnetlink.h).
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWRULE: u16 = 6;
const NFT_MSG_GETRULE: u16 = 7;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_CT_KEY: u16 = 2;
const NFTA_MATCH_NAME: u16 = 1;
/// The state of the connection (`ct state`), among the keys of `ct`.
const NFT_CT_STATE: u32 = 0;
/// Bytes of `struct nfgenmsg`.
const HEADER: usize = 4;

/// A rule that looks at the state of connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateRule {
    /// Family of its table (NFPROTO_*).
    pub family: u8,
    /// `table TABLE, chain CHAIN`.
    pub place: String,
}

/// The rules that look at the state of connections; none on a kernel without nftables.
pub fn state_rules() -> io::Result<Vec<StateRule>> {
    let kind = |message: u16| NFNL_SUBSYS_NFTABLES << 8 | message;
    let mut rules = Vec::new();
    let answer =
        dump_of(SockProtocol::NetlinkNetFilter, kind(NFT_MSG_GETRULE), &[0; HEADER], |found, message| {
            if found == kind(NFT_MSG_NEWRULE) {
                rules.extend(state_rule(message));
            }
        });
    match answer {
        Ok(()) => {}
        // No nftables in this kernel.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPROTONOSUPPORT)) => {}
        Err(error) => return Err(error),
    }
    rules.dedup();
    Ok(rules)
}

fn state_rule(message: &[u8]) -> Option<StateRule> {
    let (family, attributes) = (*message.first()?, message.get(HEADER..)?);
    let mut expressions = attribute(attributes, NFTA_RULE_EXPRESSIONS)?;
    while let Some(element) = attribute(expressions, NFTA_EXPR_NAME) {
        if looks_at_state(element) {
            let name = |kind| text(attribute(attributes, kind).unwrap_or_default());
            let place = format!("table {}, chain {}", name(NFTA_RULE_TABLE), name(NFTA_RULE_CHAIN));
            return Some(StateRule { family, place });
        }
        expressions = expressions.get((4 + element.len()).next_multiple_of(4)..).unwrap_or(&[]);
    }
    None
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
    fn rule(expressions: &[(&[u8], Vec<u8>)]) -> Option<StateRule> {
        let elements: Vec<Vec<u8>> = expressions
            .iter()
            .map(|(name, data)| list(&[(NFTA_EXPR_NAME, name), (NFTA_EXPR_DATA | 0x8000, data)]))
            .collect();
        let elements: Vec<(u16, &[u8])> = elements.iter().map(|element| (1, &element[..])).collect();
        let attributes = list(&[(1, b"f\0"), (2, b"forward\0"), (4, &list(&elements))]);
        state_rule(&[&[2, 0, 0, 0][..], &attributes].concat())
    }

    #[test]
    fn rules_with_the_state_of_connections_are_found() {
        let place = "table f, chain forward".to_owned();
        let found = Some(StateRule { family: 2, place });
        let ct = |key: u32| (&b"ct\0"[..], list(&[(1, &[0; 4]), (NFTA_CT_KEY, &key.to_be_bytes())]));
        let matched = |name: &'static [u8]| (&b"match\0"[..], list(&[(NFTA_MATCH_NAME, name)]));
        let counter = (&b"counter\0"[..], list(&[(1, &[0; 8])]));
        assert_eq!(rule(&[counter.clone(), ct(0)]), found);
        assert_eq!(rule(&[matched(b"conntrack\0")]), found);
        assert_eq!(rule(&[ct(3), matched(b"comment\0"), counter]), None, "a mark, a comment");
        assert_eq!(state_rule(&[2, 0]), None);
    }
}
