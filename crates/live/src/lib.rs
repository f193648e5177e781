//! Linux: devices, network namespaces, and the loop that runs [`paceline_net::Node`]s in real time.
//!
//! No other crate uses devices, threads, processes and the wall clock.

pub mod bulk;
pub mod clock;
pub mod device;
pub mod emulate;
pub mod gateway;
pub mod kernel;
pub mod lateness;
mod netlink;
pub mod netns;
pub mod pace;
pub mod pcapng;
pub mod police;
pub mod probe;
pub mod realtime;
pub mod service;
pub mod stop;
pub mod tcx;
pub mod terminal;
pub mod tun;
