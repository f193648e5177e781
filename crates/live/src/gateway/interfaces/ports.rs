//! The interfaces by index and link address, for the data path.

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
