#!/usr/bin/env python3
"""CPU time and memory of an experiment's observer: the same download through a gateway without an experiment
and with one, in pairs of alternating order.

    scripts/gateway/observer.py [--paceline PATH] [--rounds N] [--gigabytes N] [--connections N]

Client and server are iperf3; packets between hosts are 1514 bytes long. `gateway` is the CPU time (user and
system) of the gateway's process for a gigabyte, `observer alone` the part of its thread `experiment`.
`programs` is the time of all programs with the interrupts that they are charged with; it contains the
kernel's part of copying each header to the observer. Printed are medians, and the median of the pairs'
ratios with its least and greatest. Memory is that of the process after N connections of as many devices,
without and with an experiment. Needs root.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import process_seconds, programs_seconds
from machine import machine, offloads
from network import Network, built_program, main_program
from scale import TICKS_PER_SECOND, Gateway
from traffic import OPEN, TALK, Flow, Generator, staggered


@dataclass
class Cost:
    """CPU seconds for a gigabyte."""

    gateway: float
    observer: float
    programs: float
    gbit_per_s: float
    # Headers that the observer was too slow for.
    lost: int


def observer_seconds(pid: int) -> float:
    """CPU time of the observer's thread so far; 0 without an experiment."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, numbers = (task / "stat").read_text().rsplit(")", 1)
        if name.endswith("(experiment"):
            return sum(int(number) for number in numbers.split()[11:13]) / TICKS_PER_SECOND
    return 0.0


def begin(gateway: Gateway) -> None:
    """Begins an experiment. Its seed is one in whose accelerated part the client is."""
    gateway.control("gateway", "experiment", "--share", "95%", "--for", "10h", "--seed", "1")


def lost_headers(gateway: Gateway) -> int:
    report = json.loads(gateway.control("gateway", "experiment", "--json"))
    return int(report["headers_lost"]) if report else 0


def download(options: argparse.Namespace, observed: bool) -> Cost:
    """The cost of a download through a network of its own."""
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    try:
        for host in (network.client, network.server):
            network.run_in(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(network, options.paceline, Path(folder))
            if observed:
                begin(gateway)
            network.start_server(network.server, 5201, "iperf3", "-s")
            time.sleep(0.5)
            client = ["iperf3", "-c", "10.77.2.2", "-R", "-J", "-n"]
            network.run_in(network.client, *client, "20M")
            of_gateway, of_observer = process_seconds(gateway.pid), observer_seconds(gateway.pid)
            of_all, began = programs_seconds(network), time.monotonic()
            report = json.loads(network.run_in(network.client, *client, f"{int(1000 * options.gigabytes)}M"))
            took = time.monotonic() - began
            gigabytes = report["end"]["sum_received"]["bytes"] / 1e9
            if gateway.counters()["flows"] < 2:
                sys.exit("the download was not accelerated: its device is untouched")
            return Cost(
                (process_seconds(gateway.pid) - of_gateway) / gigabytes,
                (observer_seconds(gateway.pid) - of_observer) / gigabytes,
                (programs_seconds(network) - of_all) / gigabytes,
                8 * gigabytes / took,
                lost_headers(gateway) if observed else 0,
            )
    finally:
        network.close()


def memory(options: argparse.Namespace, observed: bool) -> float:
    """Memory of a gateway in MB after connections of as many devices, each with a request and a response."""
    network = Network("", "")
    try:
        for host in (network.client, network.server):
            network.run_in(host, "ethtool", "-K", "eth0", "gro", "off")
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(network, options.paceline, Path(folder))
            if observed:
                begin(gateway)
            flows = [Flow(number, per_device=1) for number in range(options.connections)]
            Generator(network.client, network.server).play(staggered(OPEN + TALK, flows, 40), 0.02, 0.004)
            time.sleep(2)
            return gateway.memory()
    finally:
        network.close()


def print_costs(pairs: list[dict[bool, Cost]]) -> None:
    """Prints medians, and the ratios of the pairs."""
    print(f"{'CPU s/GB':24}{'without':>10}{'with':>10}{'ratio':>8}   least to greatest ratio of a pair")
    for name in ("gateway", "programs"):
        without, observed = ([getattr(pair[on], name) for pair in pairs] for on in (False, True))
        ratios = [b / a for a, b in zip(without, observed, strict=True)]
        print(f"{name:24}{statistics.median(without):10.3f}{statistics.median(observed):10.3f}"
              f"{statistics.median(ratios):8.2f}   {min(ratios):.2f} to {max(ratios):.2f}")  # fmt: skip
    of_observer = [pair[True].observer for pair in pairs]
    print(f"{'observer alone':24}{'':10}{statistics.median(of_observer):10.3f}")
    rates = [statistics.median(pair[on].gbit_per_s for pair in pairs) for on in (False, True)]
    print(f"{'Gb/s':24}{rates[0]:10.2f}{rates[1]:10.2f}")
    print(f"headers lost in each download: {', '.join(str(pair[True].lost) for pair in pairs)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--rounds", type=int, default=7, help="pairs of downloads")
    parser.add_argument("--gigabytes", type=float, default=3)
    parser.add_argument("--connections", type=int, default=20_000)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    print("\n".join(machine() + offloads(network)), flush=True)
    network.close()
    pairs = []
    for number in range(options.rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        pairs.append({observed: download(options, observed) for observed in order})
        print(f"pair {number + 1} of {options.rounds}", file=sys.stderr)
    print_costs(pairs)
    without, observed = (memory(options, on) for on in (False, True))
    print(f"memory with {options.connections:,} connections: {without:.1f} MB without, {observed:.1f} MB with "
          f"an experiment: {1e6 * (observed - without) / options.connections:,.0f} bytes each")  # fmt: skip


if __name__ == "__main__":
    main_program(main)
