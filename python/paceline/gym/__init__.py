"""Environments for learning agents, which act between steps of a run.

`RateControl` sets pacing rate and congestion window of the senders of one station, `RateControls` those of
several, an agent for each station, `Scheduling` the weights of the stations in the downlink scheduler of a
cell. Everything else is the scenario's, so that the same scenario run by `paceline.run` is the agents'
baseline: senders without an agent have the congestion control of the scenario.

Importing this module registers ``paceline/RateControl-v0`` and ``paceline/Scheduling-v0`` with gymnasium, for
`gymnasium.make` and `gymnasium.make_vec`. It needs the extra ``paceline[gym]``.
"""

from __future__ import annotations

import gymnasium

from paceline.gym.parallel import RateControls
from paceline.gym.rate import RateControl, aurora
from paceline.gym.scheduling import Scheduling, proportional_fairness

__all__ = ["RateControl", "RateControls", "Scheduling", "aurora", "proportional_fairness"]

gymnasium.register(id="paceline/RateControl-v0", entry_point="paceline.gym:RateControl")
gymnasium.register(id="paceline/Scheduling-v0", entry_point="paceline.gym:Scheduling")
