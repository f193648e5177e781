"""An agent that sets the weights of a cell's stations."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from paceline._paceline import SchedulingEpisode
from paceline.gym.episodes import Episodes, Floats, Info, Reward, checked
from paceline.scenario import ScenarioLike


def proportional_fairness(info: Info) -> float:
    """The mean over the stations of the logarithm of the rate at which each is served, in Mb/s.

    Rates are means over 100 ms; one below 1 kb/s counts as 1 kb/s. A scheduler that maximises the sum of
    logarithms of long-term rates is proportionally fair (Kelly and others 1998).

    >>> round(proportional_fairness({"mean_rate_mbps": [10.0, 0.0]}), 3)
    -2.303
    """
    rates = info["mean_rate_mbps"]
    return sum(math.log(max(rate, 1e-3)) for rate in rates) / len(rates)


class Scheduling(Episodes, gymnasium.Env[Floats, Floats]):
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
        self._episode = self._start(self.next_seed(seed, options))
        data, info = self._episode.state()
        return self._array(data), info

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        names = [f"weight of station {station}" for station in range(self._episode.stations)]
        data, info, over = self._episode.step(checked(action, names))
        return self._array(data), self.reward(info), False, over, info
