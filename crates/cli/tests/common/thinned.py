"""Twelve generated downloads whose server retransmits when ACKs are missing: the harm that an ACK filter may
do.

`thinned.py CLIENT SECONDS` runs in the server's namespace; CLIENT is the path of the client's namespace.
Neither kernel has the addresses, so that neither answers. Prints the number of retransmissions.
"""

import ctypes
import os
import socket
import struct
import sys
import time
from collections.abc import Callable

CLONE_NEWNET, PACKET_OUTGOING, ETH_P_IP = 0x40000000, 4, 0x0800
SYN, ACK = 2, 16
CLIENT, SERVER = bytes([10, 9, 0, 77]), bytes([10, 9, 0, 99])
FIRST_PORT, HTTP = 40_000, 80
CLIENT_ISN, SERVER_ISN = 1000, 5000
# Chosen: every tick a download receives six segments, and three ACKs come, of which the filter may discard
# two.
FLOWS, SEGMENT_BYTES, TICK_S, ACKS_PER_TICK = 12, 1000, 0.01, 3
# Round trip of the handshakes, as the filter measures it. Chosen: with a longer one the filter forwards as
# many ACKs.
ROUND_TRIP_S = 0.1
# A data offset of 60 bytes: more than the packet has.
OFFSET_BEYOND_PACKET = 15


def internet_checksum(data: bytes) -> int:
    """RFC 1071, of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def headers(up: bool, flow: int, flags: int, seq: int, ack: int, payload: int, offset: int) -> bytes:
    """IPv4 and TCP headers of a segment with `payload` zero bytes, which do not change the checksum."""
    src, dst = (CLIENT, SERVER) if up else (SERVER, CLIENT)
    ports = (FIRST_PORT + flow, HTTP) if up else (HTTP, FIRST_PORT + flow)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + payload, 0, 0x4000, 64, 6, 0) + src + dst
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, offset << 4, flags, 60_000, 0, 0)
    check = internet_checksum(src + dst + struct.pack("!HH", 6, 20 + payload) + tcp)
    ip = ip[:10] + struct.pack("!H", internet_checksum(ip)) + ip[12:]
    return ip + tcp[:16] + struct.pack("!H", check) + tcp[18:]


def open_device(device: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    opened.bind((device, ETH_P_IP))
    opened.setblocking(False)
    return opened


def in_namespace(path: str, act: Callable[[], socket.socket]) -> socket.socket:
    """Calls a function in another network namespace."""
    libc, own = ctypes.CDLL(None), os.open("/proc/self/ns/net", os.O_RDONLY)
    assert libc.setns(os.open(path, os.O_RDONLY), CLONE_NEWNET) == 0
    opened = act()
    assert libc.setns(own, CLONE_NEWNET) == 0
    return opened


class Downloads:
    """Both ends of the downloads."""

    def __init__(self, client: str) -> None:
        self.server, self.client = open_device("srv0"), in_namespace(client, lambda: open_device("cli0"))
        server_mac, client_mac = (end.getsockname()[4] for end in (self.server, self.client))
        self.up_header = server_mac + client_mac + b"\x08\0"
        self.down_header = client_mac + server_mac + b"\x08\0"
        self.sent, self.acked = [SERVER_ISN + 1] * FLOWS, [SERVER_ISN + 1] * FLOWS
        self.retransmissions = 0

    def send(self, up: bool, flow: int, flags: int, seq: int, ack: int, payload: int = 0, offset: int = 5) -> None:
        ethernet = self.up_header if up else self.down_header
        frame = ethernet + headers(up, flow, flags, seq, ack, payload, offset) + bytes(payload)
        (self.client if up else self.server).send(frame)

    def send_data(self, flow: int, seq: int) -> None:
        self.send(False, flow, ACK, seq, CLIENT_ISN + 1, SEGMENT_BYTES)

    def open(self) -> None:
        for flow in range(FLOWS):
            self.send(True, flow, SYN, CLIENT_ISN, 0)
            self.send(False, flow, SYN | ACK, SERVER_ISN, CLIENT_ISN + 1)
        time.sleep(ROUND_TRIP_S)
        for flow in range(FLOWS):
            self.send(True, flow, ACK, CLIENT_ISN + 1, SERVER_ISN + 1)

    def tick(self) -> None:
        """Sends segments of each download and an ACK for every second one; and a segment with a bad data
        offset."""
        for flow in range(FLOWS):
            self.send(False, flow, ACK, self.sent[flow], CLIENT_ISN + 1, offset=OFFSET_BEYOND_PACKET)
            for _ in range(ACKS_PER_TICK):
                for _ in range(2):
                    self.send_data(flow, self.sent[flow])
                    self.sent[flow] += SEGMENT_BYTES
                self.send(True, flow, ACK, CLIENT_ISN + 1, self.sent[flow])

    def receive(self) -> None:
        """Retransmits a segment for every ACK that acknowledges more than two: an ACK before it was
        discarded."""
        while True:
            try:
                frame, address = self.server.recvfrom(2048)
            except BlockingIOError:
                return
            if address[2] == PACKET_OUTGOING or frame[26:30] != CLIENT:
                continue
            port, _, _, ack = struct.unpack("!HHII", frame[34:46])
            flow = port - FIRST_PORT
            if ack - self.acked[flow] > 2 * SEGMENT_BYTES:
                self.send_data(flow, ack - SEGMENT_BYTES)
                self.retransmissions += 1
            self.acked[flow] = max(self.acked[flow], ack)


def main() -> None:
    downloads = Downloads(sys.argv[1])
    downloads.open()
    start, ticks = time.monotonic(), 0
    while time.monotonic() < start + float(sys.argv[2]):
        downloads.tick()
        downloads.receive()
        ticks += 1
        time.sleep(max(start + ticks * TICK_S - time.monotonic(), 0))
    print(downloads.retransmissions)


main()
