"""One end of a GTP-U tunnel (TS 29.281) with a PDU session container, for tests.

The device DEVICE is a TUN interface with the addresses INNER, separated by commas. The second set of
addresses and identifiers is used from SIGUSR1 on; an end that keeps its own address sends an end marker into
the old tunnel.
"""

import argparse
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
PORT = 2152
G_PDU, END_MARKER = 255, 254
QFI = 9
# linux/udp.h, asm-generic/socket.h, linux/socket.h
UDP_SEGMENT, SO_NO_CHECK = 103, 11
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
# The kernel takes no more segments in one call (UDP_MAX_SEGMENTS in the kernels before 6.10).
MAX_SEGMENTS = 40
FRAGMENT_BYTES = 800
IPPROTO_FRAGMENT = 44


def open_tun(name: str, addresses: str, mtu: int) -> int:
    """A TUN interface that is up."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "link", "set", name, "mtu", str(mtu), "up"], check=True)
    for address in addresses.split(","):
        nodad = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "addr", "add", address, "dev", name, *nodad], check=True)
    return tun


def checksum(data: bytes) -> int:
    """The sum of RFC 1071, not zero."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF) or 0xFFFF


class Sender:
    """Sends messages from one address as the options say."""

    def __init__(self, local: str, options: argparse.Namespace) -> None:
        family = socket.AF_INET6 if ":" in local else socket.AF_INET
        self.local, self.family, self.options, self.identification = local, family, options, 0
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        if options.no_checksum:
            self.udp.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        self.flags = MSG_ZEROCOPY if options.paged else 0
        if options.paged:
            self.udp.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        self.udp.bind((local, PORT))
        if options.fragments:
            self.raw = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def send(self, messages: list[bytes], remote: str) -> None:
        """Sends messages of the same length, of which the last one may be shorter."""
        if self.options.fragments:
            for message in messages:
                self.send_fragments(message, remote)
        elif len(messages) == 1:
            self.udp.sendto(messages[0], self.flags, (remote, PORT))
        else:
            segment = struct.pack("=H", len(messages[0]))
            self.udp.sendmsg(messages, [(socket.IPPROTO_UDP, UDP_SEGMENT, segment)], 0, (remote, PORT))

    def receive(self) -> bytes:
        """A message, or nothing. Drops the notices of sent pages, for which the socket is ready too."""
        try:
            while self.options.paged:
                self.udp.recvmsg(0, 256, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        try:
            return self.udp.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""

    def send_fragments(self, message: bytes, remote: str) -> None:
        """Sends a message, if it is long in two fragments, maybe the second one first."""
        self.identification = self.identification % 0xFFFF + 1
        addresses = b"".join(socket.inet_pton(self.family, address) for address in (self.local, remote))
        udp = struct.pack("!HHHH", PORT, PORT, 8 + len(message), 0) + message
        pseudo = addresses + struct.pack("!HH", socket.IPPROTO_UDP, len(udp))
        udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp)) + udp[8:]
        parts = [(0, udp)] if len(udp) <= FRAGMENT_BYTES else [(0, udp[:FRAGMENT_BYTES])]
        if len(udp) > FRAGMENT_BYTES:
            parts.append((FRAGMENT_BYTES, udp[FRAGMENT_BYTES:]))
        if self.options.fragments == "reversed":
            parts.reverse()
        for at, part in parts:
            more = at + len(part) < len(udp)
            if self.family == socket.AF_INET6:
                extension = b""
                if more or at:
                    offset = at | more
                    extension = struct.pack("!BBHI", socket.IPPROTO_UDP, 0, offset, self.identification)
                following = IPPROTO_FRAGMENT if extension else socket.IPPROTO_UDP
                length = len(extension) + len(part)
                header = struct.pack("!IHBB", 6 << 28, length, following, 64) + addresses + extension
            else:
                offset = at // 8 | (0x2000 if more else 0)
                header = struct.pack(
                    "!BBHHHBBH", 0x45, 0, 20 + len(part), self.identification, offset, 64, socket.IPPROTO_UDP, 0
                )
                header += addresses
            self.raw.sendto(header + part, (remote, 0))


def message(kind: int, teid: int, datagram: bytes) -> bytes:
    """A message; G-PDUs have the extension header."""
    if kind != G_PDU:
        return struct.pack("!BBHI", 0x30, kind, 0, teid)
    optional = bytes([0, 0, 0, 0x85, 1, 0x10, QFI, 0])
    return struct.pack("!BBHI", 0x34, kind, len(optional) + len(datagram), teid) + optional + datagram


def read_messages(tun: int, teid: int, most: int) -> list[list[bytes]]:
    """G-PDUs of the datagrams that wait, in lists for Sender.send."""
    lists: list[list[bytes]] = []
    try:
        for _ in range(most):
            new = message(G_PDU, teid, os.read(tun, 65536))
            last = lists[-1] if lists else []
            if last and len(last[-1]) == len(last[0]) >= len(new) and len(last) * len(last[0]) < 60_000:
                last.append(new)
            else:
                lists.append([new])
    except BlockingIOError:
        pass
    return lists


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", metavar="DEVICE")
    parser.add_argument("inner", metavar="INNER")
    parser.add_argument("sets", metavar="LOCAL REMOTE OWN_TEID PEER_TEID", nargs="+")
    parser.add_argument("--mtu", type=int, default=1400)
    parser.add_argument("--no-checksum", action="store_true", help="outer UDP checksum 0, over IPv4")
    parser.add_argument("--fragments", choices=["ordered", "reversed"], help="of long outer packets")
    parser.add_argument("--merged", action="store_true", help="send super-packets (UDP_SEGMENT)")
    parser.add_argument("--paged", action="store_true", help="send from pages, so that headers are no linear data")
    return parser.parse_args()


def main() -> None:
    """Forwards until it is killed."""
    options = parse_arguments()
    sets = [options.sets[at : at + 4] for at in range(0, len(options.sets), 4)]
    tun, current, wanted = open_tun(options.device, options.inner, options.mtu), 0, 0
    local, remote, own, peer = sets[0][0], sets[0][1], int(sets[0][2]), int(sets[0][3])
    sender = Sender(local, options)

    def switch(_number: int, _frame: object) -> None:
        nonlocal wanted
        wanted = 1

    signal.signal(signal.SIGUSR1, switch)
    print("ready", flush=True)
    while True:
        if wanted != current:
            current = wanted
            if sets[current][0] == local:
                sender.send([message(END_MARKER, peer, b"")], remote)
            else:
                sender.udp.close()
                sender = Sender(sets[current][0], options)
            local, remote = sets[current][:2]
            own, peer = int(sets[current][2]), int(sets[current][3])
        ready, _, _ = select.select([tun, sender.udp.fileno()], [], [], 0.05)
        if tun in ready:
            for messages in read_messages(tun, peer, MAX_SEGMENTS if options.merged else 1):
                sender.send(messages, remote)
        if sender.udp.fileno() in ready:
            received = sender.receive()
            if len(received) >= 8 and received[1] == G_PDU and struct.unpack("!I", received[4:8])[0] == own:
                if received[8:16] != bytes([0, 0, 0, 0x85, 1, 0x10, QFI, 0]):
                    sys.exit(f"a packet without the flow's QFI: {received[:16].hex()}")
                os.write(tun, received[16:])


main()
