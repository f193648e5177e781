"""The work of a sweep: tasks of one point and some of its seeds, on threads or on Dask workers.

A task has no state of its own: a worker that is lost has its tasks run again by the scheduler, with the same
figures. Tasks are handed out a few for each thread at a time, so that the scheduler holds little.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from paceline import _paceline
from paceline.scenario import Scenario
from paceline.sweeps.grid import Point

_WAITING_PER_THREAD = 3
"""Tasks handed out for each thread. Chosen: enough that no thread waits for the next one."""
_TASKS_PER_THREAD = 8
"""Tasks of a sweep for each thread at least, where there are so many runs. Chosen: at the end the threads are
idle for an eighth of the time at most."""
_RETRIES = 3
"""Times that a task which failed on a worker is run again. Chosen: a worker that lacks memory or files fails
for good, one that is shut down does not."""

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Task:
    """A point with some of its seeds."""

    point: Point
    first: int
    """Place of the first seed among the sweep's seeds."""
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """Threads that take tasks."""

    executor: Executor
    threads: Callable[[], int]
    """Number of threads at present: clusters grow and shrink."""
    stop: _paceline.Stop | None
    """Ends running tasks; None where they are in other processes."""


def simulate(
    scenario: Scenario, seeds: tuple[int, ...], tables: tuple[str, ...], stop: _paceline.Stop | None = None
) -> tuple[str, Tables]:
    """Commit of the package that has simulated the seeds, and the tables."""
    results = _paceline.run(scenario._scenario, list(seeds), 1, None, stop)
    return _paceline.commit, {name: pa.table(results.table(name)) for name in tables}


@contextmanager
def pool(on: Any, jobs: int | None) -> Iterator[Pool]:
    """The threads of ``on``: ``"local"``, a client of Dask, or the address of its scheduler."""
    if on == "local":
        threads = jobs or len(os.sched_getaffinity(0))
        stop = _paceline.Stop()
        executor = ThreadPoolExecutor(threads, thread_name_prefix="paceline")
        try:
            yield Pool(executor, lambda: threads, stop)
        finally:
            stop.set()
            executor.shutdown(cancel_futures=True)
        return
    if jobs is not None:
        raise ValueError("jobs: only with on='local'; the threads of Dask's workers are chosen at their start")
    with _client(on) as client:
        executor = client.get_executor(pure=False, retries=_RETRIES)
        try:
            yield Pool(executor, lambda: sum(client.nthreads().values()), None)
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _client(on: Any) -> Iterator[Any]:
    """The client, or one for the scheduler of this address."""
    try:
        from distributed import Client
    except ImportError:
        message = "a sweep beyond this machine needs Dask: pip install 'paceline[sweep]'"
        raise ImportError(message, name="distributed") from None
    if isinstance(on, Client):
        yield on
    elif isinstance(on, str) and "://" in on:
        with Client(on, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            yield client
    else:
        raise ValueError(
            f"on = {on!r}: allowed: 'local', a dask.distributed.Client, or an address such as tcp://HOST:8786"
        )


def tasks(points: list[Point], seeds: list[int], threads: int) -> Iterator[Task]:
    """The tasks in the order of points and seeds."""
    runs = len(points) * len(seeds)
    size = max(1, min(len(seeds), runs // (max(1, threads) * _TASKS_PER_THREAD)))
    for point in points:
        for first in range(0, len(seeds), size):
            yield Task(point, first, tuple(seeds[first : first + size]))


def finished(pool: Pool, tasks: Iterable[Task], tables: tuple[str, ...]) -> Iterator[tuple[Task, Tables]]:
    """The tasks with their tables, as they are finished."""
    waiting = iter(tasks)
    running: dict[Future[tuple[str, Tables]], Task] = {}
    while True:
        room = max(1, pool.threads()) * _WAITING_PER_THREAD - len(running)
        for _, task in zip(range(room), waiting, strict=False):
            running[_submitted(pool, task, tables)] = task
        if not running:
            return
        # The time limit lets a cluster that has grown get more tasks.
        done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in done:
            task = running.pop(future)
            commit, result = future.result()
            if commit != _paceline.commit:
                raise RuntimeError(f"a worker has paceline of commit {commit}, this process {_paceline.commit}")
            yield task, result


def _submitted(pool: Pool, task: Task, tables: tuple[str, ...]) -> Future[tuple[str, Tables]]:
    if pool.stop is None:
        return pool.executor.submit(simulate, task.point.scenario, task.seeds, tables)
    return pool.executor.submit(simulate, task.point.scenario, task.seeds, tables, pool.stop)
