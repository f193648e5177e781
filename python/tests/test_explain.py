"""Captures explained."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import paceline
import pytest

SCENARIO = """[run]
duration = "3 s"
warmup = "0 s"
[link]
queue = "300 kB"
[link.fixed]
downlink_rate = "10 Mb/s"
[[station]]
count = 1
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "scenario.toml").write_text(SCENARIO)
    program = os.environ["PACELINE_PROGRAM"]
    subprocess.run([program, "run", "scenario.toml", "--pcap", "--out", "out"], cwd=folder, check=True)
    return folder / "out" / "seed-1.pcapng"


def test_the_frame_has_the_figures_of_the_command_line(capture: Path) -> None:
    explanation = paceline.explain(capture, interface="servers")
    command = [os.environ["PACELINE_PROGRAM"], "explain", str(capture), "--interface", "servers", "--json"]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert explanation.content == printed["explanation"]
    assert explanation.cause == "queue"
    assert sum(explanation.cause_shares.values()) == pytest.approx(1)
    frame = explanation.connections.to_pandas()
    (row,) = frame.to_dict("records")
    connection = printed["explanation"]["connections"][0]
    assert row["cause"] == connection["cause"] and row["rtt_median_ms"] == connection["rtt_median_ms"]
    assert row["bytes"] == connection["to_client"]["bytes"] and row["queue"] == connection["cause_shares"]["queue"]


def test_pseudonyms_are_those_of_the_key(capture: Path) -> None:
    plain, one, same, other = (
        paceline.explain(str(capture), pseudonymise=key).content["connections"][0]["client"]
        for key in (None, "a", "a", "b")
    )
    assert one == same and len({plain, one, other}) == 3


def test_bad_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pcap").write_text("no capture")
    with pytest.raises(ValueError, match="is no capture; allowed: pcap"):
        paceline.explain(tmp_path / "text.pcap")
    with pytest.raises(OSError, match=r"missing\.pcap"):
        paceline.explain([tmp_path / "missing.pcap"])
