"""A host on whose path every third TCP packet gets IP options or is fragmented.

`disguise.py DEVICE KIND ADDRESS/LENGTH...` makes a TAP device with the addresses. DEVICE sends the frames of
the TAP device, every third one of TCP disguised; frames that DEVICE receives go to the TAP device. KIND is
`plain`, `options` (IPv4 options that do nothing; IPv6 Destination Options) or `fragments` (two of each packet
with data).
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
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
# asm-generic/socket.h
SO_RCVBUFFORCE = 33
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86DD
# IP protocol numbers (IANA)
TCP, FRAGMENT, DESTINATION_OPTIONS = 6, 44, 60
# RFC 9293 3.1
SYN = 2
ETHERNET_BYTES = 14
RECEIVE_BUFFER_BYTES = 16 << 20
MAX_FRAME_BYTES = 65_600
# Leaves room for the headers that are added. Chosen: a round number.
TAP_MTU = 1400
# Shorter packets are not fragmented: the first fragment has the whole TCP header, as RFC 7112 requires.
LEAST_FRAGMENTED_BYTES = 200


def open_tap(addresses: list[str]) -> int:
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"disguised", IFF_TAP | IFF_NO_PI))
    lines = [f"link set disguised mtu {TAP_MTU} up"]
    lines += [f"addr add {own} dev disguised{' nodad' * (':' in own)}" for own in addresses]
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True)
    return tap


def open_device(device: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    opened.bind((device, 0))
    opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    return opened


def with_checksum(header: bytes) -> bytes:
    """An IPv4 header with its checksum (RFC 1071)."""
    header = header[:10] + b"\0\0" + header[12:]
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]


def ipv4(packet: bytes, kind: str, number: int) -> list[bytes]:
    header, data = packet[:20], packet[20:]
    if kind == "options":
        longer = bytes([0x46]) + header[1:2] + struct.pack("!H", len(packet) + 4) + header[4:]
        return [with_checksum(longer + b"\1\1\1\0") + data]
    cut = len(data) // 2 & ~7
    parts = []
    for start, end in ((0, cut), (cut, len(data))):
        field = start // 8 | (0x2000 if end < len(data) else 0)
        lengths = struct.pack("!HHH", 20 + end - start, number & 0xFFFF, field)
        parts.append(with_checksum(header[:2] + lengths + header[8:]) + data[start:end])
    return parts


def ipv6(packet: bytes, kind: str, number: int) -> list[bytes]:
    header, data = packet[:40], packet[40:]

    def extended(following: int, extension: bytes, part: bytes) -> bytes:
        length = struct.pack("!H", len(extension) + len(part))
        return header[:4] + length + bytes([following]) + header[7:] + extension + part

    if kind == "options":
        return [extended(DESTINATION_OPTIONS, bytes([TCP, 0, 1, 4, 0, 0, 0, 0]), data)]
    cut = len(data) // 2 & ~7
    first = extended(FRAGMENT, struct.pack("!BBHI", TCP, 0, 1, number), data[:cut])
    return [first, extended(FRAGMENT, struct.pack("!BBHI", TCP, 0, cut, number), data[cut:])]


def disguised(packet: bytes, kind: str, number: int) -> list[bytes]:
    """The packets in which a TCP packet without options leaves."""
    if kind == "fragments" and len(packet) < LEAST_FRAGMENTED_BYTES:
        return [packet]
    if packet[0] == 0x45 and packet[9] == TCP:
        return ipv4(packet, kind, number)
    if packet[0] >> 4 == 6 and packet[6] == TCP:
        return ipv6(packet, kind, number)
    return [packet]


def tcp_flags(packet: bytes) -> int | None:
    """The flags of a TCP packet without IP options or extension headers."""
    if packet[0] == 0x45:
        return packet[33] if packet[9] == TCP else None
    return packet[53] if packet[0] >> 4 == 6 and packet[6] == TCP else None


def main() -> None:
    device, kind, addresses = sys.argv[1], sys.argv[2], sys.argv[3:]
    tap, wire = open_tap(addresses), open_device(device)
    segments, of_connection = 0, 0
    print("ready", flush=True)
    while True:
        for ready in select.select([tap, wire.fileno()], [], [])[0]:
            if ready != tap:
                os.write(tap, wire.recv(MAX_FRAME_BYTES))
                continue
            frame = os.read(tap, MAX_FRAME_BYTES)
            ethernet, packet = frame[:ETHERNET_BYTES], frame[ETHERNET_BYTES:]
            parts = [packet]
            has_ip = struct.unpack("!H", ethernet[12:])[0] in (ETH_P_IP, ETH_P_IPV6)
            flags = tcp_flags(packet) if has_ip else None
            if flags is not None and flags & SYN:
                of_connection = 0
            elif flags is not None:
                segments, of_connection = segments + 1, of_connection + 1
                # The first data stay plain: they decide whether the connection is accelerated.
                if kind != "plain" and of_connection % 3 == 0 and of_connection > 3:
                    parts = disguised(packet, kind, segments)
            for part in parts:
                wire.send(ethernet + part)


main()
