"""A point-to-point link without link headers: two TUN devices in two network namespaces.

`tun_pair.py DEVICE PROCESS PEER` makes the TUN device DEVICE in this namespace and PEER in that of PROCESS,
and moves the packets of each to the other.
"""

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
# linux/sched.h
CLONE_NEWNET = 0x40000000
# Longer than the MTU of a TUN device, 1500 bytes.
MAX_PACKET_BYTES = 2048


def open_tun(name: str) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "link", "set", name, "up", "txqueuelen", "5000"], check=True)
    return tun


def enter(process: str) -> None:
    with open(f"/proc/{process}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the namespace")


def main() -> None:
    device, process, peer = sys.argv[1:]
    one = open_tun(device)
    enter(process)
    other = open_tun(peer)
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
