//! Commands by a Unix socket: a [`server`] in the gateway, a [`client`] in the commands, and their
//! [`protocol`].

pub mod client;
pub mod protocol;
pub mod server;
