#!/usr/bin/env python3
"""How far `paceline gateway` goes on this machine, each figure beside what is wanted of it.

    scripts/gateway_scale.py [--paceline PATH] [WHAT...]

WHAT, all without one: `packets` (small packets a second and core), `connections` (new ones a second), `idle` (100,000
connections that say nothing), `flood` (SYNs beside a transfer), `upload` and `download` (beside the bridge alone, at
full speed and at 1 Gb/s: the ratio's geometric mean in pairs of transfers, judged with two standard errors). The first
four are traffic that is made up, without a kernel's TCP at its ends. Nothing else may run meanwhile. Exit code 1 if a
figure is not what is wanted. Needs root; its networks are of its own namespaces.
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

from gateway_bench import busy_seconds
from gateway_town import Town, run
from gateway_traffic import ACK, CLOSE, OPEN, PSH, SYN, TALK, Batch, Flow, Generator, lives, segment

TICKS = os.sysconf("SC_CLK_TCK")
GROUP = 40  # connections in a step
LINE = ["1gbit", "burst", "256kb", "limit", "4mb"]
AT_FULL_SPEED = 5  # times as many pairs: what processors do together varies by a tenth
failed: list[str] = []


def tell(what: str, figure: float, unit: str, wanted: str, good: bool) -> None:
    """Prints a figure."""
    print(f"{what:60} {figure:12,.3g} {unit:8} wanted: {wanted:24} {'yes' if good else 'NO'}", flush=True)
    if not good:
        failed.append(what)


class Gateway:
    """A gateway in a town's box."""

    def __init__(self, town: Town, paceline: str, folder: Path, more: str = "") -> None:
        self.town, self.paceline, self.socket = town, paceline, str(folder / "control.sock")
        config = folder / "gateway.toml"
        config.write_text(f'server = "wired"\nmobile = "mobile"\ncontrol = "{self.socket}"\n{more}')
        self.process = town.start(town.box, paceline, "gateway", str(config))
        for _ in range(100):
            time.sleep(0.1)
            if Path(self.socket).exists():
                break
        time.sleep(0.3)
        self.pid = self.status()["process"]

    def ask(self, *args: str) -> str:
        return run(self.paceline, *args, "--control", self.socket)

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.ask("gateway", "status", "--json")))

    def counters(self) -> dict[str, int]:
        return dict(self.status()["counters"])

    def memory(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6

    def worker_seconds(self) -> float:
        """CPU time of the workers' threads, what they do in the kernel included."""
        spent = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            name, numbers = (task / "stat").read_text().rsplit(")", 1)
            if "(worker" in name:
                spent += sum(int(number) for number in numbers.split()[11:13])
        return spent / TICKS


class Change:
    """What happens between two looks at the counters."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.before = gateway, gateway.counters()
        self.worker, self.busy = gateway.worker_seconds(), busy_seconds()

    def end(self) -> dict[str, int]:
        after = self.gateway.counters()
        self.worker = self.gateway.worker_seconds() - self.worker
        self.busy = busy_seconds() - self.busy
        return {name: value - self.before.get(name, 0) for name, value in after.items()}


def bypassed(change: dict[str, int]) -> int:
    return sum(value for name, value in change.items() if name.startswith("bypassed-"))


def packets(town: Town, gateway: Gateway, options: argparse.Namespace) -> None:
    """Segments of 64 bytes down, and the client's acknowledgment of each, of some connections and of many: these do not
    stay in a processor's cache. Beside it what is only passed from socket to socket: how much of a CPU second is the
    kernel's in any case depends on the machine."""
    bare = passed_on(options)
    print(f"    passed on by packet sockets and nothing else: {bare:,.0f} packets for a second of CPU")
    for count in (400, 8000):
        share = acted_on(town, gateway, options, count) / bare
        what = f"small packets, {count:,} connections: of what is only passed on"
        tell(what, share, "", "at least 0.8", share >= 0.8)


def passed_on(options: argparse.Namespace) -> float:
    """Packets for a CPU second where nothing is done with them."""
    town = Town("", "")
    try:
        for host, device in ((town.client, "mobile"), (town.server, "wired")):
            town.inside(host, "ethtool", "-K", "eth0", "gro", "off")
            run("ip", "-n", town.box, "link", "set", device, "nomaster")
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result"
            forwarder = str(Path(__file__).with_name("gateway_floor.py"))
            process = town.start(town.box, sys.executable, forwarder, str(result))
            time.sleep(0.5)
            flows = [Flow(number, per_device=4) for number in range(400)]
            steps = talk(flows, int(options.packets * 5 / 2 / len(flows)))
            Generator(town.client, town.server).play(steps, 2 * GROUP / options.packets)
            time.sleep(0.5)
            town.stop(process)
            told = json.loads(result.read_text())
            return float(told["packets"] / told["seconds"])
    finally:
        town.close()


def talk(flows: list[Flow], rounds: int) -> list[list[tuple[bool, Batch]]]:
    """Segments and acknowledgments of connections that are open. An acknowledgment follows its segment by as many packets
    as there are connections."""
    steps = []
    for turn in range(rounds + 1):
        for first in range(0, len(flows), GROUP):
            some = flows[first : first + GROUP]
            step = []
            if turn < rounds:
                down = [segment(flow, False, ACK | PSH, 1 + 64 * turn, 1, 64) for flow in some]
                step.append((False, Batch(down)))
            if turn > 0:
                up = [segment(flow, True, ACK, 1, 1 + 64 * turn) for flow in some]
                step.append((True, Batch(up)))
            steps.append(step)
    return steps


def acted_on(town: Town, gateway: Gateway, options: argparse.Namespace, count: int) -> float:
    """Packets for a worker's CPU second."""
    rate, seconds, what = options.packets, 5, f"small packets, {count:,} connections"
    generator = Generator(town.client, town.server)
    flows = [Flow(4 * count + number, per_device=4) for number in range(count)]  # none of both
    generator.play(lives(OPEN, flows, 200), 0.01, 0.004)
    time.sleep(0.5)
    rounds = int(rate * seconds / 2 / count)
    steps = talk(flows, rounds)
    change, sent = Change(gateway), generator.sent
    took = generator.play(steps, 2 * GROUP / rate)
    time.sleep(1)
    seen = change.end()
    sent = generator.sent - sent
    lost = seen["frames-lost-in"] + seen["frames-lost-out"] + count * rounds - seen["bytes-delivered"] // 64
    lost += sent - seen["frames-in"]  # one that did not come in was not delivered either: counted more than once
    tell(f"{what}: offered", sent / took, "a second", f"{rate:,}", sent / took > 0.97 * rate)
    tell(f"{what}: lost or not delivered", lost, "packets", "0", lost == 0)
    tell(f"{what}: repeated", seen["retransmissions"], "packets", "0", seen["retransmissions"] == 0)
    each = seen["frames-in"] / max(change.worker, 0.01)  # what was lost cost it little
    tell(f"{what}: for a second of worker's CPU", each, "packets", "400,000", each >= 400_000)
    print(f"    workers' time: {change.worker / took:.2f} s/s")
    print(f"    all of the machine: {change.busy / took:.2f} CPUs; turns: {seen['turns'] / took:,.0f}/s")
    return each


def left_alone(town: Town, gateway: Gateway, options: argparse.Namespace) -> None:
    """Connections that began before the gateway."""
    rate, seconds, count = options.packets, 5, 8000
    generator = Generator(town.client, town.server)
    flows = [Flow(100_000 + number, per_device=4) for number in range(count)]
    rounds, group, steps = int(rate * seconds / count), 40, []
    for turn in range(rounds):
        for first in range(0, count, group):
            down = [segment(flow, False, ACK | PSH, 1 + 64 * turn, 1, 64) for flow in flows[first : first + group]]
            steps.append([(False, Batch(down))])
    before, change, sent = received(town.client), Change(gateway), generator.sent
    took = generator.play(steps, group / rate)
    time.sleep(1)
    seen, sent = change.end(), generator.sent - sent
    lost = sent - (received(town.client) - before)
    tell("small packets, left alone: offered", sent / took, "a second", f"{rate:,}", sent / took > 0.97 * rate)
    tell("small packets, left alone: lost", max(lost, 0), "packets", "0", lost <= 0)
    print(f"    workers saw {seen['frames-in']} of {sent}; their time: {change.worker / took:.3f} s/s")


def received(namespace: str) -> int:
    stats = json.loads(run("ip", "-n", namespace, "-s", "-j", "link", "show", "dev", "eth0"))
    return int(stats[0]["stats64"]["rx"]["packets"])


def connections(town: Town, gateway: Gateway, options: argparse.Namespace) -> None:
    """New connections with a request, an answer and an end."""
    rate, seconds = options.connections, 5
    generator = Generator(town.client, town.server)
    flows = [Flow(number, per_device=16) for number in range(rate * seconds)]
    steps = lives(OPEN + TALK + CLOSE, flows, rate // 100)
    change = Change(gateway)
    took = generator.play(steps, 0.01, 0.002)
    time.sleep(1)
    seen = change.end()
    tell("new connections offered", len(flows) / took, "a second", f"{rate:,}", len(flows) / took > 0.95 * rate)
    tell("new connections taken in", seen["flows"] / len(flows), "of them", "all", seen["flows"] == len(flows))
    tell("new connections ended", seen["flows-ended"] / len(flows), "of them", "all", seen["flows-ended"] == len(flows))
    lost = seen["frames-lost-in"] + seen["frames-lost-out"] + bypassed(seen)
    tell("new connections: frames lost, connections bypassed", lost, "", "0", lost == 0)
    print(f"    workers' time: {change.worker / took:.2f} s/s for {generator.sent / took:,.0f} packets/s")


def idle(town: Town, gateway: Gateway, options: argparse.Namespace) -> None:
    """Connections that were used and are kept."""
    count = 100_000
    generator = Generator(town.client, town.server)
    before = gateway.memory()
    generator.play(lives(OPEN + TALK, [Flow(number, per_device=10) for number in range(count)], 200), 0.02, 0.004)
    time.sleep(1)
    status, memory = gateway.status(), gateway.memory()
    tell("idle connections held", status["flows"], "", f"{count:,}", status["flows"] == count)
    print(f"    memory before: {before:.0f} MB; exposed {status['exposure']}, held {status['held']} bytes")
    tell("idle connections: memory", memory, "MB", "under 200", memory < 200)
    for name, args in (("gateway flows --json", ("gateway", "flows", "--json")), ("top", ("top",))):
        began = time.monotonic()
        out = gateway.ask(*args)
        took = time.monotonic() - began
        tell(f"idle connections: paceline {name} answers after", took, "s", "under 2", took < 2 and len(out) > 100)
    late = gateway.counters()["absences"]
    tell("idle connections: absences of the worker", late, "", "0", late == 0)


def flood(town: Town, gateway: Gateway, options: argparse.Namespace) -> None:
    """SYNs of nobody, beside a transfer of 200 Mb/s."""
    rate, seconds = options.flood, 10
    town.start(town.server, "iperf3", "-s")
    time.sleep(0.5)
    generator = Generator(town.client, town.server)
    frames = [segment(Flow(number, per_device=16), True, SYN, 0, 0) for number in range(rate)]
    group = rate // 200
    steps = [[(True, Batch(frames[n : n + group]))] for n in range(0, len(frames), group)]
    client = ["ip", "netns", "exec", town.client, "iperf3", "-c", "10.77.2.2", "-R", "-J", "-b", "200M"]
    transfer = subprocess.Popen([*client, "-t", str(seconds + 2)], stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    change, before, most = Change(gateway), gateway.memory(), 0.0
    took = 0.0
    for _ in range(seconds):
        took += generator.play(steps, 0.005)
        most = max(most, gateway.memory())
    seen = change.end()
    goodput = json.loads(transfer.communicate()[0])["end"]["sum_received"]["bits_per_second"] / 1e6
    openings = gateway.status()["openings"]
    tell("SYN flood offered", generator.sent / took, "a second", f"{rate:,}", generator.sent / took > 0.95 * rate)
    tell("SYN flood: a transfer of 200 Mb/s has", goodput, "Mb/s", "at least 190", goodput >= 190)
    tell("SYN flood: memory grows by", most - before, "MB", "under 100", most - before < 100)
    tell("SYN flood: handshakes remembered", openings, "", "at most 65,536", openings <= 65_536)
    print(f"    workers' time: {change.worker / took:.2f} s/s; left to the kernel: {seen['packets-left-by-overload']}")


def transfer(town: Town, up: bool, gigabytes: float) -> tuple[float, float]:
    """Gb/s and CPU seconds per GB."""
    client = ["iperf3", "-c", "10.77.2.2", "-J", *([] if up else ["-R"]), "-n"]
    town.inside(town.client, *client, "20M")
    before = busy_seconds()
    end = json.loads(town.inside(town.client, *client, f"{int(gigabytes * 1000)}M"))["end"]["sum_received"]
    return end["bits_per_second"] / 1e9, (busy_seconds() - before) / (end["bytes"] / 1e9)


def beside_bridge(options: argparse.Namespace, up: bool, line: bool, tso: bool) -> None:
    """The gateway's goodput beside the bridge's, in turns."""
    pairs = [
        {gateway: transferred(options, gateway, up, line, tso) for gateway in ((False, True), (True, False))[turn % 2]}
        for turn in range(options.rounds if line else options.rounds * AT_FULL_SPEED)
    ]
    goodput, cost = (
        {who: statistics.median(pair[who][what] for pair in pairs) for who in (False, True)} for what in (0, 1)
    )
    name = f"{'upload' if up else 'download'}, {'1 Gb/s' if line else 'full speed'}, {'64 KB' if tso else '1514 B'}"
    logs = [math.log(pair[True][0] / pair[False][0]) for pair in pairs]
    share, error = math.exp(statistics.mean(logs)), statistics.stdev(logs) / len(logs) ** 0.5
    wanted = (0.98, "at least 0.98") if line else (1.0, "at least 1")
    print(f"{name}: bridge {goodput[False]:.2f} Gb/s, {cost[False]:.2f} s/GB; "
          f"gateway {goodput[True]:.2f} Gb/s, {cost[True]:.2f} s/GB")  # fmt: skip
    if up or line:
        what = f"{name}: of the bridge's goodput, +-{error:.3f}"
        tell(what, share, "", wanted[1], share + 2 * error >= wanted[0])


def transferred(
    options: argparse.Namespace, with_gateway: bool, up: bool, line: bool, tso: bool
) -> tuple[float, float]:
    """Gb/s and CPU seconds per GB of a transfer through a new town."""
    town = Town("10.77.1.2/16", "10.77.2.2/16")
    try:
        for device in ("wired", "mobile") if line else ():
            town.inside(town.box, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", *LINE)
        for host in () if tso else (town.client, town.server):
            town.inside(host, "ethtool", "-K", "eth0", "tso", "off", "gso", "off")
        with tempfile.TemporaryDirectory() as folder:
            if with_gateway:
                Gateway(town, options.paceline, Path(folder))
            town.start(town.server, "iperf3", "-s")
            time.sleep(1)
            return transfer(town, up, 1 if line else 4)
    finally:
        town.close()


def upload(options: argparse.Namespace) -> None:
    for line, tso in ((False, False), (False, True), (True, False), (True, True)):
        beside_bridge(options, True, line, tso)


def download(options: argparse.Namespace) -> None:
    for line, tso in ((True, False), (True, True), (False, False), (False, True)):
        beside_bridge(options, False, line, tso)


MADE_UP = {"packets": packets, "left-alone": left_alone, "connections": connections, "idle": idle, "flood": flood}
REAL = {"upload": upload, "download": download}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default="target/release/paceline", metavar="PATH")
    parser.add_argument("--packets", type=int, default=400_000, help="small packets a second")
    parser.add_argument("--connections", type=int, default=20_000, help="new connections a second")
    parser.add_argument("--flood", type=int, default=200_000, help="SYNs a second")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of transfers at 1 Gb/s, at least 2")
    parser.add_argument("what", nargs="*", choices=[[], *MADE_UP, *REAL], metavar="WHAT")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds {options.rounds}: two at least, or nothing tells how far pairs lie apart")
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    for name in options.what or [*MADE_UP, *REAL]:
        if name in REAL:
            REAL[name](options)
            continue
        addresses = ("10.77.1.2/16", "10.77.2.2/16") if name == "flood" else ("", "")
        town = Town(*addresses)
        try:
            if name != "flood":
                for host in (town.client, town.server):
                    # What is sent there is thrown away, and should cost little.
                    town.inside(host, "ethtool", "-K", "eth0", "gro", "off")
            with tempfile.TemporaryDirectory() as folder:
                MADE_UP[name](town, Gateway(town, options.paceline, Path(folder)), options)
        finally:
            town.close()
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
