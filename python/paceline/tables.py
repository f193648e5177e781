"""Tables of results as Arrow columns."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from paceline import _paceline

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Columns(Protocol):
    """Columns in memory that a table shows."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and types."""
        ...

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        ...


class Table:
    """A table of results. Every program with Arrow's PyCapsule interface takes it without a copy:
    ``pyarrow.table(table)``, ``polars.DataFrame(table)``, and DuckDB by its name in a query.

    >>> import paceline
    >>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})
    >>> paceline.run(scenario).stations.to_pandas()["goodput_mbps"].min() > 1.0
    True

    Columns and units are those of the CSV files (docs/results.md).
    """

    __slots__ = ("_table",)

    def __init__(self, table: Columns) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self._table.columns]

    @property
    def schema(self) -> dict[str, str]:
        """Names of the columns with their types: ``int64``, ``float64``, ``utf8`` or ``boolean``."""
        return dict(self._table.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns in memory."""
        return self._table.nbytes

    def __len__(self) -> int:
        return self._table.num_rows

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._table, _paceline.Table):
            return _unpickled, (self._table.state(),)
        return Table, (self._table,)

    def to_arrow(self) -> pyarrow.Table:
        """The table of pyarrow, without a copy."""
        pa = _library("pyarrow")
        table: pyarrow.Table = pa.table(self)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """The data frame of pandas, with Arrow's columns and so without a copy. Integers stay integers
        where values are missing."""
        pd, arrow = _library("pandas"), self.to_arrow()
        frame: pandas.DataFrame = arrow.to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The data frame of polars, without a copy."""
        pl = _library("polars")
        frame: polars.DataFrame = pl.DataFrame(self)
        return frame


def _unpickled(state: tuple[Any, ...]) -> Table:
    """The table of a pickle."""
    return Table(_paceline.Table.from_state(state))


def _library(name: str) -> Any:
    """A library that only conveniences need."""
    try:
        return importlib.import_module(name)
    except ImportError:
        message = (
            f"{name} is not installed (pip install {name}); any program with Arrow's PyCapsule interface takes a table"
        )
        raise ImportError(message, name=name) from None
