#!/usr/bin/env python3
"""Measures the experiment of Pavilanskas and Statkus (2010): ACK rate control in front of a router.

    scripts/police/router.py [--paceline PATH] [--seconds S] [--quick] [--sessions] [--out FILE] [--pairs N]

Server, router, bridge with the policer, and client are network namespaces with this host's TCP and
forwarding, without offloads. Every device has its packets received by a kernel thread of its own
(threaded NAPI), so that the CPU time of the threads of the router's two devices is the time of
forwarding, with the wake-ups of the next devices' threads. Prints the rows 5a to 5e; FILE gets all figures
as JSON. `paceline reproduce router` simulates the same rows. Needs root and Linux 6.6.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "gateway"))
from network import built_program, main_program
from router_network import INTERFACE_QUEUE, SHAPER_QUEUE, Figures, RouterNetwork, Setting

# The published settings, in Mb/s and percent.
RATES = [1, 4, 8, 16, 32, 65, 90]
DROPS = [0, 20, 40, 60, 80]
QUICK_RATES = [8, 90]
QUICK_DROPS = [0, 80]
# Drops above the published limit of 85%, and rates at which the ACK rate falls below one per timeout and not.
COLLAPSE_DROPS = [85, 90, 95, 98]
COLLAPSE_RATES = [1, 8, 90]
# Rate of 100 Mb/s Ethernet in Mb/s: no shaping but the line's.
LINE = 100
# Published: both sessions of 5d, Mb/s, and the reduction of the router's load at 25% and 60% load, percent.
PUBLISHED_SHARES = (44, 49)
PUBLISHED_REDUCTION = (30, 32)

Results = dict[Setting, Figures]


def settings(quick: bool) -> list[Setting]:
    """All points. The point without a policer comes first: its ACK rate scales the buckets of the others."""
    rates, drops = (QUICK_RATES, QUICK_DROPS) if quick else (RATES, DROPS)
    points = [Setting(rate, drop) for rate in rates for drop in drops]
    collapse = [(1, 95)] if quick else [(rate, drop) for rate in COLLAPSE_RATES for drop in COLLAPSE_DROPS]
    for rate, drop in collapse:
        points += [Setting(rate, 0), Setting(rate, drop), Setting(rate, drop, mode="safe")]
    points += two_sessions()
    if not quick:
        for control, sessions in (("reno", 1), ("bbr", 1), ("cubic", 16)):
            points += [Setting(90, drop, sessions=sessions, control=control) for drop in (0, 80)]
        points.append(Setting(90, 80, mode="safe"))
    return list(dict.fromkeys(points))


def two_sessions() -> list[Setting]:
    """Rows 5d and 5e: behind the source's interface, and 5e behind a short queue."""
    points = []
    for queue, exempts in ((INTERFACE_QUEUE, (0, 1)), (SHAPER_QUEUE, (1,))):
        points.append(Setting(LINE, 0, sessions=2, queue=queue))
        points += [Setting(LINE, 80, sessions=2, exempt=exempt, per_flow=per_flow, queue=queue)
                   for per_flow in (False, True) for exempt in exempts]
    return points


def run_all(paceline: str, points: list[Setting], seconds: float) -> Results:
    """Runs every point."""
    results: Results = {}
    for point in points:
        base = results.get(point.without_policer())
        results[point] = measured(paceline, point, seconds, base.acks_per_s if base else 0.0)
        print(f"{point}: {results[point].short()}", file=sys.stderr, flush=True)
    return results


def measured(paceline: str, point: Setting, seconds: float, acks_per_s: float) -> Figures:
    """One point in namespaces of its own."""
    network = RouterNetwork(point)
    try:
        return network.measure(paceline, seconds, acks_per_s)
    finally:
        network.close()


def beside(results: Results, points: Iterable[Setting]) -> Iterable[tuple[Setting, Figures, Figures]]:
    """Points, each beside the one without a policer."""
    for point in points:
        yield point, results[point], results[point.without_policer()]


def row_5a(results: Results) -> None:
    print("\n5a  one session, 0 to 80% of ACKs dropped: rate, retransmissions and the first 3 s unchanged")
    print("    Mb/s  drop  dropped  rate     without  ratio  retr.  without  3 s, MB  without")
    points = (p for p in results if p.sessions == 1 and 0 < p.drop <= 80 and p.is_plain())
    for point, with_it, without in beside(results, points):
        print(f"    {point.rate:4}  {point.drop:3}%  {with_it.dropped_percent():6.1f}%  "
              f"{with_it.rate():7.2f}  {without.rate():7.2f}  {with_it.rate() / without.rate():5.3f}  "
              f"{with_it.retransmissions:5}  {without.retransmissions:7}  "
              f"{with_it.first_3_s:7.2f}  {without.first_3_s:7.2f}")


def row_5b(results: Results) -> None:
    print("\n5b  above 85% the ACK rate falls under one per timeout and the rate collapses; safe never collapses")
    print("    Mb/s  drop  mode       dropped  ACKs/s  rate     without  ratio")
    points = (p for p in results if p.sessions == 1 and p.drop > 80 and p.control == "cubic")
    for point, with_it, without in beside(results, points):
        print(f"    {point.rate:4}  {point.drop:3}%  {point.mode:9}  "
              f"{with_it.dropped_percent():6.1f}%  {with_it.forwarded_acks_per_s():6.1f}  "
              f"{with_it.rate():7.2f}  {without.rate():7.2f}  {with_it.rate() / without.rate():5.3f}")


def row_5c(results: Results) -> None:
    first, second = PUBLISHED_REDUCTION
    print(f"\n5c  load of the router at 80%: {first}% lower at 25% load, {second}% at 60% (to about 40%)")
    print("    Mb/s  sessions  control  mode       load    without  lower   packets lower  us/packet")
    points = (p for p in results if p.drop == 80 and p.exempt == 0)
    for point, with_it, without in beside(results, points):
        load = 100 * (1 - with_it.load_per_byte() / without.load_per_byte())
        packets = 100 * (1 - with_it.packets_per_byte() / without.packets_per_byte())
        print(f"    {point.rate:4}  {point.sessions:8}  {point.control:7}  {point.mode:9}  "
              f"{100 * with_it.load:5.2f}%  {100 * without.load:6.2f}%  {load:5.1f}%  {packets:12.1f}%  "
              f"{1e6 * with_it.load / max(with_it.packets_per_s, 1):9.2f}")


def row_5de(results: Results) -> None:
    low, high = PUBLISHED_SHARES
    print(f"\n5d  two sessions, both filtered at 80%: {low} and {high} of 93 Mb/s, nearly equal")
    print("5e  two sessions, one filtered: nearly equal, slightly unfair")
    for point, with_it, _ in beside(results, (p for p in results if p.sessions == 2)):
        what = "no policer" if point.drop == 0 else "one filtered" if point.exempt else "both filtered"
        what += ", own buckets" if point.per_flow else ""
        rates = " and ".join(f"{rate:.1f}" for rate in with_it.rates)
        print(f"    {what:26}  queue {point.queue / 1000:6.0f} kB  {rates} Mb/s, "
              f"{with_it.retransmissions} retransmissions")


def pairs(paceline: str, count: int, seconds: float) -> None:
    """Repeats one session at 90 Mb/s without and with 80% of the ACKs dropped, in turns."""
    base = Setting(max(RATES), 0)
    loads, packets = [], []
    for _ in range(count):
        without = measured(paceline, base, seconds, 0)
        with_it = measured(paceline, base._replace(drop=80), seconds, without.acks_per_s)
        loads.append(100 * (1 - with_it.load_per_byte() / without.load_per_byte()))
        packets.append(100 * (1 - with_it.packets_per_byte() / without.packets_per_byte()))
        print(f"without {without.short()}\nwith    {with_it.short()}\n"
              f"        load {loads[-1]:.1f}% lower, packets {packets[-1]:.1f}% lower", flush=True)
    print(f"median of {count}: load {statistics.median(loads):.1f}% lower ({min(loads):.1f} to {max(loads):.1f}), "
          f"packets {statistics.median(packets):.1f}% lower")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", default=None)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sessions", action="store_true", help="rows 5d and 5e only")
    parser.add_argument("--pairs", type=int, default=0, help="only this many pairs of runs for 5c, and medians")
    parser.add_argument("--out", default=None)
    args = parser.parse_args()
    paceline = str(Path(args.paceline or built_program()).resolve())
    if args.pairs > 0:
        pairs(paceline, args.pairs, args.seconds)
        return
    points = two_sessions() if args.sessions else settings(args.quick)
    results = run_all(paceline, points, args.seconds)
    for row in (row_5a, row_5b, row_5c, row_5de):
        row(results)
    if args.out:
        figures = [{"setting": point._asdict(), **of._asdict()} for point, of in results.items()]
        Path(args.out).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main_program(main)
