//! The receive buffer for one frame: virtio-net header, Ethernet header (unless the interface has none),
//! datagram.

/// Bytes of the virtio-net header (`struct virtio_net_hdr`, linux/virtio_net.h) ahead of every frame.
pub const VNET_LEN: usize = 10;
/// Bytes of an Ethernet header (IEEE 802.3).
pub const ETHERNET_LEN: usize = 14;
/// Bytes of the virtio-net header and the Ethernet header: the datagram follows unless the frame has a VLAN
/// tag.
pub const HEAD_LEN: usize = VNET_LEN + ETHERNET_LEN;
/// Bytes of the largest datagram (64 KiB by definition of its length field) and of an inner VLAN tag ahead of
/// it. Chosen: 64 bytes for the tag, which needs 4.
const MAX_REST: usize = 65_536 + 64;

/// A received frame.
pub struct Slot {
    /// The virtio-net header and the first bytes of the frame.
    pub head: [u8; HEAD_LEN],
    /// Bytes used in `head`.
    pub head_len: usize,
    /// Bytes of the interface's link header: [`ETHERNET_LEN`], or 0 (TUN).
    pub link_len: usize,
    /// The rest of the frame. The parser takes this buffer out of the slot if it keeps the datagram.
    pub rest: Vec<u8>,
    /// The outer VLAN tag, which the kernel removes from the frame: TPID and TCI (IEEE 802.1Q).
    pub tag: Option<(u16, u16)>,
    /// The frame was longer than its buffer; its bytes are incomplete.
    pub truncated: bool,
}

impl Slot {
    /// An empty slot.
    pub fn new() -> Self {
        Self {
            head: [0; HEAD_LEN],
            head_len: 0,
            link_len: ETHERNET_LEN,
            rest: Vec::new(),
            tag: None,
            truncated: false,
        }
    }
    /// Bytes of the frame and its virtio-net header.
    pub fn len(&self) -> usize {
        self.head_len + self.rest.len()
    }
    /// Bytes ahead of the datagram and an inner VLAN tag, which go into `head`.
    pub fn head_capacity(&self) -> usize {
        VNET_LEN + self.link_len
    }
    /// Copies a complete frame into the slot, given in two parts.
    pub fn fill(&mut self, head: &[u8], rest: &[u8], tag: Option<(u16, u16)>) {
        self.head[..head.len()].copy_from_slice(head);
        self.head_len = head.len();
        self.rest.clear();
        self.rest.extend_from_slice(rest);
        (self.tag, self.truncated) = (tag, false);
    }
    /// Empties the slot and marks its frame as lost.
    pub fn mark_lost(&mut self) {
        self.fill(&[], &[], None);
        self.truncated = true;
    }
    /// Buffers for the largest frame, for recvmsg(2).
    pub fn vectors(&mut self) -> [libc::iovec; 2] {
        self.rest.clear();
        self.rest.reserve_exact(MAX_REST);
        [
            libc::iovec { iov_base: self.head.as_mut_ptr().cast(), iov_len: self.head_capacity() },
            libc::iovec { iov_base: self.rest.as_mut_ptr().cast(), iov_len: MAX_REST },
        ]
    }
}
