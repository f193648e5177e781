"""A congestion control in Python."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import ClassVar

import paceline
import pytest
from paceline import Ack, Scenario

LINK = Scenario.load("single-station").edit({"run.duration": "6 s", "run.warmup": "2 s"})


class Fixed:
    """A window of so many segments."""

    segments = 4
    made: ClassVar[list[Fixed]] = []

    def __init__(self, mss: int, initial_window: int) -> None:
        self.cwnd = self.segments * mss
        self.pacing_rate: float | None = None
        self.rounds: list[float] = []
        assert initial_window == 10
        Fixed.made.append(self)

    def on_round(self, ack: Ack) -> None:
        assert ack["in_flight"] <= self.cwnd and ack["acked"] > 0
        self.rounds.append(ack["time"])


def test_the_window_and_the_rate_of_a_class_are_those_of_the_sender() -> None:
    Fixed.made.clear()
    slow = paceline.run(LINK, control=Fixed).summary.mean
    rounds = max((made.rounds for made in Fixed.made), key=len)
    window = 8e-6 * 4 * 1448
    assert slow.goodput_mbps == pytest.approx(window / (1e-3 * slow.rtt_mean_ms), rel=0.2)
    per_round = (rounds[-1] - rounds[0]) / (len(rounds) - 1)
    assert per_round == pytest.approx(1e-3 * slow.rtt_mean_ms, rel=0.3)
    assert paceline.run(LINK, control=Fixed).summary.mean == slow

    class Paced(Fixed):
        segments = 400

        def __init__(self, mss: int, initial_window: int) -> None:
            super().__init__(mss, initial_window)
            self.pacing_rate = 3e6

    assert paceline.run(LINK, control=Paced).summary.mean.goodput_mbps == pytest.approx(3.0, rel=0.05)


def test_losses_are_told_and_an_exception_ends_the_runs() -> None:
    class Greedy:
        def __init__(self, mss: int, initial_window: int) -> None:
            self.cwnd = 1e9
            self.events: list[str] = []

        def on_loss(self, event: str) -> None:
            raise ValueError(f"seen: {event}")

    with pytest.raises(ValueError, match="seen: (loss|timeout)"):
        paceline.run(LINK.edit({"cell.downlink_buffer": "50 kB"}), [1, 2], control=Greedy)

    def nothing(_mss: int, _initial_window: int) -> Fixed:
        return object()  # type: ignore[return-value]

    with pytest.raises(AttributeError, match="cwnd"):
        paceline.run(LINK, control=nothing)


ENDLESS = """
import paceline

class Endless:
    def __init__(self, mss, initial_window):
        self.cwnd = 10 * mss

    def on_ack(self, ack):
        print("called", flush=True)
        while True:
            pass

paceline.run("single-station", control=Endless)
"""


def test_ctrl_c_ends_a_control_that_loops_for_ever() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "called\n"
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    assert "KeyboardInterrupt" in errors.splitlines()[-1], errors
