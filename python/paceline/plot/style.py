"""Size, colours and files of figures."""

from __future__ import annotations

import os
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_IN = 3.5
"""Width of a column in inches, as in IEEE's journals."""
PAGE_IN = 7.16
"""Width of a page of two columns in inches."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of lines, one after the other (Okabe and Ito 2008, without the yellow, which is faint on paper)."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))
"""Dash patterns of lines, one after the other."""

# Chosen: the smallest sizes that IEEE's guide for authors calls readable; 42 embeds fonts as TrueType, which
# publishers ask for.
STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#CCCCCC",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
}
#: Height over width of a panel. Chosen: room for a legend and labels at a column's width.
ASPECT = 0.62
#: Least height of a panel in inches. Chosen: room for the label of its axis.
LEAST_IN = 1.75


def figure(
    *,
    width: Literal["column", "page"] | float = "column",
    height: float | None = None,
    rows: int = 1,
    columns: int = 1,
    **options: Any,
) -> tuple[Figure, Any]:
    """A figure and its axes, at the width of a column, of a page, or of so many inches.

    Axes are one or an array, as of `Figure.subplots` of matplotlib, which gets the other options.

    >>> made, ax = figure(width="page", columns=2, sharey=True)
    >>> [round(float(side), 2) for side in made.get_size_inches()], len(ax)
    ([7.16, 2.22], 2)
    """
    inches = {"column": COLUMN_IN, "page": PAGE_IN}.get(width, width) if isinstance(width, str) else width
    if isinstance(inches, str) or inches <= 0:
        raise ValueError(f'width = {width!r}: "column", "page", or inches')
    panel = max(inches / columns * ASPECT, LEAST_IN)
    size = (inches, height if height is not None else panel * rows)
    # The first figure loads the backend, whose changes of settings the context would take back.
    made = pyplot.figure(figsize=size, layout="constrained")
    with mpl.rc_context(STYLE):
        axes = made.subplots(rows, columns, **options)
        for ax in np.atleast_1d(axes).flat:
            ax.grid(True)
            ax.set_axisbelow(True)
    return made, axes


def save(made: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure: as vectors to ``.pdf``, ``.svg`` and ``.eps``, with 300 dots per inch to ``.png``.

    Files have no date, so that equal figures are equal bytes.
    """
    kind = os.fspath(path).rpartition(".")[2].lower()
    date = {"pdf": "CreationDate", "svg": "Date"}.get(kind)
    with mpl.rc_context({**STYLE, "svg.hashsalt": "paceline"}):
        made.savefig(path, dpi=300, metadata={date: None} if date else None)


def given_or_new(ax: Axes | None, height: float | None = None) -> Axes:
    """The axes, or those of a new figure at the width of a column."""
    if ax is None:
        _, ax = figure(height=height)
    assert isinstance(ax, Axes)
    return ax


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.1}


def keyed_style(hue: int, dash: int) -> dict[str, Any]:
    """The colour of the value of one key, such as a group, and the dashes of the value of another."""
    return {**line_style(hue), "linestyle": DASHES[dash % len(DASHES)]}


def group_style(ax: Axes, group: int) -> dict[str, Any]:
    """The colour of a group, and the dashes of the next line of this colour in these axes."""
    colour = line_style(group)["color"]
    return keyed_style(group, sum(line.get_color() == colour for line in ax.get_lines()))


def next_style(ax: Axes) -> dict[str, Any]:
    """Colour and dashes of the next line in these axes."""
    return line_style(len(ax.get_lines()))


def legend(ax: Axes, most: int = 8) -> None:
    """A legend where lines have labels, unless there are more than fit."""
    _, labels = ax.get_legend_handles_labels()
    if 1 <= len(labels) <= most:
        ax.legend(fontsize=7, framealpha=0.8, edgecolor="none", borderpad=0.2, handlelength=2.4, labelspacing=0.3)
