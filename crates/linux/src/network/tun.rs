//! TUN devices with offloads. The kernel delivers super-packets of up to 64 KB with unfinished checksums,
//! which are split here into packets of the MTU. Packets to the kernel are not merged, so that receivers see
//! each one.

use crate::network::device::Device;
use paceline_net::{Packet, wire};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, Layer, SyncDevice, VIRTIO_NET_HDR_LEN};

/// Reads per call of [`Device::receive`]. Chosen: bounds the time in which no timers run.
const MAX_READS: usize = 16;
/// Bytes of the largest packet after splitting. Chosen: a jumbo frame.
const MAX_PACKET_BYTES: usize = 9_216;

/// A TUN device in the network namespace where it was made. Dropping it removes the device.
pub struct Tun {
    device: SyncDevice,
    gro: GROTable,
    raw: Vec<u8>,
    split: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    outgoing: Vec<Vec<u8>>,
}

impl Tun {
    /// Makes a device without addresses and routes.
    pub fn create(name: &str) -> io::Result<Self> {
        let device =
            DeviceBuilder::new().name(name).layer(Layer::L3).offload(true).enable(false).build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self {
            device,
            gro: GROTable::default(),
            raw: vec![0; VIRTIO_NET_HDR_LEN + 65_536],
            split: vec![vec![0; MAX_PACKET_BYTES]; IDEAL_BATCH_SIZE],
            sizes: vec![0; IDEAL_BATCH_SIZE],
            outgoing: vec![Vec::with_capacity(MAX_PACKET_BYTES)],
        })
    }
    /// The name that the kernel gave it.
    pub fn name(&self) -> io::Result<String> {
        self.device.name()
    }
}

impl Device for Tun {
    fn receive(&mut self, burst: &mut Vec<Packet>) -> io::Result<()> {
        for _ in 0..MAX_READS {
            let count = match self.device.recv_multiple(&mut self.raw, &mut self.split, &mut self.sizes, 0) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for (bytes, size) in self.split.iter().zip(&self.sizes).take(count) {
                // Packets of other protocols than IP are ignored.
                if let Ok(packet) = wire::parse(&bytes[..*size]) {
                    burst.push(packet);
                }
            }
        }
        Ok(())
    }
    fn transmit(&mut self, packet: &Packet) -> io::Result<()> {
        let outgoing = &mut self.outgoing[0];
        outgoing.clear();
        outgoing.resize(VIRTIO_NET_HDR_LEN, 0);
        match &packet.payload {
            paceline_net::Payload::Datagram(bytes) => outgoing.extend_from_slice(bytes),
            _ => outgoing.extend_from_slice(&wire::emit(packet)),
        }
        self.device.send_multiple(&mut self.gro, &mut self.outgoing, VIRTIO_NET_HDR_LEN).map(|_| ())
    }
    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}
