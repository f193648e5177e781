//! Whether this host can emulate.

use paceline_linux::ability::{CAP_NET_ADMIN, CAP_SYS_ADMIN, has_capability, missing_ip};
use std::fs::OpenOptions;

/// The reason why `paceline emulate` cannot work here, if there is one.
pub fn problem() -> Option<String> {
    if !has_capability(CAP_NET_ADMIN) {
        return Some("needs CAP_NET_ADMIN for its TUN devices: run as root".into());
    }
    if !has_capability(CAP_SYS_ADMIN) {
        return Some("needs CAP_SYS_ADMIN to make a network namespace: run as root".into());
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Some(format!(
            "/dev/net/tun: {error}; load the kernel module `tun`, or give the container the device"
        ));
    }
    missing_ip()
}
