"""Prints the segment sizes that both ends of a TCP connection use, which follow from the SYNs.

Usage: segment_sizes.py serve PORT | segment_sizes.py ADDRESS PORT

The client prints its own size and the server's, without the bytes of the timestamps option.
"""

import socket
import sys


def size(connection: socket.socket) -> int:
    """The payload of a full segment that this end sends, of a connection that is open."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def serve(port: int) -> None:
    """Tells each client the server's size."""
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(f"{size(connection)}\n".encode())


def main() -> None:
    """Client or server."""
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as connection:
        print(size(connection), connection.makefile().readline().strip())


main()
