#!/usr/bin/env python3
"""How right `paceline explain --gain` is: transfers of this kernel's TCP through random simulated networks.

    scripts/measure/gain_grid.py PROGRAM --seed 1 --count 24 [--csv FILE]       needs root

Each network carries a download without the accelerator, which is captured at the servers, and downloads of
the same size through it, with other seeds of the radio. The gain is predicted from the capture alone. Prints
the share of captures for which a gain is claimed, and of these the share whose predicted completion time is
within 10% of the median one through the accelerator, and of those whose interval excludes 0 the share with
the right sign.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PORT = 5001
# Runs through the accelerator, whose median is the truth.
REPEATS = 3
# Seconds of a download at the rate of the network: a slow start and some hundred round trips.
LENGTH_S = 3.0


@dataclass
class Setting:
    """A network and a download."""

    number: int
    kind: str
    access: str
    core_ms: float
    size: int
    window: int

    def toml(self, seed: int) -> str:
        run = f'[run]\nseed = {seed}\nduration = "90 s"\nwarmup = "0 s"\n'
        core = f'[core]\nhops = [{{ rate = "1 Gb/s", delay = "{self.core_ms:.1f} ms" }}]\n'
        return run + core + self.access


def draw(number: int, seed: int) -> Setting:
    """A network of one of five kinds."""
    rng = random.Random(f"{seed}-{number}")
    kind = ("queue", "losses", "window", "lte", "nr")[number % 5]
    core_ms = rng.uniform(5, 50)
    window = 0
    if kind in ("lte", "nr"):
        sinr = rng.uniform(8, 22)
        fading = rng.choice(["0 dB", "3 dB"])
        mbps = rng.choice([5, 10]) * 1.5
        keys = f'bandwidth = "{mbps / 1.5:.0f} MHz"\n'
        if kind == "nr":
            mbps = 20.0
            keys = 'rat = "nr"\nbandwidth = "10 MHz"\npattern = "DDDSU 10:2:2"\nsubcarrier_spacing = "30 kHz"\n'
        buffer = mbps * 1e6 / 8 * rng.uniform(0.05, 0.4)
        station = f'downlink_sinr = "{sinr:.1f} dB"\nfading = "{fading}"\n'
        station += 'coherence = "50 ms"\n' if fading != "0 dB" else ""
        access = f'[cell]\n{keys}downlink_buffer = "{buffer:.0f} B"\n'
    else:
        mbps = 10 ** rng.uniform(0.6, 1.5)
        delay_ms = rng.uniform(5, 40)
        product = mbps * 1e6 / 8 * 2 * (core_ms + delay_ms) / 1e3
        buffer = max(20_000.0, product * rng.uniform(0.2, 2.0))
        loss = 10 ** rng.uniform(-1, 0.2) if kind == "losses" else 0.0
        if kind == "window":
            window = int(max(16_000, product * rng.uniform(0.3, 0.8)))
        access = f'[link]\ndelay = "{delay_ms:.1f} ms"\nqueue = "{buffer:.0f} B"\nloss_percent = {loss:.3f}\n'
        access += f'[link.fixed]\ndownlink_rate = "{mbps:.2f} Mb/s"\n'
        station = ""
    access += f'[[station]]\ndirection = "none"\n{station}'
    return Setting(number, kind, access, core_ms, int(mbps * 1e6 / 8 * LENGTH_S), window)


def serve(size: int) -> int:
    """Sends `size` bytes to one client."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        server.settimeout(60)
        connection, _ = server.accept()
        with connection:
            connection.sendall(bytes(size))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    return 0


def fetch(window: int) -> int:
    """Prints the seconds from the SYN to the last byte."""
    with socket.socket() as client:
        client.settimeout(80)
        if window:
            # Linux doubles the value, and offers half of the buffer.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        begin = time.monotonic()
        client.connect(("198.18.0.1", PORT))
        while client.recv(1 << 16):
            pass
        print(time.monotonic() - begin)
    return 0


def emulate(program: str, setting: Setting, seed: int, folder: Path, with_it: bool) -> tuple[float, Path]:
    """Completion time of one download, and the folder of its results."""
    name = f"{setting.number}-{seed}-{int(with_it)}"
    file, out = folder / f"{name}.toml", folder / name
    file.write_text(setting.toml(seed))
    own = f"{sys.executable} {Path(__file__).resolve()} {program} --seed 0"
    proxy = "--set core.proxy=accelerator" if with_it else ""
    shell = f"ip link set lo up; {own} --serve {setting.size} & sleep 1; exec {program} emulate {file} {proxy} "
    shell += f"--tcp cubic --pcap --user root --out {out} -- sh -c 'sleep 0.5; {own} --fetch {setting.window}'"
    # In a network namespace of its own: no other emulation has these addresses.
    command = ["unshare", "-n", "sh", "-c", shell]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    lines = [line for line in run.stdout.splitlines() if line.replace(".", "", 1).isdigit()]
    if run.returncode != 0 or not lines:
        raise RuntimeError(f"{name}: {run.stderr[-400:]}")
    return float(lines[0]), out


def judge(program: str, setting: Setting, folder: Path) -> dict[str, object]:
    """The prediction beside the truth."""
    without, out = emulate(program, setting, 1, folder, False)
    capture = next(out.glob("*.pcapng"))
    command = [program, "explain", str(capture), "--interface", "servers", "--gain", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if run.returncode != 0:
        raise RuntimeError(f"{setting.number}: {run.stderr[-400:]}")
    gain = json.loads(run.stdout)["gain"]
    truths = [emulate(program, setting, 2 + index, folder, True)[0] for index in range(REPEATS)]
    row: dict[str, object] = {
        "setting": setting.number, "kind": setting.kind, "without_s": without,
        "measured_s": gain["measured_completion_s"], "simulated_s": gain["simulated_completion_s"]["median"],
        "with_s": statistics.median(truths), "claims": gain["claims"],
    }
    for own in gain["remedies"]:
        if own["remedy"] == "accelerator":
            row |= {f"predicted_{key}": value for key, value in own["completion_s"].items()}
            row |= {"low": own["completion_change"]["low"], "high": own["completion_change"]["high"]}
    return row


def report(rows: list[dict[str, object]]) -> None:
    """The shares."""
    claimed = [row for row in rows if row["claims"] and "low" in row]
    print(f"captures with a claim: {len(claimed)} of {len(rows)}")

    def ratio(row: dict[str, object], key: str) -> float:
        return float(str(row[key])) / float(str(row["with_s"]))

    near = [row for row in claimed if abs(ratio(row, "predicted_median") - 1) <= 0.1]
    inside = [row for row in claimed if ratio(row, "predicted_low") <= 1 <= ratio(row, "predicted_high")]
    signed = [row for row in claimed if float(str(row["low"])) > 0 or float(str(row["high"])) < 0]
    right = [row for row in signed if (float(str(row["high"])) < 0) == (ratio(row, "without_s") > 1)]
    for name, part, whole in (
        ("predicted completion within 10%", near, claimed),
        ("inside its interval", inside, claimed),
        ("right sign where the interval excludes 0", right, signed),
    ):
        print(f"{name}: {len(part)} of {len(whole)} ({len(part) / max(1, len(whole)):.0%})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--csv", type=Path, help="file for the rows")
    parser.add_argument("--jobs", type=int, default=2, help="networks at a time")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fetch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        return serve(args.serve)
    if args.fetch is not None:
        return fetch(args.fetch)
    program = str(Path(args.program).resolve())
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        settings = [draw(number, args.seed) for number in range(args.count)]
        jobs = [pool.submit(judge, program, setting, Path(folder)) for setting in settings]
        for job in jobs:
            try:
                rows.append(job.result())
                print({key: round(own, 3) if isinstance(own, float) else own for key, own in rows[-1].items()},
                      file=sys.stderr, flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(error, file=sys.stderr)
    if args.csv:
        names = list(dict.fromkeys(name for row in rows for name in row))
        with args.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow({key: round(own, 4) if isinstance(own, float) else own for key, own in row.items()})
    print(f"seed {args.seed}")
    report(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
