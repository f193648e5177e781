//! The names by which the HTTP server may be asked (`Host`, RFC 9110, section 7.2). A page of a stranger can
//! have its own name lead to this machine (DNS rebinding), and a browser would then let it read the answers:
//! the browser's `Host` is that name. Addresses are no such names.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};

/// The allowed names.
pub struct Hosts(Vec<String>);

/// A refusal: its status and its reason.
type Refusal = (&'static str, String);

impl Hosts {
    /// `localhost`, this machine's host name, and more names.
    pub fn new(more: &[String]) -> Self {
        let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let own = own.trim();
        let all = more.iter().map(String::as_str).chain([own, "localhost"]);
        Self(all.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect())
    }
    /// Checks the head of a request. A request of HTTP/1.0 may have no name: browsers always send one.
    pub fn check(&self, head: &str) -> Result<(), Refusal> {
        let mut lines = head.lines();
        let is_old = lines.next().is_none_or(|first| !first.trim_end().ends_with("HTTP/1.1"));
        let value = |line: &str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
        };
        let hosts: Vec<String> = lines.take_while(|line| !line.is_empty()).filter_map(value).collect();
        match hosts.as_slice() {
            [] if is_old => Ok(()),
            [host] if self.allows(host) => Ok(()),
            [host] => {
                let name = name_of(host);
                Err((
                    "421 Misdirected Request",
                    format!(
                        "{name}: allowed: an address, {}; metrics_hosts names others\n",
                        self.0.join(", ")
                    ),
                ))
            }
            _ => Err(("400 Bad Request", "allowed: one Host\n".into())),
        }
    }
    fn allows(&self, host: &str) -> bool {
        let name = name_of(host);
        name.parse::<IpAddr>().is_ok()
            || name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_v6)
            || self.0.iter().any(|own| own.eq_ignore_ascii_case(name.strip_suffix('.').unwrap_or(name)))
    }
}

fn is_v6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// The name without the port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_allowed_and_names_of_strangers_are_not() {
        let hosts = Hosts::new(&["GW1.example.net".to_owned()]);
        let check = |host: &str| hosts.check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in [
            "127.0.0.1:9464",
            "192.0.2.7",
            "[::1]:9464",
            "[2001:db8::1]",
            "localhost:9464",
            "LocalHost",
            "gw1.example.net:9464",
            "gw1.example.net.",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example"]
        {
            let (status, reason) = check(host).unwrap_err();
            assert!(status.starts_with("421") && reason.contains("metrics_hosts"), "{reason}");
        }
        assert!(check("127.0.0.1\r\nHost: evil.example").unwrap_err().0.starts_with("400"));
        assert!(hosts.check("GET / HTTP/1.1\r\n\r\n").unwrap_err().0.starts_with("400"));
        assert_eq!(hosts.check("GET / HTTP/1.0\r\n\r\n"), Ok(()));
        // A line behind the head is no header.
        assert_eq!(hosts.check("GET / HTTP/1.1\r\nhost: localhost\r\n\r\nHost: evil.example\r\n"), Ok(()));
    }
}
