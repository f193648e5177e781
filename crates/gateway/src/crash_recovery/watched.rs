//! The guardian's sockets on interfaces that may be away, and come back under their names.

use crate::datapath::socket::PacketSocket;
use crate::interfaces::ports::Interface;
use std::io;

/// Bytes received of each frame. Chosen: link header (22), IPv6 header and TCP header without options need
/// 82, and the longest encapsulation 104.
const CAPTURE_BYTES: u32 = 192;

/// The socket on one interface, which is open while the interface is there.
pub struct Watched {
    interface: Interface,
    /// The socket only sends.
    sends_only: bool,
    socket: Option<PacketSocket>,
}

impl Watched {
    /// A socket that is not open yet.
    pub fn new(interface: Interface, sends_only: bool) -> Self {
        Self { interface, sends_only, socket: None }
    }
    /// The open socket.
    pub fn socket(&self) -> Option<&PacketSocket> {
        self.socket.as_ref()
    }
    /// The same, to receive.
    pub fn socket_mut(&mut self) -> Option<&mut PacketSocket> {
        self.socket.as_mut()
    }
    /// The name of the interface.
    pub fn name(&self) -> &str {
        &self.interface.name
    }
    /// Opens the socket if the interface is there, and closes it if it is not. Whether it is open.
    pub fn renew(&mut self) -> io::Result<bool> {
        if self.socket.as_ref().is_some_and(PacketSocket::has_interface) {
            return Ok(true);
        }
        self.socket = None;
        let Some(index) = self.interface.find() else { return Ok(false) };
        let open = match self.sends_only {
            true => PacketSocket::open_to(index),
            false => PacketSocket::open_watching(index, CAPTURE_BYTES),
        };
        match open {
            Ok(socket) => self.socket = Some(socket),
            // The interface is gone again.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => {}
            Err(error) => return Err(error),
        }
        Ok(self.socket.is_some())
    }
}
