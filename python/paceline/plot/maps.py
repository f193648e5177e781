"""Maps: the slots of a cell, and gains over two keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Patch

from paceline import _paceline
from paceline.plot.style import STYLE, given_or_new
from paceline.scenario import Scenario, ScenarioLike

#: Downlink, guard and uplink symbols: blue, grey and orange of Okabe and Ito.
SYMBOL_COLOURS = {"downlink": "#56B4E9", "guard": "#DDDDDD", "uplink": "#E69F00"}
#: Cells of a gain map up to which each has its number. Chosen: what fits a column in 6 points.
MOST_NUMBERS = 80


def slot_map(scenario: ScenarioLike, *, ax: Axes | None = None) -> Axes:
    """The slots of one period of a TDD cell with their symbols, and for each downlink slot the slots to its
    HARQ-ACK (K1).

    >>> import paceline
    >>> slot_map(paceline.Scenario.load("private-5g")).get_xlabel()
    'Time in ms'
    """
    facts = json.loads(_paceline.cell_facts(Scenario.given(scenario)._scenario))
    if facts["pattern"] is None:
        raise ValueError("cell.duplex = fdd: every slot has both directions; a slot map is one of a TDD cell")
    ax = given_or_new(ax, height=1.1)
    length = facts["slot_ms"]
    for slot in facts["slots"]:
        start = slot["slot"] * length
        symbols = slot["downlink_symbols"] + slot["guard_symbols"] + slot["uplink_symbols"]
        for kind, colour in SYMBOL_COLOURS.items():
            width = slot[f"{kind}_symbols"] / symbols * length
            if width:
                ax.broken_barh([(start, width)], (0, 1), facecolor=colour, edgecolor="white", linewidth=0.4)
                start += width
        middle = (slot["slot"] + 0.5) * length
        ax.text(middle, 0.62, slot["kind"], ha="center", va="center", fontsize=8, fontweight="bold")
        if slot["k1"] is not None:
            ax.text(middle, 0.28, f"K1 {slot['k1']}", ha="center", va="center", fontsize=6)
    ax.grid(False)
    ax.set(xlabel="Time in ms", xlim=(0, facts["period_ms"]), ylim=(0, 1), yticks=[])
    ax.set_xticks([slot["slot"] * length for slot in facts["slots"]] + [facts["period_ms"]])
    handles = [Patch(facecolor=colour, label=kind) for kind, colour in SYMBOL_COLOURS.items()]
    place = (0.5, 0.98)
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=place, ncols=3, fontsize=7, frameon=False)
    return ax


def gain_map(
    x: Sequence[Any],
    y: Sequence[Any],
    gain: Sequence[float],
    *,
    x_label: str,
    y_label: str,
    label: str = "Gain in %",
    ax: Axes | None = None,
) -> Axes:
    """Gains over two keys, one value for each pair: purple below zero, orange above, and the number in each
    cell.

    ``x`` and ``y`` are two columns, such as those of a sweep; pairs without a gain are white.

    >>> ax = gain_map(["5 ms", "5 ms", "8 ms"], [1, 2, 1], [3.0, -1.0, 0.5], x_label="Period", y_label="Size")
    >>> [text.get_text() for text in ax.texts]
    ['+3.0', '+0.5', '-1.0']
    """
    columns, rows = list(dict.fromkeys(x)), list(dict.fromkeys(y))
    cells = np.full((len(rows), len(columns)), np.nan)
    for column, row, value in zip(x, y, gain, strict=True):
        cells[rows.index(row), columns.index(column)] = value
    if np.isnan(cells).all():
        raise ValueError("gain: there are no numbers")
    ax = given_or_new(ax)
    most = max(float(np.nanmax(np.abs(cells))), 1e-9)
    with mpl.rc_context(STYLE):
        mesh = ax.pcolormesh(
            cells, cmap="PuOr_r", norm=TwoSlopeNorm(0.0, -most, most), edgecolors="white", linewidth=0.5
        )
        assert ax.figure is not None
        ax.figure.colorbar(mesh, ax=ax, label=label)
    ax.grid(False)
    for row, column in np.ndindex(cells.shape):
        value = cells[row, column]
        if cells.size <= MOST_NUMBERS and not np.isnan(value):
            dark = abs(value) > 0.55 * most
            ax.text(
                column + 0.5, row + 0.5, f"{value:+.1f}", ha="center", va="center", fontsize=6,
                color="white" if dark else "black",
            )  # fmt: skip
    ax.set_xticks(np.arange(len(columns)) + 0.5, [str(name) for name in columns])
    ax.set_yticks(np.arange(len(rows)) + 0.5, [str(name) for name in rows])
    ax.set(xlabel=x_label, ylabel=y_label)
    return ax
