"""A line with a delay between two interfaces of its network namespace, in place of netem, which not every
kernel has.

    scripts/gateway/delay_line.py NEAR FAR DELAY_MS

Frames that arrive on one interface leave by the other DELAY_MS later, merged ones as they are (virtio-net
header). They are received by recvmmsg(2) into a ring of buffers, and sent from there by sendmmsg(2). Frames
for which the ring has no room wait in the socket, of which the kernel drops the excess. Runs until killed.
"""

import ctypes
import select
import socket
import struct
import sys
import time

from packet_socket_forwarder import IOVEC_BYTES, MMSGHDR_BYTES, MSG_DONTWAIT, SO_RCVBUFFORCE, packet_socket
from traffic import LIBC

# Frames in a call. Chosen: the cost of the call is then small beside that of its frames.
BATCH = 64
# Bytes of a buffer: virtio-net header, link header, and a datagram of 64 KiB.
SLOT_BYTES = 65_536 + 64
# Buffers of a direction. Chosen: 10 ms of acknowledgments for each pair of segments at 5 Gb/s are 2100.
SLOTS = 4096
# Bytes of a socket's queue. Chosen: 100 ms at 5 Gb/s with the kernel's overhead, so that a line that is kept
# from running delays packets and does not drop them.
QUEUE_BYTES = 256 << 20
# Position of msg_iov and of msg_len in struct mmsghdr.
IOV_AT, LEN_AT = 16, 56
PRCTL_SET_TIMERSLACK = 29  # linux/prctl.h


class Direction:
    """Frames from one socket to the other, in the order of their arrival."""

    def __init__(self, source: socket.socket, target: socket.socket, delay_s: float) -> None:
        self.source, self.target, self.delay_s = source, target, delay_s
        self.frames = ctypes.create_string_buffer(SLOT_BYTES * SLOTS)
        self.vectors = ctypes.create_string_buffer(IOVEC_BYTES * SLOTS)
        self.headers = ctypes.create_string_buffer(MMSGHDR_BYTES * SLOTS)
        self.start = ctypes.addressof(self.headers)
        self.lengths = memoryview(self.headers).cast("B").cast("I")
        frames, vectors = ctypes.addressof(self.frames), ctypes.addressof(self.vectors)
        for n in range(SLOTS):
            struct.pack_into("=QQ", self.vectors, IOVEC_BYTES * n, frames + n * SLOT_BYTES, SLOT_BYTES)
            struct.pack_into("=QQ", self.headers, MMSGHDR_BYTES * n + IOV_AT, vectors + IOVEC_BYTES * n, 1)
        self.sizes = memoryview(self.vectors).cast("B").cast("Q")
        # Frames ever received and sent; the buffer of a frame is its number modulo SLOTS.
        self.received = self.sent = 0
        # Batches on the line: the time at which they leave, and the number behind their last frame.
        self.batches: list[tuple[float, int]] = []

    def receive(self) -> None:
        """Takes in the frames that have arrived. None leaves early: its time is read when it is there."""
        while True:
            at = self.received % SLOTS
            room = min(BATCH, SLOTS - at, SLOTS - (self.received - self.sent))
            if room == 0:
                return
            start = ctypes.c_void_p(self.start + MMSGHDR_BYTES * at)
            count = LIBC.recvmmsg(self.source.fileno(), start, room, MSG_DONTWAIT, None)
            if count <= 0:
                return
            for n in range(at, at + count):
                self.sizes[2 * n + 1] = self.lengths[(MMSGHDR_BYTES * n + LEN_AT) // 4]
            self.received += count
            self.batches.append((time.monotonic() + self.delay_s, self.received))
            if count < room:
                return

    def send(self, now: float) -> None:
        """Sends the frames that are due."""
        while self.batches and self.batches[0][0] <= now:
            _, end = self.batches.pop(0)
            while self.sent < end:
                at = self.sent % SLOTS
                count = min(end - self.sent, SLOTS - at)
                start = ctypes.c_void_p(self.start + MMSGHDR_BYTES * at)
                done = LIBC.sendmmsg(self.target.fileno(), start, count, 0)
                # A frame that cannot be sent is dropped.
                done = max(done, 1)
                for n in range(at, at + done):
                    self.sizes[2 * n + 1] = SLOT_BYTES
                self.sent += done


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} NEAR FAR DELAY_MS")
    LIBC.prctl(PRCTL_SET_TIMERSLACK, 1000, 0, 0, 0)
    near, far = packet_socket(sys.argv[1]), packet_socket(sys.argv[2])
    for opened in (near, far):
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
    delay_s = float(sys.argv[3]) / 1000
    directions = [Direction(near, far, delay_s), Direction(far, near, delay_s)]
    poll = select.epoll()
    for opened in (near, far):
        poll.register(opened, select.EPOLLIN)
    while True:
        for direction in directions:
            direction.receive()
            direction.send(time.monotonic())
        due = [direction.batches[0][0] for direction in directions if direction.batches]
        if due:
            # Batching for a tenth of a millisecond costs less than a wake-up for each frame.
            time.sleep(min(max(min(due) - time.monotonic(), 0.0), 100e-6))
        else:
            poll.poll(0.05)


if __name__ == "__main__":
    main()
