#!/usr/bin/env python3
"""A day of connections in minutes: opens, uses and closes connections through a gateway, beside handshakes
without an answer, while an experiment runs, and prints the gateway's memory over time.

    scripts/gateway/soak.py [--paceline PATH] [--connections N] [--rate N] [--report N]

By default 1,728,000 connections, which are 20 a second over 24 hours, at 2000 a second: a quarter of an
hour. Each has a request and a response; a tenth of them are never closed, and for each tenth there is a SYN
without an answer. The connections of 50,000 successive numbers have addresses and ports of their own; then
they are used again. The experiment has a look every 90 s. Generated responses need no acceleration; if it
finds harm and switches acceleration off, the script switches it on again and begins another one. Memory is
flat if the median of the third or the last quarter is less than 8 MB above that of the second. Exit code 1
if not. Needs root; the network consists of namespaces of its own.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from network import Network, built_program, main_program, run
from scale import Gateway
from traffic import CLOSE, OPEN, SYN, TALK, Batch, Flow, Generator, segment, staggered

# Connections with addresses and ports of their own. Chosen: several times the wave of a step.
DISTINCT = 50_000
# Growth of the memory that counts as flat, in MB. Chosen: the allocator returns memory in steps of 4 MB, and
# the kernel counts huge pages in steps of 2 MB.
FLAT_MB = 8.0
# Every so many connections one stays open, and one handshake has no answer.
OPEN_SHARE = 10


def wave(generator: Generator, first: int, count: int, rate: int) -> None:
    """Opens, uses and closes connections with the numbers from `first` on."""
    # The initial sequence numbers of a reused port go on, as a kernel's.
    flows = [
        Flow(number % DISTINCT, per_device=16, isn=100_000 * (number // DISTINCT))
        for number in range(first, first + count)
    ]
    stay = [flow for n, flow in enumerate(flows) if n % OPEN_SHARE == 0]
    others = [flow for n, flow in enumerate(flows) if n % OPEN_SHARE != 0]
    steps = staggered(OPEN + TALK + CLOSE, others, max(rate // 100, 1))
    steps += staggered(OPEN + TALK, stay, max(rate // 100, 1))
    lost = [segment(Flow(DISTINCT + first + n, per_device=16), True, SYN, 0, 0) for n in range(0, count, OPEN_SHARE)]
    generator.play([*steps, [(True, Batch(lost))]], 0.01, 0.002)


def begin(gateway: Gateway) -> None:
    """Begins an experiment with a look every 90 s."""
    gateway.control("gateway", "experiment", "--share", "50%", "--for", "15min")


def go_on(gateway: Gateway, experiments: list[dict[str, int]]) -> None:
    """Notes the experiment, and begins another one if it has ended."""
    ask = ("gateway", "experiment", "--json", "--control", gateway.socket)
    # Exit code 1 after harm.
    report = json.loads(run(gateway.paceline, *ask, check=False))
    experiments[-1] = {"transfers": sum(report["transfers"]), "lost": report["headers_lost"]}
    if report["state"] != "running":
        print(f"            the experiment has ended: {report['state']}; another one begins", flush=True)
        gateway.control("gateway", "reload")
        begin(gateway)
        experiments.append({"transfers": 0, "lost": 0})


def grown(readings: list[float]) -> float:
    """Growth from the second quarter of the readings to a later one. Medians, since single readings differ by
    looks that compute and by huge pages."""
    size = max(len(readings) // 4, 1)
    second, third, last = (statistics.median(readings[n * size :][:size]) for n in (1, 2, 3))
    return max(third, last) - second


def soak(options: argparse.Namespace) -> bool:
    """Runs all connections; whether memory is flat."""
    network = Network("", "")
    try:
        for host in (network.client, network.server):
            network.run_in(host, "ethtool", "-K", "eth0", "gro", "off")
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(network, options.paceline, Path(folder))
            begin(gateway)
            experiments: list[dict[str, int]] = [{}]
            generator = Generator(network.client, network.server)
            began, done, readings = time.monotonic(), 0, [gateway.memory()]
            print("connections   seconds   memory, MB   active   handshakes", flush=True)
            while done < options.connections:
                count = min(options.report, options.connections - done)
                wave(generator, done, count, options.rate)
                done += count
                go_on(gateway, experiments)
                status, memory = gateway.status(), gateway.memory()
                readings.append(memory)
                print(f"{done:11,} {time.monotonic() - began:9.0f} {memory:12.1f} {status['flows']:8,} "
                      f"{status['openings']:12,}", flush=True)  # fmt: skip
            growth = grown(readings)
            counters = gateway.counters()
            transfers, lost = (sum(one[name] for one in experiments) for name in ("transfers", "lost"))
            taken = counters["flows"] + counters["packets-left-by-experiment"]
            flat = growth < FLAT_MB and taken >= 0.5 * done
            print(f"{counters['flows']:,} accelerated; {transfers:,} transfers in {len(experiments)} experiments, "
                  f"{lost:,} headers lost")  # fmt: skip
            print(f"growth after the first quarter: {growth:.1f} MB; most: {max(readings):.1f} MB; "
                  f"flat: {'yes' if flat else 'NO'}")  # fmt: skip
            return flat
    finally:
        network.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--connections", type=int, default=1_728_000, help="connections in all")
    parser.add_argument("--rate", type=int, default=2000, help="new connections a second")
    parser.add_argument("--report", type=int, default=20_000, help="connections between two lines of the report")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    sys.exit(0 if soak(options) else 1)


if __name__ == "__main__":
    main_program(main)
