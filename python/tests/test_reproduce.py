"""Reproductions in memory."""

from __future__ import annotations

import pickle

import paceline
import pytest


def test_rows_and_statements() -> None:
    calibration = paceline.reproduce("calibration", quick=True)
    rows, statements = calibration.rows.to_arrow(), calibration.statements.to_arrow()
    assert set(rows["row"].to_pylist()) == set(statements["row"].to_pylist())
    assert rows.schema.field("holds").type == "bool" and "10000 stations" in calibration.conditions
    for table in (calibration.rows, calibration.statements):
        assert pickle.loads(pickle.dumps(table)).to_arrow() == table.to_arrow()
    assert repr(calibration).startswith("Reproduction('calibration', ")


def test_an_error_ends_an_experiment() -> None:
    def fail(done: float, whole: float) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        paceline.reproduce("ack-filter", progress=fail)


def test_mistakes_are_named() -> None:
    with pytest.raises(
        ValueError, match="ack-fliter: no such experiment; allowed: ack-filter, .*; did you mean ack-filter"
    ):
        paceline.reproduce("ack-fliter")
    with pytest.raises(ValueError, match="parts: router has none, only tdd-pacing"):
        paceline.reproduce("router", parts=["edge"])
    with pytest.raises(ValueError, match="--part edges: the parts and groups are statements, maps"):
        paceline.reproduce("tdd-pacing", parts=["edges"])
    with pytest.raises(paceline.ScenarioError, match="run.duration"):
        paceline.reproduce("ack-filter", changes={"run.duration": "0 s"})
    with pytest.raises(ValueError, match="seeds = 0: allowed: 1 to 10000"):
        paceline.reproduce("ack-filter", seeds=0)
