"""Python beside the command line: the same figures, messages and rows. PACELINE_PROGRAM names the program."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import paceline
import pytest
from paceline import Scenario
from test_dask import cluster

PROGRAM = os.environ.get("PACELINE_PROGRAM", "")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="PACELINE_PROGRAM is not set")
SHORT = {"run.duration": "2 s", "run.warmup": "1 s"}
SET = ["--set", "run.duration=2 s", "--set", "run.warmup=1 s"]


def command(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command line with the interpreter of the tests as python3."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [PROGRAM, *arguments], check=False, capture_output=True, text=True, timeout=300, env=os.environ | {"PATH": path}
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("name", ["single-station", "private-5g", "d2d-static", "accelerator-3g"])
def test_a_run_has_the_bytes_of_summary_json(name: str) -> None:
    text = command("run", name, *SET, "--seeds", "2", "--json").stdout
    results = paceline.run(Scenario.load(name).edit(SHORT), [1, 2])
    # The program may be of another commit while somebody works on the code.
    without_commit = [re.sub(r'"commit": "\w+"', "", json) for json in (results.summary_json(), text)]
    assert without_commit[0] == without_commit[1]


def test_tables_have_the_rows_of_the_csv_files(tmp_path: Path) -> None:
    command("run", "single-station", *SET, "--seeds", "2", "--out", str(tmp_path / "out"))
    results = paceline.run(Scenario.load("single-station").edit(SHORT), [1, 2])
    for name, file in [("stations", "stations"), ("flows", "flows"), ("series", "timeseries")]:
        rows = list(csv.reader(io.StringIO((tmp_path / "out" / f"{file}.csv").read_text())))
        table = results.table(name).to_arrow()
        assert rows[0] == table.column_names
        columns = [table[column].to_pylist() for column in table.column_names]
        for text, values in zip(rows[1:], zip(*columns, strict=True), strict=True):
            for field, value in zip(text, values, strict=True):
                if isinstance(value, float):
                    decimals = len(field.partition(".")[2])
                    assert abs(float(field) - value) <= 0.51 * 10**-decimals
                else:
                    assert field == ("" if value is None else str(value))


@pytest.mark.parametrize(
    "mistake", ["station.count=0", "tcp.congestion_control=bbbr", "cell.bandwith=1", "run.seed=-1"]
)
def test_mistakes_have_the_message_of_the_command_line(mistake: str) -> None:
    message = command("check", "single-station", "--set", mistake, code=2).stderr
    key, value = mistake.split("=")
    with pytest.raises(paceline.ScenarioError) as caught:
        Scenario.load("single-station").edit({key: int(value) if value.lstrip("-").isdigit() else value})
    assert message == f"paceline: {caught.value}\n"


def test_a_sweep_has_the_figures_of_sweep_csv(tmp_path: Path) -> None:
    over = ["--over", "station.count=1,2", "--over", "ack_filter.scheme=basic,hybrid(6)"]
    command("sweep", "single-station", *SET, *over, "--seeds", "3", "--out", str(tmp_path / "a"))
    swept = paceline.sweep(
        Scenario.load("single-station").edit(SHORT),
        {"station.count": [1, 2], "ack_filter.scheme": ["basic", "hybrid(6)"]},
        range(1, 4),
        out=tmp_path / "b",
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a" / "sweep.csv").read_text())))
    assert [f"{value:.6f}" for value in swept.summary.to_arrow()["rtt_mean_ms_ci95"].to_pylist()] == [
        row["rtt_mean_ms_ci95"] for row in rows
    ]
    for row, ours in zip(rows, swept.summary.to_arrow().to_pylist(), strict=True):
        for name in paceline.Totals.__dataclass_fields__:
            assert float(row[name]) == pytest.approx(ours[name], abs=1e-6)


def test_a_sweep_on_dask_is_started_by_the_command_line(tmp_path: Path) -> None:
    over = ["--over", "station.count=1,2", "--seeds", "2", "--out", str(tmp_path / "out")]
    with cluster(tmp_path, 1) as (address, _):
        text = command("sweep", "single-station", *SET, *over, "--dask", address).stdout
    assert text.startswith("single-station, simulated: 2 points, 2 runs each")
    assert (tmp_path / "out" / "runs" / "point=1" / "part.parquet").exists()


def test_a_reproduction_has_the_rows_of_rows_csv(tmp_path: Path) -> None:
    short = {"run.duration": "300 ms", "run.warmup": "100 ms"}
    options = [f"--set={key}={value}" for key, value in short.items()]
    command("reproduce", "ack-filter", "--quick", "--seeds", "2", *options, "--out", str(tmp_path / "out"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "rows.csv").read_text())))
    ours = paceline.reproduce("ack-filter", quick=True, seeds=2, changes=short).rows.to_arrow().to_pylist()
    assert [row["row"] for row in rows] == [row["row"] for row in ours]
    for row, own in zip(rows, ours, strict=True):
        assert list(row) == list(own) and row["holds"] == str(own["holds"]).lower()
        assert row["ours"] == ("" if own["ours"] is None else f"{own['ours']:.6f}")
