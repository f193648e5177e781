"""Tables: columns as documented, consumers without copies, pickles."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import paceline
import pytest
from paceline import Results, Scenario

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {"runs": None, "series": "timeseries"}


@pytest.fixture(scope="module")
def results() -> Results:
    scenario = Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"}, station__count=2)
    return paceline.run(scenario, [5, 6])


def test_the_columns_are_those_of_the_documented_files(results: Results) -> None:
    text = (REPOSITORY / "docs" / "results.md").read_text()
    for name in paceline.TABLES:
        file = FILES.get(name, name)
        if file is None:
            continue
        for column in results.table(name).columns:
            # A key of summary.json with another name stands as `key=column`, a column without one as (CSV).
            assert re.search(rf"[`=]{column}(?: \(CSV\))?`", text), f"{name}: {column}"


def test_each_consumer_has_the_same_rows(results: Results) -> None:
    import duckdb
    import polars
    import pyarrow

    series = results.series
    arrow = pyarrow.table(series)
    assert arrow.num_rows == len(series) == 2 * 2 * 30
    assert pyarrow.schema(series) == arrow.schema
    assert [field.name for field in arrow.schema] == series.columns == list(series.schema)
    assert polars.DataFrame(series).height == len(series)
    assert series.to_polars()["cwnd"].to_list() == arrow["cwnd"].to_pylist()
    rows: Any = duckdb.sql("select count(*), max(time_s) from series")
    assert rows.fetchall() == [(len(series), 3.0)]
    frame = series.to_pandas()
    assert frame["cwnd"].to_list() == arrow["cwnd"].to_pylist()
    assert frame["seed"].unique().tolist() == [5, 6]


def test_columns_are_shared_not_copied(results: Results) -> None:
    one, two = results.series.to_arrow(), results.series.to_arrow()
    address = [table["downloaded"].chunk(0).buffers()[1].address for table in (one, two)]
    assert address[0] == address[1]
    del one
    assert two["downloaded"][0].is_valid


def test_a_value_that_is_missing_is_null(results: Results) -> None:
    assert results.series.to_arrow()["link_capacity"].null_count == len(results.series)
    assert results.stations.to_arrow()["no_service"].null_count == 4
    assert results.flows.to_arrow()["completed_s"].to_pylist() == [None] * len(results.flows)


def test_tables_without_rows_have_their_columns(results: Results) -> None:
    for name in ("handovers", "paths", "switches", "queues", "routers", "policers"):
        table = results.table(name)
        assert len(table) == 0 and "seed" in table.columns and table.to_arrow().num_rows == 0, name
    with pytest.raises(ValueError, match="allowed: runs, groups, stations"):
        results.table("nothing")


def test_results_pickle(results: Results) -> None:
    again = pickle.loads(pickle.dumps(results))
    assert again.summary == results.summary and again.scenario == results.scenario
    assert again.summary_json() == results.summary_json()
    for name in paceline.TABLES:
        assert again.table(name).to_arrow() == results.table(name).to_arrow(), name


def test_tables_pickle_and_copy(results: Results) -> None:
    for name in paceline.TABLES:
        table = results.table(name)
        for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
            assert again.schema == table.schema and again.to_arrow() == table.to_arrow(), name
    with pytest.raises(ValueError, match="a damaged pickle"):
        state = results.stations.__reduce__()[1][0]
        paceline.tables._unpickled((state[0], [(rows + 1, columns) for rows, columns in state[1]]))


def test_handovers_and_queues_have_rows() -> None:
    drive = Scenario.load("drive").edit({"run.duration": "40 s"})
    handovers = paceline.run(drive).handovers.to_arrow()
    assert handovers.num_rows > 0 and set(handovers["outcome"].to_pylist()) <= {"served", "failed", "running"}
