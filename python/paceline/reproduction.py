"""Published experiments, simulated again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paceline import _paceline
from paceline.progress import Progress, chosen
from paceline.runs import _jobs
from paceline.tables import Table

EXPERIMENTS = tuple(_paceline.experiments)
"""Names of the experiments (docs/reproduce.md)."""


class Reproduction:
    """Published values beside ours.

    >>> import paceline
    >>> calibration = paceline.reproduce("calibration", quick=True)
    >>> calibration.rows.columns[:7]
    ['row', 'quantity', 'value', 'unit', 'published', 'ours', 'ci95']
    """

    __slots__ = ("_conditions", "_name", "_rows", "_statements")

    def __init__(self, name: str, conditions: str, rows: Table, statements: Table) -> None:
        self._name, self._conditions, self._rows, self._statements = name, conditions, rows, statements

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self._name

    @property
    def conditions(self) -> str:
        """Seeds and settings of the runs in words."""
        return self._conditions

    @property
    def rows(self) -> Table:
        """A row per published value and ours, in ``unit``, with the columns of ``rows.csv``."""
        return self._rows

    @property
    def statements(self) -> Table:
        """A row per published statement: whether it holds for our means, and our finding in words."""
        return self._statements

    def __repr__(self) -> str:
        return f"Reproduction({self._name!r}, {len(self._rows)} values: {self._conditions})"


def reproduce(
    experiment: str,
    *,
    quick: bool = False,
    seeds: int | None = None,
    changes: Mapping[str, Any] | None = None,
    parts: Iterable[str] = (),
    jobs: int | None = None,
    progress: bool | Progress | None = None,
) -> Reproduction:
    """Simulates a published experiment again, as ``paceline reproduce`` does, and keeps the rows in memory.

    ``experiment`` is one of :data:`EXPERIMENTS`. ``quick`` means two seeds and shorter runs; ``seeds`` is the
    number of runs of each point, 10 if left out; ``changes`` are values of scenario keys; ``parts`` selects
    parts of ``tdd-pacing``. Whole experiments take minutes to hours: the command line continues interrupted
    ones.

    >>> import paceline
    >>> paceline.reproduce("calibration", quick=True).statements.columns
    ['row', 'quantity', 'published', 'ours', 'holds', 'holds_in_ci95']
    """
    if seeds is not None and not 1 <= seeds <= 10_000:
        raise ValueError(f"seeds = {seeds}: allowed: 1 to 10000")
    settings = [_paceline.setting(key, value) for key, value in (changes or {}).items()]
    conditions, rows, statements = _paceline.reproduce(
        experiment, quick, seeds, settings, list(parts), _jobs(jobs), chosen(progress)
    )
    return Reproduction(experiment, conditions, Table(rows), Table(statements))
