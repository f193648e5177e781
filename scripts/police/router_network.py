"""Server, router, bridge with the ACK policer, and client in network namespaces, for `router.py`."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from network import CommandError, run, wait_until

# Length of an ACK: IPv4 and TCP headers of 20 bytes each with timestamps of 12 (RFC 7323).
ACK_BYTES = 52
# Published burst of the bucket in bytes, and its largest length in s here. The published transfers took
# minutes to hours, so that the burst ended early in them; these take seconds.
BURST_BYTES = 5000
BURST_S = 1.0
# Queue of the shaper in bytes. Chosen: 5 ms at 100 Mb/s, and 0.5 s at 1 Mb/s.
SHAPER_QUEUE = 64_000
# Queue in bytes where nothing shapes: 1000 frames, the txqueuelen of Ethernet in Linux.
INTERFACE_QUEUE = 1_514_000
# Burst of the shaper in bytes. Chosen: ten packets, since timers of a virtual machine may be 1 ms late.
SHAPER_BURST = 15_200
# Preamble, checksum and gap of an Ethernet frame in bytes (IEEE 802.3), which a shaper does not see.
FRAME_OVERHEAD = 24
# Time in s from which load and rate are read. Chosen: past the slow start.
WARMUP_S = 1.0
# Largest packet that GRO makes, in bytes: too small for two segments, so that nothing is merged.
NO_GRO = 1000
# Real-time priority of the threads and, below it, of the receiver, so that other programs of this host do not
# make batches. Chosen: above all programs without one.
THREAD_PRIORITY = 20
PORT = 5001
SERVER = "10.20.0.2"
CLIENTS = ("10.21.0.2", "10.21.0.3")


class Setting(NamedTuple):
    """A point: Mb/s and queue of the source, percent of dropped ACKs, sessions, and how many are exempt."""

    rate: int
    drop: int
    mode: str = "published"
    sessions: int = 1
    exempt: int = 0
    control: str = "cubic"
    per_flow: bool = False
    queue: int = SHAPER_QUEUE

    def without_policer(self) -> "Setting":
        return self._replace(drop=0, mode="published", exempt=0, per_flow=False)

    def is_plain(self) -> bool:
        return self.mode == "published" and self.control == "cubic"

    def policed_share(self) -> float:
        """Share of the sessions that are policed."""
        return 1 - self.exempt / self.sessions

    def cir(self, acks_per_s: float) -> int:
        """Rate of a bucket in bytes per second that leaves the wanted share of the ACKs."""
        share = 1 / self.sessions if self.per_flow else self.policed_share()
        return max(1, round(acks_per_s * share * (1 - self.drop / 100) * ACK_BYTES))


def burst(cir: int) -> int:
    """Burst of a bucket in bytes."""
    return max(ACK_BYTES, min(BURST_BYTES, round(cir * BURST_S)))


class Figures(NamedTuple):
    """Figures after the warm-up; `first_3_s` is in MB, `load` the share of one CPU."""

    rates: list[float]
    retransmissions: int
    first_3_s: float
    load: float
    packets_per_s: float
    acks_per_s: float
    seen: int
    dropped: int
    samples: list[list[float]]

    def rate(self) -> float:
        """Mb/s of all sessions."""
        return sum(self.rates)

    def dropped_percent(self) -> float:
        return 100 * self.dropped / max(self.seen, 1)

    def forwarded_acks_per_s(self) -> float:
        """ACKs that reach the router, per second."""
        return self.acks_per_s

    def load_per_byte(self) -> float:
        return self.load / max(self.rate(), 1e-9)

    def packets_per_byte(self) -> float:
        return self.packets_per_s / max(self.rate(), 1e-9)

    def short(self) -> str:
        return (f"{self.rate():.2f} Mb/s, {self.packets_per_s:.0f} packets/s, load {100 * self.load:.2f}%, "
                f"{self.dropped_percent():.1f}% dropped, {self.retransmissions} retransmissions")


def napi_threads() -> set[int]:
    """The kernel's threads that receive packets of a device each."""
    found = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text(encoding="utf-8").startswith("napi/"):
                found.add(int(comm.parent.name))
    return found


class RouterNetwork:
    """The four namespaces of one point. `close` ends all programs and removes them."""

    numbers = itertools.count()

    def __init__(self, point: Setting) -> None:
        self.point = point
        prefix = f"pr{os.getpid() % 100000}-{next(self.numbers)}"
        self.server, self.router, self.bridge, self.client = (prefix + name for name in "srbc")
        self.namespaces: list[str] = []
        self.processes: list[subprocess.Popen[str]] = []
        self.router_threads: set[int] = set()
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self) -> None:
        for name in (self.server, self.router, self.bridge, self.client):
            run("ip", "netns", "add", name)
            self.namespaces.append(name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.link(self.server, "eth0", self.router, "wired")
        self.link(self.router, "access", self.bridge, "north")
        self.link(self.bridge, "south", self.client, "eth0")
        run("ip", "-n", self.bridge, "link", "add", "name", "br0", "type", "bridge")
        run("ip", "-n", self.bridge, "link", "set", "br0", "up")
        for port in ("north", "south"):
            run("ip", "-n", self.bridge, "link", "set", port, "master", "br0")
        for name, device, addresses in (
            (self.server, "eth0", [SERVER]), (self.client, "eth0", CLIENTS),
            (self.router, "wired", ["10.20.0.1"]), (self.router, "access", ["10.21.0.1"]),
        ):
            for address in addresses:
                run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
        run("ip", "-n", self.server, "route", "add", "default", "via", "10.20.0.1")
        run("ip", "-n", self.client, "route", "add", "default", "via", "10.21.0.1")
        self.run_in(self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run("tc", "-n", self.server, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate",
            f"{self.point.rate}mbit", "burst", str(SHAPER_BURST), "limit", str(self.point.queue),
            "overhead", str(FRAME_OVERHEAD))

    def link(self, one: str, device: str, other: str, peer: str) -> None:
        """Connects two namespaces. GRO gives a device its own NAPI context; it must not merge packets."""
        run("ip", "link", "add", "name", device, "netns", one, "type", "veth", "peer", "name", peer, "netns", other)
        for name, end in ((one, device), (other, peer)):
            self.run_in(name, "ethtool", "-K", end, "tso", "off", "gso", "off", "gro", "on")
            run("ip", "-n", name, "link", "set", "dev", end, "gro_max_size", str(NO_GRO))
            run("ip", "-n", name, "link", "set", end, "up")
        for name, end in ((one, device), (other, peer)):
            before = napi_threads()
            self.run_in(name, "sh", "-c", f"echo 1 > /sys/class/net/{end}/threaded")
            threads = napi_threads() - before
            for thread in threads:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(THREAD_PRIORITY))
            if name == self.router:
                self.router_threads |= threads

    def run_in(self, name: str, *args: str) -> str:
        return run("ip", "netns", "exec", name, *args)

    def start_in(self, name: str, *args: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(["ip", "netns", "exec", name, *args], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def police(self, paceline: str, acks_per_s: float) -> None:
        """Attaches the policer where the client's packets enter the bridge."""
        point = self.point
        if point.mode == "safe":
            limit = ["--drop-share", f"{point.drop}%"]
        else:
            cir = point.cir(acks_per_s)
            limit = ["--cir", f"{cir}B/s", "--cbs", f"{burst(cir)}", "--mode", "published"]
            limit += ["--per-flow"] if point.per_flow else []
        exempt = [arg for address in CLIENTS[1:1 + point.exempt] for arg in ("--exempt", f"{address}/32")]
        self.start_in(self.bridge, paceline, "police", "attach", "south", "--direction", "ingress", *limit, *exempt)
        wait_until(lambda: "mode" in run("ip", "netns", "exec", self.bridge, paceline, "police", "show", "south",
                                         check=False), "the policer")

    def cpu_ns(self) -> int:
        """CPU time of the router's threads."""
        if len(self.router_threads) != 2:
            raise CommandError(f"the router has {len(self.router_threads)} threads for packets instead of 2")
        times = (Path(f"/proc/{thread}/schedstat").read_text(encoding="utf-8") for thread in self.router_threads)
        return sum(int(text.split()[0]) for text in times)

    def packets(self) -> tuple[int, int]:
        """Packets that the router has received from the server and from the clients."""
        table = self.run_in(self.router, "cat", "/proc/net/dev")
        received = {line.split(":")[0].strip(): int(line.split(":")[1].split()[1])
                    for line in table.splitlines() if ":" in line}
        return received["wired"], received["access"]

    def measure(self, paceline: str, seconds: float, acks_per_s: float) -> Figures:
        point = self.point
        if point.drop > 0:
            self.police(paceline, acks_per_s)
        traffic = str(Path(__file__).parent / "router_traffic.py")
        sender = self.start_in(self.server, sys.executable, traffic, "send", str(PORT), str(point.sessions),
                               point.control)
        wait_until(lambda: f":{PORT}" in self.run_in(self.server, "ss", "-Hlnt"), "the sender")
        addresses = [CLIENTS[number % len(CLIENTS)] for number in range(point.sessions)]
        total = WARMUP_S + max(seconds, 2.5)
        receiver = self.start_in(self.client, sys.executable, traffic, "receive", SERVER, str(PORT), str(total),
                                 *addresses)
        assert receiver.stdout and sender.stdin and sender.stdout
        receiver.stdout.readline()  # the sessions are open
        time.sleep(WARMUP_S)
        began, cpu, packets = time.monotonic(), self.cpu_ns(), self.packets()
        text = receiver.stdout.readline()
        span = time.monotonic() - began
        cpu, after = self.cpu_ns() - cpu, self.packets()
        samples = json.loads(text)
        sender.stdin.close()
        seen = dropped = 0
        if point.drop > 0:
            report = json.loads(self.run_in(self.bridge, paceline, "police", "show", "south", "--json"))
            seen, dropped = report["policers"][0]["acks"], report["policers"][0]["dropped"]
        return Figures(
            rates=session_rates(samples), retransmissions=int(sender.stdout.readline()),
            first_3_s=bytes_at(samples, 3.0) / 1e6, load=cpu / 1e9 / span,
            packets_per_s=(sum(after) - sum(packets)) / span, acks_per_s=(after[1] - packets[1]) / span,
            seen=seen, dropped=dropped, samples=samples)

    def close(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
        for name in self.namespaces:
            run("ip", "netns", "del", name, check=False)


def session_rates(samples: list[list[float]]) -> list[float]:
    """Mb/s of each session after the warm-up; a sample is a time in s and the bytes of each session."""
    first = next(sample for sample in samples if sample[0] >= WARMUP_S)
    last = samples[-1]
    span = last[0] - first[0]
    return [8e-6 * (end - begin) / span for begin, end in zip(first[1:], last[1:], strict=True)]


def bytes_at(samples: list[list[float]], at: float) -> float:
    """Bytes of all sessions until a time."""
    return max((sum(sample[1:]) for sample in samples if sample[0] <= at), default=0.0)
