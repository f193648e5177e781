"""Twelve made-up downloads whose server sends again when acknowledgments come thinned: `thinned.py CLIENT SECONDS`, in
the server's namespace, CLIENT being the path of the client's. Neither kernel has the addresses, so that neither answers."""

import ctypes
import os
import socket
import struct
import sys
import time

CLONE_NEWNET, PACKET_OUTGOING, ETH_P_IP = 0x40000000, 4, 0x0800
SYN, ACK = 2, 16
CLIENT, SERVER = bytes([10, 9, 0, 77]), bytes([10, 9, 0, 99])
FLOWS, SEGMENT, TICK, TRAIN = 12, 1000, 0.01, 3
FIRST_PORT, HTTP = 40_000, 80
CLIENT_ISN, SERVER_ISN = 1000, 5000
# By the handshake: of longer ones the filter lets no less through.
ROUND_TRIP = 0.1


def summed(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def datagram(up, flow, flags, seq, ack, payload=0, offset=5):
    """Without a checksum over the payload, which nobody looks at."""
    src, dst = (CLIENT, SERVER) if up else (SERVER, CLIENT)
    ports = (FIRST_PORT + flow, HTTP) if up else (HTTP, FIRST_PORT + flow)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + payload, 0, 0x4000, 64, 6, 0) + src + dst
    tcp = struct.pack("!HHIIBBHHH", *ports, seq, ack, offset << 4, flags, 60_000, 0, 0)
    check = summed(src + dst + struct.pack("!HH", 6, 20 + payload) + tcp)
    return ip[:10] + struct.pack("!H", summed(ip)) + ip[12:] + tcp[:16] + struct.pack("!H", check) + tcp[18:]


def wire(device):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    opened.bind((device, ETH_P_IP))
    opened.setblocking(False)
    return opened


def inside(path, act):
    libc, home = ctypes.CDLL(None), os.open("/proc/self/ns/net", os.O_RDONLY)
    assert libc.setns(os.open(path, os.O_RDONLY), CLONE_NEWNET) == 0
    opened = act()
    assert libc.setns(home, CLONE_NEWNET) == 0
    return opened


class Downloads:
    def __init__(self, client):
        self.server, self.client = wire("srv0"), inside(client, lambda: wire("cli0"))
        macs = [end.getsockname()[4] for end in (self.server, self.client)]
        self.up, self.down = macs[0] + macs[1] + b"\x08\0", macs[1] + macs[0] + b"\x08\0"
        self.sent, self.acked = [SERVER_ISN + 1] * FLOWS, [SERVER_ISN + 1] * FLOWS
        self.repeated = 0

    def say(self, up, flow, flags, seq, ack, payload=0, offset=5):
        head = self.up if up else self.down
        frame = head + datagram(up, flow, flags, seq, ack, payload, offset) + bytes(payload)
        (self.client if up else self.server).send(frame)

    def data(self, flow, seq):
        self.say(False, flow, ACK, seq, CLIENT_ISN + 1, SEGMENT)

    def open(self):
        for flow in range(FLOWS):
            self.say(True, flow, SYN, CLIENT_ISN, 0)
            self.say(False, flow, SYN | ACK, SERVER_ISN, CLIENT_ISN + 1)
        time.sleep(ROUND_TRIP)
        for flow in range(FLOWS):
            self.say(True, flow, ACK, CLIENT_ISN + 1, SERVER_ISN + 1)

    def tick(self):
        """Some segments of each, and of every second one an acknowledgment; and one whose header would end behind it."""
        for flow in range(FLOWS):
            self.say(False, flow, ACK, self.sent[flow], CLIENT_ISN + 1, offset=15)
            for _ in range(TRAIN):
                for _ in range(2):
                    self.data(flow, self.sent[flow])
                    self.sent[flow] += SEGMENT
                self.say(True, flow, ACK, CLIENT_ISN + 1, self.sent[flow])

    def listen(self):
        while True:
            try:
                frame, address = self.server.recvfrom(2048)
            except BlockingIOError:
                return
            if address[2] == PACKET_OUTGOING or frame[26:30] != CLIENT:
                continue
            port, _, _, ack = struct.unpack("!HHII", frame[34:46])
            flow = port - FIRST_PORT
            if ack - self.acked[flow] > 2 * SEGMENT:
                self.data(flow, ack - SEGMENT)
                self.repeated += 1
            self.acked[flow] = max(self.acked[flow], ack)


downloads = Downloads(sys.argv[1])
downloads.open()
start, number = time.monotonic(), 0
while time.monotonic() < start + float(sys.argv[2]):
    downloads.tick()
    downloads.listen()
    number += 1
    time.sleep(max(start + number * TICK - time.monotonic(), 0))
print(downloads.repeated)
