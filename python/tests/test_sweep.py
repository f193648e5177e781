"""Sweeps: the grid, equal bytes, continuation, mistakes, and the readers of the folder."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import paceline
import pyarrow.parquet as pq
import pytest
from paceline import Scenario

SHORT = Scenario.load("single-station").edit({"run.duration": "1 s", "run.warmup": "200 ms"})
OVER: dict[str, list[Any]] = {"station.count": [1, 2], "ack_filter.scheme": ["basic", "hybrid(6)", "hybrid-opt"]}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_every_combination_has_its_rows_in_order(tmp_path: Path) -> None:
    swept = paceline.sweep(SHORT, OVER, [4, 3], out=tmp_path / "out")
    runs = swept.runs.to_arrow()
    assert len(swept.runs) == runs.num_rows and list(swept.runs.schema.values())[:4] == [
        "int64",
        "int64",
        "utf8",
        "int64",
    ]
    assert runs.column_names[:4] == ["point", "station.count", "ack_filter.scheme", "seed"]
    assert runs["seed"].to_pylist() == [4, 3] * 6
    assert runs["point"].to_pylist() == [point for point in range(6) for _ in range(2)]
    assert swept.points[3].values == {"station.count": 2, "ack_filter.scheme": "basic"}
    assert swept.points[3].label == 'station.count=2, ack_filter.scheme="basic"'
    assert len(swept.table("stations")) == 2 * 3 * (1 + 2)
    summary = swept.summary.to_arrow()
    assert summary.num_rows == 6 and summary["goodput_mbps_ci95"].null_count == 0
    assert pickle.loads(pickle.dumps(swept.summary)).to_arrow() == summary
    # A point has the figures of a run.
    alone = paceline.run(swept.points[3].scenario, [4, 3]).summary
    assert summary["goodput_mbps"][3].as_py() == alone.mean.goodput_mbps
    assert alone.ci95 is not None and summary["rtt_mean_ms_ci95"][3].as_py() == alone.ci95.rtt_mean_ms
    assert paceline.sweep(SHORT, {}, out=tmp_path / "one").summary.to_arrow()["goodput_mbps_ci95"].null_count == 1


def test_the_bytes_are_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    for jobs in (1, 3):
        paceline.sweep(SHORT, OVER, range(5), out=tmp_path / str(jobs), jobs=jobs, tables=["flows", "series"])
    one, three = contents(tmp_path / "1"), contents(tmp_path / "3")
    assert one == three and len(one) == 1 + 3 * 6


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    def interrupt(done: float, whole: float) -> None:
        if done >= 6:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        paceline.sweep(SHORT, OVER, range(3), out=out, jobs=1, progress=interrupt)
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    assert 3 <= len(before) < 3 * 6
    told: list[tuple[float, float]] = []
    paceline.sweep(SHORT, OVER, range(3), out=out, progress=lambda *work: told.append(work))
    finished = sum(1 for file in before if file.parent.parent.name == "runs")
    assert told[-1] == (18 - 3 * finished, 18 - 3 * finished)
    assert all(file.stat().st_mtime_ns == at for file, at in before.items() if "runs" in str(file))
    paceline.sweep(SHORT, OVER, range(3), out=tmp_path / "whole")
    assert contents(out) == contents(tmp_path / "whole")


def test_ctrl_c_ends_a_sweep_and_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-P", "-m", "paceline", "sweep", "uplink-limited", "--out", str(out), "--jobs", "2"]
    command += ["--over", "run.duration=20 s,80000 s", "--set", "run.sample=1 s"]
    # A shell ignores SIGINT for a command that it starts in the background, and so would the sweep.
    command = ["env", "--default-signal=INT", *command]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (out / "runs" / "point=0" / "part.parquet").exists():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    message = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and f"interrupted; the finished points are kept in {out}" in message, message
    assert not (out / "runs" / "point=1").exists()


def test_a_worker_of_another_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paceline.sweeps import work

    monkeypatch.setattr(work, "simulate", lambda *_: ("0123", {}))
    with pytest.raises(RuntimeError, match="a worker has paceline of commit 0123, this process "):
        paceline.sweep(SHORT, OVER, [1], out=tmp_path / "out")


def test_another_sweep_in_the_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    paceline.sweep(SHORT, OVER, [1], out=out)
    before = contents(out)
    others: list[tuple[Scenario, dict[str, list[Any]], list[int], str]] = [
        (SHORT, OVER, [2], r"holds results with seeds = \[1\], now \[2\]; name another folder"),
        (SHORT, {"station.count": [1]}, [1], "holds results with over = "),
        (SHORT.edit(tcp__congestion_control="bbr"), OVER, [1], "another scenario: `congestion_control = "),
    ]
    for scenario, over, seeds, message in others:
        with pytest.raises(ValueError, match=message):
            paceline.sweep(scenario, over, seeds, out=out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="exists and holds no sweep to continue"):
        paceline.sweep(SHORT, OVER, [1], out=tmp_path / "full")
    assert contents(out) == before


def test_mistakes_are_named_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(paceline.ScenarioError, match="point station.count=0: ") as caught:
        paceline.sweep(SHORT, {"station.count": [1, 0]}, [1], out=out)
    assert caught.value.key == "station.0.count"
    mistakes: list[tuple[dict[str, list[Any]], str]] = [
        ({"station.count": []}, "empty"),
        ({"station.count": [1, 1]}, "twice"),
        ({"run.seed": [1, 2]}, "its argument seeds"),
    ]
    for over, message in mistakes:
        with pytest.raises(ValueError, match=message):
            paceline.sweep(SHORT, over, [1], out=out)
    with pytest.raises(TypeError, match="give several values"):
        paceline.sweep(SHORT, {"tcp.congestion_control": "bbr"}, [1], out=out)
    with pytest.raises(ValueError, match=r"allowed: 'local', a dask\.distributed\.Client"):
        paceline.sweep(SHORT, OVER, [1], out=out, on="cluster")
    with pytest.raises(ValueError, match="allowed: runs, groups, stations"):
        paceline.sweep(SHORT, OVER, [1], out=out, tables=["nothing"])
    assert not out.exists()


def test_pandas_polars_and_duckdb_read_the_folder(tmp_path: Path) -> None:
    import duckdb
    import pandas
    import polars

    over: dict[str, list[Any]] = {
        "station.count": [1, 2],
        "core.hops.0.delay": [f"{ms} ms" for ms in range(1, 7)],
        "tcp.sack": [True],
    }
    swept = paceline.sweep(SHORT, over, [1], out=tmp_path / "out")
    expected = swept.runs.to_arrow()["goodput_mbps"].to_pylist()
    assert swept.runs.schema["tcp.sack"] == "boolean"
    frame = pandas.read_parquet(swept.out / "runs").sort_values("point", key=lambda points: points.astype(int))
    assert frame["goodput_mbps"].tolist() == expected and frame["point"].astype(int).tolist() == list(range(12))
    polar = polars.scan_parquet(swept.out / "runs", hive_partitioning=True).sort("point").collect()
    assert polar["goodput_mbps"].to_list() == expected
    query: Any = duckdb.sql(
        f"select point, \"core.hops.0.delay\", goodput_mbps from '{swept.out}/runs/*/*.parquet' order by point"
    )
    rows = query.fetchall()
    assert [row[2] for row in rows] == expected and rows[11][:2] == (11, "6 ms")


def test_files_have_no_times(tmp_path: Path) -> None:
    swept = paceline.sweep(SHORT, {"station.count": [1]}, [1], out=tmp_path / "out")
    file = swept.out / "runs" / "point=0" / "part.parquet"
    first = file.read_bytes()
    assert pq.ParquetFile(file).schema_arrow.names[0] == "station.count"
    manifest = json.loads((swept.out / "sweep.json").read_text())
    assert sorted(manifest) == ["over", "paceline", "points", "scenario", "seeds", "tables"]
    shutil.rmtree(swept.out)
    paceline.sweep(SHORT, {"station.count": [1]}, [1], out=tmp_path / "out")
    assert file.read_bytes() == first
