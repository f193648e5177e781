"""Agents of several stations in one run, by PettingZoo's parallel interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from pettingzoo import ParallelEnv

from paceline._paceline import RateEpisode
from paceline.gym.episodes import Episodes, Floats, Reward
from paceline.gym.rate import Actions, Control, Senders, aurora, first_observation, observations
from paceline.scenario import ScenarioLike


class RateControls(Episodes, ParallelEnv[str, Floats, Floats]):  # type: ignore[misc]
    """Pacing rate and congestion window of the senders of several stations, an agent for each.

    Agents are named ``"station_0"`` and so on. The parameters are those of `RateControl`, with `stations`,
    their indices, in place of `station`; without, every station has an agent. So are actions, observations,
    rewards and `info` of each agent, and the seeds of `reset`.

    An agent leaves when every transfer of its station is complete; its senders keep their last setting. All
    are truncated at `run.duration`.

    >>> import paceline
    >>> scenario = {"run": {"duration": "1 s", "warmup": "0 s"}, "station": [{"count": 2}]}
    >>> env = RateControls(paceline.Scenario(scenario))
    >>> seen, info = env.reset(seed=1)
    >>> act = {agent: np.array([5.0], np.float32) for agent in env.agents}
    >>> seen, rewards, terminations, truncations, info = env.step(act)
    >>> sorted(rewards), info["station_1"]["step_s"]
    (['station_0', 'station_1'], 0.01)
    """

    metadata = {"name": "paceline_rate_controls_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        stations: Sequence[int] | None = None,
        step: str = "10 ms",
        control: Control = "rate",
        relative: bool = False,
        reward: Reward = aurora,
    ) -> None:
        super().__init__(scenario, step, reward)
        groups = self.scenario.to_dict()["station"]
        every = range(sum(group["count"] for group in groups))
        self._stations = list(every if stations is None else stations)
        self._actions = Actions(control, relative)
        self.possible_agents = [f"station_{station}" for station in self._stations]
        self.agents: list[str] = []
        self.render_mode = None
        self._action_spaces = {agent: self._actions.space() for agent in self.possible_agents}
        self._observation_spaces = {agent: observations() for agent in self.possible_agents}
        self._episode: RateEpisode = self._start(self.scenario.seed)

    def action_space(self, agent: str) -> Space[Floats]:
        return self._action_spaces[agent]

    def observation_space(self, agent: str) -> Space[Floats]:
        return self._observation_spaces[agent]

    def _start(self, seed: int) -> RateEpisode:
        episode = RateEpisode(self.scenario._scenario, seed, self._stations, self.step_length)
        self._senders = [Senders(*senders) for senders in episode.senders]
        self._settings: list[tuple[int | None, int | None]] = [(None, None)] * len(self._senders)
        return episode

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        self._episode = self._start(self.next_seed(seed, options))
        self.agents = list(self.possible_agents)
        return (
            {agent: first_observation() for agent in self.agents},
            {agent: {"time_s": 0.0} for agent in self.agents},
        )

    def step(
        self, actions: Mapping[str, Floats]
    ) -> tuple[
        dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        if set(actions) != set(self.agents):
            given, needed = ", ".join(sorted(actions)) or "none", ", ".join(self.agents) or "none: reset()"
            raise ValueError(f"actions of {given}: one of each agent is needed, {needed}")
        for index, agent in enumerate(self.possible_agents):
            if agent in actions:
                self._settings[index] = self._setting(index, agent, actions[agent])
        reports = dict(zip(self.possible_agents, self._episode.step(self._settings), strict=True))
        reports = {agent: reports[agent] for agent in self.agents}
        self.agents = [agent for agent, (_, _, complete, over) in reports.items() if not (complete or over)]
        return (
            {agent: np.frombuffer(data, np.float32).copy() for agent, (data, *_) in reports.items()},
            {agent: self.reward(info) for agent, (_, info, _, _) in reports.items()},
            {agent: complete for agent, (_, _, complete, _) in reports.items()},
            {agent: over for agent, (*_, over) in reports.items()},
            {agent: info for agent, (_, info, _, _) in reports.items()},
        )

    def _setting(self, index: int, agent: str, action: Floats) -> tuple[int | None, int | None]:
        try:
            return self._senders[index].setting(self._actions, action)
        except ValueError as error:
            raise ValueError(f"{agent}: {error}") from None
