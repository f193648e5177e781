//! Link types (ARPHRD numbers of linux/if_arp.h) whose packets have no link header: a packet socket gives and
//! takes bare datagrams there.
//!
//! Left out: GRE, whose devices have a header of their own unless the remote end is fixed.

/// Same as the ARPHRD numbers of linux/if_arp.h, and the names by which `ip` prints them (lib/ll_types.c of
/// iproute2). Older versions of `ip` print the number in brackets.
const WITHOUT_HEADER: [(u16, &str); 6] = [
    (512, "ppp"),     // ARPHRD_PPP: the driver adds and removes the PPP header
    (519, "rawip"),   // ARPHRD_RAWIP: modems (rmnet, wwan)
    (768, "ipip"),    // ARPHRD_TUNNEL: IPv4 in IPv4
    (769, "tunnel6"), // ARPHRD_TUNNEL6: IPv4 or IPv6 in IPv6
    (776, "sit"),     // ARPHRD_SIT: IPv6 in IPv4
    (0xfffe, "none"), // ARPHRD_NONE: TUN, WireGuard, GTP, modems (qmi_wwan)
];

/// Whether packets of interfaces of this type have no link header, by the number.
pub fn is_bare(number: u16) -> bool {
    WITHOUT_HEADER.iter().any(|(known, _)| *known == number)
}

/// Whether packets of interfaces of this type have no link header, by the name that `ip` prints.
pub fn is_bare_name(name: &str) -> bool {
    let number = || name.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    WITHOUT_HEADER.iter().any(|(_, known)| *known == name) || number().is_some_and(is_bare)
}

#[cfg(test)]
mod tests {
    use super::{is_bare, is_bare_name};

    #[test]
    fn types_are_known_by_number_name_and_number_in_brackets() {
        // linux/if_arp.h
        let bare = [libc::ARPHRD_PPP, 519, libc::ARPHRD_TUNNEL, libc::ARPHRD_TUNNEL6];
        for number in bare.into_iter().chain([libc::ARPHRD_SIT, libc::ARPHRD_NONE]) {
            assert!(is_bare(number) && is_bare_name(&format!("[{number}]")), "{number}");
        }
        for number in [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK, libc::ARPHRD_IPGRE, libc::ARPHRD_IEEE80211]
        {
            assert!(!is_bare(number) && !is_bare_name(&format!("[{number}]")), "{number}");
        }
        for name in ["ppp", "none", "rawip", "ipip", "tunnel6", "sit"] {
            assert!(is_bare_name(name), "{name}");
        }
        for name in ["ether", "loopback", "gre", "infiniband", "", "[]", "[99999999]"] {
            assert!(!is_bare_name(name), "{name}");
        }
    }
}
