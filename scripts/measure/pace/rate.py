#!/usr/bin/env python3
"""Fixed rates of `paceline pace` between two namespaces of this host, and when segments leave. Needs root.

    scripts/measure/pace/rate.py PROGRAM [--seconds S] [--runs N] [--only TEXT]

iperf3 sends over a pair of virtual devices. In rows with a gate tshark sees when each segment leaves, and the
share of bytes in slots before downlink slots is printed, the least of the runs. `--only` picks the rows whose
text has TEXT. Rates are the payload that the receiver got, in Mb/s: median and range of N runs.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from control import registered

SENDER, RECEIVER = "pacerate_a", "pacerate_b"
ADDRESS = "10.9.0.2"
# Control, rate in Mb/s, pattern, slot in ms, slots before downlink slots if there is a gate.
ROWS: list[tuple[str, int, str, float, set[int]]] = [
    *((control, rate, "DDDSU/30kHz", 0.5, set()) for control in ("reno", "cubic", "illinois") for rate in
      (10, 100, 300, 1000)),
    ("reno", 100, "DDDDDDDSUU 6:4:4/30kHz", 0.5, {9, *range(7)}),
    ("illinois", 300, "DDDDDDDSUU 6:4:4/30kHz", 0.5, {9, *range(7)}),
    ("cubic", 100, "DSUUUDDDDD/15kHz", 1.0, {0, *range(4, 10)}),
    ("illinois", 1000, "DDDSU/30kHz", 0.5, {4, 0, 1, 2}),
]
# Segments at the start of a connection that are not counted: its rate is not known yet.
FIRST_SEGMENTS = 200


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Two namespaces, joined by a pair of virtual devices."""
    for namespace in (SENDER, RECEIVER):
        run("ip", "netns", "add", namespace)
    try:
        run("ip", "link", "add", "va", "netns", SENDER, "type", "veth", "peer", "name", "vb", "netns", RECEIVER)
        for namespace, device, address in ((SENDER, "va", "10.9.0.1"), (RECEIVER, "vb", ADDRESS)):
            run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", namespace, "link", "set", device, "up")
        # Otherwise Linux enlarges the transmissions of connections with such a short round trip.
        run(*inside(SENDER, "sysctl", "-qw", "net.ipv4.tcp_tso_rtt_log=0"))
        yield
    finally:
        for namespace in (SENDER, RECEIVER):
            subprocess.run(["ip", "netns", "del", namespace], check=False)


def transfer(name: str, seconds: int) -> float:
    """Payload that the receiver got, in Mb/s, after two seconds."""
    with subprocess.Popen(inside(RECEIVER, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL) as server:
        time.sleep(0.5)
        try:
            text = run(*inside(SENDER, "iperf3", "-c", ADDRESS, "-t", str(seconds), "-O", "2", "-C", name, "-J"))
            server.wait(timeout=10)
        finally:
            server.kill()
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 1e6


def share_inside(fields: str, slot_ms: float, slots: int, allowed: set[int]) -> float:
    """Share of the bytes that left in allowed slots; `fields` has a line for each segment: time and bytes."""
    total = good = 0
    lines = [line.split() for line in fields.splitlines()]
    for at, size in [line for line in lines if len(line) == 2 and int(line[1]) > 0][FIRST_SEGMENTS:]:
        seconds, fraction = at.split(".")
        microseconds = int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
        slot = microseconds % int(slots * slot_ms * 1000) // int(slot_ms * 1000)
        total += int(size)
        good += int(size) * (slot in allowed)
    return good / max(total, 1)


def gated(name: str, seconds: int, slot_ms: float, slots: int, allowed: set[int]) -> tuple[float, float]:
    """As `transfer`, and the share of the bytes that left in allowed slots."""
    columns = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.len"]
    # Headers are enough, and the data of iperf3's control connection are few.
    command = inside(SENDER, "tshark", "-q", "-n", "-l", "-s", "100", "-i", "va", "-f", "tcp and src 10.9.0.1",
                     "-P", *columns)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as capture:
        time.sleep(2)
        rate = transfer(name, seconds)
        time.sleep(1)
        capture.send_signal(signal.SIGINT)
        fields, _ = capture.communicate(timeout=60)
    return rate, share_inside(fields, slot_ms, slots, allowed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    missing = [tool for tool in ("ip", "iperf3", "tshark", args.program) if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        parser.error(f"not found: {', '.join(missing)}" if missing else "namespaces need root")
    print("| control | rate, Mb/s | pattern | received, Mb/s | in slots before downlink slots |")
    print("|---|---:|---|---:|---:|")
    with network():
        for control, rate, pattern, slot_ms, allowed in ROWS:
            head = f"| {control} | {rate} | {pattern}{', gated' if allowed else ''} |"
            if args.only not in head:
                continue
            slots = len(pattern.split("/")[0].split(" ")[0])
            arguments = ["--control", control, "--pattern", pattern, "--rate", f"{rate} Mb/s"]
            arguments += ["--phase", "0 ms"] if allowed else []
            with registered(args.program, f"rate_{os.getpid() % 100000}", *arguments) as name:
                if allowed:
                    results = [gated(name, args.seconds, slot_ms, slots, allowed) for _ in range(args.runs)]
                else:
                    results = [(transfer(name, args.seconds), 1.0) for _ in range(args.runs)]
            rates = [result[0] for result in results]
            share = f"{100 * min(result[1] for result in results):.1f}%" if allowed else ""
            print(f"{head} {statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f}) | {share} |",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
