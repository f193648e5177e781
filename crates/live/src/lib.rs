//! Linux: devices, network namespaces, and the loop that runs [`paceline_net::Node`]s in real time.
//!
//! No other crate uses devices, threads, processes and the wall clock.

pub mod bulk;
pub mod emulate;
pub mod event_file;
pub mod gateway;
pub mod linux;
pub mod pace;
pub mod pcapng;
pub mod police;
pub mod probe;
pub mod realtime;
pub mod router;
pub mod service;
pub mod size_limit;
pub mod stop;
pub mod terminal;
