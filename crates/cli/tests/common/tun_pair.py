"""A point-to-point link without link headers: two TUN devices in two network namespaces.

`tun_pair.py DEVICE PROCESS PEER LINK_TYPE [offload]` makes the TUN device DEVICE in this namespace and PEER
in that of PROCESS, both of the link type LINK_TYPE (an ARPHRD number of linux/if_arp.h, such as 512 for
PPP), and moves the packets of each to the other. With `offload` these may be super-packets of 64 KiB with
unfinished checksums.
"""

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys

# linux/if_tun.h
TUNSETIFF, TUNSETLINK, TUNSETOFFLOAD = 0x400454CA, 0x400454CD, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 = 0x01, 0x02, 0x04
# linux/sched.h
CLONE_NEWNET = 0x40000000
# Longest packet and its virtio-net header.
MAX_PACKET_BYTES = 65_536 + 10


def open_tun(name: str, link_type: int, offload: bool) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = IFF_TUN | IFF_NO_PI | (IFF_VNET_HDR if offload else 0)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    fcntl.ioctl(tun, TUNSETLINK, link_type)
    if offload:
        fcntl.ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
    subprocess.run(["ip", "link", "set", name, "up", "txqueuelen", "5000"], check=True)
    return tun


def enter(process: str) -> None:
    with open(f"/proc/{process}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the namespace")


def main() -> None:
    device, process, peer, link_type = sys.argv[1:5]
    offload = sys.argv[5:] == ["offload"]
    one = open_tun(device, int(link_type), offload)
    enter(process)
    other = open_tun(peer, int(link_type), offload)
    print("ready", flush=True)
    peers = {one: other, other: one}
    while True:
        for source in select.select(list(peers), [], [])[0]:
            try:
                while True:
                    os.write(peers[source], os.read(source, MAX_PACKET_BYTES))
            except BlockingIOError:
                pass


main()
