"""Gymnasium environments: an agent acts between steps of a run.

`RateControl` sets pacing rate and congestion window of the senders of one station, `Scheduling` the weights
of the stations in the downlink scheduler of a cell. Everything else is the scenario's, so that the same
scenario run by `paceline.run` is the agent's baseline. One agent acts: the senders of other stations have
the congestion control of the scenario.

Importing this module registers ``paceline/RateControl-v0`` and ``paceline/Scheduling-v0``. It needs the extra
``paceline[gym]``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from paceline._paceline import RateEpisode, SchedulingEpisode
from paceline.results import Results
from paceline.scenario import Scenario, ScenarioLike

__all__ = ["RateControl", "Scheduling", "aurora", "proportional_fairness"]

Info = Mapping[str, Any]
Reward = Callable[[Info], float]
Floats = NDArray[np.float32]

#: Bounds of the pacing rate in Mb/s and of the window in segments, as actions. Chosen: from one segment in a
#: second to the fastest cells.
RATE_MBPS = (0.01, 10_000.0)
WINDOW_SEGMENTS = (1.0, 100_000.0)
#: Bounds of an action with ``relative=True``, as powers of two: Orca's (Abbasloo and others 2020).
DOUBLINGS = 2.0
#: Powers of two beyond which both settings are at their bounds anyway, and floats overflow.
MOST_DOUBLINGS = 100.0
#: The packet in which Aurora's reward counts throughput, in bits.
AURORA_PACKET_BITS = 8 * 1500


def aurora(info: Info) -> float:
    """Aurora's reward (Jay and others 2019): 10 throughput - 1000 latency - 2000 loss, over 1000.

    Throughput is in packets of 1500 B per second, latency the mean round-trip time in seconds, loss the
    share of lost bytes. A step without round-trip times counts no latency.

    >>> round(aurora({"step_s": 0.01, "acked_bytes": 15000, "lost_bytes": 0, "rtt_mean_s": 0.05}), 3)
    9.95
    """
    ended = info["acked_bytes"] + info["lost_bytes"]
    loss = info["lost_bytes"] / ended if ended else 0.0
    packets = info["acked_bytes"] * 8 / AURORA_PACKET_BITS / info["step_s"]
    return float(10.0 * packets - 1e3 * (info["rtt_mean_s"] or 0.0) - 2e3 * loss) * 1e-3


def proportional_fairness(info: Info) -> float:
    """The mean over the stations of the logarithm of the rate at which each is served, in Mb/s.

    Rates are means over 100 ms; one below 1 kb/s counts as 1 kb/s. A scheduler that maximises the sum of
    logarithms of long-term rates is proportionally fair (Kelly and others 1998).

    >>> round(proportional_fairness({"mean_rate_mbps": [10.0, 0.0]}), 3)
    -2.303
    """
    rates = info["mean_rate_mbps"]
    return sum(math.log(max(rate, 1e-3)) for rate in rates) / len(rates)


def _checked(action: Floats, names: list[str]) -> list[float]:
    """The numbers of an action, one for each name."""
    values = [float(value) for value in np.ravel(action)]
    if len(values) != len(names):
        last = "" if len(names) == 1 else f" to {names[-1]}"
        raise ValueError(f"an action of {len(values)} numbers: {len(names)} are needed, {names[0]}{last}")
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        if math.isnan(value):
            raise ValueError(f"action[{index}] ({name}) = nan: a number")
    return values


def _factor(doublings: float) -> float:
    return float(2.0 ** min(max(doublings, -MOST_DOUBLINGS), MOST_DOUBLINGS))


class _Episodes(gymnasium.Env[Floats, Floats]):
    """Seeds of the episodes: that of the reset, else one more than before, at first `run.seed`."""

    _episode: Any

    def __init__(self, scenario: ScenarioLike, step: str, reward: Reward) -> None:
        self.scenario, self.step_length, self.reward = Scenario.given(scenario), step, reward
        self._seeds = itertools.count(self.scenario.seed)

    def results(self) -> Results:
        """Ends the episode: its figures, with the tables and plots of `paceline.run`.

        The same scenario and seed in `paceline.run` are the baseline.
        """
        return Results(self.scenario, self._episode.results(self.scenario._scenario))

    def _next_seed(self, seed: int | None, options: dict[str, Any] | None) -> int:
        self.scenario = (options or {}).get("scenario", self.scenario)
        if seed is not None:
            self._seeds = itertools.count(seed)
        return next(self._seeds)


class RateControl(_Episodes):
    """Pacing rate and congestion window of the senders of one station.

    Parameters
    ----------
    scenario
        The network. The senders are the servers of the station, or with an upload the station itself; each of
        its connections has the same setting.
    station
        Index of the station, from 0.
    step
        Time between two actions, 1 ms or more.
    control
        ``"rate"``: the action is the pacing rate, and buffers alone limit the bytes in flight. ``"window"``:
        the congestion window; segments leave as `tcp.pacing` of the scenario says. ``"both"``: rate, then
        window.
    relative
        If false, actions are Mb/s of payload (0.01 to 10,000) and segments (1 to 100,000). If true, each is
        the power of two, -2 to 2, by which the present value is multiplied; the first values are the initial
        window and that window per 100 ms.
    reward
        A function of `info`; `aurora` by default.

    Observations are ten 32-bit floats, sums over the connections of the station in the step:

    ================  ======================================================================
    0 sent_mbps       payload sent, retransmissions included, Mb/s
    1 acked_mbps      payload newly delivered, Mb/s
    2 loss_share      bytes marked as lost over bytes delivered or lost, 0 to 1
    3 rtt_mean_ms     mean round-trip time, ms; without samples as in the step before
    4 rtt_min_ms      least round-trip time of the connection so far, ms
    5 rtt_gradient    slope of the round-trip times by least squares, s/s, -10 to 10
    6 in_flight_kb    bytes in flight at the end of the step, kB
    7 cwnd_kb         congestion window, kB; the largest value if none is set
    8 pacing_mbps     pacing rate of all connections, Mb/s; 0 if none is set
    9 step_ms         length of the step, ms
    ================  ======================================================================

    `info` has the terms in SI units: ``time_s``, ``step_s``, ``sent_bytes``, ``acked_bytes``, ``lost_bytes``,
    ``rtt_mean_s``, ``rtt_least_s`` (of the step), ``rtt_min_s`` (of the connection; each `None` without
    samples),
    ``rtt_gradient``, ``in_flight_bytes``, ``cwnd_bytes``, ``connections`` (open ones).

    An episode is terminated when every transfer of the station is complete, and truncated at `run.duration`.
    The seed of `reset` is that of the run: equal seeds and actions give equal observations.
    ``options={"scenario": other}`` changes the network from this episode on.

    >>> import paceline
    >>> env = RateControl(paceline.Scenario({"run": {"duration": "1 s", "warmup": "0 s"}, "station": [{}]}))
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(np.array([5.0], np.float32))
    >>> info["step_s"], terminated, truncated
    (0.01, False, False)
    """

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        station: int = 0,
        step: str = "10 ms",
        control: Literal["rate", "window", "both"] = "rate",
        relative: bool = False,
        reward: Reward = aurora,
    ) -> None:
        super().__init__(scenario, step, reward)
        if control not in ("rate", "window", "both"):
            raise ValueError(f'control = {control!r}: "rate", "window" or "both"')
        self.station, self.relative = station, relative
        self._sets_rate, self._sets_window = control != "window", control != "rate"
        bounds = [RATE_MBPS] * self._sets_rate + [WINDOW_SEGMENTS] * self._sets_window
        if relative:
            bounds = [(-DOUBLINGS, DOUBLINGS)] * len(bounds)
        low, high = np.array(bounds, np.float32).T
        self.action_space = Box(low, high, dtype=np.float32)
        low, high = np.array([bounds for _, *bounds in RateEpisode.COMPONENTS], np.float32).T
        self.observation_space = Box(low, high, dtype=np.float32)
        self._episode: RateEpisode = self._start(self.scenario.seed)

    def _start(self, seed: int) -> RateEpisode:
        episode = RateEpisode(self.scenario._scenario, seed, self.station, self.step_length)
        self._segment = episode.segment_bytes
        self._window = float(episode.initial_window)
        self._rate = self._window * self._segment * 8e-6 / 0.1
        return episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode = self._start(self._next_seed(seed, options))
        return np.zeros(len(RateEpisode.COMPONENTS), np.float32), {"time_s": 0.0}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        names = ["pacing rate"] * self._sets_rate + ["congestion window"] * self._sets_window
        values = _checked(action, names)
        window = values.pop() if self._sets_window else None
        rate = values.pop() if self._sets_rate else None
        if self.relative:
            rate = rate if rate is None else self._rate * _factor(rate)
            window = window if window is None else self._window * _factor(window)
        if rate is not None:
            self._rate = rate = min(max(rate, RATE_MBPS[0]), RATE_MBPS[1])
        if window is not None:
            self._window = window = min(max(window, WINDOW_SEGMENTS[0]), WINDOW_SEGMENTS[1])
        data, info, complete, over = self._episode.step(
            None if window is None else int(window * self._segment),
            None if rate is None else int(rate * 1e6),
        )
        return np.frombuffer(data, np.float32).copy(), self.reward(info), complete, over, info


class Scheduling(_Episodes):
    """Weights of the stations in the downlink scheduler of a cell.

    `cell.scheduler` of the scenario is ``"proportional-fair"``, where shares of the resource blocks are in
    proportion to the weights while all stations have data, or ``"max-ci"``, where the station with the
    largest product of weight and bits per resource block comes first.

    Parameters
    ----------
    scenario
        The cell and its stations.
    step
        Time between two actions, 1 ms or more.
    reward
        A function of `info`; `proportional_fairness` by default.

    An action is one weight for each station, 0 to 1; all are 1 at the start. A station of weight 0 gets what
    the others leave.

    Observations have a row of five 32-bit floats for each station:

    =================  =====================================================================
    0 queue_kb         bytes that wait in the base station, kB
    1 head_wait_ms     time for which the first packet of the buffer has waited, ms
    2 mcs              MCS that link adaptation chose last; -1 before the first
    3 mean_rate_mbps   rate at which the station is served, a mean over 100 ms, Mb/s
    4 delivered_mbps   packets that the station has received in the step, Mb/s
    =================  =====================================================================

    `info` has ``time_s``, ``step_s``, and with one value for each station ``queue_bytes``, ``head_wait_s``,
    ``mean_rate_mbps``, ``delivered_bytes``.

    An episode is truncated at `run.duration`; none terminates. Seeds are those of `RateControl`.

    >>> import paceline
    >>> scenario = {"cell": {"scheduler": "max-ci"}, "station": [{"count": 3}]}
    >>> env = Scheduling(paceline.Scenario(scenario))
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape, env.action_space.shape
    ((3, 5), (3,))
    """

    def __init__(self, scenario: ScenarioLike, *, step: str = "10 ms", reward: Reward = proportional_fairness) -> None:
        super().__init__(scenario, step, reward)
        self._episode: SchedulingEpisode = self._start(self.scenario.seed)
        count = self._episode.stations
        low, high = np.array([bounds for _, *bounds in SchedulingEpisode.COMPONENTS], np.float32).T
        self.observation_space = Box(np.tile(low, (count, 1)), np.tile(high, (count, 1)), dtype=np.float32)
        self.action_space = Box(0.0, 1.0, (count,), np.float32)

    def _start(self, seed: int) -> SchedulingEpisode:
        return SchedulingEpisode(self.scenario._scenario, seed, self.step_length)

    def _array(self, data: bytes) -> Floats:
        return np.frombuffer(data, np.float32).reshape(-1, len(SchedulingEpisode.COMPONENTS)).copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode = self._start(self._next_seed(seed, options))
        data, info = self._episode.state()
        return self._array(data), info

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        names = [f"weight of station {station}" for station in range(self._episode.stations)]
        data, info, over = self._episode.step(_checked(action, names))
        return self._array(data), self.reward(info), False, over, info


gymnasium.register(id="paceline/RateControl-v0", entry_point="paceline.gym:RateControl")
gymnasium.register(id="paceline/Scheduling-v0", entry_point="paceline.gym:Scheduling")
