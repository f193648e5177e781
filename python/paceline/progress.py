"""Progress of long work on stderr, in terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Progress = Callable[[float, float], None]
"""Called with the finished and the whole work, in the same unit."""

_SILENT_S = 0.5
"""Seconds before the first line. Chosen: shorter work shows nothing."""
_INTERVAL_S = 0.2
"""Seconds between two lines. Chosen: smooth to the eye, and cheap over a network."""


def chosen(progress: bool | Progress | None) -> Progress | None:
    """The function that shows progress: the given one, a line on stderr, or none.

    None shows a line where somebody can see it: in a terminal or a notebook.
    """
    if callable(progress):
        return progress
    shown = _is_watched() if progress is None else progress
    return _Line() if shown else None


def _is_watched() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    in_notebook = hasattr(shell, "kernel")
    return in_notebook or (sys.stderr is not None and sys.stderr.isatty())


class _Line:
    """A line with percentage and remaining time, rewritten in place."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown = self._started + _SILENT_S - _INTERVAL_S
        self._width = 0

    def __call__(self, done: float, whole: float) -> None:
        now = time.monotonic()
        finished = done >= whole
        if finished and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0
        elif not finished and now - self._shown >= _INTERVAL_S and done > 0.0:
            self._shown = now
            left = (now - self._started) * (whole / done - 1.0)
            text = f"{100.0 * done / whole:3.0f}%, {_duration(left)} left"
            print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = max(self._width, len(text))


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
