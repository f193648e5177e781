#!/usr/bin/env python3
"""How often `paceline explain` names the cause that limited TCP: random settings whose cause is known, each
captured near the server, between server and access, and at the client.

    scripts/measure/explain_grid.py PACELINE --seed 1 --count 500              simulated
    scripts/measure/explain_grid.py PACELINE --seed 1 --count 24 --emulated    TCP of this kernel (needs root)

Prints the share of right causes by true cause and capture point, the share of right causes whose share of
the time is within 10 points, and the worst settings; `--least 0.95` exits with 1 below that share.

True causes of a simulation are the times of its sender by limit. Time at the congestion window, pacing or
send buffer is the queue's while the link carries 90% of its capacity and packets wait for 2 ms or more, and
a pause while interruptions let no data be acknowledged; timers that expire then are the pause's.
For the kernel the cause is that of the setting, without shares; `recovery`, `timeout` and `congestion_window`
are one cause where packets are lost.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

POINTS = ("near server", "between", "at client")
DURATION_S = 6
# A full IP packet of a download, and the share of the capacity from which on a link is full.
PACKET_BYTES = 1500
FULL = 0.9
# Least time in the queue that counts as one, as in `paceline explain`.
LEAST_QUEUE_NS = 2e6
LOSSES = ("recovery", "timeout", "congestion_window")


@dataclass
class Setting:
    """A link and a sender."""

    kind: str
    rate_mbps: float
    delays_ms: tuple[float, float]
    link: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, str] = field(default_factory=dict)
    station: dict[str, str] = field(default_factory=dict)
    tcp: dict[str, str] = field(default_factory=dict)
    # Bytes of a request and of its answer, and the time to the next one, of the kernel's sender.
    chunk_bytes: int = 0
    interval_s: float = 0.0
    receive_buffer: int = 0

    def bdp_bytes(self) -> float:
        return self.rate_mbps * 1e6 / 8 * 2 * sum(self.delays_ms) / 1e3

    def toml(self, direction: str) -> str:
        hops = ", ".join(f'{{ rate = "1 Gb/s", delay = "{delay:.3f} ms" }}' for delay in self.delays_ms)
        lines = [f'[run]\nduration = "{DURATION_S} s"\nwarmup = "0 s"\nsample = "100 ms"\n[core]\nhops = [{hops}]']
        lines += ["[link]", *(f"{key} = {value}" for key, value in self.link.items())]
        fixed = {"downlink_rate": f'"{self.rate_mbps:.2f} Mb/s"', **self.fixed}
        lines += ["[link.fixed]", *(f"{key} = {value}" for key, value in fixed.items())]
        station = {"count": "1", **self.station, **({"direction": '"none"'} if direction == "none" else {})}
        lines += ["[[station]]", *(f"{key} = {value}" for key, value in station.items())]
        if self.tcp:
            lines += ["[station.tcp]", *(f"{key} = {value}" for key, value in self.tcp.items())]
        return "\n".join(lines) + "\n"


def draw(source: random.Random, kind: str) -> Setting:
    """A random setting in which one cause is expected to limit; the true one comes from the run."""
    rate = 10 ** source.uniform(0.5, 1.7)
    setting = Setting(kind, rate, (source.uniform(2, 20), source.uniform(2, 20)))
    bdp = setting.bdp_bytes()
    deep = max(60_000, int(bdp * source.uniform(1, 5)))
    setting.link["queue"] = f'"{deep} B"'
    setting.tcp["congestion_control"] = f'"{source.choice(["cubic", "newreno", "cubic", "bbr"])}"'
    match kind:
        case "receive_window":
            window = max(8_000, int(bdp * source.uniform(0.2, 0.6)))
            setting.receive_buffer = window
            setting.tcp |= {"receive_buffer": f'"{2 * window} B"', "autotune": "false"}
        case "application":
            setting.interval_s = source.uniform(0.1, 0.8)
            share = source.uniform(0.05, 0.4)
            setting.chunk_bytes = max(3000, int(share * rate * 1e6 / 8 * setting.interval_s))
            setting.station |= {
                "chunk": f'"{setting.chunk_bytes} B"',
                "chunk_interval": f'"{setting.interval_s * 1e3:.0f} ms"',
            }
        case "loss":
            setting.link["loss_percent"] = f"{10 ** source.uniform(-0.3, 0.9):.2f}"
        case "shallow_queue":
            setting.link["queue"] = f'"{max(6_000, int(bdp * source.uniform(0.05, 0.3)))} B"'
        case "send_buffer":
            setting.tcp |= {"send_buffer": f'"{max(20_000, int(bdp * source.uniform(0.3, 0.7)))} B"'}
        case "handshake":
            setting.station["file"] = f'"{source.randint(200, 10_000)} B"'
        case "pause":
            setting.fixed |= {
                "interruption": f'"{source.uniform(0.6, 1.5):.2f} s"',
                "interruption_interval": f'"{source.uniform(1.0, 2.0):.2f} s"',
            }
        case "uplink":
            setting.fixed["uplink_rate"] = f'"{source.uniform(15, 80):.0f} kb/s"'
        case _:
            pass
    return setting


SIMULATED = (
    "queue", "receive_window", "application", "loss", "shallow_queue", "send_buffer", "handshake", "pause", "uplink"
)  # fmt: skip
EMULATED = ("queue", "receive_window", "application", "loss")


def blocks(file: bytes) -> Iterator[tuple[int, bytes]]:
    """Types and bodies of the blocks of a pcapng file of this host's order of bytes."""
    at = 0
    while at + 12 <= len(file):
        kind, length = struct.unpack_from("=II", file, at)
        yield kind, file[at + 8 : at + length - 4]
        at += length


def between(capture: Path, out: Path, delay_ms: float) -> None:
    """The packets of the servers' side as they pass behind the first hop: those of the servers later, those
    to the servers earlier by its delay."""
    packets = []
    servers = None
    for kind, body in blocks(capture.read_bytes()):
        if kind != 6:
            continue
        interface, high, low, length, on_link = struct.unpack_from("=IIIII", body)
        if interface != 0:
            continue
        data = body[20 : 20 + length]
        if data[0] != 0x45 or data[9] != 6:  # TCP over IPv4
            continue
        source, flags = data[12:16], data[20 + 13]
        if flags & 0x12 == 0x12:
            servers = source
        packets.append(((high << 32) | low, source, data, on_link))
    shift = int(delay_ms * 1e6)
    moved = [(at + (shift if source == servers else -shift), data, on_link) for at, source, data, on_link in packets]
    moved.sort(key=lambda packet: packet[0])
    with out.open("wb") as file:
        file.write(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
        for at, data, on_link in moved:
            at += 10**9
            file.write(struct.pack("=IIII", at // 10**9, at % 10**9, len(data), on_link) + data)


def link_shares(timeseries: Path) -> tuple[float, float]:
    """Shares of the samples in which the link carries its capacity, and in which no data are acknowledged."""
    rows = list(csv.DictReader(timeseries.open()))
    busy = blocked = 0
    for before, row in itertools.pairwise(rows):
        carried = PACKET_BYTES * (float(row["link_sent"]) - float(before["link_sent"]))
        capacity = float(row["link_capacity"]) - float(before["link_capacity"])
        blocked += row["downloaded"] == before["downloaded"]
        packets = float(row["link_sent"]) - float(before["link_sent"])
        queued_ns = float(row["link_queued_ns"]) - float(before["link_queued_ns"])
        busy += capacity > 0 and carried >= FULL * capacity and queued_ns >= LEAST_QUEUE_NS * packets
    return busy / max(1, len(rows) - 1), blocked / max(1, len(rows) - 1)


def simulated_truth(folder: Path, setting: Setting) -> dict[str, float]:
    """Shares of the connection's lifetime by cause."""
    flow = json.loads((folder / "summary.json").read_text())["runs"][0]["flows"][0]
    limits = dict(flow["limits"])
    life = min(1.0, flow["life_s"] / DURATION_S)
    busy, blocked = (share / max(life, 1e-9) for share in link_shares(folder / "timeseries.csv"))
    rest = limits.pop("congestion_window") + limits.pop("pacing") + limits.pop("send_buffer")
    if setting.kind == "pause":
        timeout = limits.pop("timeout")
        limits["pause"] = max(timeout, min(blocked, rest + timeout))
        rest -= limits["pause"] - timeout
    if setting.kind == "uplink":
        busy = 1.0
    limits["queue"] = min(rest, busy)
    limits["congestion_window"] = rest - limits["queue"]
    return {cause: float(share) for cause, share in limits.items()}


def emulated_truth(folder: Path, setting: Setting) -> dict[str, float]:
    """The cause by the setting, since TCP_INFO has other definitions: it counts the wait for the last ACK as
    busy. Where packets are lost and the link is full nevertheless, its queue limits."""
    busy, _ = link_shares(folder / "timeseries.csv")
    cause = "recovery" if setting.kind == "loss" else setting.kind
    return {"queue" if cause == "recovery" and busy >= 0.5 else cause: 1.0}


@dataclass
class Result:
    """A setting at a capture point."""

    setting: Setting
    point: str
    truth: str
    true_share: float
    cause: str
    share: float
    is_right: bool


SERVER = """
import socket, sys, time
chunk, interval, until = int(sys.argv[1]), float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
listener = socket.create_server(("198.18.0.1", 5201))
print("ready", flush=True)
connection = listener.accept()[0]
while time.monotonic() < until:
    connection.sendall(bytes(chunk or 65536))
    time.sleep(interval)
"""
CLIENT = """
import os, socket, sys, time
connection = socket.socket()
if int(sys.argv[1]):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[1]))
connection.connect((os.environ["PACELINE_HOST"], 5201))
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until and connection.recv(1 << 20):
    pass
os._exit(0)
"""


def run(paceline: str, setting: Setting, seed: int, folder: Path, is_emulated: bool) -> list[Result]:
    scenario = folder / "scenario.toml"
    scenario.write_text(setting.toml("none" if is_emulated else "download"))
    if is_emulated:
        # The kernel's sender takes its own congestion control and buffers.
        setting.tcp.clear()
        scenario.write_text(setting.toml("none"))
        sender = [sys.executable, "-c", SERVER, str(setting.chunk_bytes), str(setting.interval_s), str(DURATION_S)]
        client = [sys.executable, "-c", CLIENT, str(setting.receive_buffer), str(DURATION_S - 0.5)]
        command = [paceline, "emulate", str(scenario), "--user", "root", "--pcap", "--out", str(folder / "out"), "--"]
        # The address exists once the emulation runs: the server starts in its program's shell, outside.
        script = f"nsenter --net=/proc/{os.getpid()}/ns/net " + " ".join(map(quoted, sender)) + " & sleep 0.3; "
        script += " ".join(map(quoted, client))
        done = subprocess.run(
            [*command, "sh", "-c", script], check=False, capture_output=True, text=True, timeout=120
        )
        capture = folder / "out" / "emulated.pcapng"
    else:
        command = [paceline, "run", str(scenario), "--set", f"run.seed={seed}", "--pcap", "--pcap-limit", "200 MB"]
        done = subprocess.run([*command, "--out", str(folder / "out")], check=False, capture_output=True, text=True)
        capture = folder / "out" / f"seed-{seed}.pcapng"
    if done.returncode != 0:
        raise RuntimeError(f"{setting}: {done.stderr}")
    truth = emulated_truth(folder / "out", setting) if is_emulated else simulated_truth(folder / "out", setting)
    largest = max(truth, key=lambda cause: truth[cause])
    between(capture, folder / "between.pcap", setting.delays_ms[0])
    results = []
    for point, args in zip(
        POINTS,
        (
            [str(capture), "--interface", "servers"],
            [str(folder / "between.pcap")],
            [str(capture), "--interface", "station-0"],
        ),
        strict=True,
    ):
        found = subprocess.run([paceline, "explain", *args, "--json"], check=False, capture_output=True, text=True)
        if found.returncode != 0:
            raise RuntimeError(f"{setting}, {point}: {found.stderr}")
        connection = json.loads(found.stdout)["explanation"]["connections"][0]
        cause, shares = connection["cause"], connection["cause_shares"]
        same: tuple[str, ...] = LOSSES if is_emulated and largest in LOSSES else (largest,)
        if largest == "pause":
            same = ("pause", "timeout")
        share = sum(shares[name] for name in same)
        results.append(Result(setting, point, largest, truth[largest], cause, share, cause in same))
    return results


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def percent(part: int, all_of_them: int) -> str:
    return f"{part:4} of {all_of_them:4}, {100 * part / max(1, all_of_them):5.1f}%"


def report(results: list[Result], worst: int, is_emulated: bool) -> float:
    right = [result for result in results if result.is_right]
    print(f"{'true cause':18} {'captured':12} right")
    for cause in sorted({result.truth for result in results}):
        for point in POINTS:
            own = [result for result in results if (result.truth, result.point) == (cause, point)]
            wrong = Counter(result.cause for result in own if not result.is_right)
            others = ", ".join(f"{name} {count}" for name, count in wrong.most_common())
            print(f"{cause:18} {point:12} {percent(sum(r.is_right for r in own), len(own))}  {others}")
    print(f"right cause: {percent(len(right), len(results))}")
    if not is_emulated:
        shares(results)
    wrong_ones = sorted((r for r in results if not r.is_right), key=lambda r: r.share - r.true_share)
    for result in wrong_ones[:worst]:
        print(
            f"{result.setting.kind}, {result.point}: {result.truth} {result.true_share:.2f}, explained as "
            f"{result.cause}, {result.share:.2f}: {result.setting.rate_mbps:.1f} Mb/s, "
            f"{result.setting.delays_ms}, {result.setting.link} {result.setting.tcp} {result.setting.station}"
        )
    return len(right) / max(1, len(results))


def shares(results: list[Result]) -> None:
    right = [result for result in results if result.is_right]
    near = [result for result in right if abs(result.share - result.true_share) <= 0.1]
    print(f"its share within 10 points: {percent(len(near), len(right))}")
    clear = [result for result in results if result.true_share >= 0.6]
    print(f"right where a cause has 60% of the time or more: {percent(sum(r.is_right for r in clear), len(clear))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paceline")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--worst", type=int, default=12)
    args = parser.parse_args()
    source = random.Random(args.seed)
    kinds = EMULATED if args.emulated else SIMULATED
    settings = [draw(source, kinds[index % len(kinds)]) for index in range(args.count)]
    print(f"seed {args.seed}, {args.count} settings, {'kernel TCP' if args.emulated else 'simulated'}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1 if args.emulated else args.jobs) as pool:

        def one(index: int) -> list[Result]:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                return run(args.paceline, settings[index], args.seed * 1000 + index, Path(own), args.emulated)

        results = [result for group in pool.map(one, range(args.count)) for result in group]
    return int(report(results, args.worst, args.emulated) < args.least)


if __name__ == "__main__":
    sys.exit(main())
