#!/usr/bin/env python3
"""What `paceline gateway` gains live beside what the simulator says that it does: this host's TCP, curl and Python's
web server, through the emulated radio, over a bridge alone and with the gateway between its ports.

    scripts/gateway_gains.py [--paceline PATH] [--seconds N] [--scenario NAME]... [--control NAME]...

For each link and the servers' congestion control: goodput of a download that lasts, and the time of files. The
simulator runs the same scenario with receivers as Linux has them and with the same seeds, so through the same fades; a
file's simulated time is the mean of several starts. The last column says whether both gains are within 10% of each
other, and if not, whether by more than chance: three standard errors of the mean over the seeds. A file of a megabyte
over `single-station` takes CUBIC one of two times: its round trips there come in steps of 4 ms, as the cell grants, and
HyStart ends slow start when one is more than 4 ms above the shortest (24.00 ms of 19.99), so that live microseconds
decide, and in the simulator, where both are exact, none does. Needs root; its network is of its own namespaces.
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

from gateway_town import Town, run

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
# Each link with the delay of its core.
LINKS = {"single-station": "1 ms", "accelerator-3g": "1 ms", "accelerator-lte": "1 ms", "accelerator-trace": "5 ms"}
FILES = {"64 KiB": 65_536, "1 MiB": 1_048_576, "5 MiB": 5_242_880}
LASTING = "large"
PATHS = ("direct", "accelerator")
# The gateway is at the servers, a pair of virtual devices away, and the emulator has the core between it and the radio.
NEAR = '{ rate = "10 Gb/s", delay = "100 us" }'
PLACE = "core.path_after=1"
# What curl sends first: on the cell's uplink it waits for a grant of its own.
REQUEST = "station.request=90 B"
# Milliseconds after which the simulated file is asked for: curl begins at any time of the cell's 10 ms between requests
# for a grant and of HARQ's 8 ms, and a small file's time has steps of these.
STARTS = [5 * step for step in range(8)]
# How far a live gain may be from the simulated one.
WITHIN = 0.1
SERVER = "http://198.51.100.2:8000"


def core(scenario: str, *near: str) -> str:
    """The setting of the core's hops."""
    hops = [*near, f'{{ rate = "1 Gb/s", delay = "{LINKS[scenario]}" }}']
    return f"core.hops=[{', '.join(hops)}]"


def sets(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


Runs = list[float]  # by seed


class Live:
    """Server, box and radio; the radio's namespace routes between the box and the emulated stations."""

    def __init__(self, paceline: str, control: str, folder: Path) -> None:
        self.paceline, self.folder = paceline, folder
        self.town = Town("198.51.100.1/24", "198.51.100.2/24")
        self.town.inside(self.town.client, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        route = ["route", "add", "198.18.0.0/15", "via", "198.51.100.1", "congctl", control]
        run("ip", "-n", self.town.server, *route)
        self.town.start(self.town.server, "python3", "-m", "http.server", "--directory", str(folder), "8000")
        (folder / "gateway.toml").write_text('server = "wired"\nmobile = "mobile"\n')
        time.sleep(1)

    def accelerate(self) -> None:
        """Starts the gateway."""
        self.town.start(self.town.box, self.paceline, "gateway", str(self.folder / "gateway.toml"))
        time.sleep(1)

    def curl(self, scenario: str, seed: int, name: str, seconds: int) -> tuple[float, float]:
        """Bytes per second and seconds of a download through the radio, which ends at the latest in `seconds`."""
        out = self.folder / "curl"
        curl = f"curl -s --max-time {seconds} -o /dev/null -w '%{{speed_download}} %{{time_total}}' {SERVER}/{name}"
        command = f"{curl} >{out} || test $? = 28"
        emulate = ["emulate", scenario, *sets([core(scenario), f"run.seed={seed}", "core.path=direct"])]
        self.town.inside(self.town.client, self.paceline, *emulate, "--", "sh", "-c", command)
        speed, took = out.read_text().split()
        return float(speed), float(took)


def simulated(options: argparse.Namespace, scenario: str, control: str, path: str, size: str, folder: Path) -> Runs:
    """Mb/s of downloads that last, or seconds of a file."""
    out = folder / "simulated"
    settings = [core(scenario, NEAR), PLACE, *LINUX, f"tcp.congestion_control={control}", f"core.path={path}"]
    settings += ["run.warmup=0 s", f"run.duration={options.seconds} s", "station.start_spread=0 s", REQUEST]
    settings.append("accelerator.profile=adaptive")
    by_start = []
    for start in [0] if size == LASTING else STARTS:
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
    """By path and size."""
    live: dict[tuple[str, str], Runs] = {}
    town = Live(options.paceline, control, folder)
    seeds = range(1, options.seeds + 1)
    try:
        for path in PATHS:
            if path == "accelerator":
                town.accelerate()
            rates = [town.curl(scenario, seed, LASTING, options.seconds)[0] * 8e-6 for seed in seeds]
            live[path, LASTING] = rates
            for size in FILES:
                name = size.replace(" ", "")
                live[path, size] = [town.curl(scenario, seed, name, options.seconds)[1] for seed in seeds]
    finally:
        town.town.close()
    return live


def compare(options: argparse.Namespace, scenario: str, control: str, folder: Path) -> None:
    """Prints one link's lines."""
    live = live_runs(options, scenario, control, folder)
    for size in (LASTING, *FILES):
        by_path = [(live[path, size], simulated(options, scenario, control, path, size, folder)) for path in PATHS]
        if options.each:
            for path, (ours, theirs) in zip(PATHS, by_path, strict=True):
                print(f"{path} {size}: live {ours}, simulated {theirs}", file=sys.stderr)
        cells = [statistics.mean(runs) for both in by_path for runs in both]
        gains = [cells[2] / cells[0], cells[3] / cells[1]]
        # The channel of a seed is the same on either side: what differs is the rest.
        (direct, model), (gateway, model_gateway) = by_path
        ratios = [(b / a) / (d / c) for a, b, c, d in zip(direct, gateway, model, model_gateway, strict=True)]
        chance = 3 * statistics.stdev(ratios) / len(ratios) ** 0.5
        difference = gains[0] / gains[1] - 1
        verdict = "yes" if abs(difference) <= WITHIN else "within chance" if abs(difference) <= chance else "no"
        what, unit = ("goodput", "Mb/s") if size == LASTING else (size, "s")
        print(
            f"{scenario:18} {control:6} {what:8} {unit:5} {cells[0]:8.2f} {cells[1]:8.2f} {cells[2]:8.2f}"
            f" {cells[3]:8.2f} {gains[0]:7.2f} {gains[1]:7.2f} {difference:+8.1%} {chance:6.1%}  {verdict}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default="target/release/paceline", metavar="PATH")
    parser.add_argument("--seconds", type=int, default=20, help="of a download that lasts (20)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind, two at least (3)")
    parser.add_argument("--each", action="store_true", help="tell every run, on stderr")
    parser.add_argument("--scenario", action="append", choices=LINKS)
    parser.add_argument("--control", action="append", choices=["cubic", "bbr", "reno"])
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: two at least, or nothing tells how far runs lie apart")
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
    main()
