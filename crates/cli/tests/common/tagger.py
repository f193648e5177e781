"""A host behind VLAN tags, for kernels without VLAN devices.

`tagger.py DEVICE ADDRESS/LENGTH TAG...` makes a TAP device with the address. Frames of the TAP device are
sent by DEVICE with the tags inserted, the outermost tag first; frames that DEVICE receives with these tags go
to the TAP device without them.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
# linux/if_packet.h
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
TP_STATUS_VLAN_VALID = 0x10
# asm-generic/socket.h
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
TPID_8021Q = 0x8100
RECEIVE_BUFFER_BYTES = 16 << 20
# Longest IPv4 packet plus the Ethernet header and tags.
MAX_FRAME_BYTES = 65_600


def open_tap(name: str, address: str, mtu: int) -> int:
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    for line in (f"link set {name} mtu {mtu} up", f"addr add {address} dev {name}"):
        subprocess.run(["ip", *line.split()], check=True)
    return tap


def open_device(device: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened.bind((device, 0))
    # The kernel removes the outermost tag from the frame; it is in the auxiliary data.
    opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    return opened


def receive(device: socket.socket) -> bytes:
    """A frame with all its tags."""
    frame, control, _, _ = device.recvmsg(MAX_FRAME_BYTES, 128)
    tag = b""
    for _, _, data in control:
        status, tci, tpid = struct.unpack("=I12xHH", data[:20])
        if status & TP_STATUS_VLAN_VALID:
            tag = struct.pack("!HH", tpid, tci)
    return frame[:12] + tag + frame[12:]


def main() -> None:
    device, address, tags = sys.argv[1], sys.argv[2], [int(tag) for tag in sys.argv[3:]]
    head = b"".join(struct.pack("!HH", TPID_8021Q, tag) for tag in tags)
    # With the tags, a frame is as long as one with a single tag and an MTU of 1500.
    tap = open_tap(f"tagged{tags[-1]}", address, 1504 - 4 * len(tags))
    wire = open_device(device)
    print("ready", flush=True)
    while True:
        for ready in select.select([tap, wire.fileno()], [], [])[0]:
            if ready == tap:
                frame = os.read(tap, MAX_FRAME_BYTES)
                wire.send(frame[:12] + head + frame[12:])
                continue
            frame = receive(wire)
            end = 12 + len(head)
            if frame[12:end] == head and frame[end : end + 2] != struct.pack("!H", TPID_8021Q):
                os.write(tap, frame[:12] + frame[end:])


main()
