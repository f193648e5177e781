"""Many downloads of one file at once.

`transfers.py serve PORT FILE` sends the file to every client. `transfers.py fetch HOST PORT COUNT FILE
SECONDS` prints as JSON how many downloads ended in which way: complete, wrong, reset, or hanging (nothing
received for so many seconds). Addresses behind SECONDS are the sources, in turn. A host that
cannot be reached for a while, because a link is missing, is asked again: such a connection did not begin.
"""

import contextlib
import errno
import hashlib
import json
import socket
import sys
import threading
import time
from pathlib import Path


def serve(port: int, name: str) -> None:
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)

    def send(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, Path(name).open("rb") as file:
            connection.sendfile(file)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=send, args=(connection,), daemon=True).start()


def connect(host: str, port: int, seconds: float, source: tuple[str, int] | None) -> socket.socket:
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, port), seconds, source)
        except OSError as error:
            if error.errno not in (errno.EHOSTUNREACH, errno.ENETUNREACH) or time.monotonic() > until:
                raise
        time.sleep(0.1)


def fetch(host: str, port: int, count: int, name: str, seconds: float, sources: list[str]) -> None:
    expected = hashlib.sha256(Path(name).read_bytes()).digest()
    ends = {"complete": 0, "wrong": 0, "reset": 0, "hanging": 0}
    lock = threading.Lock()

    def receive(number: int) -> None:
        source = (sources[number % len(sources)], 0) if sources else None
        digest = hashlib.sha256()
        try:
            with connect(host, port, seconds, source) as connection:
                while part := connection.recv(1 << 16):
                    digest.update(part)
            end = "complete" if digest.digest() == expected else "wrong"
        except TimeoutError:
            end = "hanging"
        except OSError:
            end = "reset"
        with lock:
            ends[end] += 1

    threads = [threading.Thread(target=receive, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(ends))


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]), sys.argv[3])
else:
    fetch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], float(sys.argv[6]), sys.argv[7:])
