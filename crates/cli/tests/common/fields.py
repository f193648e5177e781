"""One end of a connection, and the headers of all its frames: fields.py DEVICE serve|ADDRESS CLASS

Prints a JSON list, a header each, when the connection has ended. DEVICE must have no offloads.
"""

import json
import socket
import struct
import sys
import threading
import time

device, peer, traffic_class = sys.argv[1], sys.argv[2], int(sys.argv[3], 0)
PORT, SIZE = 9000, 400_000
OUTGOING = 4
headers: list[dict[str, object]] = []


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def header(frame: bytes, outgoing: bool) -> dict[str, object] | None:
    v4 = frame[12:14] == b"\x08\x00"
    if not v4 and frame[12:14] != b"\x86\xdd":
        return None
    ip = frame[14:]
    at = 4 * (ip[0] & 15) if v4 else 40
    if (ip[9] if v4 else ip[6]) != 6:
        return None
    end = struct.unpack("!H", ip[2:4])[0] if v4 else 40 + struct.unpack("!H", ip[4:6])[0]
    tcp = ip[at:end]
    addresses = ip[12:20] if v4 else ip[8:40]
    ports, seq, ack, off, flags, window, _, urgent = struct.unpack("!IIIBBHHH", tcp[:20])
    if PORT not in (ports >> 16, ports & 0xFFFF):
        return None
    stamps, options = None, tcp[20 : 4 * (off >> 4)]
    while options and options[0]:
        if options[0] == 1:
            options = options[1:]
            continue
        if options[0] == 8:
            stamps = struct.unpack("!II", options[2:10])
        options = options[options[1] :]
    first = struct.unpack("!I", ip[:4])[0]
    pseudo = addresses + struct.pack("!HH", 6, len(tcp))
    return {
        "outgoing": outgoing,
        "class": ip[1] if v4 else first >> 20 & 0xFF,
        "id": struct.unpack("!H", ip[4:6])[0] if v4 else None,
        "fragment": struct.unpack("!H", ip[6:8])[0] if v4 else None,
        "label": None if v4 else first & 0xFFFFF,
        "hops": ip[8] if v4 else ip[7],
        "seq": seq, "ack": ack, "flags": (off & 15) << 8 | flags, "window": window, "urgent": urgent,
        "stamps": stamps, "payload": len(tcp) - 4 * (off >> 4),
        "right": checksum(pseudo + tcp) == 0xFFFF and (not v4 or checksum(ip[:at]) == 0xFFFF),
    }  # fmt: skip


def capture(raw: socket.socket) -> None:
    while True:
        frame, address = raw.recvfrom(65536)
        found = header(frame, address[2] == OUTGOING)
        if found:
            headers.append(found)


raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
raw.bind((device, 0))
threading.Thread(target=capture, args=(raw,), daemon=True).start()


def set_class(end: socket.socket) -> None:
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)
    if end.family == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)


if peer == "serve":
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
    set_class(listener)
    end, _ = listener.accept()
    set_class(end)
    end.recv(3)
    for start in range(0, SIZE, 20_000):
        end.sendall(b"x" * 20_000)
        time.sleep(0.002)
        if start == SIZE // 2:
            end.send(b"!", socket.MSG_OOB)
    end.shutdown(socket.SHUT_WR)
    end.recv(1)
else:
    end = socket.socket(socket.AF_INET6 if ":" in peer else socket.AF_INET)
    set_class(end)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    end.connect((peer, PORT))
    end.sendall(b"GET")
    received = 0
    while part := end.recv(65536):
        received += len(part)
    assert received == SIZE + 1, received
end.close()
time.sleep(0.5)
print(json.dumps(headers))
