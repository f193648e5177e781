"""Comparison of results by pairs of runs with equal seeds."""

from __future__ import annotations

from dataclasses import dataclass, fields

from paceline import _paceline
from paceline.results import Results
from paceline.summary import Totals


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences of the second results from the first, by pairs of runs with equal seeds."""

    seeds: tuple[int, ...]
    """Seeds that both results have: the pairs."""
    mean: Totals
    """Means of the pairs' differences, second minus first."""
    ci95: Totals | None
    """Half widths of their 95% confidence intervals (Student's t over the pairs); None with one pair."""
    sentence: str
    """The difference in words, such as ``RTT 52% lower (49 to 55%), goodput unchanged``."""


def compare(first: Results, second: Results) -> Comparison:
    """Compares results by pairs of runs with equal seeds, as ``paceline compare`` does.

    >>> import paceline
    >>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})
    >>> faster = scenario.edit({"cell.bandwidth": "10 MHz"})
    >>> comparison = paceline.compare(paceline.run(scenario, [1, 2]), paceline.run(faster, [1, 2]))
    >>> comparison.seeds, comparison.mean.goodput_mbps < 0, comparison.ci95 is None
    ((1, 2), True, False)
    """
    for results in (first, second):
        if not isinstance(results, Results):
            raise TypeError(f"{results!r}: compare takes results of paceline.run, not {type(results).__name__}")
    found = _paceline.paired_differences(_runs(first), _runs(second))
    if found is None:
        raise ValueError(f"no equal seeds: the first results have {first.seeds}, the second {second.seeds}")
    seeds, mean, half, sentence = found
    return Comparison(tuple(seeds), _totals(mean), _totals(half) if half is not None else None, sentence)


def _runs(results: Results) -> list[tuple[int, list[float]]]:
    """Seeds with their totals."""
    return results._results.totals()


def _totals(values: list[float]) -> Totals:
    return Totals(**{field.name: value for field, value in zip(fields(Totals), values, strict=True)})
