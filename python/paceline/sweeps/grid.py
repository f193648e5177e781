"""The grid of a sweep: a checked scenario for every combination of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from paceline import _paceline
from paceline.scenario import Scenario

Plain = str | bool | int | float
"""A value of a column."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scenario key and its values in the notation of ``--set``."""

    key: str
    """Dotted key, such as ``station.count``."""
    values: tuple[str, ...]
    """Values as TOML."""

    @property
    def type(self) -> pa.DataType:
        """Type of the column: whole numbers, numbers, truth values or strings."""
        kinds = {type(_paceline.plain(value)) for value in self.values}
        if kinds == {bool}:
            return pa.bool_()
        if kinds == {int}:
            return pa.int64()
        return pa.float64() if kinds <= {int, float} else pa.string()

    def plain(self, value: str) -> Plain:
        """A value as the column has it: a string without its quotes."""
        plain = _paceline.plain(value)
        return str(plain) if self.type == pa.string() else plain


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a grid."""

    index: int
    """Number from 0; the values of the last key change fastest."""
    label: str
    """Name, such as ``station.count=10, ack_filter.scheme=basic``."""
    values: dict[str, Plain]
    """The value of each key."""
    scenario: Scenario
    """The scenario with these values."""


def axes(over: Mapping[str, Any]) -> list[Axis]:
    """The axes of a mapping from keys to values."""
    listed = []
    for key, values in over.items():
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"over {key}: give several values, for example [{values!r}]")
        texts = tuple(_paceline.setting(key, value).removeprefix(f"{key}=") for value in values)
        if not texts:
            raise ValueError(f"over {key}: empty; give at least one value")
        if len(set(texts)) != len(texts):
            raise ValueError(f"over {key}: a value stands twice")
        listed.append(Axis(key, texts))
    return _checked(listed)


def axes_of_options(options: Iterable[str]) -> list[Axis]:
    """The axes of options ``key=a,b,c`` of the command line."""
    return _checked([Axis(key, tuple(values)) for key, values in _paceline.axes(list(options))])


def _checked(axes: list[Axis]) -> list[Axis]:
    for axis in axes:
        if axis.key == "run.seed":
            raise ValueError("over run.seed: the seeds of a sweep are its argument seeds, not a key")
    return axes


def points(scenario: Scenario, axes: list[Axis]) -> list[Point]:
    """The points of a grid. A mistake in one of them is a ScenarioError that names the point."""
    made = _paceline.points(scenario._scenario, [(axis.key, list(axis.values)) for axis in axes])
    listed = []
    for index, (label, values, of) in enumerate(made):
        plain = {axis.key: axis.plain(value) for axis, value in zip(axes, values, strict=True)}
        listed.append(Point(index, label, plain, Scenario._of(of)))
    return listed
