"""The environments for learning agents."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import paceline
import pytest
from gymnasium.utils.env_checker import check_env
from paceline import gym
from pettingzoo.test import parallel_api_test, parallel_seed_test

STATIONS = paceline.Scenario(
    {
        "run": {"duration": "2 s", "warmup": "0 s"},
        "cell": {"scheduler": "proportional-fair"},
        "station": [{"count": 2, "start_spread": "50 ms", "fading": "3 dB"}],
    }
)
LINK = paceline.Scenario(
    {
        "run": {"duration": "3 s", "warmup": "0 s"},
        "core": {"hops": []},
        "link": {"delay": "20 ms", "queue": "200 kB", "fixed": {"downlink_rate": "20 Mb/s"}},
        "station": [{"start_spread": "0 s"}],
    }
)


def observations(env: gymnasium.Env[Any, Any], seed: int, actions: list[Any]) -> list[Any]:
    first, _ = env.reset(seed=seed)
    return [first] + [env.step(np.array(action, np.float32))[:4] for action in actions]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(one[1:], other[1:], strict=True))


@pytest.mark.parametrize("options", [{}, {"control": "window"}, {"control": "both", "relative": True}])
def test_rate_control_passes_gymnasiums_checker(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_env(gym.RateControl(STATIONS, **options), skip_render_check=True)


def test_scheduling_passes_gymnasiums_checker() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*maximum value is infinity.*")
        check_env(gym.Scheduling(STATIONS), skip_render_check=True)


def test_both_are_registered() -> None:
    env = gymnasium.make("paceline/RateControl-v0", scenario=STATIONS, step="20 ms")
    assert env.reset(seed=1)[0].shape == (10,)
    assert gymnasium.make("paceline/Scheduling-v0", scenario=STATIONS).reset(seed=1)[0].shape == (2, 5)


def test_equal_seeds_and_actions_give_equal_observations() -> None:
    rates = [[float(1 + step % 7)] for step in range(150)]
    weights = [[1.0, step % 3 / 2] for step in range(150)]
    for make, actions in ((gym.RateControl, rates), (gym.Scheduling, weights)):
        first = observations(make(STATIONS), 7, actions)
        env = make(STATIONS)
        assert not same(first, observations(env, 8, actions))
        assert same(first, observations(env, 7, actions))


def test_resets_without_a_seed_count_up_from_that_of_the_scenario() -> None:
    env, other = gym.RateControl(STATIONS), gym.RateControl(STATIONS)
    seeds = [env.next_seed(None, None) for _ in range(2)] + [env.next_seed(40, None), env.next_seed(None, None)]
    assert seeds == [1, 2, 40, 41]
    actions = [[5.0]] * 100
    env.reset(seed=2)
    env.reset()
    after = [env.step(np.array(action, np.float32))[:4] for action in actions]
    assert same([None, *after], observations(other, 3, actions))


def test_the_sender_follows_the_rate_and_the_episode_ends_with_the_run() -> None:
    env = gym.RateControl(LINK)
    env.reset(seed=1)
    steps = [env.step(np.array([8.0], np.float32)) for _ in range(300)]
    assert [truncated for _, _, _, truncated, _ in steps] == [False] * 299 + [True]
    assert not any(terminated for _, _, terminated, _, _ in steps)
    sent = [info["sent_bytes"] * 8e-6 / info["step_s"] for *_, info in steps[50:]]
    assert abs(np.mean(sent) - 8.0) < 0.1
    observation, reward, *_, info = steps[-1]
    assert reward == gym.aurora(info)
    names = [name for name, *_ in paceline._paceline.RateEpisode.COMPONENTS]
    shown = dict(zip(names, observation.tolist(), strict=True))
    assert shown["pacing_mbps"] == 8.0 and 40 < shown["rtt_min_ms"] < shown["rtt_mean_ms"] < 45
    assert shown["in_flight_kb"] == pytest.approx(info["in_flight_bytes"] / 1e3)


def test_a_window_holds_and_a_relative_action_multiplies() -> None:
    env = gym.RateControl(LINK, control="window", relative=True)
    env.reset(seed=1)
    # The server's side of the connection exists from the SYN on, after 20 ms.
    windows = [env.step(np.array([1.0], np.float32))[4]["cwnd_bytes"] for _ in range(6)]
    assert windows[3:] == [10 * 1448 * 2**power for power in (4, 5, 6)]
    both = gym.RateControl(LINK, control="both")
    both.reset(seed=1)
    info = [both.step(np.array([5.0, 20.0], np.float32))[4] for _ in range(50)][-1]
    assert info["cwnd_bytes"] == 20 * 1448 and info["in_flight_bytes"] <= 20 * 1448


def test_a_finished_transfer_terminates_the_episode_and_a_reset_changes_the_network() -> None:
    env = gym.RateControl(LINK)
    env.reset(seed=1, options={"scenario": LINK.edit({"station.0.file": "200 kB"})})
    steps = [env.step(np.array([8.0], np.float32)) for _ in range(60)]
    assert [terminated for _, _, terminated, _, _ in steps].index(True) in range(22, 32)


def test_a_weight_moves_the_cell() -> None:
    env = gym.Scheduling(STATIONS.edit({"station.0.traffic": "udp", "station.0.udp_rate": "60 Mb/s"}))
    env.reset(seed=1)
    totals = np.sum([env.step(np.array([1.0, 0.1], np.float32))[4]["delivered_bytes"] for _ in range(150)], axis=0)
    assert totals[0] > 2 * totals[1]


def test_the_results_of_an_episode_have_the_tables_of_a_run() -> None:
    env = gym.RateControl(LINK)
    env.reset(seed=4)
    for _ in range(300):
        env.step(np.array([8.0], np.float32))
    results = env.results()
    assert results.seeds == [4] and results.scenario == LINK
    assert len(results.series) == len(paceline.run(LINK).series)
    assert results.summary.mean.goodput_mbps == pytest.approx(8.0 * 2.9 / 3, abs=0.2)
    with pytest.raises(ValueError, match="ended with its results"):
        env.step(np.array([8.0], np.float32))
    scheduling = gym.Scheduling(STATIONS)
    scheduling.reset(seed=4)
    scheduling.step(np.array([1.0, 1.0], np.float32))
    assert scheduling.results().summary.stations == 2
    with pytest.raises(ValueError, match="ended with its results"):
        scheduling.results()


def test_an_action_that_is_no_number_names_itself() -> None:
    nan = float("nan")
    rates: list[tuple[dict[str, Any], list[float], str]] = [
        ({}, [nan], r"action\[0\] \(pacing rate\) = nan"),
        ({"control": "window"}, [nan], r"action\[0\] \(congestion window\) = nan"),
        ({"control": "both"}, [1.0, nan], r"action\[1\] \(congestion window\) = nan"),
        ({"control": "both", "relative": True}, [nan, 0.0], r"action\[0\] \(pacing rate\) = nan"),
        ({}, [1.0, 2.0], "an action of 2 numbers: 1 are needed, pacing rate"),
    ]
    for options, action, message in rates:
        env = gym.RateControl(LINK, **options)
        env.reset(seed=1)
        with pytest.raises(ValueError, match=message):
            env.step(np.array(action, np.float32))
        # The episode goes on, also from the bounds.
        env.step(np.full(env.action_space.shape or (), np.inf, np.float32))
    scheduling = gym.Scheduling(STATIONS)
    scheduling.reset(seed=1)
    with pytest.raises(ValueError, match=r"action\[1\] \(weight of station 1\) = nan"):
        scheduling.step(np.array([1.0, nan], np.float32))
    with pytest.raises(ValueError, match="weight of station 0 = inf"):
        scheduling.step(np.array([np.inf, 1.0], np.float32))


@pytest.mark.parametrize("options", [{}, {"control": "both", "relative": True}, {"stations": [1]}])
def test_rate_controls_pass_pettingzoos_checker(options: dict[str, Any]) -> None:
    parallel_api_test(gym.RateControls(STATIONS, **options), num_cycles=300)
    parallel_seed_test(lambda: gym.RateControls(STATIONS, **options), num_cycles=50)


def test_one_agent_of_several_is_rate_control() -> None:
    alone, one = gym.RateControl(STATIONS, station=1), gym.RateControls(STATIONS, stations=[1])
    alone.reset(seed=3)
    one.reset(seed=3)
    for step in range(150):
        action = np.array([1.0 + step % 7], np.float32)
        expected, got = alone.step(action), one.step({"station_1": action})
        assert np.array_equal(expected[0], got[0]["station_1"])
        assert list(expected[1:]) == [part["station_1"] for part in got[1:]]
    assert one.results().seeds == [3]


def test_an_agent_leaves_when_its_transfers_are_complete() -> None:
    stations = [{"file": "200 kB", "start_spread": "0 s"}, {"start_spread": "0 s"}]
    env = gym.RateControls(paceline.Scenario({**LINK.to_dict(), "station": stations}))
    env.reset(seed=1)
    left = 0
    while env.agents:
        act = {agent: np.array([8.0 if agent == "station_0" else 2.0], np.float32) for agent in env.agents}
        _, _, terminations, truncations, _ = env.step(act)
        left += terminations.get("station_0", False)
        assert truncations["station_1"] == (not env.agents)
    assert left == 1
    with pytest.raises(ValueError, match=r"one of each agent is needed, none: reset\(\)"):
        env.step({"station_1": np.array([1.0], np.float32)})
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"station_1: action\[0\] \(pacing rate\) = nan"):
        env.step({"station_0": np.array([1.0], np.float32), "station_1": np.array([np.nan], np.float32)})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasium_makes_vectors_of_environments(mode: str) -> None:
    env = gymnasium.make_vec(
        "paceline/RateControl-v0", num_envs=2, vectorization_mode=mode, scenario=LINK, step="20 ms"
    )
    first, _ = env.reset(seed=1)
    second, rewards, *_ = env.step(np.array([[5.0], [8.0]], np.float32))
    env.close()
    assert first.shape == second.shape == (2, 10) and rewards.shape == (2,)


def test_scenarios_without_such_an_episode_are_refused() -> None:
    with pytest.raises(paceline.ScenarioError, match="one of the scenario's stations") as refused:
        gym.RateControl(STATIONS, station=2)
    assert (refused.value.key, refused.value.value) == ("station", "2")
    with pytest.raises(paceline.ScenarioError, match="step = 100 us: allowed: 1 ms to 2 s"):
        gym.RateControl(STATIONS, step="100 us")
    with pytest.raises(ValueError, match='step = "10": .*"5 ms"'):
        gym.RateControl(STATIONS, step="10")
    with pytest.raises(paceline.ScenarioError, match="proportional-fair or max-ci"):
        gym.Scheduling(STATIONS.edit({"cell.scheduler": "round-robin"}))
    with pytest.raises(paceline.ScenarioError, match="a cell's scheduler"):
        gym.Scheduling(LINK)
    with pytest.raises(ValueError, match='"rate", "window" or "both"'):
        gym.RateControl(STATIONS, control="cwnd")  # type: ignore[arg-type]
