"""Generated TCP connections through a middlebox. Both ends are in this program and not in a kernel, so that
the number of connections is not limited. Frames are built ahead and sent by sendmmsg(2), step by step: the
frames of a step respond to those of earlier steps, and nothing is received.
"""

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

LIBC = ctypes.CDLL(None, use_errno=True)
# linux/sched.h, linux/if_packet.h
CLONE_NEWNET = 0x40000000
SOL_PACKET, PACKET_VNET_HDR, PACKET_QDISC_BYPASS = 263, 15, 20
SYN, RST, PSH, ACK, FIN = 2, 4, 8, 16, 1
# Virtio-net header with an unfinished TCP checksum, as from a host with offloads.
VNET = struct.pack("=BBHHHH", 1, 0, 0, 0, 34, 16)
ETHERNET = bytes.fromhex("02000000bb02 02000000aa01 0800".replace(" ", ""))
OPTIONS = bytes.fromhex("020405b4 01030307 01010402".replace(" ", ""))  # MSS, window scale, SACK permitted
SERVER = 0x0AC80001  # 10.200.0.1
DEVICES = 0x0A400000  # from 10.64.0.0 on
CLIENT_ISN, SERVER_ISN = 1000, 2000


def in_namespace(namespace: str, act: Callable[[], socket.socket]) -> socket.socket:
    """Calls a function in another network namespace."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if LIBC.setns(there, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        return act()
    finally:
        LIBC.setns(home, CLONE_NEWNET)
        os.close(home)
        os.close(there)


def packet_socket(device: str) -> socket.socket:
    """A packet socket that only sends, without the device's queueing discipline."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    opened.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    opened.bind((device, 0))
    return opened


@dataclass
class Flow:
    """A connection by its number; `per_device` successive ones belong to one mobile device. Connections that
    have the same number one after the other differ in `isn`, which both initial sequence numbers contain."""

    number: int
    per_device: int = 1
    isn: int = 0

    def ends(self, up: bool) -> tuple[int, int, int, int]:
        """Addresses and ports: source address, destination address, source port, destination port."""
        device = DEVICES + self.number // self.per_device
        port = 10_000 + self.number % self.per_device
        return (device, SERVER, port, 443) if up else (SERVER, device, 443, port)


def segment(flow: Flow, up: bool, flags: int, seq: int, ack: int, payload: int = 0) -> bytes:
    """A frame with a virtio-net header. `seq` and `ack` count from the initial sequence numbers."""
    src, dst, src_port, dst_port = flow.ends(up)
    own, other = (CLIENT_ISN, SERVER_ISN) if up else (SERVER_ISN, CLIENT_ISN)
    options = OPTIONS if flags & SYN else b""
    length = 40 + len(options) + payload
    total = 0x4500 + length + 0x4000 + 0x4006 + (src >> 16) + (src & 0xFFFF) + (dst >> 16) + (dst & 0xFFFF)
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return b"".join(
        (
            VNET,
            ETHERNET if up else ETHERNET[6:12] + ETHERNET[:6] + ETHERNET[12:],
            struct.pack("!BBHHHBBHII", 0x45, 0, length, 0, 0x4000, 64, 6, checksum, src, dst),
            struct.pack(
                "!HHIIBBHHH",
                src_port,
                dst_port,
                (own + flow.isn + seq) % 2**32,
                (other + flow.isn + ack) % 2**32 if flags & ACK else 0,
                (20 + len(options)) << 2,
                flags,
                65_535,
                0,
                0,
            ),
            options,
            bytes(payload),
        )
    )


class Batch:
    """Frames of one side with the structures of sendmmsg(2)."""

    def __init__(self, frames: list[bytes]) -> None:
        self.count = len(frames)
        self.frames = ctypes.create_string_buffer(b"".join(frames))
        self.vectors = ctypes.create_string_buffer(16 * max(self.count, 1))
        self.headers = ctypes.create_string_buffer(64 * max(self.count, 1))
        at, vectors = ctypes.addressof(self.frames), ctypes.addressof(self.vectors)
        for n, frame in enumerate(frames):
            struct.pack_into("=QQ", self.vectors, 16 * n, at, len(frame))
            struct.pack_into("=QQQQ", self.headers, 64 * n, 0, 0, vectors + 16 * n, 1)
            at += len(frame)


class Generator:
    """Sends the frames of client and server."""

    def __init__(self, client: str, server: str) -> None:
        self.sockets = [in_namespace(name, lambda: packet_socket("eth0")) for name in (server, client)]
        self.sent = 0

    def send(self, up: bool, batch: Batch) -> None:
        """Sends a batch from the client (`up`) or from the server."""
        handle, done = self.sockets[up].fileno(), 0
        start = ctypes.addressof(batch.headers)
        while done < batch.count:
            count = LIBC.sendmmsg(handle, ctypes.c_void_p(start + 64 * done), min(batch.count - done, 256), 0)
            if count < 0 and ctypes.get_errno() not in (errno.EAGAIN, errno.ENOBUFS):
                raise OSError(ctypes.get_errno(), "sendmmsg")
            done += max(count, 0)
        self.sent += done

    def play(self, steps: list[list[tuple[bool, Batch]]], pause: float, least: float = 0.0) -> float:
        """Sends the batches of each step. Steps begin `pause` seconds apart, and at least `least` seconds
        after the end of the previous step. Gives the duration in seconds."""
        start = time.monotonic()
        for n, step in enumerate(steps):
            wait = max(start + n * pause - time.monotonic(), least)
            if wait > 0:
                time.sleep(wait)
            for up, batch in step:
                self.send(up, batch)
        return time.monotonic() - start


# The segments of a connection by step: up, flags, seq, ack, payload bytes. Steps are further apart than the
# gateway's tick.
Script = list[list[tuple[bool, int, int, int, int]]]
# The handshake.
OPEN: Script = [[(True, SYN, 0, 0, 0)], [(False, SYN | ACK, 0, 1, 0)], [(True, ACK, 1, 1, 0)]]
# A request of 200 bytes, a response of 1000 bytes, each acknowledged.
TALK: Script = [
    [(True, ACK | PSH, 1, 1, 200)],
    [(False, ACK, 1, 201, 0), (False, ACK | PSH, 1, 201, 1000)],
    [(True, ACK, 201, 1001, 0)],
]
# FIN from both ends.
CLOSE: Script = [
    [(False, ACK | FIN, 1001, 201, 0)],
    [(True, ACK | FIN, 201, 1002, 0)],
    [(False, ACK, 1002, 202, 0)],
]


def staggered(script: Script, flows: list[Flow], at_once: int) -> list[list[tuple[bool, Batch]]]:
    """Steps of all flows: in each step `at_once` more flows begin their script, and the others go on with
    it."""
    groups = [flows[n : n + at_once] for n in range(0, len(flows), at_once)]
    steps: list[list[tuple[bool, Batch]]] = []
    for n in range(len(groups) + len(script) - 1):
        # Flows that began earlier send first.
        sending = [(groups[n - at], script[at]) for at in reversed(range(len(script))) if 0 <= n - at < len(groups)]
        frames: list[tuple[bool, bytes]] = [
            (up, segment(flow, up, flags, seq, ack, payload))
            for group, sends in sending
            for up, flags, seq, ack, payload in sends
            for flow in group
        ]
        sides = [(side, [frame for up, frame in frames if up == side]) for side in (False, True)]
        steps.append([(side, Batch(own)) for side, own in sides if own])
    return steps
