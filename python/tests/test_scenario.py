"""Scenarios: sources, edits, errors with the command line's messages, pickles."""

from __future__ import annotations

import copy
import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest
from paceline import Scenario, ScenarioError, built_in_scenarios

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_built_in_scenario_is_its_file() -> None:
    for name in built_in_scenarios():
        file = REPOSITORY / "scenarios" / f"{name}.toml"
        assert Scenario.load(name) == Scenario.load(file), name


def test_text_dict_and_edits_give_the_same_scenario() -> None:
    text = '[cell]\nbandwidth = "10 MHz"\n[tcp]\ncongestion_control = "bbr"\n[[station]]\ncount = 3\n'
    of_text = Scenario(text)
    assert Scenario(tomllib.loads(text)) == of_text
    base = Scenario("[[station]]\n")
    edited = base.edit({"cell.bandwidth": "10 MHz"}, tcp__congestion_control="bbr", station__count=3)
    assert edited == of_text and base != of_text
    assert hash(edited) == hash(of_text)
    assert Scenario(of_text.to_toml()) == of_text
    assert Scenario(of_text.to_dict()) == of_text


def test_values_of_every_type_are_taken() -> None:
    import numpy

    base = Scenario("[[station]]\n")
    count: Any = numpy.int32(3)
    assert base.edit(station__count=count) == base.edit(station__count=3)
    assert base.edit({"station.uplink_sinr": ["1 dB", "2 dB"]}).to_dict()["station"][0]["uplink_sinr"] == [
        "1 dB",
        "2 dB",
    ]
    assert base.edit({"tcp.sack": False}).to_dict()["tcp"]["sack"] is False
    hops = base.edit({"core.hops": [{"rate": "1 Gb/s", "delay": "5 ms"}]}).to_dict()["core"]["hops"]
    assert len(hops) == 1 and hops[0]["delay"] == "5 ms"
    with pytest.raises(TypeError, match=r"station\.count: a value is .* not object"):
        base.edit({"station.count": object()})


@pytest.mark.parametrize(
    ("text", "line", "key", "value", "allowed", "message"),
    [
        ('[cell]\nbandwidth = "21 MHz"\n[[station]]\n', 2, "cell.bandwidth", "21 MHz", "1.4, 3, 5, 10, 15 or 20 MHz; others with rat = \"nr\"", "allowed"),
        ("[cell]\nbandwith = 1\n[[station]]\n", 2, "cell.bandwith", "1", None, "did you mean cell.bandwidth"),
        ('[ack_filter]\nscheme = "hybird-opt"\n[[station]]\n', 2, "ack_filter.scheme", '"hybird-opt"', None, "hybrid-opt"),
        ("[[station]]\ncount = \n", 2, None, None, None, "not valid TOML"),
    ],
)  # fmt: skip
def test_errors_have_the_message_of_the_command_line(
    text: str, line: int, key: str | None, value: str | None, allowed: str | None, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario(text, name="mine.toml")
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.line, error.key, error.value, error.file) == (line, key, value, "mine.toml")
    assert str(error).startswith(f"mine.toml:{line}: ") and message in str(error)
    if allowed:
        assert error.allowed == allowed
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.key, again.line) == (str(error), key, line)


def test_errors_of_edits_dicts_and_names() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario({"station": [{"count": 0}]})
    assert caught.value.line is None and caught.value.key == "station.0.count"
    with pytest.raises(ScenarioError, match="did you mean station.count"):
        Scenario("[[station]]\n").edit(station__cuont=3)
    with pytest.raises(ScenarioError, match="give a scenario file, or the name of a built-in one .*did you mean private-5g"):
        Scenario.load("private-5f")


def test_pickles_and_copies_take_traces_along(tmp_path: Path) -> None:
    (tmp_path / "down.trace").write_text("1\n2\n3\n5\n8\n")
    (tmp_path / "mine.toml").write_text(
        '[run]\nduration = "2 s"\nwarmup = "1 s"\n[link.trace]\ndownlink = "down.trace"\n'
        'uplink_rate = "10 Mb/s"\n[[station]]\n'
    )
    scenario = Scenario.load(tmp_path / "mine.toml")
    state = pickle.dumps(scenario)
    (tmp_path / "down.trace").unlink()
    again = pickle.loads(state)
    assert again == scenario == copy.deepcopy(again)
    assert again.edit(run__seed=2).seed == 2
    assert scenario.name == again.name == "mine"


def test_former_names_of_keys_are_warned_of() -> None:
    with pytest.warns(FutureWarning, match="core.path is called core.proxy now"):
        scenario = Scenario('[core]\npath = "direct"\n[[station]]')
    with pytest.warns(FutureWarning, match="most_budget"):
        scenario.edit({"core.path": "accelerator", "accelerator.most_budget": "1 s"})
