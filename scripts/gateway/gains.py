#!/usr/bin/env python3
"""The gain of `paceline gateway`, live and simulated. Live: this host's TCP, curl and Python's web server
through the emulated radio, over a bridge alone and with the gateway between the bridge's ports.

    scripts/gateway/gains.py [--paceline PATH] [--seconds N] [--scenario NAME]... [--control NAME]...

For each link and each congestion control of the servers: goodput of a long download, and the duration of
downloads of files. The simulator runs the same scenario with Linux's receiver settings and the same seeds,
hence the same fading; a file's simulated duration is the mean over several start times. The last column is
"yes" if the live gain is within 10% of the simulated one, and "within chance" if the difference is within
three standard errors of the mean over the seeds.

A file of 1 MiB over `single-station` takes one of two durations with CUBIC. Round trips there come in steps
of 4 ms, the interval of grants, and HyStart ends slow start when a round trip is more than 4 ms above the
shortest (24.00 ms above 19.99 ms): microseconds decide live, and the exact times of the simulator never
exceed the limit.

Needs root; the network consists of namespaces of its own.
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from network import Network, built_program, main_program, run

# Settings of the simulated endpoints that follow Linux's defaults.
LINUX = [
    "tcp.profile=linux",
    "tcp.segment_size=1448 B",
    "tcp.receive_buffer=6 MiB",
    "tcp.autotune=true",
    "tcp.beyond_window=drop",
    "tcp.timestamps=true",
    "tcp.dsack=true",
    "tcp.delayed_ack_timeout=40 ms",
    "tcp.delayed_ack_adaptive=true",
    "tcp.quick_acks=16",
]
# Scenario of each link, with the delay of its core.
LINKS = {"single-station": "1 ms", "accelerator-3g": "1 ms", "accelerator-lte": "1 ms", "accelerator-trace": "5 ms"}
FILES = {"64 KiB": 65_536, "1 MiB": 1_048_576, "5 MiB": 5_242_880}
# Name of the long download.
LASTING = "large"
PATHS = ("direct", "accelerator")
# The simulated hop between servers and gateway, live a pair of virtual devices. The core is between gateway
# and radio.
NEAR = '{ rate = "10 Gb/s", delay = "100 us" }'
PLACE = "core.proxy_after=1"
# Size of curl's request, which waits for a grant in the cell's uplink.
REQUEST = "station.request=90 B"
# Start times in ms of the simulated downloads of files. The duration of a small file depends on the phase of
# the SR period, 10 ms, and of the HARQ RTT, 8 ms; live, curl starts at any phase. Chosen: eight starts in 40
# ms, their least common multiple.
STARTS_MS = [5 * step for step in range(8)]
# Relative difference of live and simulated gain that counts as equal. Chosen: 10%.
TOLERANCE = 0.1
SERVER = "http://198.51.100.2:8000"


def core(scenario: str, *near: str) -> str:
    """The setting of the core's hops: those of `near`, then the link's core."""
    hops = [*near, f'{{ rate = "1 Gb/s", delay = "{LINKS[scenario]}" }}']
    return f"core.hops=[{', '.join(hops)}]"


def sets(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


# One figure for each seed.
Runs = list[float]


class Live:
    """Server, middlebox and radio; the namespace of the radio routes between the middlebox and the emulated
    stations."""

    def __init__(self, paceline: str, control: str, folder: Path) -> None:
        self.paceline, self.folder = paceline, folder
        self.network = Network("198.51.100.1/24", "198.51.100.2/24")
        self.network.run_in(self.network.client, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        route = ["route", "add", "198.18.0.0/15", "via", "198.51.100.1", "congctl", control]
        run("ip", "-n", self.network.server, *route)
        self.network.start(self.network.server, "python3", "-m", "http.server", "--directory", str(folder), "8000")
        (folder / "gateway.toml").write_text('server = "wired"\nmobile = "mobile"\n')
        time.sleep(1)

    def accelerate(self) -> None:
        """Starts the gateway."""
        self.network.start(self.network.middlebox, self.paceline, "gateway", str(self.folder / "gateway.toml"))
        time.sleep(1)

    def curl(self, scenario: str, seed: int, name: str, seconds: int) -> tuple[float, float]:
        """Rate in B/s and duration in s of a download through the radio; it is stopped after `seconds`."""
        out = self.folder / "curl"
        curl = f"curl -s --max-time {seconds} -o /dev/null -w '%{{speed_download}} %{{time_total}}' {SERVER}/{name}"
        command = f"{curl} >{out} || test $? = 28"
        emulate = ["emulate", scenario, *sets([core(scenario), f"run.seed={seed}", "core.proxy=none"])]
        self.network.run_in(self.network.client, self.paceline, *emulate, "--", "sh", "-c", command)
        speed, took = out.read_text().split()
        return float(speed), float(took)


def simulated(options: argparse.Namespace, scenario: str, control: str, path: str, size: str, folder: Path) -> Runs:
    """Goodput in Mb/s of the long download, or duration in s of a file, by seed."""
    out = folder / "simulated"
    settings = [core(scenario, NEAR), PLACE, *LINUX, f"tcp.congestion_control={control}", f"core.proxy={path}"]
    settings += ["run.warmup=0 s", f"run.duration={options.seconds} s", "station.start_spread=0 s", REQUEST]
    settings.append("accelerator.profile=adaptive")
    by_start = []
    for start in [0] if size == LASTING else STARTS_MS:
        more = [] if size == LASTING else [f"station.file={size}", f"station.start={start} ms"]
        run("rm", "-rf", str(out))
        run(options.paceline, "run", scenario, "--seeds", str(options.seeds), *sets(settings + more), "--out", str(out))
        if size == LASTING:
            totals = [one["totals"] for one in json.loads((out / "summary.json").read_text())["runs"]]
            return [float(one["goodput_mbps"]) for one in totals]
        with (out / "flows.csv").open() as rows:
            ends = [float(row["received_s"] or options.seconds) for row in csv.DictReader(rows)]
        by_start.append([end - start / 1000 for end in ends])
    return [statistics.mean(times) for times in zip(*by_start, strict=True)]


def live_runs(options: argparse.Namespace, scenario: str, control: str, folder: Path) -> dict[tuple[str, str], Runs]:
    """Live figures by path and size."""
    live: dict[tuple[str, str], Runs] = {}
    setup = Live(options.paceline, control, folder)
    seeds = range(1, options.seeds + 1)
    try:
        for path in PATHS:
            if path == "accelerator":
                setup.accelerate()
            rates = [setup.curl(scenario, seed, LASTING, options.seconds)[0] * 8e-6 for seed in seeds]
            live[path, LASTING] = rates
            for size in FILES:
                name = size.replace(" ", "")
                live[path, size] = [setup.curl(scenario, seed, name, options.seconds)[1] for seed in seeds]
    finally:
        setup.network.close()
    return live


def compare(options: argparse.Namespace, scenario: str, control: str, folder: Path) -> None:
    """Prints the lines of one link and congestion control."""
    live = live_runs(options, scenario, control, folder)
    for size in (LASTING, *FILES):
        by_path = [(live[path, size], simulated(options, scenario, control, path, size, folder)) for path in PATHS]
        if options.each:
            for path, (live_figures, model_figures) in zip(PATHS, by_path, strict=True):
                print(f"{path} {size}: live {live_figures}, simulated {model_figures}", file=sys.stderr)
        cells = [statistics.mean(runs) for both in by_path for runs in both]
        gains = [cells[2] / cells[0], cells[3] / cells[1]]
        # Ratios by seed, since both sides have the same fading with the same seed.
        (direct, model), (gateway, model_gateway) = by_path
        ratios = [(b / a) / (d / c) for a, b, c, d in zip(direct, gateway, model, model_gateway, strict=True)]
        chance = 3 * statistics.stdev(ratios) / len(ratios) ** 0.5
        difference = gains[0] / gains[1] - 1
        verdict = "yes" if abs(difference) <= TOLERANCE else "within chance" if abs(difference) <= chance else "no"
        what, unit = ("goodput", "Mb/s") if size == LASTING else (size, "s")
        print(
            f"{scenario:18} {control:6} {what:8} {unit:5} {cells[0]:8.2f} {cells[1]:8.2f} {cells[2]:8.2f}"
            f" {cells[3]:8.2f} {gains[0]:7.2f} {gains[1]:7.2f} {difference:+8.1%} {chance:6.1%}  {verdict}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=built_program(), metavar="PATH")
    parser.add_argument("--seconds", type=int, default=20, help="duration of the long download (20)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind, two at least (3)")
    parser.add_argument("--each", action="store_true", help="print every run to stderr")
    parser.add_argument("--scenario", action="append", choices=LINKS)
    parser.add_argument("--control", action="append", choices=["cubic", "bbr", "reno"])
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: at least two, to estimate the standard error")
    if os.geteuid() != 0:
        sys.exit("needs root: network namespaces, bridges and packet sockets")
    options.paceline = os.path.abspath(options.paceline)
    print(
        f"{'':18} {'':6} {'':8} {'':5} {'direct':>8} {'':>8} {'gateway':>8} {'':>8} {'gain':>7}\n"
        f"{'':31} {'':8} {'live':>8} {'sim':>8} {'live':>8} {'sim':>8} {'live':>7} {'sim':>7} {'live/sim':>8} {'chance':>6}  alike"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, length in FILES.items():
            (folder / size.replace(" ", "")).write_bytes(os.urandom(length))
        (folder / LASTING).touch()
        os.truncate(folder / LASTING, 4_000_000_000)
        for scenario in options.scenario or LINKS:
            for control in options.control or ["cubic", "bbr"]:
                compare(options, scenario, control, folder)


if __name__ == "__main__":
    main_program(main)
