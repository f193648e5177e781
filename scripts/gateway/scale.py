#!/usr/bin/env python3
"""Measures the limits of `paceline gateway` on this machine, and prints each figure beside its target.

    scripts/gateway/scale.py [--paceline PATH] [WHAT...]

WHAT, by default all:

    packets      small packets for a second of a worker's CPU time
    left-alone   small packets of connections that began before the gateway
    connections  new connections per second
    idle         memory of 100,000 idle connections
    flood        SYN flood beside a transfer
    upload       goodput relative to the bridge alone, at full speed and at 1 Gb/s: geometric mean over
                 pairs of transfers, which passes if it is within two standard errors of the target
    download     the same for downloads

The first five use generated traffic, without a kernel's TCP at its ends. Nothing else may run meanwhile. Exit
code 1 if a figure misses its target. Needs root; the networks consist of namespaces of their own.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import busy_seconds
from network import Network, built_program, main_program, run
from traffic import ACK, CLOSE, OPEN, PSH, SYN, TALK, Batch, Flow, Generator, segment, staggered

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Connections of a step. Chosen: fewer than the frames of a call of sendmmsg(2).
GROUP = 40
# Rate, burst and queue of `tc` for the link of 1 Gb/s.
LINK_1_GBIT = ["1gbit", "burst", "256kb", "limit", "4mb"]
# More pairs of transfers at full speed. Chosen: transfers limited by processors vary by about 10%.
FULL_SPEED_FACTOR = 5
# Figures that missed their target.
failed: list[str] = []


def report(quantity: str, figure: float, unit: str, target: str, good: bool) -> None:
    """Prints a figure beside its target."""
    print(f"{quantity:60} {figure:12,.3g} {unit:8} target: {target:24} {'yes' if good else 'NO'}", flush=True)
    if not good:
        failed.append(quantity)


class Gateway:
    """A gateway on a network's middlebox."""

    def __init__(self, network: Network, paceline: str, folder: Path, more: str = "") -> None:
        self.network, self.paceline, self.socket = network, paceline, str(folder / "control.sock")
        config = folder / "gateway.toml"
        config.write_text(f'server = "wired"\nmobile = "mobile"\ncontrol = "{self.socket}"\n{more}')
        self.process = network.start(network.middlebox, paceline, "gateway", str(config))
        for _ in range(100):
            time.sleep(0.1)
            if Path(self.socket).exists():
                break
        time.sleep(0.3)
        self.pid = self.status()["process"]

    def control(self, *args: str) -> str:
        return run(self.paceline, *args, "--control", self.socket)

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.control("gateway", "status", "--json")))

    def counters(self) -> dict[str, int]:
        return dict(self.status()["counters"])

    def memory(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6

    def worker_seconds(self) -> float:
        """CPU time of the workers' threads in seconds, including their system calls."""
        ticks = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            name, numbers = (task / "stat").read_text().rsplit(")", 1)
            if "(worker" in name:
                ticks += sum(int(number) for number in numbers.split()[11:13])
        return ticks / TICKS_PER_SECOND


class Measurement:
    """Counters, and CPU seconds of the workers and of the machine, over an interval."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.before = gateway, gateway.counters()
        self.worker, self.machine = gateway.worker_seconds(), busy_seconds()

    def end(self) -> dict[str, int]:
        """Ends the interval; gives the increase of every counter."""
        after = self.gateway.counters()
        self.worker = self.gateway.worker_seconds() - self.worker
        self.machine = busy_seconds() - self.machine
        return {name: value - self.before.get(name, 0) for name, value in after.items()}


def bypassed(counters: dict[str, int]) -> int:
    """Connections that the gateway did not take in."""
    return sum(value for name, value in counters.items() if name.startswith("bypassed-"))


def packets(network: Network, gateway: Gateway, options: argparse.Namespace) -> None:
    """Segments of 64 bytes to the client and an ACK for each, on few connections, and on more than a
    processor's cache holds. Compared with packet sockets that only forward, since their share of the CPU time
    depends on the machine."""
    reference = forwarded_per_cpu_second(options)
    print(f"    forwarded by packet sockets alone: {reference:,.0f} packets for a second of CPU")
    for count in (400, 8000):
        share = handled_per_cpu_second(network, gateway, options, count) / reference
        what = f"small packets, {count:,} connections: relative to packet sockets"
        report(what, share, "", "at least 0.8", share >= 0.8)


def forwarded_per_cpu_second(options: argparse.Namespace) -> float:
    """Packets that a CPU second forwards by packet sockets alone."""
    network = Network("", "")
    try:
        for host, device in ((network.client, "mobile"), (network.server, "wired")):
            network.run_in(host, "ethtool", "-K", "eth0", "gro", "off")
            run("ip", "-n", network.middlebox, "link", "set", device, "nomaster")
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result"
            forwarder = str(Path(__file__).with_name("packet_socket_forwarder.py"))
            process = network.start(network.middlebox, sys.executable, forwarder, str(result))
            time.sleep(0.5)
            flows = [Flow(number, per_device=4) for number in range(400)]
            steps = segments_and_acks(flows, int(options.packets * 5 / 2 / len(flows)))
            Generator(network.client, network.server).play(steps, 2 * GROUP / options.packets)
            time.sleep(0.5)
            network.stop(process)
            figures = json.loads(result.read_text())
            return float(figures["packets"] / figures["seconds"])
    finally:
        network.close()


def segments_and_acks(flows: list[Flow], rounds: int) -> list[list[tuple[bool, Batch]]]:
    """Steps with a segment and an ACK for each open connection. The ACK is sent in the round after its
    segment."""
    steps = []
    for number in range(rounds + 1):
        for first in range(0, len(flows), GROUP):
            some = flows[first : first + GROUP]
            step = []
            if number < rounds:
                down = [segment(flow, False, ACK | PSH, 1 + 64 * number, 1, 64) for flow in some]
                step.append((False, Batch(down)))
            if number > 0:
                up = [segment(flow, True, ACK, 1, 1 + 64 * number) for flow in some]
                step.append((True, Batch(up)))
            steps.append(step)
    return steps


def handled_per_cpu_second(network: Network, gateway: Gateway, options: argparse.Namespace, count: int) -> float:
    """Packets that the gateway handles in a CPU second of its workers."""
    rate, seconds, what = options.packets, 5, f"small packets, {count:,} connections"
    generator = Generator(network.client, network.server)
    flows = [Flow(4 * count + number, per_device=4) for number in range(count)]  # other flows for each count
    generator.play(staggered(OPEN, flows, 200), 0.01, 0.004)
    time.sleep(0.5)
    rounds = int(rate * seconds / 2 / count)
    steps = segments_and_acks(flows, rounds)
    measurement, sent = Measurement(gateway), generator.sent
    elapsed_s = generator.play(steps, 2 * GROUP / rate)
    time.sleep(1)
    increase = measurement.end()
    sent = generator.sent - sent
    lost = increase["frames-lost-in"] + increase["frames-lost-out"] + count * rounds - increase["bytes-delivered"] // 64
    lost += sent - increase["frames-in"]  # counts a lost frame more than once
    report(f"{what}: offered", sent / elapsed_s, "a second", f"{rate:,}", sent / elapsed_s > 0.97 * rate)
    report(f"{what}: lost or not delivered", lost, "packets", "0", lost == 0)
    report(f"{what}: retransmitted", increase["retransmissions"], "packets", "0", increase["retransmissions"] == 0)
    each = increase["frames-in"] / max(measurement.worker, 0.01)  # lost frames take little CPU time
    report(f"{what}: for a second of a worker's CPU", each, "packets", "400,000", each >= 400_000)
    print(f"    workers' CPU time: {measurement.worker / elapsed_s:.2f} s/s")
    print(f"    machine: {measurement.machine / elapsed_s:.2f} CPUs; turns: {increase['turns'] / elapsed_s:,.0f}/s")
    return each


def left_alone(network: Network, gateway: Gateway, options: argparse.Namespace) -> None:
    """Segments of connections that began before the gateway, which the kernel forwards."""
    rate, seconds, count = options.packets, 5, 8000
    generator = Generator(network.client, network.server)
    flows = [Flow(100_000 + number, per_device=4) for number in range(count)]
    rounds, group, steps = int(rate * seconds / count), 40, []
    for number in range(rounds):
        for first in range(0, count, group):
            down = [segment(flow, False, ACK | PSH, 1 + 64 * number, 1, 64) for flow in flows[first : first + group]]
            steps.append([(False, Batch(down))])
    before, measurement, sent = received(network.client), Measurement(gateway), generator.sent
    elapsed_s = generator.play(steps, group / rate)
    time.sleep(1)
    increase, sent = measurement.end(), generator.sent - sent
    lost = sent - (received(network.client) - before)
    report(
        "small packets of earlier connections: offered",
        sent / elapsed_s,
        "a second",
        f"{rate:,}",
        sent / elapsed_s > 0.97 * rate,
    )
    report("small packets of earlier connections: lost", max(lost, 0), "packets", "0", lost <= 0)
    print(
        f"    workers received {increase['frames-in']} of {sent}; their CPU time: {measurement.worker / elapsed_s:.3f} s/s"
    )


def received(namespace: str) -> int:
    stats = json.loads(run("ip", "-n", namespace, "-s", "-j", "link", "show", "dev", "eth0"))
    return int(stats[0]["stats64"]["rx"]["packets"])


def connections(network: Network, gateway: Gateway, options: argparse.Namespace) -> None:
    """New connections with a request, a response and a FIN from both ends."""
    rate, seconds = options.connections, 5
    generator = Generator(network.client, network.server)
    flows = [Flow(number, per_device=16) for number in range(rate * seconds)]
    steps = staggered(OPEN + TALK + CLOSE, flows, rate // 100)
    measurement = Measurement(gateway)
    elapsed_s = generator.play(steps, 0.01, 0.002)
    time.sleep(1)
    increase = measurement.end()
    report(
        "new connections offered", len(flows) / elapsed_s, "a second", f"{rate:,}", len(flows) / elapsed_s > 0.95 * rate
    )
    report(
        "new connections accelerated", increase["flows"] / len(flows), "of them", "all", increase["flows"] == len(flows)
    )
    report(
        "new connections ended",
        increase["flows-ended"] / len(flows),
        "of them",
        "all",
        increase["flows-ended"] == len(flows),
    )
    lost = increase["frames-lost-in"] + increase["frames-lost-out"] + bypassed(increase)
    report("new connections: frames lost, connections bypassed", lost, "", "0", lost == 0)
    print(
        f"    workers' time: {measurement.worker / elapsed_s:.2f} s/s for {generator.sent / elapsed_s:,.0f} packets/s"
    )


def idle(network: Network, gateway: Gateway, options: argparse.Namespace) -> None:
    """Connections that are idle after a request and a response."""
    count = 100_000
    generator = Generator(network.client, network.server)
    before = gateway.memory()
    generator.play(staggered(OPEN + TALK, [Flow(number, per_device=10) for number in range(count)], 200), 0.02, 0.004)
    time.sleep(1)
    status, memory = gateway.status(), gateway.memory()
    report("idle connections held", status["flows"], "", f"{count:,}", status["flows"] == count)
    print(f"    memory before: {before:.0f} MB; exposed {status['exposure']}, buffered {status['held']} bytes")
    report("idle connections: memory", memory, "MB", "under 200", memory < 200)
    for name, args in (("gateway flows --json", ("gateway", "flows", "--json")), ("top", ("top",))):
        began = time.monotonic()
        out = gateway.control(*args)
        elapsed_s = time.monotonic() - began
        report(
            f"idle connections: paceline {name} answers after",
            elapsed_s,
            "s",
            "under 2",
            elapsed_s < 2 and len(out) > 100,
        )
    late = gateway.counters()["absences"]
    report("idle connections: absences of the worker", late, "", "0", late == 0)


def flood(network: Network, gateway: Gateway, options: argparse.Namespace) -> None:
    """SYNs from addresses without a host, beside a transfer of 200 Mb/s."""
    rate, seconds = options.flood, 10
    network.start(network.server, "iperf3", "-s")
    time.sleep(0.5)
    generator = Generator(network.client, network.server)
    frames = [segment(Flow(number, per_device=16), True, SYN, 0, 0) for number in range(rate)]
    group = rate // 200
    steps = [[(True, Batch(frames[n : n + group]))] for n in range(0, len(frames), group)]
    client = ["ip", "netns", "exec", network.client, "iperf3", "-c", "10.77.2.2", "-R", "-J", "-b", "200M"]
    transfer = subprocess.Popen([*client, "-t", str(seconds + 2)], stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    measurement, before, peak = Measurement(gateway), gateway.memory(), 0.0
    elapsed_s = 0.0
    for _ in range(seconds):
        elapsed_s += generator.play(steps, 0.005)
        peak = max(peak, gateway.memory())
    increase = measurement.end()
    goodput = json.loads(transfer.communicate()[0])["end"]["sum_received"]["bits_per_second"] / 1e6
    openings = gateway.status()["openings"]
    report(
        "SYN flood offered",
        generator.sent / elapsed_s,
        "a second",
        f"{rate:,}",
        generator.sent / elapsed_s > 0.95 * rate,
    )
    report("SYN flood: a transfer of 200 Mb/s has", goodput, "Mb/s", "at least 190", goodput >= 190)
    report("SYN flood: memory grows by", peak - before, "MB", "under 100", peak - before < 100)
    report("SYN flood: handshakes with state", openings, "", "at most 65,536", openings <= 65_536)
    print(
        f"    workers' time: {measurement.worker / elapsed_s:.2f} s/s; left to the kernel: {increase['packets-left-by-overload']}"
    )


def transfer(network: Network, up: bool, gigabytes: float) -> tuple[float, float]:
    """Goodput in Gb/s, and CPU seconds per GB."""
    client = ["iperf3", "-c", "10.77.2.2", "-J", *([] if up else ["-R"]), "-n"]
    network.run_in(network.client, *client, "20M")
    before = busy_seconds()
    end = json.loads(network.run_in(network.client, *client, f"{int(gigabytes * 1000)}M"))["end"]["sum_received"]
    return end["bits_per_second"] / 1e9, (busy_seconds() - before) / (end["bytes"] / 1e9)


def compare_with_bridge(options: argparse.Namespace, up: bool, limited: bool, tso: bool) -> None:
    """Goodput of the gateway relative to the bridge, in pairs of transfers with alternating order."""
    orders = ((False, True), (True, False))
    pairs = [
        {gateway: measured_transfer(options, gateway, up, limited, tso) for gateway in orders[number % 2]}
        for number in range(options.rounds if limited else options.rounds * FULL_SPEED_FACTOR)
    ]
    goodput, cost = (
        {gateway: statistics.median(pair[gateway][figure] for pair in pairs) for gateway in (False, True)}
        for figure in (0, 1)
    )
    name = f"{'upload' if up else 'download'}, {'1 Gb/s' if limited else 'full speed'}, {'64 KB' if tso else '1514 B'}"
    logs = [math.log(pair[True][0] / pair[False][0]) for pair in pairs]
    share, error = math.exp(statistics.mean(logs)), statistics.stdev(logs) / len(logs) ** 0.5
    target, in_words = (0.98, "at least 0.98") if limited else (1.0, "at least 1")
    print(f"{name}: bridge {goodput[False]:.2f} Gb/s, {cost[False]:.2f} s/GB; "
          f"gateway {goodput[True]:.2f} Gb/s, {cost[True]:.2f} s/GB")  # fmt: skip
    if up or limited:
        what = f"{name}: relative to the bridge's goodput, +-{error:.3f}"
        report(what, share, "", in_words, share + 2 * error >= target)


def measured_transfer(
    options: argparse.Namespace, with_gateway: bool, up: bool, limited: bool, tso: bool
) -> tuple[float, float]:
    """Goodput in Gb/s and CPU seconds per GB of a transfer through a network of its own."""
    network = Network("10.77.1.2/16", "10.77.2.2/16")
    try:
        for device in ("wired", "mobile") if limited else ():
            network.run_in(network.middlebox, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", *LINK_1_GBIT)
        for host in () if tso else (network.client, network.server):
            network.run_in(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
        with tempfile.TemporaryDirectory() as folder:
            if with_gateway:
                Gateway(network, options.paceline, Path(folder))
            network.start(network.server, "iperf3", "-s")
            time.sleep(1)
            return transfer(network, up, 1 if limited else 4)
    finally:
        network.close()


def upload(options: argparse.Namespace) -> None:
    for limited, tso in ((False, False), (False, True), (True, False), (True, True)):
        compare_with_bridge(options, True, limited, tso)


def download(options: argparse.Namespace) -> None:
    for limited, tso in ((True, False), (True, True), (False, False), (False, True)):
        compare_with_bridge(options, False, limited, tso)


GENERATED = {"packets": packets, "left-alone": left_alone, "connections": connections, "idle": idle, "flood": flood}
REAL = {"upload": upload, "download": download}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--packets", type=int, default=400_000, help="small packets a second")
    parser.add_argument("--connections", type=int, default=20_000, help="new connections a second")
    parser.add_argument("--flood", type=int, default=200_000, help="SYNs a second")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of transfers at 1 Gb/s, at least 2")
    parser.add_argument("what", nargs="*", choices=[[], *GENERATED, *REAL], metavar="WHAT")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds {options.rounds}: at least two, to estimate the standard error")
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    for name in options.what or [*GENERATED, *REAL]:
        if name in REAL:
            REAL[name](options)
            continue
        addresses = ("10.77.1.2/16", "10.77.2.2/16") if name == "flood" else ("", "")
        network = Network(*addresses)
        try:
            if name != "flood":
                for host in (network.client, network.server):
                    # These hosts discard what they receive: merging packets would take CPU time for nothing.
                    network.run_in(host, "ethtool", "-K", "eth0", "gro", "off")
            with tempfile.TemporaryDirectory() as folder:
                GENERATED[name](network, Gateway(network, options.paceline, Path(folder)), options)
        finally:
            network.close()
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main_program(main)
