//! Network devices, between which the real-time loop runs a node.

use paceline_net::Packet;
use std::io;
use std::os::fd::BorrowedFd;

/// A network device, or a test's stand-in.
pub trait Device {
    /// Appends the packets that have arrived, without blocking.
    fn receive(&mut self, burst: &mut Vec<Packet>) -> io::Result<()>;
    /// Sends a packet. A packet for which the device has no room is lost.
    fn transmit(&mut self, packet: &Packet) -> io::Result<()>;
    /// A descriptor that is readable when packets have arrived.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}
