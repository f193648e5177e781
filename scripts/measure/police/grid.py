#!/usr/bin/env python3
"""Measures what `paceline police --mode safe` costs and saves, with this host's TCP over emulated links.

    scripts/measure/police/grid.py [--paceline PATH] [--seconds S] [--share P] [--max-segments N] [--pairs N]
        [--only KEY=VALUE[,VALUE...]]... [--simulated SEEDS]

For each control, number of flows, rate, round trip and loss there are pairs of runs, without and with the
policer at the receiver's device: goodput with it over goodput without it, segments retransmitted with and
without it, and the share of ACKs that it dropped. KEY is control, flows, rate, rtt or loss. Needs root and
iperf3; with --simulated, which runs the simulator's TCP over the same links, neither.

With --pairs 2 and more the figures are medians, runs without the policer stand between all others, and their
least and greatest values show the scatter of the link itself: a median that misses a target, but lies between
them, is marked as such.

At the device of the receiver, the hard case for the policer, no unacknowledged data has passed when an ACK
comes.
"""

import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "gateway"))
from network import CommandError, built_program, main_program, run

# The grid of the document: docs/police.md.
GRID: dict[str, list[str]] = {
    "control": ["cubic", "reno", "bbr"],
    "flows": ["1", "16", "256"],
    "rate": ["50", "1000"],
    "rtt": ["1", "10", "40", "80"],
    "loss": ["0", "1"],
}
# Goodput with the policer over goodput without it: the target.
LEAST_GOODPUT = 0.98
# Retransmitted segments with the policer over those without it: the target.
MOST_RETRANSMITTED = 1.1
# Fewer retransmitted segments than these are not compared. Chosen: their number is chance.
FEW_RETRANSMITTED = 50
# The queue of a link in round trips of 20 ms at its rate, in bytes per Mb/s. Chosen: as in a home router.
QUEUE_BYTES_PER_MBPS = 2500
# The policer of a simulation that drops nothing.
NO_DROPS = "drop_share = 0.0"


def scenario(point: dict[str, str], duration: str, hop: str, station: str) -> str:
    """A link with the rate, round trip and loss of a point; rates in Mb/s, times in ms."""
    queue = max(60_000, int(float(point["rate"]) * QUEUE_BYTES_PER_MBPS))
    return (
        f"[run]\nduration = \"{duration}\"\nwarmup = \"100 ms\"\n"
        f"[core]\nhops = [{{ rate = \"10 Gb/s\", delay = \"0 ms\"{hop} }}]\n"
        f"[link]\ndelay = \"{float(point['rtt']) / 2} ms\"\nqueue = \"{queue} B\"\n"
        f"loss_percent = {point['loss']}.0\n"
        f"[link.fixed]\ndownlink_rate = \"{point['rate']} Mb/s\"\n"
        f"[[station]]\n{station}\n"
    )


def simulate(paceline: str, point: dict[str, str], seconds: int, police: str, seeds: int) -> dict[str, float]:
    """The figures of `measure` by simulation: the mean goodput, and the sums of the other ones."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        text = scenario(point, f"{seconds} s", f", police = {{ {police} }}", f"flows = {point['flows']}")
        (place / "link.toml").write_text(text, encoding="utf-8")
        run(paceline, "run", str(place / "link.toml"), "--out", str(place / "results"), "--seeds", str(seeds),
            "--set", f"tcp.congestion_control={point['control']}")
        runs = json.loads((place / "results" / "summary.json").read_text(encoding="utf-8"))["runs"]
    return {
        "goodput": sum(one["totals"]["goodput_mbps"] for one in runs) / len(runs),
        "retransmitted": sum(flow["retransmissions"] for one in runs for flow in one["flows"]),
        "acks": sum(one["policers"][0]["acks"] for one in runs),
        "dropped": sum(one["policers"][0]["dropped"] for one in runs),
    }


def measure(paceline: str, point: dict[str, str], seconds: int, limit: str | None) -> dict[str, float]:
    """One run: goodput in Mb/s, retransmitted segments, and the ACKs that a policer saw and dropped."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "link.toml").write_text(scenario(point, "3600 s", "", "count = 1"), encoding="utf-8")
        police = ""
        if limit is not None:
            police = (
                f"{paceline} police attach $device --direction egress {limit} 2>attached & "
                "for try in $(seq 100); do grep -q attached attached && break; sleep 0.1; done; "
            )
        finish = f"; {paceline} police show $device --json >police.json" if limit is not None else ""
        per_flow = min(int(point["flows"]), 128)
        processes = int(point["flows"]) // per_flow
        clients = " ".join(
            f"iperf3 -c $PACELINE_HOST -p {5201 + number} -R -O 1 -t {seconds} -P {per_flow} "
            f"-C {point['control']} -J >iperf{number}.json & clients=\"$clients $!\";"
            for number in range(processes)
        )
        script = (
            "device=$(ip -o link | grep -v ' lo:' | head -1 | cut -d: -f2 | cut -d@ -f1 | tr -d ' '); "
            + police + f"{clients} wait $clients; sleep 0.3" + finish + "; kill %1 2>/dev/null; true"
        )
        servers = "; ".join(f"iperf3 -s -1 -D -p {5201 + number}" for number in range(processes))
        (place / "inside.sh").write_text(script, encoding="utf-8")
        # The servers run on the host's side of the emulation, in a namespace of their own.
        run("unshare", "-n", "sh", "-c",
            f"cd {folder} && ip link set lo up && {servers} && "
            f"{paceline} emulate link.toml --out results --tcp {point['control']} -- sh inside.sh")
        totals = {"goodput": 0.0, "retransmitted": 0.0, "acks": 0.0, "dropped": 0.0}
        for number in range(processes):
            end = json.loads((place / f"iperf{number}.json").read_text(encoding="utf-8"))["end"]
            totals["goodput"] += end["sum_received"]["bits_per_second"] / 1e6
            totals["retransmitted"] += end["sum_sent"].get("retransmits", 0)
        if limit is not None:
            report = json.loads((place / "police.json").read_text(encoding="utf-8"))["policers"][0]
            totals["acks"], totals["dropped"] = report["acks"], report["dropped"]
        return totals


def row(point: dict[str, str], plain: list[dict[str, float]], policed: list[dict[str, float]]) -> tuple[str, bool]:
    """The line of a point, and whether it misses a target."""
    rates, rates_policed = ([run["goodput"] for run in runs] for runs in (plain, policed))
    again, again_policed = ([run["retransmitted"] for run in runs] for runs in (plain, policed))
    ratio = median(rates_policed) / max(median(rates), 0.001)
    most = max(median(again), FEW_RETRANSMITTED) * MOST_RETRANSMITTED
    slow = ratio < LEAST_GOODPUT
    lossy = median(again_policed) > most
    inside = (not slow or median(rates_policed) >= min(rates)) and (not lossy or median(again_policed) <= max(again))
    missed = slow or lossy
    verdict = ("scatter" if inside and len(plain) > 1 else "MISSED") if missed else ""
    dropped = sum(run["dropped"] for run in policed) / max(sum(run["acks"] for run in policed), 1)
    line = (f"{point['control']:8} {point['flows']:>5} {point['rate']:>6} {point['rtt']:>6} {point['loss']:>6} "
            f"{median(rates):8.1f} {median(rates_policed):8.1f} {ratio:6.3f} {median(again):7.0f} "
            f"{median(again_policed):7.0f} {100 * dropped:7.1f}% {verdict:7}")
    if len(plain) > 1:
        line += (f" without: {min(rates):.1f} to {max(rates):.1f} Mb/s, {min(again):.0f} to {max(again):.0f} again;"
                 f" with: {min(rates_policed):.1f} to {max(rates_policed):.1f},"
                 f" {min(again_policed):.0f} to {max(again_policed):.0f}")
    return line, missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=None)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--share", default="80%")
    parser.add_argument("--max-segments", type=int, default=16)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--simulated", type=int, metavar="SEEDS")
    args = parser.parse_args()
    grid = dict(GRID)
    for only in args.only:
        key, _, values = only.partition("=")
        if key not in grid:
            parser.error(f"--only {only}: the keys are {', '.join(grid)}")
        grid[key] = values.split(",")
    paceline = str(Path(args.paceline or built_program()).resolve())
    limit = f"--drop-share {args.share} --max-segments {args.max_segments}"
    share = float(args.share.removesuffix("%")) / (100 if args.share.endswith("%") else 1)
    police = f"drop_share = {share}, max_segments = {args.max_segments}"
    missed = 0
    print(f"{'control':8} {'flows':>5} {'Mb/s':>6} {'RTT ms':>6} {'loss %':>6} {'without':>8} {'with':>8} "
          f"{'ratio':>6} {'retr.':>7} {'with':>7} {'dropped':>8}")
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        def one(policer: bool, point: dict[str, str] = point) -> dict[str, float]:
            if args.simulated:
                return simulate(paceline, point, args.seconds, police if policer else NO_DROPS, args.simulated)
            return measure(paceline, point, args.seconds, limit if policer else None)

        try:
            plain, policed = [one(False)], []
            for _ in range(args.pairs):
                policed.append(one(True))
                if args.pairs > 1:
                    plain.append(one(False))
        except (CommandError, OSError, KeyError, json.JSONDecodeError) as error:
            print(f"{point}: {error}", flush=True)
            missed += 1
            continue
        line, misses = row(point, plain, policed)
        missed += misses
        print(line, flush=True)
    print(f"{missed} points missed a target: goodput at least {LEAST_GOODPUT}, retransmissions at most "
          f"{MOST_RETRANSMITTED} times")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main_program(main)
