"""Agents that set pacing rate and congestion window of senders."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box

from paceline._paceline import RateEpisode
from paceline.gym.episodes import Episodes, Floats, Info, Reward, checked
from paceline.scenario import ScenarioLike

Control = Literal["rate", "window", "both"]
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


class Actions:
    """The meaning of an action: which settings it has, and whether it multiplies them."""

    def __init__(self, control: Control, relative: bool) -> None:
        if control not in ("rate", "window", "both"):
            raise ValueError(f'control = {control!r}: "rate", "window" or "both"')
        self.sets_rate, self.sets_window = control != "window", control != "rate"
        self.relative = relative
        self.names = ["pacing rate"] * self.sets_rate + ["congestion window"] * self.sets_window

    def space(self) -> Space[Floats]:
        bounds = [RATE_MBPS] * self.sets_rate + [WINDOW_SEGMENTS] * self.sets_window
        if self.relative:
            bounds = [(-DOUBLINGS, DOUBLINGS)] * len(bounds)
        low, high = np.array(bounds, np.float32).T
        return Box(low, high, dtype=np.float32)


class Senders:
    """Pacing rate and window in force at the senders of a station."""

    def __init__(self, segment_bytes: int, initial_window: int) -> None:
        self._segment = segment_bytes
        self._window = float(initial_window)
        self._rate = self._window * segment_bytes * 8e-6 / 0.1

    def setting(self, actions: Actions, action: Floats) -> tuple[int | None, int | None]:
        """Window in bytes and rate in bits per second after an action; `None` where it sets none."""
        values = checked(action, actions.names)
        window = values.pop() if actions.sets_window else None
        rate = values.pop() if actions.sets_rate else None
        if actions.relative:
            rate = rate if rate is None else self._rate * _factor(rate)
            window = window if window is None else self._window * _factor(window)
        if rate is not None:
            self._rate = rate = min(max(rate, RATE_MBPS[0]), RATE_MBPS[1])
        if window is not None:
            self._window = window = min(max(window, WINDOW_SEGMENTS[0]), WINDOW_SEGMENTS[1])
        return (
            None if window is None else int(window * self._segment),
            None if rate is None else int(rate * 1e6),
        )


def _factor(doublings: float) -> float:
    return float(2.0 ** min(max(doublings, -MOST_DOUBLINGS), MOST_DOUBLINGS))


def observations() -> Space[Floats]:
    low, high = np.array([bounds for _, *bounds in RateEpisode.COMPONENTS], np.float32).T
    return Box(low, high, dtype=np.float32)


def first_observation() -> Floats:
    """The observation before the first step."""
    return np.zeros(len(RateEpisode.COMPONENTS), np.float32)


class RateControl(Episodes, gymnasium.Env[Floats, Floats]):
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
        control: Control = "rate",
        relative: bool = False,
        reward: Reward = aurora,
    ) -> None:
        super().__init__(scenario, step, reward)
        self.station, self._actions = station, Actions(control, relative)
        self.action_space, self.observation_space = self._actions.space(), observations()
        self._episode: RateEpisode = self._start(self.scenario.seed)

    def _start(self, seed: int) -> RateEpisode:
        episode = RateEpisode(self.scenario._scenario, seed, [self.station], self.step_length)
        self._senders = Senders(*episode.senders[0])
        return episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode = self._start(self.next_seed(seed, options))
        return first_observation(), {"time_s": 0.0}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        setting = self._senders.setting(self._actions, action)
        ((data, info, complete, over),) = self._episode.step([setting])
        return np.frombuffer(data, np.float32).copy(), self.reward(info), complete, over, info
