"""Captures explained: the limits of TCP, and the places of its round trips (docs/explain.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from paceline import _paceline
from paceline.tables import Table

Taken: TypeAlias = Literal["server", "client", "between"]


class Explanation:
    """The explanation of captures; :func:`explain` makes it."""

    __slots__ = ("_connections", "_content")

    def __init__(self, content: dict[str, Any], connections: Table) -> None:
        self._content, self._connections = content, connections

    @property
    def verdict(self) -> str:
        """The limit of all connections together, in words: ``TCP is …``."""
        return str(self._content["network"]["verdict"])

    @property
    def cause(self) -> str:
        """The largest cause of all connections together."""
        return str(self._content["network"]["cause"])

    @property
    def cause_shares(self) -> dict[str, float]:
        """Shares of the time by cause; they sum to 1."""
        return dict(self._content["network"]["cause_shares"])

    @property
    def connections(self) -> Table:
        """A row per connection, those with most data first: causes as shares, round trips in ms, rates in
        Mb/s, losses; figures of data are those of the end that sent more."""
        return self._connections

    @property
    def content(self) -> dict[str, Any]:
        """Everything, as ``explain.json`` has it under ``explanation``."""
        return self._content

    def __repr__(self) -> str:
        return f"Explanation({len(self._connections)} connections: TCP is {self.verdict})"


def explain(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    interface: str | None = None,
    taken: Taken | None = None,
    pseudonymise: str | None = None,
) -> Explanation:
    """Explains captures (pcap, pcapng, packed by gzip or xz), as ``paceline explain`` does.

    Several paths are parts of one capture, or captures at several points. ``taken`` states where they were
    made; ``pseudonymise`` is a key that puts pseudonyms in place of addresses.

    >>> import pathlib, tempfile, paceline
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "empty.pcap")
    ...     _ = path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    ...     paceline.explain(path)
    Traceback (most recent call last):
    ValueError: no TCP segments in the captures, or none at this interface
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    text, table = _paceline.explain([os.fspath(path) for path in listed], interface, taken, pseudonymise)
    return Explanation(json.loads(text), Table(table))
