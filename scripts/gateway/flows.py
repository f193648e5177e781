#!/usr/bin/env python3
"""Measures `paceline gateway` at the rates of 5G: one fast connection over a long path, and many connections.

    scripts/gateway/flows.py [--paceline PATH] [--seconds N] [--rounds N] [--flows N] [WHAT...]

WHAT, by default the first two:

    one     one connection, with a delay of 20 ms between middlebox and client (both directions together),
            made by delay_line.py; TCP windows of 64 MiB. First the delay line with the kernel's bridge alone,
            then the same with the gateway
    many    1000 connections of 10 Mb/s, without a delay, which begin a hundred at a time within 3 s: the
            kernel's bridge alone, then the gateway
    at-once the same, all of which begin at once and catch up what they missed: more than two processors can
            do for clients, server and gateway together; the gateway leaves some of them alone then

Each row has the goodput and the CPU time for a gigabyte of all programs in the namespaces (client, server,
gateway, delay line), of the delay line and of the gateway; then the gateway's memory: the most that it held
for connections and the most resident memory (RSS). Client and server are iperf3. Needs root; other programs
on the machine lower the goodput.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from bench import process_seconds, programs_seconds
from machine import machine, offloads
from network import CommandError, Network, built_program, main_program, run, wait_until
from scale import Gateway

# Chosen: five times the product of 5 Gb/s and 20 ms.
WINDOW_BYTES = 64 << 20
# The round trip of the delay line in ms.
ROUND_TRIP_MS = 20
# Connections of an iperf3 process at most (its limit is 128).
STREAMS = 100
# Time between the starts of two clients of `many`.
APART_S = 0.3
# Time between two samples of the gateway's memory.
SAMPLE_S = 0.1


@dataclass
class Figure:
    """The result of a measurement; without a gateway its figures are zero."""

    gbit_per_s: float
    programs_s_per_gb: float
    delay_line_s_per_gb: float = 0.0
    round_trip_ms: float = 0.0
    gateway_s_per_gb: float = 0.0
    held_mb: float = 0.0
    rss_mb: float = 0.0
    retransmitted: float = 0.0


class Watch:
    """The most memory of a gateway until `end`."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.held, self.rss_mb = gateway, 0, 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self) -> None:
        while not self.ended.wait(SAMPLE_S):
            try:
                self.held = max(self.held, self.gateway.status()["held"])
                self.rss_mb = max(self.rss_mb, self.gateway.memory())
            except (CommandError, OSError):
                return  # the transfer reports it

    def end(self) -> None:
        self.ended.set()
        self.thread.join()


def use_large_windows(network: Network) -> None:
    """Raises the limits of TCP's buffers in the hosts."""
    for host in (network.client, network.server):
        for key in ("tcp_rmem", "tcp_wmem"):
            network.run_in(host, "sysctl", "-qw", f"net.ipv4.{key}=4096 131072 {WINDOW_BYTES}")


def put_delay_before_client(network: Network) -> tuple[int, float]:
    """Puts the delay line between middlebox and client, which gets an interface behind it. Gives the line's
    process, and the least round trip in ms."""
    line = f"{network.client}d"
    network.add_namespace(line)
    client = network.client
    # The present link leads to the delay line; a new one from there to the client.
    run("ip", "-n", client, "link", "set", "eth0", "netns", line)
    run("ip", "link", "add", "far", "netns", line, "type", "veth", "peer", "eth0", "netns", client)
    for device in ("eth0", "far"):
        network.run_in(line, "ethtool", "-K", device, "gro", "on")
        run("ip", "-n", line, "link", "set", device, "up", "promisc", "on")
    network.run_in(client, "ethtool", "-K", "eth0", "gro", "on")
    run("ip", "-n", client, "addr", "add", "10.77.1.2/16", "dev", "eth0")
    run("ip", "-n", client, "link", "set", "eth0", "up")
    script = str(Path(__file__).with_name("delay_line.py"))
    process = network.start(line, sys.executable, script, "eth0", "far", str(ROUND_TRIP_MS / 2))

    def answers() -> bool:
        return "1 received" in network.run_in(client, "ping", "-c1", "-W1", "10.77.2.2", check=False)

    wait_until(answers, "a ping over the delay line")
    times = network.run_in(client, "ping", "-q", "-c5", "-i0.05", "10.77.2.2")
    return process.pid, float(times.rsplit(" = ", 1)[1].split("/")[0])


def received(reports: list[str]) -> float:
    """Bytes that arrived, by the reports of iperf3."""
    return float(sum(json.loads(report)["end"]["sum_received"]["bytes"] for report in reports))


def transfer(network: Network, commands: list[list[str]], apart_s: float) -> list[str]:
    """Runs clients at the same time, with `apart_s` between their starts; gives their reports."""
    reports: list[str] = []
    errors: list[CommandError] = []

    def client(command: list[str]) -> None:
        try:
            reports.append(network.run_in(network.client, *command))
        except CommandError as error:
            errors.append(error)

    threads = [threading.Thread(target=client, args=(command,)) for command in commands]
    for thread in threads:
        thread.start()
        time.sleep(apart_s)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return reports


def measure(what: str, with_gateway: bool, options: argparse.Namespace) -> Figure:
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    try:
        line, round_trip_ms = None, 0.0
        base = ["iperf3", "-c", "10.77.2.2", "-R", "-J", "-t", str(options.seconds)]
        if what == "one":
            use_large_windows(network)
            line, round_trip_ms = put_delay_before_client(network)
            ports, more = [5201], [["-b", options.rate]]
        else:
            parts = [STREAMS] * (options.flows // STREAMS) + [options.flows % STREAMS] * (options.flows % STREAMS > 0)
            ports = [5201 + n for n in range(len(parts))]
            more = [["-P", str(part), "-b", "10M"] for part in parts]
        for port in ports:
            network.start_server(network.server, port, "iperf3", "-s", "-p", str(port))
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(network, options.paceline, Path(folder)) if with_gateway else None
            commands = [[*base, "-p", str(port), *extra] for port, extra in zip(ports, more, strict=True)]
            watch = Watch(gateway) if gateway else None
            before, worker = programs_seconds(network), gateway.worker_seconds() if gateway else 0.0
            counters, line_before = gateway.counters() if gateway else {}, process_seconds(line) if line else 0.0
            reports = transfer(network, commands, APART_S if what == "many" else 0)
            gigabytes = received(reports) / 1e9
            programs = (programs_seconds(network) - before) / gigabytes
            figure = Figure(gigabytes * 8 / options.seconds, programs)
            if line:
                figure.round_trip_ms = round_trip_ms
                figure.delay_line_s_per_gb = (process_seconds(line) - line_before) / gigabytes
            if gateway and watch:
                watch.end()
                figure.gateway_s_per_gb = (gateway.worker_seconds() - worker) / gigabytes
                figure.held_mb, figure.rss_mb = watch.held / 1e6, watch.rss_mb
                after = gateway.counters()
                grown = {name: after[name] - counters[name] for name in ("retransmissions", "segments-sent", "flows")}
                figure.retransmitted = grown["retransmissions"] / max(grown["segments-sent"], 1)
                if what != "at-once" and grown["flows"] < (1 if what == "one" else options.flows):
                    raise CommandError(f"the gateway has accelerated {grown['flows']} connections only")
            return figure
    finally:
        network.close()


def report(what: str, with_gateway: bool, options: argparse.Namespace) -> bool:
    """Prints the medians of a measurement; gives whether there are any."""
    name = "one connection, 20 ms" if what == "one" else f"{options.flows} connections of 10 Mb/s"
    name += ", at once" if what == "at-once" else ""
    name += ", gateway" if with_gateway else (", delay line alone" if what == "one" else ", bridge alone")
    figures = []
    for _ in range(options.rounds):
        try:
            figures.append(measure(what, with_gateway, options))
        except (CommandError, ValueError, KeyError, ZeroDivisionError) as error:
            print(f"{name}: failed: {error}", file=sys.stderr, flush=True)
    if not figures:
        print(f"{name:51} failed", flush=True)
        return False
    median = [statistics.median(values) for values in zip(*(vars(figure).values() for figure in figures), strict=True)]
    rate, programs, delay_line, round_trip, gateway, held, rss, retransmitted = median
    line = f"{name:51} {rate:6.2f} Gb/s, programs {programs:.2f} s/GB"
    if what == "one":
        line += f", delay line {delay_line:.2f} s/GB and {round_trip:.1f} ms"
    if with_gateway:
        line += f", gateway {gateway:.2f} s/GB, held {held:.0f} MB, RSS {rss:.0f} MB, retransmitted {retransmitted:.2%}"
    print(line, flush=True)
    return len(figures) == int(options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument("--rate", default="5G", help="rate of the one connection")
    parser.add_argument("what", nargs="*", choices=[[], "one", "many", "at-once"], metavar="WHAT")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    try:
        print("\n".join(machine() + offloads(network)))
    finally:
        network.close()
    memory = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    print(f"memory       accelerator.memory is a quarter of {memory / 1e9:.1f} GB by default", flush=True)
    good = [report(what, gateway, options) for what in options.what or ["one", "many"] for gateway in (False, True)]
    if not all(good):
        sys.exit(1)


if __name__ == "__main__":
    main_program(main)
