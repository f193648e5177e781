"""The results of a scenario's runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from paceline import _paceline
from paceline.scenario import Scenario
from paceline.summary import Summary
from paceline.tables import Table

if TYPE_CHECKING:
    from paceline.plot import Plots

TABLES = (
    "runs",
    "groups",
    "stations",
    "flows",
    "series",
    "handovers",
    "paths",
    "switches",
    "queues",
    "routers",
    "policers",
    "pings",
)
"""Names of the tables of results."""


class Results:
    """The results of a scenario's runs: a summary over seeds, and tables.

    >>> import paceline
    >>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})
    >>> results = paceline.run(scenario, seeds=[1, 2])
    >>> len(results.runs), results.summary.stations
    (2, 1)

    Rates and means cover the time after the warm-up; figures of connections cover the whole run.
    """

    def __init__(self, scenario: Scenario, results: _paceline.Results) -> None:
        self._scenario = scenario
        self._results = results

    @property
    def scenario(self) -> Scenario:
        """The scenario of the runs."""
        return self._scenario

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs."""
        return self._results.seeds

    @property
    def warning(self) -> str | None:
        """A warning: a key without effect, no connection that opened, or stations without service."""
        return self._results.warning

    @cached_property
    def summary(self) -> Summary:
        """Means over seeds, their confidence intervals, and why TCP is not faster."""
        return Summary.from_json(self._results.header_json())

    def summary_json(self) -> str:
        """The text of ``summary.json``, the same as ``paceline run --json`` prints."""
        return self._results.summary_json()

    @property
    def runs(self) -> Table:
        """A row per seed: the totals of all stations, such as ``goodput_mbps`` (Mb/s) and ``rtt_mean_ms``."""
        return self.table("runs")

    @property
    def groups(self) -> Table:
        """A row per seed and group of stations: its name, rates in Mb/s, round-trip time in ms, fairness."""
        return self.table("groups")

    @property
    def stations(self) -> Table:
        """A row per seed and station: rates in Mb/s, delays in ms, ACKs, MCS, SINR in dB."""
        return self.table("stations")

    @property
    def flows(self) -> Table:
        """A row per seed and connection: bytes, retransmissions, times in s, limits as shares."""
        return self.table("flows")

    @property
    def series(self) -> Table:
        """A row per seed, sample (``run.sample``) and station: bytes, congestion window in bytes, smoothed
        round-trip time in ms."""
        return self.table("series")

    @property
    def handovers(self) -> Table:
        """A row per seed and change of a station's cell, with interruptions in ms."""
        return self.table("handovers")

    @property
    def paths(self) -> Table:
        """A row per seed, pair, direction and path of a ``[sidelink]``."""
        return self.table("paths")

    @property
    def switches(self) -> Table:
        """A row per seed and change of path of a ``[sidelink]``."""
        return self.table("switches")

    @property
    def queues(self) -> Table:
        """A row per seed and queue with active management: marks, drops, times in ms."""
        return self.table("queues")

    @property
    def routers(self) -> Table:
        """A row per seed and router with a service time."""
        return self.table("routers")

    @property
    def policers(self) -> Table:
        """A row per seed, ACK policer and decision."""
        return self.table("policers")

    @property
    def pings(self) -> Table:
        """A row per seed, station and part of its pings, with percentiles in ms."""
        return self.table("pings")

    @property
    def plot(self) -> Plots:
        """Figures: ``results.plot.throughput_cdf()`` and others; see :mod:`paceline.plot`."""
        from paceline.plot import Plots

        return Plots(self)

    def table(self, name: str) -> Table:
        """The table of this name, one of :data:`TABLES`."""
        if name not in TABLES:
            raise ValueError(f"table {name!r}: allowed: {', '.join(TABLES)}")
        return Table(self._results.table(name))

    def __repr__(self) -> str:
        mean, seeds = self.summary.mean, self.seeds
        runs = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        rates = f"{mean.goodput_mbps:.2f} Mb/s down, {mean.upload_mbps:.2f} Mb/s up"
        return f"Results({self.summary.scenario!r}, {runs}: {rates})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._scenario, self._results.state())


def _unpickled(scenario: Scenario, state: tuple[Any, ...]) -> Results:
    """The results of a pickle."""
    return Results(scenario, _paceline.Results.from_state(state))
