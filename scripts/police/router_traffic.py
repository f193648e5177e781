"""Sessions of `router.py`: `send PORT SESSIONS CONTROL` serves them until its input ends and prints their
retransmissions; `receive SERVER PORT SECONDS ADDRESS...` reads one session from each address, and prints
samples of a time and the bytes of each session."""

import json
import os
import selectors
import socket
import struct
import sys
import threading
import time

# Real-time priority of the receiver, below that of the threads that receive packets, so that it reads at
# once.
PRIORITY = 10
# Bytes of one write. Chosen: 64 KiB, a super-packet.
PIECE = bytes(1 << 16)
# Offset of tcpi_total_retrans in struct tcp_info (linux/tcp.h).
TOTAL_RETRANS = 100
# Time in s between samples. Chosen: thirty within the first 3 s.
SAMPLE_S = 0.1


def feed(session: socket.socket) -> None:
    try:
        while True:
            session.sendall(PIECE)
    except OSError:
        return


def send(port: int, sessions: int, control: str) -> None:
    listener = socket.create_server(("", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    accepted = []
    for _ in range(sessions):
        session, _ = listener.accept()
        accepted.append(session)
        threading.Thread(target=feed, args=(session,), daemon=True).start()
    sys.stdin.read()
    infos = [session.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) for session in accepted]
    print(sum(struct.unpack_from("=I", info, TOTAL_RETRANS)[0] for info in infos), flush=True)


def receive(server: str, port: int, seconds: float, addresses: list[str]) -> None:
    sessions = [socket.create_connection((server, port), 30, (address, 0)) for address in addresses]
    selector = selectors.DefaultSelector()
    for index, session in enumerate(sessions):
        session.setblocking(False)
        selector.register(session, selectors.EVENT_READ, index)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    print("open", flush=True)
    begin = time.monotonic()
    counts = [0] * len(sessions)
    samples: list[list[float]] = [[0.0, *counts]]
    while time.monotonic() - begin < seconds:
        for key, _ in selector.select(0.02):
            counts[key.data] += len(sessions[key.data].recv(1 << 20))
        now = time.monotonic() - begin
        if now - samples[-1][0] >= SAMPLE_S:
            samples.append([now, *counts])
    samples.append([time.monotonic() - begin, *counts])
    print(json.dumps(samples), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        receive(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:])
