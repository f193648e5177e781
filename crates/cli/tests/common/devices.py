"""Downloads of many devices, each with an address of its own.

`devices.py HOST PORT FIRST COUNT SECONDS` reads one connection after the other to its end, from COUNT
addresses that follow each other from FIRST on, for so many seconds. Prints the number of complete downloads
of each address as JSON.
"""

import ipaddress
import json
import socket
import sys
import threading
import time


def main() -> None:
    host, port, first, count, seconds = sys.argv[1:]
    addresses = [str(ipaddress.ip_address(first) + n) for n in range(int(count))]
    downloads = dict.fromkeys(addresses, 0)
    end = time.monotonic() + float(seconds)

    def download(address: str) -> None:
        while time.monotonic() < end:
            try:
                with socket.create_connection((host, int(port)), 30, (address, 0)) as connection:
                    while connection.recv(1 << 16):
                        pass
                downloads[address] += 1
            except OSError as error:
                print(address, error, file=sys.stderr)
                time.sleep(0.1)

    threads = [threading.Thread(target=download, args=(address,)) for address in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(downloads))


main()
