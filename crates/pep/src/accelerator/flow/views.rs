//! The parts of a connection that one side needs of the other.

use crate::accelerator::flow::connection::Connection;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::to_client::ToClient;
use crate::accelerator::flow::upload::Upload;

/// The parts that decide what may be acknowledged to the server.
#[derive(Clone, Copy)]
pub(in crate::accelerator) struct ClientState<'a> {
    pub connection: &'a Connection,
    pub to_client: &'a ToClient,
    pub upload: &'a Upload,
}

/// The parts that sending to the client needs.
pub(in crate::accelerator) struct ServerState<'a> {
    pub connection: &'a Connection,
    pub from_server: &'a FromServer,
    /// Sending changes only its mark that an ACK to the client is due.
    pub upload: &'a mut Upload,
}
