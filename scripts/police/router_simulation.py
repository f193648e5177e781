"""A point of `router.py` simulated: `paceline run` of the same path."""

import csv
import json
import tempfile
from pathlib import Path

from network import run
from router_network import SHAPER_QUEUE, WARMUP_S, Figures, Setting, burst, bytes_at, session_rates

# Time in us for which the simulated router forwards a packet. Chosen: a load of 60% near 100 Mb/s, the higher
# one of the paper; the reduction does not depend on it.
SERVICE_US = 50


def scenario(point: Setting, seconds: float, acks_per_s: float) -> str:
    """Two hops: the shaper of the source, and the line behind the router with the policer."""
    if point.mode == "safe":
        limit = f"drop_share = {point.drop / 100}"
    else:
        cir = point.cir(acks_per_s)
        limit = f'cir = "{8 * cir} b/s", cbs = "{burst(cir)} B", per_flow = {str(point.per_flow).lower()}'
    exempt = ", ".join(str(group) for group in range(point.sessions - point.exempt, point.sessions))
    police = f', police = {{ mode = "{point.mode}", {limit}, exempt = [{exempt}] }}' if point.drop > 0 else ""
    stations = "[[station]]\n" * point.sessions
    return (
        f'[run]\nduration = "{WARMUP_S + max(seconds, 2.5)} s"\nwarmup = "{WARMUP_S} s"\nsample = "100 ms"\n'
        f'[tcp]\ncongestion_control = "{point.control}"\n'
        f'[core]\nhops = [{{ rate = "{point.rate} Mb/s", delay = "50 us", queue = "{SHAPER_QUEUE} B" }}, '
        f'{{ rate = "100 Mb/s", delay = "50 us", service_time = "{SERVICE_US} us"{police} }}]\n'
        f'[link]\ndelay = "50 us"\n[link.fixed]\ndownlink_rate = "100 Mb/s"\nuplink_rate = "100 Mb/s"\n{stations}'
    )


def simulate(paceline: str, point: Setting, seconds: float, acks_per_s: float) -> Figures:
    """One point with seed 1."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "router.toml").write_text(scenario(point, seconds, acks_per_s), encoding="utf-8")
        run(paceline, "run", str(place / "router.toml"), "--out", str(place / "results"))
        summary = json.loads((place / "results/summary.json").read_text(encoding="utf-8"))["runs"][0]
        with (place / "results/timeseries.csv").open(encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
    samples: dict[float, list[float]] = {}
    for row in rows:
        samples.setdefault(float(row["time_s"]), []).append(float(row["downloaded"]))
    over_time = [[at, *counts] for at, counts in samples.items()]
    router = summary["routers"][0]
    policer = summary.get("policers", [{"acks": 0, "dropped": 0}])[0]
    return Figures(
        rates=session_rates(over_time), retransmissions=sum(flow["retransmissions"] for flow in summary["flows"]),
        first_3_s=bytes_at(over_time, 3.0) / 1e6, load=router["busy_share"], packets_per_s=router["packets_per_s"],
        acks_per_s=router["uplink_packets"] / summary["measured_s"], seen=policer["acks"],
        dropped=policer["dropped"], samples=over_time)
