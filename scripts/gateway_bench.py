#!/usr/bin/env python3
"""CPU seconds per gigabyte of what can stand between a client and a server: the kernel alone, `paceline gateway`,
HAProxy and PEPsal, on the same three network namespaces, one after another in each round.

    scripts/gateway_bench.py [--paceline PATH] [--pepsal PATH] [--rounds N] [--gigabytes N] [--hosts-tso]
                             [--control NAME]

Client and server are iperf3, packets between hosts are 1514 bytes long, and the box merges and splits them (GRO, TSO).
CPU time is the machine's, all of it (/proc/stat): client, server, box and what the kernel does in interrupts. Nothing
else may run meanwhile. What is not installed is left out and said so. Needs root.
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

from gateway_town import Town

BUSY = (0, 2, 5, 6)  # user, system, irq, softirq in /proc/stat; what is nice is none of ours


def busy_seconds() -> float:
    """What all processors have worked, in seconds."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(int(ticks[i]) for i in BUSY) / os.sysconf("SC_CLK_TCK")


def nothing(_: Town, __: Path) -> None:
    """The kernel alone."""


def haproxy(town: Town, folder: Path) -> None:
    config = folder / "haproxy.cfg"
    config.write_text(
        "global\n  nbthread 1\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n"
        "  timeout server 60s\n  option splice-auto\nlisten all\n  bind 10.77.1.1:5201\n  server s 10.77.2.2:5201\n"
    )
    town.start(town.box, "haproxy", "-db", "-f", str(config))


def pepsal(path: str) -> Callable[[Town, Path], None]:
    def start(town: Town, _: Path) -> None:
        town.inside(town.box, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
        town.inside(town.box, "ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100")
        town.inside(
            town.box, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "mobile", "-p", "tcp",
            "-j", "TPROXY", "--on-port", "5000", "--tproxy-mark", "1",
        )  # fmt: skip
        # What the servers answer is addressed to the client, and is the box's all the same.
        town.inside(
            town.box, "iptables", "-t", "mangle", "-A", "PREROUTING", "-i", "wired", "-p", "tcp",
            "-m", "socket", "--transparent", "-j", "MARK", "--set-mark", "1",
        )  # fmt: skip
        town.start(town.box, "sh", "-c", f"ulimit -n 65536; exec {path} -f -p 5000")

    return start


def gateway(path: str, settings: str) -> Callable[[Town, Path], None]:
    def start(town: Town, folder: Path) -> None:
        config = folder / "gateway.toml"
        config.write_text(settings)
        town.start(town.box, path, "gateway", str(config))

    return start


def measure(
    name: str, routed: bool, prepare: Callable[[Town, Path], None], options: argparse.Namespace
) -> tuple[float, float] | None:
    """CPU seconds per gigabyte, and gigabits per second; none of a transfer that does not come to its end."""
    addresses = ("10.77.1.2/24", "10.77.2.2/24") if routed else ("10.77.1.2/16", "10.77.2.2/16")
    town = Town(*addresses, routed=routed)
    try:
        if not options.hosts_tso:
            for host in (town.client, town.server):
                town.inside(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
        if options.control:
            for host in (town.client, town.box, town.server):
                town.inside(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={options.control}")
        with tempfile.TemporaryDirectory() as folder:
            prepare(town, Path(folder))
            town.start(town.server, "iperf3", "-s")
            time.sleep(2)
            target = "10.77.1.1" if name == "haproxy" else "10.77.2.2"
            client = ["iperf3", "-c", target, "-R", "-J", "-P", str(options.streams), "-n"]
            town.inside(town.client, *client, "20M")  # learn addresses, warm up
            before, started = busy_seconds(), time.monotonic()
            out = town.inside(town.client, *client, f"{options.gigabytes * 1000 // options.streams}M")
            spent, took = busy_seconds() - before, time.monotonic() - started
            said = json.loads(out)
            if "error" in said:
                print(f"{name}: no figure, since iperf3 says: {said['error']}", file=sys.stderr)
                return None
            moved = said["end"]["sum_received"]["bytes"] / 1e9
            return spent / moved, moved * 8 / took
    finally:
        town.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default="target/release/paceline", metavar="PATH")
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
    boxes: list[tuple[str, bool, Callable[[Town, Path], None]]] = [
        ("kernel routing", True, nothing),
        ("kernel bridge", False, nothing),
        ("gateway", False, gateway(os.path.abspath(options.paceline), settings)),
    ]
    if shutil.which("haproxy"):
        boxes.append(("haproxy", True, haproxy))
    if options.pepsal:
        boxes.append(("pepsal", True, pepsal(options.pepsal)))
    for name in ("haproxy", "pepsal"):
        if name not in [box[0] for box in boxes]:
            print(f"left out: {name} is not installed", file=sys.stderr)
    if options.only:
        boxes = [box for box in boxes if box[0] in options.only.split(",")]
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name, _, _ in boxes}
    for turn in range(options.rounds):
        for name, routed, prepare in boxes:
            print(f"round {turn + 1}: {name}", file=sys.stderr)
            if figure := measure(name, routed, prepare, options):
                figures[name].append(figure)
    figures = {name: values for name, values in figures.items() if values}
    if boxes[0][0] not in figures:
        sys.exit(f"{boxes[0][0]}: no figures, to which the others are compared")
    base = statistics.median(cost for cost, _ in figures[boxes[0][0]])
    print(f"{'':16} {'CPU s/GB':>9} {'to first':>9} {'Gb/s':>7}")
    for name, values in figures.items():
        cost = statistics.median(cost for cost, _ in values)
        rate = statistics.median(rate for _, rate in values)
        print(f"{name:16} {cost:9.2f} {cost / base:9.2f} {rate:7.2f}")


if __name__ == "__main__":
    main()
