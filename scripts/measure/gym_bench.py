#!/usr/bin/env python3
r"""Steps per CPU second of the environments for learning agents, beside those of ns3-gym on the same path.

    scripts/measure/gym_bench.py                         ours; the package `paceline[gym]` must be installed
    scripts/measure/gym_bench.py --ns3-gym FOLDER        both: FOLDER has the Python module ns3gym, and the
                                                         program rl-tcp of its examples

Every path is run three times, in alternation; the median is printed. CPU time is that of all processes.
ns3-gym is built on Debian 12 by:

    apt-get install libns3-dev libzmq3-dev cppzmq-dev libprotobuf-dev protobuf-compiler
    git clone -b app-ns-3.36+ https://github.com/tkn-tub/ns3-gym && cd ns3-gym
    protoc -I model --cpp_out=model --python_out=model/ns3gym/ns3gym model/messages.proto
    mkdir -p include/ns3 && cp model/*.h helper/*.h include/ns3
    (cd include/ns3 && for header in *.h; do echo "#include \"ns3/$header\""; done) >module.h
    mv module.h include/ns3/opengym-module.h
    g++ -O2 -std=c++17 -Iinclude -Iinclude/ns3 model/*.cc helper/*.cc examples/rl-tcp/*.cc \
        -o model/ns3gym/rl-tcp -lns3-core -lns3-network -lns3-internet -lns3-applications \
        -lns3-point-to-point -lns3-point-to-point-layout -lns3-traffic-control -lns3-flow-monitor \
        -lns3-stats -lns3-mobility -lns3-csma -lns3-wifi -lzmq -lprotobuf
    pip install pyzmq gym 'numpy<2' 'protobuf<4.26'
    scripts/measure/gym_bench.py --ns3-gym .../ns3-gym/model/ns3gym
"""

from __future__ import annotations

import argparse
import importlib
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# The path of ns3-gym's example rl-tcp: 2 Mb/s between two links of 20 ms, segments of 340 bytes. An action
# is a window of 100 segments at every step, which keeps the bottleneck busy without losses.
SEGMENT, WINDOW = 340, 100
DURATIONS = {"10 ms": 60, "100 ms": 300}
REPEATS = 3


def rl_tcp(seconds: int, bottleneck: str) -> dict[str, Any]:
    """The path of the example as a scenario."""
    return {
        "run": {"duration": f"{seconds} s", "warmup": "1 s", "sample": "1 s"},
        "core": {
            "hops": [
                {"rate": "10 Mb/s", "delay": "20 ms"},
                {"rate": bottleneck, "delay": "10 us", "queue": "100 kB"},
            ]
        },
        "tcp": {"profile": "ns3-default", "segment_size": f"{SEGMENT} B"},
        "link": {"delay": "20 ms", "fixed": {"downlink_rate": "10 Mb/s"}},
        "station": [{"start_spread": "0 s"}],
    }


def ours(scenario: dict[str, Any], step: str, control: str, action: list[float]) -> float:
    """Steps per CPU second of one episode."""
    package: Any = importlib.import_module("paceline")
    gym: Any = importlib.import_module("paceline.gym")
    made = package.Scenario(scenario)
    weighs = control == "weights"
    env = gym.Scheduling(made, step=step) if weighs else gym.RateControl(made, step=step, control=control)
    env.reset(seed=1)
    acted = np.array(action, np.float32)
    start, steps, over = time.process_time(), 0, False
    while not over:
        _, _, _, over, _ = env.step(acted)
        steps += 1
    return steps / (time.process_time() - start)


def ns3(folder: Path, step: str, seconds: int) -> float:
    """The same of ns3-gym: its agent here, and the simulation in a process of its own."""
    sys.path.insert(0, str(folder))
    ns3env: Any = importlib.import_module("ns3gym.ns3env")
    step_s, port = float(step.split()[0]) / 1000, 5599
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [f"--openGymPort={port}", "--transport_prot=TcpRlTimeBased", f"--envTimeStep={step_s}"]
    program = subprocess.Popen([folder / "rl-tcp", *arguments, f"--duration={seconds}"], stdout=subprocess.DEVNULL)
    env = ns3env.Ns3Env(port=port, stepTime=step_s, startSim=False)
    env.reset()
    start, steps, over = time.process_time(), 0, False
    while not over:
        _, _, over, _ = env.step([2**16, WINDOW * SEGMENT])
        steps += 1
    own = time.process_time() - start
    env.close()
    program.wait(30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return steps / (own + after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ns3-gym", type=Path, metavar="FOLDER")
    folder: Path | None = parser.parse_args().ns3_gym
    print(f"{'path':<34}{'step':>8}{'ours':>12}{'ns3-gym':>10}{'ratio':>7}   steps per CPU second")
    for step, seconds in DURATIONS.items():
        mine, theirs = [], []
        for _ in range(REPEATS):
            mine.append(ours(rl_tcp(seconds, "2 Mb/s"), step, "window", [float(WINDOW)]))
            if folder is not None:
                theirs.append(ns3(folder, step, seconds))
        report("ns3-gym's rl-tcp, 2 Mb/s", step, mine, theirs)
    cell: dict[str, Any] = {"run": {"duration": "60 s", "warmup": "1 s"}, "station": [{}]}
    report(
        "LTE cell, one station at 10 Mb/s", "10 ms", [ours(cell, "10 ms", "rate", [10.0]) for _ in range(REPEATS)], []
    )
    many = {**cell, "cell": {"scheduler": "proportional-fair"}, "station": [{"count": 10}]}
    weights = [ours(many, "10 ms", "weights", [1.0] * 10) for _ in range(REPEATS)]
    report("LTE cell, weights of 10 stations", "10 ms", weights, [])


def report(path: str, step: str, mine: list[float], theirs: list[float]) -> None:
    own = statistics.median(mine)
    other = f"{statistics.median(theirs):>10,.0f}{own / statistics.median(theirs):>7.0f}" if theirs else ""
    print(f"{path:<34}{step:>8}{own:>12,.0f}{other}")


if __name__ == "__main__":
    main()
