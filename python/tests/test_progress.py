"""The line that shows progress."""

from __future__ import annotations

import time

import pytest
from paceline import progress


def test_a_line_is_rewritten_in_place_and_removed_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    show = progress.chosen(True)
    assert show is not None
    show(1.0, 10.0)
    assert capsys.readouterr().err == "", "short work shows nothing"
    for after, done, line in [(1.0, 2.0, "\r 20%, 0:04 left"), (0.1, 2.5, ""), (1.9, 3.0, "\r 30%, 0:07 left")]:
        now[0] += after
        show(done, 10.0)
        assert capsys.readouterr().err == line
    show(10.0, 10.0)
    assert capsys.readouterr().err == "\r" + " " * len("\r 20%, 0:04 left".strip("\r")) + "\r"


def test_nothing_is_shown_where_nobody_looks() -> None:
    def told(done: float, whole: float) -> None:
        pass

    assert progress.chosen(None) is None, "stderr of the tests is no terminal"
    assert progress.chosen(False) is None
    assert progress.chosen(told) is told
