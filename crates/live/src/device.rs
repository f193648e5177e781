//! Where packets come from and go to outside a node.

use paceline_net::Packet;
use std::io;
use std::os::fd::BorrowedFd;

/// A network device, or a test's stand-in.
pub trait Device {
    /// Appends the packets that wait, without blocking; possibly none.
    fn receive(&mut self, burst: &mut Vec<Packet>) -> io::Result<()>;
    /// Sends a packet. A packet that the device cannot take now is lost, as on a full line.
    fn transmit(&mut self, packet: &Packet) -> io::Result<()>;
    /// What becomes readable when packets wait.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}
