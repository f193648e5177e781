#!/usr/bin/env python3
"""CPU seconds per gigabyte of middleboxes between a client and a server: the kernel alone, `paceline
gateway`, HAProxy and PEPsal, in the same three network namespaces, one after the other in each round.

    scripts/gateway/bench.py [--paceline PATH] [--pepsal PATH] [--rounds N] [--gigabytes N] [--hosts-tso]
                             [--control NAME]

Client and server are iperf3. Packets between hosts are 1514 bytes long, and the middlebox merges and splits
them (GRO, TSO). CPU time is that of the whole machine (/proc/stat): client, server, middlebox and interrupts;
nothing else may run meanwhile. Programs that are not installed are left out with a message. Needs root.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from network import Network, built_program

# Columns user, system, irq and softirq of /proc/stat (man 5 proc). The measured programs have no nice level.
BUSY_COLUMNS = (0, 2, 5, 6)


def busy_seconds() -> float:
    """CPU time of all processors since boot, in seconds."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(int(ticks[i]) for i in BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")


def kernel_alone(_: Network, __: Path) -> None:
    """Starts no program."""


def haproxy(network: Network, folder: Path) -> None:
    config = folder / "haproxy.cfg"
    config.write_text(
        "global\n  nbthread 1\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n"
        "  timeout server 60s\n  option splice-auto\nlisten all\n  bind 10.77.1.1:5201\n  server s 10.77.2.2:5201\n"
    )
    network.start(network.middlebox, "haproxy", "-db", "-f", str(config))


def pepsal(path: str) -> Callable[[Network, Path], None]:
    def start(network: Network, _: Path) -> None:
        network.run_in(network.middlebox, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
        network.run_in(network.middlebox, "ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100")
        network.run_in(
            network.middlebox, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "mobile", "-p", "tcp",
            "-j", "TPROXY", "--on-port", "5000", "--tproxy-mark", "1",
        )  # fmt: skip
        # Packets from the server to a socket of PEPsal have the client's address; they are delivered to the
        # socket.
        network.run_in(
            network.middlebox, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "wired", "-p", "tcp",
            "-m", "socket", "--transparent", "-j", "MARK", "--set-mark", "1",
        )  # fmt: skip
        network.start(network.middlebox, "sh", "-c", f"ulimit -n 65536; exec {path} -f -p 5000")

    return start


def gateway(path: str, settings: str) -> Callable[[Network, Path], None]:
    def start(network: Network, folder: Path) -> None:
        config = folder / "gateway.toml"
        config.write_text(settings)
        network.start(network.middlebox, path, "gateway", str(config))

    return start


def measure(
    name: str, routed: bool, prepare: Callable[[Network, Path], None], options: argparse.Namespace
) -> tuple[float, float] | None:
    """CPU seconds per gigabyte, and Gb/s; none if the transfer failed."""
    addresses = ("10.77.1.2/24", "10.77.2.2/24") if routed else ("10.77.1.2/16", "10.77.2.2/16")
    network = Network(*addresses, routed=routed)
    try:
        if not options.hosts_tso:
            for host in (network.client, network.server):
                network.run_in(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
        if options.control:
            for host in (network.client, network.middlebox, network.server):
                network.run_in(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={options.control}")
        with tempfile.TemporaryDirectory() as folder:
            prepare(network, Path(folder))
            network.start(network.server, "iperf3", "-s")
            time.sleep(2)
            target = "10.77.1.1" if name == "haproxy" else "10.77.2.2"
            client = ["iperf3", "-c", target, "-R", "-J", "-P", str(options.streams), "-n"]
            network.run_in(network.client, *client, "20M")  # resolve addresses, warm up
            before, started = busy_seconds(), time.monotonic()
            out = network.run_in(network.client, *client, f"{options.gigabytes * 1000 // options.streams}M")
            cpu_s, took_s = busy_seconds() - before, time.monotonic() - started
            report = json.loads(out)
            if "error" in report:
                print(f"{name}: no figure; iperf3: {report['error']}", file=sys.stderr)
                return None
            gigabytes = report["end"]["sum_received"]["bytes"] / 1e9
            return cpu_s / gigabytes, gigabytes * 8 / took_s
    finally:
        network.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--pepsal", default=shutil.which("pepsal"), metavar="PATH")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=int, default=4)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--control", help="congestion control of all senders instead of this machine's")
    parser.add_argument("--only", default="", help="names to measure, separated by commas")
    parser.add_argument("--hosts-tso", action="store_true", help="64 KB super-packets end to end")
    parser.add_argument("--config", type=Path, help="the gateway's settings instead of the defaults")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    settings = options.config.read_text() if options.config else 'server = "wired"\nmobile = "mobile"\n'
    middleboxes: list[tuple[str, bool, Callable[[Network, Path], None]]] = [
        ("kernel routing", True, kernel_alone),
        ("kernel bridge", False, kernel_alone),
        ("gateway", False, gateway(os.path.abspath(options.paceline), settings)),
    ]
    if shutil.which("haproxy"):
        middleboxes.append(("haproxy", True, haproxy))
    if options.pepsal:
        middleboxes.append(("pepsal", True, pepsal(options.pepsal)))
    for name in ("haproxy", "pepsal"):
        if name not in [middlebox[0] for middlebox in middleboxes]:
            print(f"left out: {name} is not installed", file=sys.stderr)
    if options.only:
        middleboxes = [middlebox for middlebox in middleboxes if middlebox[0] in options.only.split(",")]
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in middleboxes}
    for number in range(options.rounds):
        for name, routed, prepare in middleboxes:
            print(f"round {number + 1}: {name}", file=sys.stderr)
            if figure := measure(name, routed, prepare, options):
                figures[name].append(figure)
    figures = {name: values for name, values in figures.items() if values}
    if middleboxes[0][0] not in figures:
        sys.exit(f"{middleboxes[0][0]}: no figures to compare the others with")
    base = statistics.median(cost for cost, _ in figures[middleboxes[0][0]])
    print(f"{'':16} {'CPU s/GB':>9} {'relative':>9} {'Gb/s':>7}")
    for name, values in figures.items():
        cost = statistics.median(cost for cost, _ in values)
        rate = statistics.median(rate for _, rate in values)
        print(f"{name:16} {cost:9.2f} {cost / base:9.2f} {rate:7.2f}")


if __name__ == "__main__":
    main()
