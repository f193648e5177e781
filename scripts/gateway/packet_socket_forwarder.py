"""Measures the CPU time of packet sockets alone, the reference for the CPU time of `paceline gateway`.

    scripts/gateway/packet_socket_forwarder.py RESULT

Forwards frames between the interfaces `mobile` and `wired` of its network namespace by recvmmsg(2) and
sendmmsg(2), up to 64 frames in a call, and does nothing else with them. All frames of a direction must be as
long as the first. On SIGTERM, writes packets and CPU seconds to RESULT as JSON.
"""

import ctypes
import json
import resource
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from traffic import LIBC, PACKET_VNET_HDR, SOL_PACKET

# linux/if_packet.h, asm-generic/socket.h, linux/if_ether.h, linux/socket.h
PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 23, 33
ETH_P_ALL = 3
MSG_DONTWAIT = 0x40
# The gateway's frames in a call, receive buffer and tick.
BATCH, BUFFER_BYTES, TICK_S = 64, 32 << 20, 100e-6
# struct iovec and struct mmsghdr on 64-bit Linux.
IOVEC_BYTES, MMSGHDR_BYTES = 16, 64


def packet_socket(device: str) -> socket.socket:
    """A packet socket with the gateway's options."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    opened.bind((device, ETH_P_ALL))
    return opened


class Direction:
    """Forwards frames from one socket to the other."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target, self.moved = source, target, 0
        self.headers = ctypes.create_string_buffer(MMSGHDR_BYTES * BATCH)
        self.start = ctypes.addressof(self.headers)
        self.length = 0

    def prepare(self) -> bool:
        """Receives the first IPv4 frame, which has the length of all; it is neither forwarded nor counted."""
        try:
            frame = self.source.recv(1 << 17, MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if frame[22:24] != b"\x08\x00":
            return False
        self.length = len(frame)
        self.frames = ctypes.create_string_buffer(self.length * BATCH)
        self.vectors = ctypes.create_string_buffer(IOVEC_BYTES * BATCH)
        at, vectors = ctypes.addressof(self.frames), ctypes.addressof(self.vectors)
        for n in range(BATCH):
            struct.pack_into("=QQ", self.vectors, IOVEC_BYTES * n, at + n * self.length, self.length)
            struct.pack_into("=QQQQ", self.headers, MMSGHDR_BYTES * n, 0, 0, vectors + IOVEC_BYTES * n, 1)
        return True

    def move(self) -> int:
        """Forwards frames in the socket's queue, up to a call's number; gives their number."""
        if not self.length and not self.prepare():
            return 0
        count = LIBC.recvmmsg(self.source.fileno(), ctypes.c_void_p(self.start), BATCH, MSG_DONTWAIT, None)
        done = 0
        while done < count:
            left = ctypes.c_void_p(self.start + MMSGHDR_BYTES * done)
            done += max(LIBC.sendmmsg(self.target.fileno(), left, count - done, 0), 0)
        self.moved += done
        return done


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} RESULT")
    mobile, wired = packet_socket("mobile"), packet_socket("wired")
    directions = [Direction(mobile, wired), Direction(wired, mobile)]
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    while not signals:
        if not sum(direction.move() for direction in directions):
            time.sleep(TICK_S)
    used = resource.getrusage(resource.RUSAGE_SELF)
    result = {"packets": sum(each.moved for each in directions), "seconds": used.ru_utime + used.ru_stime}
    Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
