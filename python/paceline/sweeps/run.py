"""The function :func:`sweep` and its results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paceline import _paceline
from paceline.progress import Progress, chosen
from paceline.results import TABLES
from paceline.runs import _jobs, _listed
from paceline.scenario import Scenario, ScenarioLike
from paceline.sweeps import folder, grid, work
from paceline.sweeps.grid import Axis, Point
from paceline.tables import Table

if TYPE_CHECKING:
    from paceline.plot import SweepPlots


class Sweep:
    """The results of a sweep, in a folder of Parquet files.

    ``pandas.read_parquet(sweep.out / "runs")``, polars and DuckDB read the folder as well.
    """

    def __init__(self, out: Path, axes: list[Axis], points: list[Point], seeds: list[int]) -> None:
        self._out, self._axes, self._points, self._seeds = out, axes, points, seeds

    @property
    def out(self) -> Path:
        """The folder."""
        return self._out

    @property
    def axes(self) -> list[Axis]:
        """The swept keys with their values."""
        return self._axes

    @property
    def points(self) -> list[Point]:
        """The points: their values and scenarios."""
        return self._points

    @property
    def seeds(self) -> list[int]:
        """Seeds of every point."""
        return self._seeds

    def table(self, name: str) -> Table:
        """The table of this name of all points, with the columns ``point`` and the keys first."""
        return Table(folder.Stored(self._read(name)))

    def _read(self, name: str) -> pa.Table:
        if not (self._out / name).is_dir():
            raise ValueError(f"table {name!r}: not among the tables of this sweep")
        return folder.read(self._out, name, len(self._points))

    @cached_property
    def runs(self) -> Table:
        """A row per point and seed: the totals of all stations, such as ``goodput_mbps`` (Mb/s)."""
        return self.table("runs")

    @cached_property
    def summary(self) -> Table:
        """A row per point: the mean over seeds of every total, and as ``..._ci95`` the half width of its 95%
        confidence interval (Student's t), null with one seed. With several groups of stations also the
        figures of each, such as ``BBR.goodput_mbps``; ``station.0`` is in place of a name that is not the
        same at all points."""
        summary = _summary(self._read("runs"), self._axes, len(self._points), len(self._seeds))
        if (self._out / "groups").is_dir():
            summary = _with_groups(summary, self.group_means())
        return Table(folder.Stored(summary))

    def means(self) -> list[dict[str, Any]]:
        """The rows of :attr:`summary`."""
        rows: list[dict[str, Any]] = self.summary.to_arrow().to_pylist()
        return rows

    def group_means(self) -> list[dict[str, Any]]:
        """A row per point and group of stations: the keys, ``group``, which is its name, and the means over
        seeds of its figures with half widths of their confidence intervals."""
        table = self._read("groups")
        keys = ["point", *(axis.key for axis in self._axes)]
        names = table.column_names[table.column_names.index("stations") + 1 :]
        groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
        labels: dict[int, set[str]] = {}
        for row in table.to_pylist():
            groups.setdefault((row["point"], row["group"]), []).append(row)
            labels.setdefault(row["group"], set()).add(row["group_name"])
        rows = []
        for (_, group), runs in groups.items():
            label = next(iter(labels[group])) if len(labels[group]) == 1 else f"station.{group}"
            row = {key: runs[0][key] for key in keys} | {"group": label}
            for name in names:
                row[name], row[f"{name}_ci95"] = _paceline.mean_and_half([run[name] for run in runs])
            rows.append(row)
        return rows

    @cached_property
    def differences(self) -> Table:
        """A row per point that is compared with another by pairs of runs with equal seeds: the one with the
        first value of the first key with names as values (else of the first key) and the same values of the
        others.

        ``against`` is that first value, ``pairs`` the number of pairs, ``sentence`` the difference in words;
        the others are the mean differences of the totals and, as ``..._ci95``, the half widths of their 95%
        confidence intervals (Student's t), null with one pair."""
        runs = self._read("runs")
        names = runs.column_names[runs.column_names.index("measured_s") + 1 :]
        rows = list(zip(*(runs[name].to_pylist() for name in names), strict=True))
        count = len(self._seeds)
        points = [
            list(zip(self._seeds, rows[at : at + count], strict=True)) for at in range(0, len(rows), count)
        ]
        found = _paceline.differences_of_grid([(axis.key, axis.values) for axis in self._axes], points)
        columns: dict[str, pa.Array] = {"point": pa.array([point for point, *_ in found], pa.int64())}
        for axis in self._axes:
            values = [self._points[point].values[axis.key] for point, *_ in found]
            columns[axis.key] = pa.array(values, axis.type)
        columns["against"] = pa.array([against for _, against, *_ in found], pa.string())
        columns["pairs"] = pa.array([len(paired[0]) for *_, paired, _ in found], pa.int64())
        columns["sentence"] = pa.array([sentence for *_, sentence in found], pa.string())
        for place, name in enumerate(names):
            means = [paired[1][place] for *_, paired, _ in found]
            halves = [paired[2][place] if paired[2] else None for *_, paired, _ in found]
            columns[name], columns[f"{name}_ci95"] = pa.array(means, pa.float64()), pa.array(halves, pa.float64())
        return Table(folder.Stored(pa.table(columns)))

    @property
    def plot(self) -> SweepPlots:
        """Figures: ``sweep.plot.lines(x=, y=, by=)``; see :mod:`paceline.plot`."""
        from paceline.plot import SweepPlots

        return SweepPlots(self)

    def __repr__(self) -> str:
        keys = ", ".join(axis.key for axis in self._axes)
        return f"Sweep({keys}: {len(self._points)} points, {len(self._seeds)} seeds, {str(self._out)!r})"


def sweep(
    scenario: ScenarioLike,
    over: Mapping[str, Any],
    seeds: Iterable[int] | None = None,
    *,
    out: str | os.PathLike[str],
    on: Any = "local",
    jobs: int | None = None,
    tables: Iterable[str] = ("runs", "groups", "stations", "flows"),
    progress: bool | Progress | None = None,
) -> Sweep:
    """Simulates every combination of values of some keys, with each of the seeds, into the folder ``out``.

    ``scenario`` is a scenario, a file, or the name of a built-in one. ``over`` has several values for each
    dotted key. ``on`` is ``"local"`` (threads of this machine, ``jobs`` of them), a client of Dask, or the
    address of its scheduler. ``seeds`` is ``run.seed`` alone if left out.
    A sweep that was interrupted goes on when called again: finished points are not simulated again. The
    files have the same bytes for any number of threads and workers.

    >>> import paceline, tempfile
    >>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "2 s", "run.warmup": "1 s"})
    >>> over = {"station.count": [1, 2], "tcp.congestion_control": ["cubic", "bbr"]}
    >>> swept = paceline.sweep(scenario, over, seeds=[1, 2], out=tempfile.mkdtemp())
    >>> swept.summary.columns[:5]
    ['point', 'station.count', 'tcp.congestion_control', 'goodput_mbps', 'goodput_mbps_ci95']
    >>> len(swept.summary), len(swept.runs)
    (4, 8)
    """
    return run(Scenario.given(scenario), grid.axes(over), seeds, Path(out), on=on, jobs=jobs, tables=tuple(tables), progress=progress)


def run(
    scenario: Scenario,
    axes: list[Axis],
    seeds: Iterable[int] | None,
    out: Path,
    *,
    on: Any,
    jobs: int | None,
    tables: tuple[str, ...],
    progress: bool | Progress | None,
) -> Sweep:
    """The sweep over these axes."""
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise ValueError(f"tables {unknown[0]!r}: allowed: {', '.join(TABLES)}")
    tables = tuple(dict.fromkeys(("runs", *tables)))
    listed = [scenario.seed] if seeds is None else _listed(seeds)
    points = grid.points(scenario, axes)
    threads = None if jobs is None else _jobs(jobs)
    shown = chosen(progress)
    with work.pool(on, threads) as pool:
        files = folder.Folder(out, scenario, axes, points, listed, tables)
        try:
            _simulate(files, points, listed, tables, pool, shown)
        finally:
            files.close()
    return Sweep(out, axes, points, listed)


def _simulate(
    files: folder.Folder,
    points: list[Point],
    seeds: list[int],
    tables: tuple[str, ...],
    pool: work.Pool,
    progress: Progress | None,
) -> None:
    """Simulates the points that the folder does not have, and stores each when its seeds are complete."""
    missing = [point for point in points if not files.has(point)]
    whole, done = len(missing) * len(seeds), 0
    parts: dict[int, dict[int, work.Tables]] = {}
    for task, result in work.finished(pool, work.tasks(missing, seeds, pool.threads()), tables):
        own = parts.setdefault(task.point.index, {})
        own[task.first] = result
        done += len(task.seeds)
        if sum(part["runs"].num_rows for part in own.values()) == len(seeds):
            ordered = [own[first] for first in sorted(own)]
            joined = {name: pa.concat_tables([part[name] for part in ordered]) for name in tables}
            files.store(task.point, joined)
            del parts[task.point.index]
        if progress is not None:
            progress(done, whole)


def _with_groups(summary: pa.Table, groups: list[dict[str, Any]]) -> pa.Table:
    """The summary with the figures of each of several groups."""
    labels = list(dict.fromkeys(row["group"] for row in groups))
    if len(labels) < 2:
        return summary
    names = list(groups[0])[list(groups[0]).index("group") + 1 :]
    of_point = {(row["point"], row["group"]): row for row in groups}
    points = summary["point"].to_pylist()
    for label in labels:
        for name in names:
            values = [of_point.get((point, label), {}).get(name) for point in points]
            summary = summary.append_column(f"{label}.{name}", pa.array(values, pa.float64()))
    return summary


def _summary(runs: pa.Table, axes: list[Axis], points: int, seeds: int) -> pa.Table:
    """Means and half widths of the totals of each point."""
    keys = [axis.key for axis in axes]
    firsts = runs.take(pa.array([point * seeds for point in range(points)], pa.int64()))
    table = firsts.select(["point", *keys])
    for name in runs.column_names[runs.column_names.index("measured_s") + 1 :]:
        values: list[float] = runs[name].to_pylist()
        figures = [_paceline.mean_and_half(values[at : at + seeds]) for at in range(0, points * seeds, seeds)]
        table = table.append_column(name, pa.array([mean for mean, _ in figures], pa.float64()))
        table = table.append_column(f"{name}_ci95", pa.array([half for _, half in figures], pa.float64()))
    return table
