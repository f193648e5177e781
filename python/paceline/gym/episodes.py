"""Scenario, seeds and reward of an environment, and checks of actions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.results import Results
from paceline.scenario import Scenario, ScenarioLike

Info = Mapping[str, Any]
Reward = Callable[[Info], float]
Floats = NDArray[np.float32]


class Episodes:
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

    def next_seed(self, seed: int | None, options: dict[str, Any] | None) -> int:
        self.scenario = (options or {}).get("scenario", self.scenario)
        if seed is not None:
            self._seeds = itertools.count(seed)
        return next(self._seeds)


def checked(action: Floats, names: list[str]) -> list[float]:
    """The numbers of an action, one for each name."""
    values = [float(value) for value in np.ravel(action)]
    if len(values) != len(names):
        last = "" if len(names) == 1 else f" to {names[-1]}"
        raise ValueError(f"an action of {len(values)} numbers: {len(names)} are needed, {names[0]}{last}")
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        if math.isnan(value):
            raise ValueError(f"action[{index}] ({name}) = nan: a number")
    return values
