"""Figures of the results of one scenario."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from paceline.plot.maps import slot_map
from paceline.plot.style import given_or_new, group_style, legend, line_style, next_style

if TYPE_CHECKING:
    from paceline.scenario import Scenario
    from paceline.tables import Table

Numbers = NDArray[np.float64]

QUANTITIES = {
    "goodput_mbps": ("downloaded", 8e-6, "Goodput in Mb/s"),
    "cwnd_kb": ("cwnd", 1e-3, "cwnd in kB"),
    "srtt_ms": ("srtt_ms", 1.0, "Smoothed RTT in ms"),
    "downlink_queue_kb": ("downlink_queue", 1e-3, "Downlink queue in kB"),
    "uplink_queue_kb": ("uplink_queue", 1e-3, "Uplink queue in kB"),
    "downlink_mcs": ("downlink_mcs", 1.0, "Downlink MCS index"),
    "uplink_mcs": ("uplink_mcs", 1.0, "Uplink MCS index"),
}
"""Quantities of time series: column of the samples, factor, and label of the axis."""


class Drawable(Protocol):
    """The parts of :class:`paceline.Results` that figures show."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def groups(self) -> Table: ...
    @property
    def stations(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def handovers(self) -> Table: ...
    @property
    def switches(self) -> Table: ...


def columns(table: Table, *names: str) -> list[Numbers]:
    """Columns of a table as numbers; NaN where there is no value."""
    arrow = table.to_arrow()
    return [arrow[name].to_numpy(zero_copy_only=False).astype(float) for name in names]


def jain(shares: Numbers) -> float:
    """Jain's fairness index: 1 for equal shares, 1 / n for one of n that has everything.

    >>> jain(np.array([1.0, 1.0, 0.0, 0.0]))
    0.5
    """
    squares = float(np.square(shares).sum())
    return float(shares.sum() ** 2 / (len(shares) * squares)) if squares > 0 else 1.0


def cdf(
    values: Numbers, ax: Axes, label: str | None, unit_label: str, style: dict[str, Any] | None = None
) -> Axes:
    """Adds the empirical distribution function of values to axes, in the next style if none is given."""
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        raise ValueError("there are no values for a distribution; is run.warmup too long?")
    shares = np.arange(1, len(values) + 1) / len(values)
    ax.step(np.append(values[0], values), np.append(0.0, shares), where="post", label=label, **(style or next_style(ax)))
    ax.set(xlabel=unit_label, ylabel="Share of values", ylim=(0, 1))
    legend(ax)
    return ax


class Plots:
    """Figures of results: `results.plot`.

    >>> import paceline
    >>> results = paceline.run(paceline.Scenario.load("single-station").edit(run__duration="8 s"))
    >>> ax = results.plot.throughput_cdf(label="one station")
    >>> ax.get_xlabel()
    'Goodput per station in Mb/s'
    """

    def __init__(self, results: Drawable) -> None:
        self._results = results

    def throughput_cdf(
        self,
        *,
        by: Literal["group"] | None = None,
        ax: Axes | None = None,
        label: str | None = None,
        upload: bool = False,
    ) -> Axes:
        """The distribution of the stations' goodputs in Mb/s, over stations and seeds; with ``by="group"`` a
        line for each group of stations."""
        name = "upload_mbps" if upload else "goodput_mbps"
        goodputs, groups = columns(self._results.stations, name, "group")
        text = "Upload" if upload else "Goodput"
        return self._cdf(goodputs, groups, by, ax, label, f"{text} per station in Mb/s")

    def rtt_cdf(
        self, *, by: Literal["group"] | None = None, ax: Axes | None = None, label: str | None = None
    ) -> Axes:
        """The distribution of the smoothed round-trip time in ms, over samples after the warm-up, stations
        and seeds; with ``by="group"`` a line for each group of stations.

        >>> import paceline
        >>> groups = [{"name": "BBR", "tcp": {"congestion_control": "bbr"}}, {"name": "CUBIC"}]
        >>> scenario = paceline.Scenario({"run": {"duration": "4 s"}, "station": groups})
        >>> ax = paceline.run(scenario).plot.rtt_cdf(by="group")
        >>> [text.get_text() for text in ax.get_legend().get_texts()]
        ['BBR', 'CUBIC']
        """
        times, srtt, groups = columns(self._results.series, "time_s", "srtt_ms", "group")
        measured = (times > self._warmup_s()) & (srtt > 0)
        return self._cdf(srtt[measured], groups[measured], by, ax, label, "Smoothed RTT in ms")

    def time_series(
        self,
        quantity: str = "goodput_mbps",
        *,
        ax: Axes | None = None,
        seed: int | None = None,
        stations: Iterable[int] | None = None,
        label: str | None = None,
    ) -> Axes:
        """A quantity over time, a line for each station of one seed, the first one if left out.

        ``quantity`` is one of :data:`QUANTITIES`. Goodput is that between two samples (`run.sample`). In a
        scenario with several groups of stations, lines have the colours of their groups.
        """
        if quantity not in QUANTITIES:
            raise ValueError(f"quantity {quantity!r}: one of {', '.join(QUANTITIES)}")
        _, _, text = QUANTITIES[quantity]
        ax = given_or_new(ax)
        samples = self._samples(quantity, seed)
        names, group_of = self._group_names(), self._group_of_stations()
        for station in samples if stations is None else stations:
            if station not in samples:
                raise ValueError(f"station {station}: 0 to {max(samples)}")
            name = label if label is not None else f"station {station}" if len(samples) > 1 else None
            style = next_style(ax)
            if len(names) > 1:
                group = group_of[station]
                name, style = name if label is not None else f"{names[group]}, {name}", group_style(ax, group)
            ax.plot(*samples[station], label=name, **style)
        ax.set(xlabel="Time in s", ylabel=text)
        ax.set_ylim(bottom=0)
        legend(ax)
        return ax

    def fairness(
        self, *, ax: Axes | None = None, window_s: float = 1.0, seed: int | None = None, label: str | None = None
    ) -> Axes:
        """Jain's index of the stations' goodputs in windows of time, for one seed, the first if left out."""
        series = self._samples("goodput_mbps", seed)
        times = next(iter(series.values()))[0]
        goodputs = np.array([values for _, values in series.values()])
        windows = np.floor(times / window_s + 1e-9).astype(int)
        # The sample at the end of a window is the goodput of the interval before it.
        windows = np.where(np.isclose(times / window_s, np.round(times / window_s)), windows - 1, windows)
        known = np.unique(windows)
        indices = [jain(goodputs[:, windows == window].mean(axis=1)) for window in known]
        ax = given_or_new(ax)
        edges = np.append(known, known[-1] + 1) * window_s
        ax.step(edges, np.append(indices, indices[-1]), where="post", label=label, **next_style(ax))
        ax.set(xlabel="Time in s", ylabel=f"Jain's index in {window_s:g} s", ylim=(0, 1.05))
        legend(ax)
        return ax

    def cwnd_around(
        self,
        at_s: float | None = None,
        *,
        station: int = 0,
        before_s: float = 1.0,
        after_s: float = 3.0,
        ax: Axes | None = None,
        label: str | None = None,
    ) -> Axes:
        """The congestion window of a station around an event at 0 s: thin lines for each event and seed, a
        thick one for their median.

        The event is at ``at_s`` in every seed; left out, events are the station's handovers and changes of
        path. Events too close to the start or the end of the run are left out.
        """
        if not 0 <= station < self._results.scenario.station_count:
            raise ValueError(f"station {station}: 0 to {self._results.scenario.station_count - 1}")
        offsets = np.arange(-before_s, after_s + 1e-9, self._sample_s())
        windows = []
        for seed, event_s in self._events(at_s, station):
            times, values = self._samples("cwnd_kb", seed)[station]
            if times[0] <= event_s - before_s and event_s + after_s <= times[-1] + 1e-9:
                windows.append(np.interp(event_s + offsets, times, values))
        if not windows:
            what = f"nothing at {at_s:g} s" if at_s is not None else "no handover and no change of path"
            raise ValueError(f"station {station} has {what} with {before_s:g} s before and {after_s:g} s after it")
        ax = given_or_new(ax)
        style = line_style(len([line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]))
        for window in windows if len(windows) > 1 else ():
            ax.plot(offsets, window, color=style["color"], linewidth=0.4, alpha=0.4, label="_event")
        count = f"median of {len(windows)}" if len(windows) > 1 else None
        ax.plot(offsets, np.median(windows, axis=0), label=label or count or "cwnd", **style)
        ax.axvline(0, color="#666666", linewidth=0.6, label="_event")
        ax.set(xlabel="Time after the event in s", ylabel="cwnd in kB", xlim=(-before_s, after_s))
        ax.set_ylim(bottom=0)
        if label or count:
            legend(ax)
        return ax

    def slot_map(self, *, ax: Axes | None = None) -> Axes:
        """The slots of the cell; see :func:`paceline.plot.slot_map`."""
        return slot_map(self._results.scenario, ax=ax)

    def _cdf(
        self, values: Numbers, groups: Numbers, by: str | None, ax: Axes | None, label: str | None, text: str
    ) -> Axes:
        """A distribution, or one for each group of stations that has values."""
        if by is None:
            return cdf(values, given_or_new(ax), label, text)
        if by != "group":
            raise ValueError(f'by = {by!r}: allowed: "group", or left out')
        ax = given_or_new(ax)
        for group, name in self._group_names().items():
            own = values[groups == group]
            if not np.isnan(own).all():
                cdf(own, ax, name if label is None else f"{label}, {name}", text, group_style(ax, group))
        return ax

    def _group_names(self) -> dict[int, str]:
        """Names of the groups of stations by their indices."""
        table = self._results.groups.to_arrow()
        return dict(zip(table["group"].to_pylist(), table["group_name"].to_pylist(), strict=True))

    def _group_of_stations(self) -> dict[int, int]:
        """Index of the group of each station."""
        stations, groups = columns(self._results.stations, "station", "group")
        return {int(station): int(group) for station, group in zip(stations, groups, strict=True)}

    def _warmup_s(self) -> float:
        return _seconds(self._results.scenario.to_dict()["run"]["warmup"])

    def _sample_s(self) -> float:
        return _seconds(self._results.scenario.to_dict()["run"]["sample"])

    def _samples(self, quantity: str, seed: int | None) -> dict[int, tuple[Numbers, Numbers]]:
        """Times in s and values of each station for one seed."""
        seed = self._results.seeds[0] if seed is None else seed
        if seed not in self._results.seeds:
            raise ValueError(f"seed {seed}: one of {self._results.seeds}")
        column, factor, _ = QUANTITIES[quantity]
        seeds, times, stations, values = columns(self._results.series, "seed", "time_s", "station", column)
        samples = {}
        for station in np.unique(stations):
            own = (seeds == seed) & (stations == station)
            at, of = times[own], values[own] * factor
            if quantity == "goodput_mbps":
                of = np.diff(of, prepend=0.0) / np.diff(at, prepend=0.0)
            samples[int(station)] = (at, of)
        return samples

    def _events(self, at_s: float | None, station: int) -> list[tuple[int, float]]:
        """Seeds and times of events of a station."""
        if at_s is not None:
            return [(seed, at_s) for seed in self._results.seeds]
        events: list[tuple[int, float]] = []
        for table in (self._results.handovers, self._results.switches):
            rows: Any = zip(*columns(table, "seed", "station", "time_s"), strict=True)
            events += [(int(seed), float(time)) for seed, of, time in rows if of == station]
        return events


def _seconds(text: str) -> float:
    """A duration of a scenario in seconds.

    >>> _seconds("100 ms")
    0.1
    """
    number, unit = text.split()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}[unit]
