"""Sweeps on a real scheduler with three worker processes on the loopback interface."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paceline
import pytest
from paceline import Scenario
from test_sweep import contents

SHORT = Scenario.load("single-station").edit({"run.duration": "2 s", "run.warmup": "1 s"})
OVER: dict[str, list[Any]] = {"station.count": [1, 2, 3], "ack_filter.scheme": ["basic", "hybrid(6)"]}
WAIT_S = 120
"""Hang guard. Chosen: many times what a slow machine takes."""


def started(*arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "dask", *arguments], stderr=subprocess.DEVNULL, env=environment
    )


def client_of(address: str) -> Any:
    import distributed

    client: Any = distributed.Client
    return client(address, set_as_default=False)


@contextmanager
def cluster(folder: Path, count: int = 3) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler, and its workers with one thread each."""
    file = folder / "scheduler.json"
    processes = [
        started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    ]
    try:
        until = time.monotonic() + WAIT_S
        while not file.exists() or not file.read_text():
            assert time.monotonic() < until and processes[0].poll() is None
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
        processes += [started("worker", address, "--host", "127.0.0.1", *options) for _ in range(count)]
        with client_of(address) as client:
            client.wait_for_workers(count, timeout=WAIT_S)
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return paceline.sweep(SHORT, OVER, range(1, 9), out=tmp_path_factory.mktemp("local") / "out").out


def test_a_killed_worker_changes_no_byte(tmp_path: Path, local: Path) -> None:
    with cluster(tmp_path) as (address, workers), client_of(address) as client:
        killed: list[int] = []

        def kill(done: float, whole: float) -> None:
            if done > whole / 4 and not killed:
                killed.append(workers[1].pid)
                os.kill(workers[1].pid, signal.SIGKILL)

        swept = paceline.sweep(SHORT, OVER, range(1, 9), on=client, out=tmp_path / "out", progress=kill)
        assert killed and len(client.nthreads()) == 2
        assert contents(swept.out) == contents(local)


def test_a_sweep_that_was_interrupted_goes_on_elsewhere(tmp_path: Path, local: Path) -> None:
    def interrupt(done: float, whole: float) -> None:
        if done > whole / 3:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        paceline.sweep(SHORT, OVER, range(1, 9), out=out, jobs=2, progress=interrupt)
    with cluster(tmp_path, 1) as (address, _):
        code = [sys.executable, "-P", "-m", "paceline", "sweep", "single-station", "--seeds", "8", "--out", str(out)]
        code += ["--set", "run.duration=2 s", "--set", "run.warmup=1 s", "--dask", address]
        code += ["--over", "station.count=1,2,3", "--over", 'ack_filter.scheme="basic","hybrid(6)"']
        text = subprocess.run(code, check=True, stdout=subprocess.PIPE, text=True, timeout=WAIT_S).stdout
    assert text.startswith("single-station, simulated: 6 points, 8 runs each"), text
    assert len(text.splitlines()) == 2 + 6 and "hybrid(6)" in text
    assert contents(out) == contents(local)
