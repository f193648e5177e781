"""Scenarios: the network, the radio, TCP and the traffic that are simulated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from paceline import _paceline

Value: TypeAlias = "str | bool | int | float | list[Value] | tuple[Value, ...] | dict[str, Value]"
"""A value of a scenario key. Quantities are strings with a unit, such as ``"20 ms"`` and ``"10 MHz"``."""


ScenarioLike: TypeAlias = "Scenario | str | os.PathLike[str]"
"""A scenario, a file, or the name of a built-in one."""


class Scenario:
    """A checked scenario. It does not change: :meth:`edit` gives another one.

    >>> scenario = Scenario.load("single-station")
    >>> scenario.edit({"run.duration": "2 s", "run.warmup": "1 s"}, station__count=3)
    Scenario('single-station', 3 stations, 2 s, seed 1)

    Keys, units and defaults are those of scenario files (docs/scenario.md).
    """

    __slots__ = ("_scenario",)
    _scenario: _paceline.Scenario

    def __init__(self, content: str | Mapping[str, Any], *, name: str = "scenario") -> None:
        """The scenario of a TOML text or of a dict.

        >>> Scenario({"run": {"duration": "5 s"}, "station": [{"count": 2, "traffic": "tcp"}]})
        Scenario('scenario', 2 stations, 5 s, seed 1)
        >>> Scenario("[[station]]\\ncount = 2").to_dict()["cell"]["bandwidth"]
        '20 MHz'
        """
        if isinstance(content, str):
            self._scenario = _paceline.Scenario.from_text(content, name, name, True)
        else:
            text = _paceline.toml_of(dict(content))
            self._scenario = _paceline.Scenario.from_text(text, name, name, False)

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> Scenario:
        """The scenario of a file, or a built-in one (see :func:`built_in_scenarios`).

        >>> Scenario.load("private-5g").name
        'private-5g'
        """
        return cls._of(_paceline.Scenario.load(os.fspath(name)))

    @classmethod
    def given(cls, scenario: ScenarioLike) -> Scenario:
        """The scenario itself, or that of a file or a built-in name."""
        return scenario if isinstance(scenario, Scenario) else cls.load(scenario)

    @classmethod
    def _of(cls, scenario: _paceline.Scenario) -> Scenario:
        new = cls.__new__(cls)
        new._scenario = scenario
        return new

    def edit(self, changes: Mapping[str, Any] | None = None, /, **keys: Value) -> Scenario:
        """The scenario with other values, by dotted keys, or by keywords with ``__`` in place of the dot.

        An index selects one of several tables: ``station.0.count``.

        >>> scenario = Scenario.load("uplink-limited")
        >>> scenario.edit({"ack_filter.scheme": "hybrid-opt"}, cell__uplink_bandwidth="5 MHz") == scenario
        False
        """
        named = {key.replace("__", "."): value for key, value in keys.items()}
        both = {**(changes or {}), **named}
        return self._of(self._scenario.edit([_paceline.setting(key, value) for key, value in both.items()]))

    @property
    def name(self) -> str:
        """Name of the built-in scenario, or of the file without its ending."""
        return self._scenario.name

    @property
    def seed(self) -> int:
        """Seed of the first run, ``run.seed``."""
        return self._scenario.seed

    @property
    def duration_s(self) -> float:
        """Simulated time in seconds, the warm-up included."""
        return self._scenario.duration_s

    @property
    def station_count(self) -> int:
        """Stations in all groups."""
        return self._scenario.station_count

    def to_toml(self) -> str:
        """The scenario as a file with every key that acts, defaults included.

        >>> print(Scenario.load("single-station").to_toml().splitlines()[0])
        [run]
        """
        return self._scenario.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The scenario with every key that acts as a dict.

        >>> Scenario.load("single-station").to_dict()["run"]["seed"]
        1
        """
        import tomllib  # loads when it is used: a quarter of the time of importing the package

        return tomllib.loads(self.to_toml())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the scenario with every key into a file, for ``paceline run`` and :meth:`load`."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._scenario == other._scenario

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        count, seconds = self.station_count, self.duration_s
        stations = f"{count} station" if count == 1 else f"{count} stations"
        return f"Scenario({self.name!r}, {stations}, {seconds:g} s, seed {self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._scenario.state(),)


def _unpickled(state: tuple[Any, ...]) -> Scenario:
    """The scenario of a pickle."""
    return Scenario._of(_paceline.Scenario.from_state(state))


def built_in_scenarios() -> list[str]:
    """Names of the scenarios that the package brings along.

    >>> "private-5g" in built_in_scenarios()
    True
    """
    return _paceline.built_in_names()
