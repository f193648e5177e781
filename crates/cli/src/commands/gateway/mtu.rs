//! `paceline gateway mtu`: the self-test of the MTU. Prints the longest packet that passes to an address.

use super::options::MtuArgs;
use crate::failure::Outcome;
use crate::output;
use paceline_gateway::{PathMtu, path_mtu};
use serde_json::json;
use std::net::IpAddr;
use std::process::ExitCode;

pub fn run(args: &MtuArgs) -> Outcome {
    let found = path_mtu(args.address)?;
    let text = if args.json {
        let PathMtu { longest, interface, interface_mtu, told } = &found;
        let json = json!({
            "address": args.address, "longest": longest, "interface": interface,
            "interface_mtu": interface_mtu, "packet_too_big": told,
        });
        format!("{json:#}\n")
    } else {
        text(args.address, &found)
    };
    output::print(&text)?;
    Ok(if is_short(&found) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn is_short(found: &PathMtu) -> bool {
    // No packet is longer than 65,535 bytes; the loopback device has an MTU of 65,536.
    found.longest < found.interface_mtu.min(u16::MAX.into())
}

fn text(address: IpAddr, found: &PathMtu) -> String {
    let PathMtu { longest, interface, interface_mtu, told } = found;
    if !is_short(found) {
        return format!("packets of {longest} bytes pass to {address}: the MTU of {interface}\n");
    }
    let how = if *told {
        "a router says so by packet-too-big messages"
    } else {
        "longer ones are lost without a packet-too-big message"
    };
    // IP and TCP headers; the limit is configured for IPv4.
    let most = longest.saturating_sub(40);
    format!(
        "packets of up to {longest} bytes pass to {address}, the MTU of {interface} is {interface_mtu}: {how}; \
         mss_clamp = {most} keeps TCP within it\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_is_said_with_its_remedy() {
        let found =
            |longest, interface_mtu, told| PathMtu { longest, interface: "n6".into(), interface_mtu, told };
        let address = "10.9.0.1".parse().unwrap();
        let whole = found(1500, 1500, false);
        assert_eq!(text(address, &whole), "packets of 1500 bytes pass to 10.9.0.1: the MTU of n6\n");
        assert!(!is_short(&whole) && !is_short(&found(65_535, 65_536, false)));
        let short = found(1400, 1500, false);
        assert!(is_short(&short) && text(address, &short).contains("lost without a packet-too-big message"));
        assert!(text(address, &short).ends_with("mss_clamp = 1360 keeps TCP within it\n"));
        assert!(text(address, &found(1400, 1500, true)).contains("a router says so"));
    }
}
