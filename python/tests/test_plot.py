"""Figures of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import numpy as np
import paceline
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from paceline import plot
from paceline.plot.results import Numbers, jain


@pytest.fixture(scope="module")
def results() -> paceline.Results:
    scenario: dict[str, Any] = {"run": {"duration": "4 s", "warmup": "1 s"}, "station": [{"count": 3}]}
    return paceline.run(paceline.Scenario(scenario), seeds=[1, 2])


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    pyplot.close("all")


def data(line: Line2D) -> tuple[Numbers, Numbers]:
    x, y = line.get_data()
    return np.asarray(x, float), np.asarray(y, float)


def test_every_figure_takes_axes_returns_them_and_names_units(results: paceline.Results) -> None:
    _, ax = plot.figure()
    made: list[Axes] = [
        results.plot.throughput_cdf(),
        results.plot.rtt_cdf(),
        *(results.plot.time_series(quantity) for quantity in plot.QUANTITIES),
        results.plot.fairness(),
        results.plot.cwnd_around(2.0, after_s=1.0),
    ]
    for figure in made:
        assert isinstance(figure, Axes) and figure.get_title() == ""
        assert figure.get_xlabel() and figure.get_ylabel()
    assert results.plot.rtt_cdf(ax=ax, label="a") is ax and results.plot.rtt_cdf(ax=ax, label="b") is ax
    first, second = ax.get_lines()
    assert first.get_color() != second.get_color() and first.get_linestyle() != second.get_linestyle()
    shown = ax.get_legend()
    assert shown is not None and [text.get_text() for text in shown.get_texts()] == ["a", "b"]


def test_a_distribution_is_that_of_the_table(results: paceline.Results) -> None:
    values, shares = data(results.plot.throughput_cdf().get_lines()[0])
    goodputs = sorted(results.stations.to_arrow()["goodput_mbps"].to_pylist())
    assert values[1:].tolist() == goodputs and shares[-1] == 1.0 and len(goodputs) == 6


def test_series_add_up_to_the_bytes_of_the_run(results: paceline.Results) -> None:
    lines = results.plot.time_series(seed=2, stations=[1]).get_lines()
    times, goodputs = data(lines[0])
    rows = results.series.to_arrow().to_pylist()
    last = [row["downloaded"] for row in rows if (row["seed"], row["station"]) == (2, 1)][-1]
    assert len(lines) == 1 and np.allclose(np.diff(times), 0.1)
    assert np.sum(goodputs) * 0.1 == pytest.approx(last * 8e-6)


def test_fairness_is_jains_index() -> None:
    assert jain(np.array([1.0, 1.0])) == 1.0 and jain(np.array([1.0, 0.0])) == 0.5
    unequal: dict[str, Any] = {"run": {"duration": "4 s", "warmup": "1 s"}, "station": [{}, {"direction": "none"}]}
    ax = paceline.run(paceline.Scenario(unequal)).plot.fairness()
    edges, indices = data(ax.get_lines()[0])
    assert edges.tolist() == [0, 1, 2, 3, 4] and indices.tolist() == [0.5] * 5


def test_events_are_aligned_and_those_at_the_ends_left_out() -> None:
    scenario = paceline.Scenario.load("drive").edit(
        {
            "run.duration": "16 s",
            "handover.trigger": "scripted",
            "handover.times": ["6 s", "14 s"],
        }
    )
    results = paceline.run(scenario, seeds=[1, 2])
    thin = [line for line in results.plot.cwnd_around().get_lines() if line.get_label() == "_event"]
    # The event at 14 s has no 3 s after it; the vertical line is one more.
    assert len(thin) == 2 + 1
    with pytest.raises(ValueError, match="nothing at 15 s"):
        results.plot.cwnd_around(15.0)


def test_maps() -> None:
    ax = plot.slot_map(paceline.Scenario.load("private-5g"))
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if text in ("D", "S", "U")] == ["D", "D", "D", "S", "U"]
    with pytest.raises(ValueError, match=r"cell.duplex = fdd"):
        plot.slot_map(paceline.Scenario.load("single-station"))
    with pytest.raises(paceline.ScenarioError, match="another access"):
        plot.slot_map(paceline.Scenario.load("accelerator-trace"))
    gains = plot.gain_map(["a", "b", "a"], [1, 1, 2], [1.0, -2.0, 0.0], x_label="x", y_label="y")
    assert [text.get_text() for text in gains.texts] == ["+1.0", "-2.0", "+0.0"]


def test_files_are_vectors_of_a_columns_width_and_the_same_bytes_again(
    results: paceline.Results, tmp_path: Path
) -> None:
    figure, axes = plot.figure(width="page", columns=2)
    results.plot.rtt_cdf(ax=axes[0])
    for kind, start in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        first, second = (tmp_path / f"{name}.{kind}" for name in ("one", "two"))
        plot.save(figure, first)
        plot.save(figure, second)
        assert first.read_bytes().startswith(start) and first.read_bytes() == second.read_bytes()
    assert figure.get_size_inches()[0] == plot.PAGE_IN
    assert plot.figure()[0].get_size_inches()[0] == plot.COLUMN_IN
    with pytest.raises(ValueError, match="column"):
        plot.figure(width="wide")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="quantity 'rate': one of goodput_mbps"):
        results.plot.time_series("rate")
