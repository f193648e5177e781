"""Figures of sweeps: totals and figures of groups over the swept keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from matplotlib.axes import Axes

from paceline.plot.style import given_or_new, keyed_style, legend

if TYPE_CHECKING:
    from paceline.sweeps.grid import Axis

Row = dict[str, Any]
"""A point, or a group at a point: values of the keys, figures, half widths of their intervals."""


class Swept(Protocol):
    """The parts of :class:`paceline.Sweep` that figures show."""

    @property
    def axes(self) -> list[Axis]: ...
    def means(self) -> list[Row]: ...
    def group_means(self) -> list[Row]: ...


class SweepPlots:
    """Figures of a sweep: `sweep.plot`."""

    def __init__(self, sweep: Swept) -> None:
        self._sweep = sweep

    def lines(
        self, x: str, y: str = "goodput_mbps", *, by: str | Sequence[str] = (), ax: Axes | None = None
    ) -> Axes:
        """A total, or with ``"group"`` in ``by`` a figure of each group of stations, over the key ``x``, with
        95% confidence intervals.

        ``by`` is a key, ``"group"``, or two of them: the first has a colour for each of its values, the
        second dashes. Every other key of the sweep has one value.

        >>> import paceline, tempfile
        >>> groups = [{"name": "BBR", "tcp": {"congestion_control": "bbr"}}, {"name": "CUBIC"}]
        >>> scenario = paceline.Scenario({"run": {"duration": "3 s"}, "station": groups})
        >>> over = {"cell.bandwidth": ["5 MHz", "10 MHz"]}
        >>> swept = paceline.sweep(scenario, over, seeds=[1, 2], out=tempfile.mkdtemp())
        >>> ax = swept.plot.lines(x="cell.bandwidth", y="goodput_mbps", by="group")
        >>> ax.get_xlabel(), ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
        ('cell.bandwidth in MHz', 'Goodput in Mb/s', ['BBR', 'CUBIC'])
        """
        named = [by] if isinstance(by, str) else list(by)
        rows = self._sweep.group_means() if "group" in named else self._sweep.means()
        self._check(x, y, named, rows)
        values = list(dict.fromkeys(row[x] for row in rows))
        numbers, unit = _numbers(values)
        ax = given_or_new(ax)
        orders = [list(dict.fromkeys(row[key] for row in rows)) for key in named]
        for combination in dict.fromkeys(tuple(row[key] for key in named) for row in rows):
            own = [row for row in rows if tuple(row[key] for key in named) == combination]
            places = [order.index(value) for order, value in zip(orders, combination, strict=True)]
            hue, dash = (*places, 0, 0)[:2]
            own.sort(key=lambda row: numbers[values.index(row[x])])
            at = np.array([numbers[values.index(row[x])] for row in own])
            half = [row[f"{y}_ci95"] for row in own]
            ax.errorbar(
                at, [row[y] for row in own], yerr=None if None in half else half, marker="o", markersize=3,
                capsize=2, label=", ".join(map(str, combination)) or None, **keyed_style(hue, dash),
            )  # fmt: skip
        if unit is None:
            ax.set_xticks(numbers, [str(value) for value in values])
        ax.set(xlabel=f"{x} in {unit}" if unit else x, ylabel=axis_label(y))
        ax.set_ylim(bottom=0)
        legend(ax)
        return ax

    def _check(self, x: str, y: str, by: list[str], rows: list[Row]) -> None:
        keys = [axis.key for axis in self._sweep.axes]
        if x not in keys:
            raise ValueError(f"x = {x!r}: one of the swept keys: {', '.join(keys)}")
        allowed = [key for key in (*keys, "group") if key != x]
        if len(by) > 2 or len(set(by)) != len(by) or any(key not in allowed for key in by):
            raise ValueError(f"by = {by!r}: one or two of {', '.join(allowed)}")
        figures = [name.removesuffix("_ci95") for name in rows[0] if name.endswith("_ci95")]
        if y not in figures:
            raise ValueError(f"y = {y!r}: one of {', '.join(figures)}")
        several = [axis.key for axis in self._sweep.axes if len(axis.values) > 1]
        for key in several:
            if key != x and key not in by:
                raise ValueError(f"by = {by!r}: {key} has several values; name it in by")


def axis_label(name: str) -> str:
    """A figure's name with its unit.

    >>> axis_label("rtt_mean_ms"), axis_label("acks_sent_per_s"), axis_label("jain_index")
    ('RTT mean in ms', 'ACKs sent per s', 'Jain index')
    """
    for end, unit in (("_mbps", " in Mb/s"), ("_ms", " in ms"), ("_bytes", " in bytes"), ("_per_s", " per s")):
        if name.endswith(end):
            return axis_label(name.removesuffix(end)) + unit
    words = [{"rtt": "RTT", "acks": "ACKs", "udp": "UDP", "prb": "PRB"}.get(word, word) for word in name.split("_")]
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]])


def _numbers(values: list[Any]) -> tuple[list[float], str | None]:
    """The values as numbers with their unit; places and None where they are names or have several units.

    >>> _numbers(["5 MHz", "10 MHz"]), _numbers([1, 2]), _numbers(["basic", "safe"])
    (([5.0, 10.0], 'MHz'), ([1.0, 2.0], ''), ([0.0, 1.0], None))
    """
    parts = [str(value).split() for value in values]
    units = {part[1] if len(part) == 2 else "" for part in parts}
    try:
        if len(units) == 1 and not any(isinstance(value, bool) for value in values):
            return [float(part[0]) for part in parts], units.pop()
    except ValueError:
        pass
    return [float(place) for place in range(len(values))], None
