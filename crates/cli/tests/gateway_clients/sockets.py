"""Client and server of TCP exchanges that common programs do not make.

`sockets.py serve PORT [mptcp]` and `sockets.py hold PORT` are servers. `sockets.py EXCHANGE ADDRESS PORT
[NUMBER]` is a client; it succeeds if every byte was right. A connection begins with a line from the client: a
request and its arguments.
"""

import contextlib
import fcntl
import hashlib
import os
import random
import resource
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

# linux/in.h, linux/mptcp.h, linux/socket.h, linux/tcp.h, linux/sockios.h
IPPROTO_MPTCP = 262
SOL_MPTCP, MPTCP_INFO = 284, 1
MSG_FASTOPEN = 0x20000000
TCPI_OPT_SYN_DATA = 32
SIOCOUTQ = 0x5411
MB = 1_000_000
# Hang guard: no step of an exchange takes as long, also on a slow machine.
HANG_GUARD_S = 120
# Client port of the exchange `victim`, known to the attacks of `hostile.py`.
VICTIM_PORT = 40_000
# Rate of the exchange `upload`. Chosen: an upload lasts some seconds, while the gateway is stopped or killed.
UPLOAD_CHUNK_BYTES, UPLOAD_INTERVAL_S = 600_000, 0.05

Address = tuple[str, int]
# Results of connections that clients ask for afterwards, by token.
results: dict[str, str] = {}


def payload(seed: str, length: int) -> bytes:
    """The same bytes at both ends."""
    return random.Random(seed).randbytes(length)


def receive_all(connection: socket.socket) -> bytes:
    """The bytes received until the FIN."""
    parts = []
    while part := connection.recv(262_144):
        parts.append(part)
    return b"".join(parts)


def receive_exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError(f"FIN after {len(data)} of {length} bytes")
        data += part
    return bytes(data)


def receive_line(connection: socket.socket) -> list[str]:
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            raise EOFError("FIN instead of a line")
        data += part
    return data.decode().split()


def reset(connection: socket.socket) -> None:
    """Closes with a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def wait_for_acknowledgments(connection: socket.socket) -> None:
    """Waits until the send buffer is empty: a RST discards its bytes."""
    end = time.monotonic() + HANG_GUARD_S
    while int.from_bytes(fcntl.ioctl(connection, SIOCOUTQ, bytes(4)), sys.byteorder) > 0:
        assert time.monotonic() < end, "no acknowledgment"
        time.sleep(0.01)


def serve_one(connection: socket.socket) -> None:
    request, *arguments = receive_line(connection)
    if request == "get":  # SEED LENGTH
        connection.sendall(payload(arguments[0], int(arguments[1])))
    elif request == "digest":  # until the client's FIN: sends the digest and the data back
        data = receive_all(connection)
        connection.sendall(hashlib.sha256(data).hexdigest().encode() + data)
    elif request == "fin-first":  # TOKEN SEED LENGTH: sends data and a FIN, then receives data
        connection.sendall(payload(arguments[1], int(arguments[2])))
        connection.shutdown(socket.SHUT_WR)
        results[arguments[0]] = hashlib.sha256(receive_all(connection)).hexdigest()
    elif request == "result":  # TOKEN
        connection.sendall(results.get(arguments[0], "nothing").encode())
    elif request == "echo":
        while data := connection.recv(65_536):
            connection.sendall(data)
    elif request == "urgent":  # SEED LENGTH
        data = payload(arguments[0], int(arguments[1]))
        half = len(data) // 2
        connection.sendall(data[:half])
        connection.send(data[half : half + 1], socket.MSG_OOB)
        connection.sendall(data[half + 1 :])
    elif request == "reset":  # SEED LENGTH
        connection.sendall(payload(arguments[0], int(arguments[1])))
        wait_for_acknowledgments(connection)
        reset(connection)
        return
    elif request == "endless":  # TOKEN: sends until the client resets
        try:
            while True:
                connection.sendall(bytes(65_536))
        except OSError as error:
            results[arguments[0]] = type(error).__name__
    elif request == "drip":  # SEED COUNT: 1000 bytes every 20 ms
        data = payload(arguments[0], 1000 * int(arguments[1]))
        for at in range(0, len(data), 1000):
            connection.sendall(data[at : at + 1000])
            time.sleep(0.02)
    connection.close()


def serve(port: int, kind: str = "") -> None:
    if kind == "mptcp":
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
    else:
        listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 256)
    listener.listen(4096)

    def one(connection: socket.socket) -> None:
        # The client reports the error.
        with contextlib.suppress(OSError, EOFError, ValueError), connection:
            serve_one(connection)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=one, args=(connection,), daemon=True).start()


def hold(port: int) -> None:
    """A server that echoes on any number of connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listener = socket.create_server(("", port), backlog=4096)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif data := connection.recv(65_536):
                connection.sendall(data)
            else:
                selector.unregister(connection)
                connection.close()


def connect(address: Address, request: str) -> socket.socket:
    connection = socket.create_connection(address, timeout=HANG_GUARD_S)
    connection.sendall(f"{request}\n".encode())
    return connection


def result_of(address: Address, token: str) -> str:
    """The server's result of an earlier connection."""
    for _ in range(10 * HANG_GUARD_S):
        answer = receive_all(connect(address, f"result {token}")).decode()
        if answer != "nothing":
            return answer
        time.sleep(0.1)
    raise AssertionError(f"the server has no result of {token}")


def assert_same(got: bytes | str, expected: bytes | str) -> None:
    if got != expected:
        pairs = enumerate(zip(got, expected, strict=False))
        wrong = next((i for i, (a, b) in pairs if a != b), min(len(got), len(expected)))
        raise AssertionError(f"{len(got)} bytes of {len(expected)}, wrong from byte {wrong}")


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def get(address: Address, number: int) -> None:
    assert_same(receive_all(connect(address, f"get {number} {5 * MB}")), payload(str(number), 5 * MB))


def client_fin_first(address: Address, number: int) -> None:
    data = payload(str(number), 3 * MB)
    connection = connect(address, "digest")
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    assert_same(receive_all(connection), hashlib.sha256(data).hexdigest().encode() + data)


def server_fin_first(address: Address, number: int) -> None:
    token = f"fin-{os.getpid()}"
    connection = connect(address, f"fin-first {token} {number} {3 * MB}")
    assert_same(receive_all(connection), payload(str(number), 3 * MB))
    time.sleep(0.5)
    upwards = payload(f"up {number}", 2 * MB)
    connection.sendall(upwards)
    connection.close()
    assert_same(result_of(address, token), hashlib.sha256(upwards).hexdigest())


def urgent(address: Address, number: int) -> None:
    """Urgent data stay at their place in the stream (SO_OOBINLINE)."""
    connection = connect(address, f"urgent {number} {2 * MB}")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    assert_same(receive_all(connection), payload(str(number), 2 * MB))


def server_resets(address: Address, number: int) -> None:
    """A server's RST arrives as RST, after its data."""
    connection = connect(address, f"reset {number} {MB}")
    expected = payload(str(number), MB)
    got = b""
    try:
        while part := connection.recv(65_536):
            got += part
        raise AssertionError("a FIN in place of the RST")
    except ConnectionResetError:
        assert_same(got, expected[: len(got)])
    assert len(got) == MB, f"the RST overtook the data: {len(got)} bytes"


def client_resets(address: Address, number: int) -> None:
    """A client's RST reaches the server."""
    token = f"reset-{os.getpid()}"
    connection = connect(address, f"endless {token}")
    receive_exactly(connection, 2 * MB)
    reset(connection)
    assert result_of(address, token) in ("ConnectionResetError", "BrokenPipeError")


def stalls(address: Address, number: int) -> None:
    """A client with a small receive buffer that reads nothing for seconds: its window closes."""
    connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    connection.settimeout(HANG_GUARD_S)
    connection.connect(address)
    connection.sendall(f"get {number} {4 * MB}\n".encode())
    got = b""
    for wait in (3, 1.2, 0):
        time.sleep(wait)
        got += receive_exactly(connection, MB)
    assert_same(got + receive_all(connection), payload(str(number), 4 * MB))


def idle(address: Address, number: int) -> None:
    """Idle for `number` seconds with keepalive, then data in both directions."""
    connection = connect(address, "echo")
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for size in (1, 300_000, 100):
        data = payload(f"{number} {size}", size)
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        assert_same(receive_exactly(connection, size), data)
        sender.join()
        time.sleep(number if size > 100 else 0)


def drip(address: Address, number: int) -> None:
    assert_same(receive_all(connect(address, f"drip {number} 150")), payload(str(number), 150_000))


def short(address: Address, number: int) -> None:
    """`number` connections with one request and one response each, sixteen at a time."""
    failures = []
    answers = {str(size): payload(str(size), size) for size in (0, 1, 700, 1460, 3000, 20_000)}
    names = list(answers)

    def every_sixteenth(first: int) -> None:
        for i in range(first, number, 16):
            size = names[i % len(names)]
            try:
                with connect(address, f"get {size} {size}") as connection:
                    assert_same(receive_all(connection), answers[size])
            except (OSError, AssertionError) as error:
                failures.append(f"{i}: {error!r}")

    threads = [threading.Thread(target=every_sixteenth, args=(first,)) for first in range(16)]
    run_all(threads)
    assert not failures, f"{len(failures)} of {number} failed, such as {failures[:3]}"


def mptcp(address: Address, number: int) -> None:
    """Multipath TCP does not fall back to TCP (RFC 8684)."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    connection.settimeout(HANG_GUARD_S)
    connection.connect(address)
    connection.sendall(b"digest\n")
    data = payload(str(number), 3 * MB)
    connection.sendall(data)
    # The kernel refuses this option on a connection without MPTCP subflows; bit 0 of the flags means a
    # fallback.
    info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
    assert not struct.unpack_from("BBBBBBBBI", info)[8] & 1, "fell back to TCP"
    connection.shutdown(socket.SHUT_WR)
    assert_same(receive_all(connection), hashlib.sha256(data).hexdigest().encode() + data)


def fast_open(address: Address, number: int) -> None:
    """From the second connection on, the request is in the SYN (RFC 7413)."""
    used = []
    for _ in range(3):
        connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        connection.sendto(f"get {number} {2 * MB}\n".encode(), MSG_FASTOPEN, address)
        connection.settimeout(HANG_GUARD_S)
        assert_same(receive_all(connection), payload(str(number), 2 * MB))
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        used.append(bool(info[5] & TCPI_OPT_SYN_DATA))
        connection.close()
    assert used[1:] == [True, True], f"no data in the SYN: {used}"


def victim(address: Address, number: int) -> None:
    """A download of `number` bytes by a client port that attackers know."""
    connection = socket.socket()
    connection.settimeout(HANG_GUARD_S)
    connection.bind(("", VICTIM_PORT))
    connection.connect(address)
    connection.sendall(f"get 1 {number}\n".encode())
    assert_same(receive_all(connection), payload("1", number))


def upload(address: Address, number: int) -> None:
    """An upload of `number` bytes at 12 MB/s; the server returns the digest and the data."""
    connection = connect(address, "digest")
    data = payload("1", number)
    digest = hashlib.sha256(data).hexdigest().encode()

    def send() -> None:
        for at in range(0, number, UPLOAD_CHUNK_BYTES):
            connection.sendall(data[at : at + UPLOAD_CHUNK_BYTES])
            time.sleep(UPLOAD_INTERVAL_S)
        connection.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    assert_same(receive_all(connection), digest + data)


def ping(address: Address, number: int) -> None:
    """Requests and responses of one byte for `number` seconds."""
    connection = connect(address, "echo")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end = time.monotonic() + number
    while time.monotonic() < end:
        connection.sendall(b"?")
        receive_exactly(connection, 1)
        time.sleep(0.002)


def hundred_downloads(address: Address, number: int) -> None:
    """A hundred downloads at once. Prints how many ended in which way: exact, reset, wrong or hanging."""
    ends = [""] * 100

    def one(i: int) -> None:
        got = b""
        expected = payload(str(i), number)
        try:
            connection = connect(address, f"get {i} {number}")
            while part := connection.recv(262_144):
                got += part
            ends[i] = "exact" if got == expected else f"wrong: FIN after {len(got)} bytes"
        except ConnectionResetError:
            ends[i] = "reset" if got == expected[: len(got)] else "wrong: other bytes"
        except OSError as error:
            ends[i] = f"hangs: {type(error).__name__}"

    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    run_all(threads)
    for end in sorted(set(ends)):
        print(ends.count(end), end)


def hold_many(address: Address, number: int) -> None:
    """Opens `number` connections, transfers some bytes on each, and keeps them idle until it is killed.

    One after another, so that a middlebox never stores the bytes of several, however busy the machine is.
    """
    resource.setrlimit(resource.RLIMIT_NOFILE, (number + 100, number + 100))
    held = []
    for i in range(number):
        connection = socket.create_connection(address, timeout=HANG_GUARD_S)
        connection.sendall(b"x" * 200)
        receive_exactly(connection, 200)
        held.append(connection)
    print("held", flush=True)
    while True:
        time.sleep(1)


EXCHANGES: dict[str, Callable[[Address, int], None]] = {
    exchange.__name__.replace("_", "-"): exchange
    for exchange in (
        get,
        client_fin_first,
        server_fin_first,
        urgent,
        server_resets,
        client_resets,
        stalls,
        idle,
        drip,
        short,
        mptcp,
        fast_open,
        victim,
        upload,
        ping,
        hundred_downloads,
        hold_many,
    )
}


def main() -> None:
    what, *arguments = sys.argv[1:]
    if what == "hold":
        hold(int(arguments[0]))
    elif what == "serve":
        serve(int(arguments[0]), *arguments[1:])
    else:
        address, port, *number = arguments
        EXCHANGES[what]((address, int(port)), int(number[0]) if number else 1)


if __name__ == "__main__":
    main()
