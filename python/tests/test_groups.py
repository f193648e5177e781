"""Names of groups of stations, figures by group, and comparisons by pairs of equal seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import paceline
import pytest
from matplotlib.colors import to_hex
from paceline import plot

GROUPS: dict[str, Any] = {
    "run": {"duration": "2 s", "warmup": "500 ms"},
    "station": [{"name": "BBR", "count": 2, "tcp": {"congestion_control": "bbr"}}, {"count": 2}],
}


@pytest.fixture(scope="module")
def results() -> paceline.Results:
    return paceline.run(paceline.Scenario(GROUPS), seeds=[1, 2])


def test_groups_have_names_in_all_tables(results: paceline.Results) -> None:
    assert [group.name for group in results.summary.groups] == ["BBR", "cubic"]
    groups = results.groups.to_arrow()
    assert groups["group_name"].to_pylist() == ["BBR", "cubic"] * 2 and groups["stations"].to_pylist() == [2] * 4
    for name in ("stations", "flows", "series"):
        table = results.table(name).to_arrow()
        pairs = set(zip(table["group"].to_pylist(), table["group_name"].to_pylist(), strict=True))
        assert pairs == {(0, "BBR"), (1, "cubic")}, name


def test_lines_have_the_colours_of_the_groups(results: paceline.Results) -> None:
    _, ax = plot.figure()
    results.plot.throughput_cdf(by="group", ax=ax)
    results.plot.throughput_cdf(by="group", ax=ax, label="again")
    colours = [to_hex(line.get_color()) for line in ax.get_lines()]
    assert colours == [colour.lower() for colour in plot.COLOURS[:2]] * 2
    dashes = [line.get_linestyle() for line in ax.get_lines()]
    assert dashes[0] == dashes[1] != dashes[2] == dashes[3]
    labels = [line.get_label() for line in results.plot.time_series().get_lines()]
    assert labels == ["BBR, station 0", "BBR, station 1", "cubic, station 2", "cubic, station 3"]
    with pytest.raises(ValueError, match="by = 'station': allowed: "):
        results.plot.rtt_cdf(by="station")  # type: ignore[arg-type]


def test_results_are_compared_by_pairs(results: paceline.Results) -> None:
    narrow = paceline.run(paceline.Scenario(GROUPS).edit({"cell.bandwidth": "5 MHz"}), seeds=[2, 3, 1])
    comparison = paceline.compare(results, narrow)
    assert comparison.seeds == (1, 2) and comparison.ci95 is not None
    first, second = ({row["seed"]: row for row in table.to_arrow().to_pylist()} for table in (results.runs, narrow.runs))
    expected = sum(second[seed]["goodput_mbps"] - first[seed]["goodput_mbps"] for seed in (1, 2)) / 2
    assert comparison.mean.goodput_mbps == pytest.approx(expected) and "oodput" in comparison.sentence
    with pytest.raises(ValueError, match="no equal seeds"):
        paceline.compare(results, paceline.run(paceline.Scenario(GROUPS), seeds=[9]))


def test_a_sweep_has_differences_groups_and_lines(tmp_path: Path) -> None:
    over = {"cell.bandwidth": ["5 MHz", "10 MHz"], "ack_filter.scheme": ["basic", "safe"]}
    swept = paceline.sweep(paceline.Scenario(GROUPS), over, [1, 2], out=tmp_path / "out")
    summary = swept.summary.to_arrow()
    both = [summary[f"{name}.goodput_mbps"][0].as_py() for name in ("BBR", "cubic")]
    assert sum(both) == pytest.approx(summary["goodput_mbps"][0].as_py())
    differences = swept.differences.to_arrow()
    assert differences["point"].to_pylist() == [1, 3] and differences["against"].to_pylist() == ["basic"] * 2
    goodputs = summary["goodput_mbps"].to_pylist()
    assert differences["goodput_mbps"][1].as_py() == pytest.approx(goodputs[3] - goodputs[2])
    ax = swept.plot.lines(x="cell.bandwidth", by=["group", "ack_filter.scheme"])
    assert len(ax.get_legend_handles_labels()[1]) == 4 and ax.get_xlabel() == "cell.bandwidth in MHz"
    with pytest.raises(ValueError, match="ack_filter.scheme has several values"):
        swept.plot.lines(x="cell.bandwidth", by="group")
    with pytest.raises(ValueError, match="x = 'no'"):
        swept.plot.lines(x="no")


def test_a_built_in_name_is_a_scenario() -> None:
    assert paceline.Scenario.given("private-5g").name == "private-5g"
    assert plot.slot_map("private-5g").get_xlabel() == "Time in ms"
