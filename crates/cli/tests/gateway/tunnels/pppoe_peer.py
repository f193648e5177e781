"""One end of a PPPoE session (RFC 2516) over raw sockets and a TUN interface, for kernels without PPP.

Usage: pppoe_peer.py server|client LINK DEVICE INNER

The server answers discovery on the Ethernet interface LINK and the client makes it, then both forward the
datagrams of the TUN interface DEVICE with the addresses INNER, separated by commas. The client sends echo
requests of link control (RFC 1661, section 5.8) all the time and prints a line at each answer.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
# linux/if_packet.h, asm-generic/socket.h
SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 263, 23, 33
ETH_P_ALL = 3
DISCOVERY, SESSION = 0x8863, 0x8864
PADI, PADO, PADR, PADS = 0x09, 0x07, 0x19, 0x65
SESSION_ID = 0x4321
# Tags (RFC 2516, appendix A): an empty service name, and the concentrator's name.
SERVICE_NAME, AC_NAME = struct.pack("!HH", 0x0101, 0), struct.pack("!HH", 0x0102, 4) + b"test"
LCP, IPV4, IPV6 = 0xC021, 0x0021, 0x0057
ECHO_REQUEST, ECHO_REPLY = 9, 10
BROADCAST = b"\xff" * 6
# RFC 2516, section 7: the MTU of Ethernet without the header.
MTU = 1492
ECHO_INTERVAL_SECONDS = 0.05


class Link:
    """The Ethernet interface."""

    def __init__(self, name: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.bind((name, 0))
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.own: bytes = self.socket.getsockname()[4]
        self.peer = BROADCAST

    def send(self, ethertype: int, code: int, session: int, content: bytes) -> None:
        """Sends a PPPoE packet to the peer."""
        header = struct.pack("!HBBHH", ethertype, 0x11, code, session, len(content))
        self.socket.send(self.peer + self.own + header + content)

    def send_ppp(self, protocol: int, content: bytes) -> None:
        """Sends a packet of the session."""
        self.send(SESSION, 0, SESSION_ID, struct.pack("!H", protocol) + content)

    def receive(self) -> tuple[int, int, int, bytes]:
        """EtherType, code, session and content of the next frame; EtherType 0 if it is not for this end."""
        frame = self.socket.recv(70_000)
        ethertype, code = struct.unpack("!HxB", frame[12:16])
        if frame[:6] not in (self.own, BROADCAST) or ethertype not in (DISCOVERY, SESSION):
            return 0, 0, 0, b""
        session, length = struct.unpack("!HH", frame[16:20])
        if ethertype == DISCOVERY:
            self.peer = frame[6:12]
        return ethertype, code, session, frame[20 : 20 + length]


def discover(link: Link) -> None:
    """The client's discovery, repeated until it is answered."""
    link.socket.settimeout(0.5)
    wanted, step = PADO, (PADI, SERVICE_NAME)
    while True:
        link.send(DISCOVERY, step[0], 0, step[1])
        try:
            ethertype, code, session, _ = link.receive()
        except TimeoutError:
            continue
        if (ethertype, code) == (DISCOVERY, wanted):
            if code == PADS:
                assert session == SESSION_ID, session
                break
            wanted, step = PADS, (PADR, SERVICE_NAME)
    link.socket.settimeout(None)


def open_tun(name: str, addresses: str) -> int:
    """A TUN interface that is up."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "link", "set", name, "mtu", str(MTU), "up"], check=True)
    for address in addresses.split(","):
        nodad = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "addr", "add", address, "dev", name, *nodad], check=True)
    return tun


def handle(link: Link, tun: int) -> None:
    """Handles a frame."""
    ethertype, code, session, content = link.receive()
    if ethertype == DISCOVERY:
        if code == PADI:
            link.send(DISCOVERY, PADO, 0, SERVICE_NAME + AC_NAME)
        elif code == PADR:
            link.send(DISCOVERY, PADS, SESSION_ID, SERVICE_NAME)
    elif ethertype == SESSION and session == SESSION_ID:
        protocol, payload = struct.unpack("!H", content[:2])[0], content[2:]
        if protocol in (IPV4, IPV6):
            os.write(tun, payload)
        elif protocol == LCP and payload[0] == ECHO_REQUEST:
            link.send_ppp(LCP, bytes([ECHO_REPLY]) + payload[1:])
        elif protocol == LCP and payload[0] == ECHO_REPLY:
            print("echo", payload[8:].decode(), flush=True)


def main() -> None:
    """Forwards until it is killed."""
    role, name, device, inner = sys.argv[1:]
    link = Link(name)
    if role == "client":
        discover(link)
    tun = open_tun(device, inner)
    print("ready", flush=True)
    echoes, next_echo = 0, time.monotonic()
    while True:
        ready, _, _ = select.select([tun, link.socket.fileno()], [], [], ECHO_INTERVAL_SECONDS)
        if tun in ready:
            datagram = os.read(tun, 65536)
            link.send_ppp(IPV4 if datagram[0] >> 4 == 4 else IPV6, datagram)
        if link.socket.fileno() in ready:
            handle(link, tun)
        if role == "client" and time.monotonic() >= next_echo:
            echoes, next_echo = echoes + 1, time.monotonic() + ECHO_INTERVAL_SECONDS
            text = f"number {echoes}".encode()
            link.send_ppp(LCP, struct.pack("!BBHI", ECHO_REQUEST, echoes % 256, 8 + len(text), 0) + text)


main()
