"""Both ends of connections that no common program makes. `sockets.py serve PORT [mptcp]`, `hold PORT`, or `sockets.py TALK ADDRESS PORT
[NUMBER]`, which ends with 0 if every byte was right. A connection opens with a line: what to do, and arguments."""

import fcntl
import hashlib
import os
import random
import socket
import struct
import sys
import threading
import time

MPTCP = 262
SOL_MPTCP, MPTCP_INFO = 284, 1
MSG_FASTOPEN = 0x20000000
TCPI_OPT_SYN_DATA = 32
SIOCOUTQ = 0x5411
MB = 1_000_000
DIGESTS = {}  # what clients said after the server's FIN


def payload(seed, length):
    return random.Random(seed).randbytes(length)


def everything(connection):
    """What arrives until the FIN."""
    parts = []
    while part := connection.recv(262_144):
        parts.append(part)
    return b"".join(parts)


def exactly(connection, length):
    data = bytearray()
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError(f"FIN after {len(data)} of {length} bytes")
        data += part
    return bytes(data)


def line(connection):
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(1)
        if not part:
            raise EOFError("FIN instead of a line")
        data += part
    return data.decode().split()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def wait_for_acknowledgments(connection):
    """A reset takes with it what has not left."""
    end = time.monotonic() + 20
    while int.from_bytes(fcntl.ioctl(connection, SIOCOUTQ, bytes(4)), sys.byteorder) > 0:
        assert time.monotonic() < end, "nobody acknowledges"
        time.sleep(0.01)


def serve_one(connection):
    do, *arguments = line(connection)
    if do == "get":  # SEED LENGTH
        connection.sendall(payload(arguments[0], int(arguments[1])))
    elif do == "digest":  # until the client's FIN; answers behind it
        data = everything(connection)
        connection.sendall(hashlib.sha256(data).hexdigest().encode() + data)
    elif do == "fin-first":  # TOKEN SEED LENGTH: a FIN, and then the client goes on
        connection.sendall(payload(arguments[1], int(arguments[2])))
        connection.shutdown(socket.SHUT_WR)
        DIGESTS[arguments[0]] = hashlib.sha256(everything(connection)).hexdigest()
    elif do == "asked":
        connection.sendall(DIGESTS.get(arguments[0], "nothing").encode())
    elif do == "echo":
        while data := connection.recv(65_536):
            connection.sendall(data)
    elif do == "urgent":  # SEED LENGTH
        data = payload(arguments[0], int(arguments[1]))
        half = len(data) // 2
        connection.sendall(data[:half])
        connection.send(data[half : half + 1], socket.MSG_OOB)
        connection.sendall(data[half + 1 :])
    elif do == "reset":  # SEED LENGTH
        connection.sendall(payload(arguments[0], int(arguments[1])))
        wait_for_acknowledgments(connection)
        return reset(connection)
    elif do == "endless":  # TOKEN: until the client resets
        try:
            while True:
                connection.sendall(bytes(65_536))
        except OSError as error:
            DIGESTS[arguments[0]] = type(error).__name__
    elif do == "drip":  # SEED COUNT: 1000 bytes each 20 ms
        data = payload(arguments[0], 1000 * int(arguments[1]))
        for at in range(0, len(data), 1000):
            connection.sendall(data[at : at + 1000])
            time.sleep(0.02)
    connection.close()


def serve(port, kind=""):
    if kind == "mptcp":
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
    else:
        listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 256)
    listener.listen(4096)

    def one(connection):
        try:
            with connection:
                serve_one(connection)
        except (OSError, EOFError, ValueError):
            pass  # the client says what it missed

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=one, args=(connection,), daemon=True).start()


def hold(port):
    """Sends back what comes, of any number of connections."""
    import resource
    import selectors

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listener = socket.create_server(("", port), backlog=4096)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif data := key.fileobj.recv(65_536):
                key.fileobj.sendall(data)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def connect(address, do):
    connection = socket.create_connection(address, timeout=40)
    connection.sendall(f"{do}\n".encode())
    return connection


def asked(address, token):
    for _ in range(100):
        answer = everything(connect(address, f"asked {token}")).decode()
        if answer != "nothing":
            return answer
        time.sleep(0.1)
    raise AssertionError(f"the server knows nothing of {token}")


def same(got, expected):
    if got != expected:
        wrong = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        raise AssertionError(f"{len(got)} bytes of {len(expected)}, wrong from byte {wrong}")


def get(address, number):
    same(everything(connect(address, f"get {number} {5 * MB}")), payload(str(number), 5 * MB))


def client_fin_first(address, number):
    data = payload(str(number), 3 * MB)
    connection = connect(address, "digest")
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    same(everything(connection), hashlib.sha256(data).hexdigest().encode() + data)


def server_fin_first(address, number):
    token = f"fin-{os.getpid()}"
    connection = connect(address, f"fin-first {token} {number} {3 * MB}")
    same(everything(connection), payload(str(number), 3 * MB))
    time.sleep(0.5)
    upwards = payload(f"up {number}", 2 * MB)
    connection.sendall(upwards)
    connection.close()
    same(asked(address, token), hashlib.sha256(upwards).hexdigest())


def urgent(address, number):
    """Urgent data in its place in the stream."""
    connection = connect(address, f"urgent {number} {2 * MB}")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    same(everything(connection), payload(str(number), 2 * MB))


def server_resets(address, number):
    """A server's RST comes behind its data, as RST."""
    connection = connect(address, f"reset {number} {MB}")
    expected = payload(str(number), MB)
    got = b""
    try:
        while part := connection.recv(65_536):
            got += part
        raise AssertionError("a FIN instead of the RST")
    except ConnectionResetError:
        same(got, expected[: len(got)])
    assert len(got) == MB, f"the RST overtook the data: {len(got)} bytes"


def client_resets(address, number):
    """A client's RST ends the server's sending."""
    token = f"reset-{os.getpid()}"
    connection = connect(address, f"endless {token}")
    exactly(connection, 2 * MB)
    reset(connection)
    assert asked(address, token) in ("ConnectionResetError", "BrokenPipeError")


def stalls(address, number):
    """A client that closes its window for seconds, in a small buffer."""
    connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    connection.settimeout(40)
    connection.connect(address)
    connection.sendall(f"get {number} {4 * MB}\n".encode())
    got = b""
    for wait in (3, 1.2, 0):
        time.sleep(wait)
        got += exactly(connection, MB)
    same(got + everything(connection), payload(str(number), 4 * MB))


def idle(address, number):
    """Keepalive over silence of some seconds, then data both ways."""
    connection = connect(address, "echo")
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for size in (1, 300_000, 100):
        data = payload(f"{number} {size}", size)
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        same(exactly(connection, size), data)
        sender.join()
        time.sleep(number if size > 100 else 0)


def drip(address, number):
    same(everything(connect(address, f"drip {number} 150")), payload(str(number), 150_000))


def short(address, number):
    """Many connections of one question and one answer each, sixteen at a time."""
    failures = []
    answers = {str(size): payload(str(size), size) for size in (0, 1, 700, 1460, 3000, 20_000)}
    names = list(answers)

    def some(first):
        for i in range(first, number, 16):
            size = names[i % len(names)]
            try:
                with connect(address, f"get {size} {size}") as connection:
                    same(everything(connection), answers[size])
            except (OSError, AssertionError) as error:
                failures.append(f"{i}: {error!r}")

    threads = [threading.Thread(target=some, args=(first,)) for first in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, f"{len(failures)} of {number} failed, such as {failures[:3]}"


def mptcp(address, number):
    """Multipath TCP stays multipath TCP."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    connection.settimeout(40)
    connection.connect(address)
    connection.sendall(b"digest\n")
    data = payload(str(number), 3 * MB)
    connection.sendall(data)
    # Without a subflow of MPTCP the kernel has no such option to read.
    info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
    assert not struct.unpack_from("BBBBBBBBI", info)[8] & 1, "fell back to TCP"
    connection.shutdown(socket.SHUT_WR)
    same(everything(connection), hashlib.sha256(data).hexdigest().encode() + data)


def fast_open(address, number):
    """The second connection's question is in its SYN."""
    used = []
    for _ in range(3):
        connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        connection.sendto(f"get {number} {2 * MB}\n".encode(), MSG_FASTOPEN, address)
        connection.settimeout(40)
        same(everything(connection), payload(str(number), 2 * MB))
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        used.append(bool(info[5] & TCPI_OPT_SYN_DATA))
        connection.close()
    assert used[1:] == [True, True], f"no data in the SYN: {used}"


def victim(address, number):
    """One download of so many bytes from a port that attackers know."""
    connection = socket.socket()
    connection.settimeout(60)
    connection.bind(("", 40_000))
    connection.connect(address)
    connection.sendall(f"get 1 {number}\n".encode())
    same(everything(connection), payload("1", number))


def uphill(address, number):
    """One upload of so many bytes, at 12 MB a second, whose digest comes back."""
    connection = connect(address, "digest")
    data = payload("1", number)
    digest = hashlib.sha256(data).hexdigest().encode()

    def send():
        for at in range(0, number, 600_000):
            connection.sendall(data[at : at + 600_000])
            time.sleep(0.05)
        connection.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    same(everything(connection), digest + data)


def ping(address, number):
    """Asks and waits for so many seconds; the longest wait, in ms."""
    connection = connect(address, "echo")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    longest, end = 0, time.monotonic() + number
    while (start := time.monotonic()) < end:
        connection.sendall(b"?")
        exactly(connection, 1)
        longest = max(longest, time.monotonic() - start)
        time.sleep(0.002)
    print(f"{1000 * longest:.0f}")


def herd(address, number):
    """A hundred downloads at once. Says how each ended: exact, reset, or what was wrong."""
    ends = [None] * 100
    deadline = time.monotonic() + 40

    def one(i):
        got = b""
        expected = payload(str(i), number)
        try:
            connection = connect(address, f"get {i} {number}")
            connection.settimeout(max(1, deadline - time.monotonic()))
            while part := connection.recv(262_144):
                got += part
            ends[i] = "exact" if got == expected else f"wrong: FIN after {len(got)} bytes"
        except ConnectionResetError:
            ends[i] = "reset" if got == expected[: len(got)] else "wrong: not what was sent"
        except OSError as error:
            ends[i] = f"hangs: {type(error).__name__}"

    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for end in sorted(set(ends)):
        print(ends.count(end), end)


def hoard(address, number):
    """Holds so many idle connections, each past its first data, for as long as it lives."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (number + 100, number + 100))
    held = []
    for i in range(number):
        connection = socket.create_connection(address, timeout=40)
        connection.sendall(b"x" * 200)
        held.append(connection)
    for connection in held:
        exactly(connection, 200)
    print("held", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "hold":
        hold(int(rest[0]))
    elif what == "serve":
        serve(int(rest[0]), *rest[1:])
    else:
        talk = {name.replace("_", "-"): f for name, f in globals().items() if callable(f)}[what]
        talk((rest[0], int(rest[1])), int(rest[2]) if len(rest) > 2 else 1)
