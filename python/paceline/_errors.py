"""Exceptions of the package. The extension module raises them as well."""

from __future__ import annotations

from typing import Any


class ScenarioError(ValueError):
    """A mistake in a scenario, with the message that the command line prints.

    >>> import paceline
    >>> try:
    ...     paceline.Scenario.load("single-station").edit({"station.count": 0})
    ... except paceline.ScenarioError as error:
    ...     print(error.key, "|", error.value, "|", error.allowed)
    station.0.count | 0 | 1 to 1000 stations
    """

    key: str | None
    """Dotted key with the mistake, where one is known."""
    value: str | None
    """Its value as TOML, where one is known."""
    line: int | None
    """Line of the mistake from 1; None where an edit or a dict may have made it."""
    allowed: str | None
    """The allowed values, where the message states them."""
    file: str | None
    """The scenario's file, or its name."""

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        value: str | None = None,
        line: int | None = None,
        allowed: str | None = None,
        file: str | None = None,
    ) -> None:
        super().__init__(message)
        self.key, self.value, self.line, self.allowed, self.file = key, value, line, allowed, file

    def __reduce__(self) -> tuple[Any, ...]:
        return _error, (str(self), self.key, self.value, self.line, self.allowed, self.file)


def _error(
    message: str, key: str | None, value: str | None, line: int | None, allowed: str | None, file: str | None
) -> ScenarioError:
    """The error of a pickle."""
    return ScenarioError(message, key=key, value=value, line=line, allowed=allowed, file=file)
