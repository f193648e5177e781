//! The interfaces by index and link address, for the data path.

use nix::net::if_::{if_indextoname, if_nametoindex};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// An interface by its name and its index. It may be renamed, or be removed and come back under its name
/// (another driver, a USB modem, a TUN device of a program that starts again).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
}

impl Interface {
    /// The present index of the interface, if it is there.
    pub fn find(&self) -> Option<u32> {
        if self.is_there() { Some(self.index) } else { if_nametoindex(self.name.as_str()).ok() }
    }
    /// Whether it is there, perhaps under another name.
    pub fn is_there(&self) -> bool {
        // nix returns an empty name for some errors.
        if_indextoname(self.index).is_ok_and(|name| !name.is_empty())
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.index)
    }
}

impl FromStr for Interface {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(name, index)| Some((name, index.parse().ok()?)));
        let (name, index) = parts.ok_or("allowed: a name and an index, as eth0:2")?;
        Ok(Self { name: name.to_owned(), index })
    }
}

/// The two interfaces, by index.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// Index of the interface towards the servers.
    pub server: u32,
    /// Index of the interface towards the mobile devices.
    pub mobile: u32,
    /// How the kernel forwards between them.
    pub role: Role,
}

/// The indices of the two interfaces, which change if an interface comes back: towards the servers, towards
/// the mobile devices.
#[derive(Debug, Default)]
pub struct Indices([AtomicU32; 2]);

impl Indices {
    /// Sets both.
    pub fn set(&self, ports: &Ports) {
        for (index, port) in self.0.iter().zip([ports.server, ports.mobile]) {
            index.store(port, Ordering::Relaxed);
        }
    }
    /// Both at present.
    pub fn get(&self) -> [u32; 2] {
        self.0.each_ref().map(|index| index.load(Ordering::Relaxed))
    }
}

/// How the kernel forwards between the interfaces.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// The interfaces are ports of a bridge.
    Bridge {
        /// Ethernet address of the bridge itself.
        address: [u8; 6],
    },
    /// This machine routes between the interfaces.
    Router {
        /// Index of the device through which the gateway's packets enter the kernel's routing.
        exit: u32,
        /// Index of the device by which they enter: the other end of the pair.
        entry: u32,
        /// Ethernet addresses of frames sent through that device: destination, source.
        addresses: [u8; 12],
    },
}

/// The properties of a bridge that change at run time and that the kernel program has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bridge {
    /// Ethernet address of the bridge, which follows its ports. Frames to it are for this machine: they are
    /// not taken.
    pub address: [u8; 6],
    /// Bytes of the longest frame that may be redirected from port to port. None: the bridge has to decide
    /// for every frame (spanning tree), nothing is redirected.
    pub longest_frame: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_found_by_its_index_or_else_by_its_name() {
        let find = |text: &str| text.parse::<Interface>().unwrap().find();
        assert_eq!([find("lo:1"), find("renamed:1"), find("lo:99999999")], [Some(1); 3]);
        assert_eq!(find("no-such-device:99999999"), None);
        assert_eq!("eth0:7".parse::<Interface>().unwrap().to_string(), "eth0:7");
        assert!("eth0".parse::<Interface>().is_err() && "eth0:x".parse::<Interface>().is_err());
    }
}
