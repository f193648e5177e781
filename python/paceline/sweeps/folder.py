"""The folder of a sweep: a manifest, and Parquet files partitioned by point.

    sweep.json                           program, grid, seeds and the scenario of every point
    runs/point=0/part.parquet            a row per seed
    stations/point=0/part.parquet        a row per seed and station
    flows/point=0/part.parquet           a row per seed and connection

A file is written under a hidden name and renamed; ``runs`` is written last, so that its file marks a finished
point. Files have no times and no names of machines: the same sweep gives the same bytes.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from paceline import _paceline
from paceline.scenario import Scenario
from paceline.sweeps.grid import Axis, Point

_MANIFEST = "sweep.json"


class Folder:
    """A folder of this sweep, locked until it is closed."""

    def __init__(
        self, out: Path, scenario: Scenario, axes: list[Axis], points: list[Point], seeds: list[int], tables: tuple[str, ...]
    ) -> None:  # fmt: skip
        self._out, self._axes = out, axes
        self._tables = tables
        manifest: dict[str, Any] = {
            "paceline": {"version": _paceline.version, "commit": _paceline.commit},
            "scenario": scenario.name,
            "over": {axis.key: list(axis.values) for axis in axes},
            "seeds": seeds,
            "tables": list(tables),
            "points": [{"point": point.label, "scenario": point.scenario.to_toml()} for point in points],
        }
        path = out / _MANIFEST
        if path.exists():
            problem = _difference(json.loads(path.read_text(encoding="utf-8")), manifest)
            if problem:
                raise ValueError(f"out {out}: {problem}; name another folder")
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ValueError(f"out {out}: exists and holds no sweep to continue; name another folder")
        else:
            out.mkdir(parents=True, exist_ok=True)
            _replace(path, json.dumps(manifest, indent=2).encode() + b"\n")
        self._lock: IO[bytes] = path.open("rb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise ValueError(f"out {out}: another sweep is writing into this folder; wait for it") from None

    def close(self) -> None:
        """Releases the lock."""
        self._lock.close()

    def has(self, point: Point) -> bool:
        """Whether the point is finished."""
        return self._file("runs", point.index).exists()

    def store(self, point: Point, tables: dict[str, pa.Table]) -> None:
        """Writes the tables of a finished point, with a column for each key before the others."""
        for name in sorted(tables, key=lambda name: name == "runs"):
            table = tables[name].combine_chunks()
            for place, axis in enumerate(self._axes):
                column = pa.array([point.values[axis.key]], axis.type).take(pa.array([0] * table.num_rows, pa.int64()))
                table = table.add_column(place, pa.field(axis.key, axis.type, nullable=False), column)
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd")
            _replace(self._file(name, point.index), sink.getvalue())

    def _file(self, table: str, point: int) -> Path:
        return self._out / table / _partition(point) / "part.parquet"


class Stored:
    """A table of pyarrow as the columns of a :class:`paceline.Table`."""

    _TYPES: ClassVar = {"double": "float64", "string": "utf8", "bool": "boolean"}

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        stream: object = self._table.__arrow_c_stream__(requested_schema)
        return stream

    def __arrow_c_schema__(self) -> object:
        schema: object = self._table.schema.__arrow_c_schema__()
        return schema

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and types."""
        return [(field.name, self._TYPES.get(str(field.type), str(field.type))) for field in self._table.schema]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self._table.nbytes)


def read(out: Path, table: str, points: int) -> pa.Table:
    """A table of all points in their order, with the column ``point`` first."""
    parts = []
    for point in range(points):
        file = out / table / _partition(point) / "part.parquet"
        part = pq.ParquetFile(file).read()
        column = pa.array([point], pa.int64()).take(pa.array([0] * part.num_rows, pa.int64()))
        parts.append(part.add_column(0, "point", column))
    return pa.concat_tables(parts)


def _partition(point: int) -> str:
    """Name of a point's folder, as readers of partitioned Parquet take it. No zeros in front: with them, some
    readers take the number for text."""
    return f"point={point}"


def _replace(path: Path, content: Any) -> None:
    """Writes a file under a hidden name and renames it when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def _difference(stored: dict[str, Any], now: dict[str, Any]) -> str | None:
    """The first difference between the manifest of a folder and this sweep's."""
    if stored == now:
        return None
    if stored["paceline"] != now["paceline"]:
        versions = [f"{of['paceline']['version']} ({of['paceline']['commit']})" for of in (stored, now)]
        return f"holds results of paceline {versions[0]}, this is {versions[1]}"
    for key in ("scenario", "over", "seeds", "tables"):
        if stored[key] != now[key]:
            return f"holds results with {key} = {stored[key]}, now {now[key]}"
    for before, after in zip(stored["points"], now["points"], strict=True):
        for one, other in zip(before["scenario"].splitlines(), after["scenario"].splitlines(), strict=False):
            if one != other:
                return f"holds results of another scenario: `{one}`, now `{other}`"
    return "holds results of another scenario"
