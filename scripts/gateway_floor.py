"""What packet sockets cost by themselves: frames from one interface to the other by recvmmsg and sendmmsg, in calls of as
many as a worker of `paceline gateway` sends, and nothing done with them. Frames of a direction are all as long as its
first.

    scripts/gateway_floor.py RESULT

in a network namespace with interfaces `mobile` and `wired`; SIGTERM ends it, and JSON is in RESULT then."""

import ctypes
import json
import resource
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from gateway_traffic import LIBC, PACKET_VNET_HDR, SOL_PACKET

PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 23, 33
ETH_P_ALL = 3
BATCH, BUFFER, TICK = 64, 32 << 20, 100e-6
DONTWAIT = 0x40


def opened(device: str) -> socket.socket:
    """A socket as the gateway has them."""
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    found.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    found.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    found.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    found.bind((device, ETH_P_ALL))
    return found


class Direction:
    """From one socket to the other."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target, self.moved = source, target, 0
        self.headers = ctypes.create_string_buffer(64 * BATCH)
        self.start = ctypes.addressof(self.headers)
        self.length = 0

    def prepare(self) -> bool:
        """Looks for the first frame with IPv4, which tells the length of all; it is not counted or passed on."""
        try:
            frame = self.source.recv(1 << 17, DONTWAIT)
        except BlockingIOError:
            return False
        if frame[22:24] != b"\x08\x00":
            return False
        self.length = len(frame)
        self.frames = ctypes.create_string_buffer(self.length * BATCH)
        self.vectors = ctypes.create_string_buffer(16 * BATCH)
        at, vectors = ctypes.addressof(self.frames), ctypes.addressof(self.vectors)
        for n in range(BATCH):
            struct.pack_into("=QQ", self.vectors, 16 * n, at + n * self.length, self.length)
            struct.pack_into("=QQQQ", self.headers, 64 * n, 0, 0, vectors + 16 * n, 1)
        return True

    def move(self) -> int:
        """Passes on what waits, up to a call's worth."""
        if not self.length and not self.prepare():
            return 0
        count = LIBC.recvmmsg(self.source.fileno(), ctypes.c_void_p(self.start), BATCH, DONTWAIT, None)
        done = 0
        while done < count:
            left = ctypes.c_void_p(self.start + 64 * done)
            done += max(LIBC.sendmmsg(self.target.fileno(), left, count - done, 0), 0)
        self.moved += done
        return done


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("wanted: the file for the result")
    mobile, wired = opened("mobile"), opened("wired")
    directions = [Direction(mobile, wired), Direction(wired, mobile)]
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    while not over:
        if not sum(direction.move() for direction in directions):
            time.sleep(TICK)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {"packets": sum(each.moved for each in directions), "seconds": used.ru_utime + used.ru_stime}
    Path(sys.argv[1]).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
