//! Linux: devices, network namespaces, and the loop that runs [`paceline_net::Node`]s in real time.
//!
//! The only crate that touches the system. The nodes that it drives are those of the simulator.

pub mod bulk;
pub mod clock;
pub mod device;
pub mod emulate;
pub mod gateway;
pub mod lateness;
pub mod netns;
pub mod pcapng;
pub mod probe;
pub mod realtime;
pub mod stop;
pub mod terminal;
pub mod tun;
