#!/usr/bin/env python3
"""Connections that are held through an upgrade (upgrade_inside.sh); exit code 1 if one ends.

hold.py serve FILE    answers on 10.9.0.1: the byte `f` by the file, the byte `t` by all that follows it
hold.py fetch FILE    receives the file once, and compares it
hold.py talk SECONDS  sends a line five times a second, and compares the answers
hold.py stall SECONDS asks for the file and takes nothing; exit code 0 if the connection is reset in this time
"""

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
        if peer.recv(1) == b"f":
            peer.sendall(data)
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


def fetch(file: str) -> None:
    """Receives the file."""
    with socket.create_connection(SERVER, timeout=60) as peer, peer.makefile("rb") as stream:
        peer.sendall(b"f")
        if stream.read() != Path(file).read_bytes():
            sys.exit("the file differs")


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
        case ["talk", seconds]:
            talk(float(seconds))
        case ["stall", seconds]:
            stall(float(seconds))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
