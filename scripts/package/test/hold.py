#!/usr/bin/env python3
"""Connections that are held through an upgrade (upgrade_inside.sh); exit code 1 if one ends.

hold.py serve FILE    answers on 10.9.0.1: the byte `f` by the file, `p` and a number by so many bytes of it,
                      the byte `t` by all that follows it
hold.py fetch FILE [BYTES]    receives the file or its first bytes once, and compares the checksum
hold.py survive FILE BYTES    the same, and a reset is no fault
hold.py talk SECONDS  sends a line five times a second, and compares the answers
hold.py stall SECONDS asks for the file and takes nothing; exit code 0 if the connection is reset in this time
"""

import hashlib
import select
import socket
import sys
import threading
import time
from pathlib import Path

SERVER = ("10.9.0.1", 8000)


def answer(peer: socket.socket, data: bytes) -> None:
    """Answers one connection."""
    try:
        kind = peer.recv(1)
        if kind == b"f":
            peer.sendall(data)
        elif kind == b"p":
            peer.sendall(data[: int(peer.recv(16))])
        else:
            while said := peer.recv(4096):
                peer.sendall(said)
    except OSError:
        pass  # the stalled connection is reset
    peer.close()


def serve(file: str) -> None:
    """Answers for ever."""
    data = Path(file).read_bytes()
    listener = socket.create_server(SERVER, backlog=64)
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=answer, args=(peer, data), daemon=True).start()


def fetch(file: str, size: int | None = None) -> None:
    """Receives the file, or its first bytes."""
    with socket.create_connection(SERVER, timeout=60) as peer, peer.makefile("rb") as stream:
        peer.sendall(b"f" if size is None else b"p%d" % size)
        wanted = Path(file).read_bytes()[:size]
        if hashlib.sha256(stream.read()).digest() != hashlib.sha256(wanted).digest():
            sys.exit("the file differs")


def survive(file: str, size: int) -> None:
    """Receives the first bytes, or a reset."""
    try:
        fetch(file, size)
    except ConnectionResetError:
        pass


def talk(seconds: float) -> None:
    """Sends lines, and receives each again."""
    end = time.monotonic() + seconds
    with socket.create_connection(SERVER, timeout=20) as peer, peer.makefile("rb") as stream:
        peer.sendall(b"t")
        number = 0
        while time.monotonic() < end:
            line = f"line {number}\n".encode()
            peer.sendall(line)
            if stream.readline() != line:
                sys.exit("the answer differs")
            number += 1
            time.sleep(0.2)


def stall(seconds: float) -> None:
    """Receives nothing, and waits for the reset."""
    with socket.create_connection(SERVER, timeout=20) as peer:
        peer.sendall(b"f")
        poll = select.poll()
        poll.register(peer, 0)
        if not poll.poll(1000 * seconds):
            sys.exit("the connection was not reset")


def main() -> None:
    match sys.argv[1:]:
        case ["serve", file]:
            serve(file)
        case ["fetch", file]:
            fetch(file)
        case ["fetch", file, size]:
            fetch(file, int(size))
        case ["survive", file, size]:
            survive(file, int(size))
        case ["talk", seconds]:
            talk(float(seconds))
        case ["stall", seconds]:
            stall(float(seconds))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
