"""Figures of results at the size of a paper's column: `results.plot.throughput_cdf()` and others.

Every function takes ``ax``, makes one of a column's width if there is none, and returns it, so that several
results share axes and panels. Axes have units; colours are those of Okabe and Ito (2008), which people with
any colour vision can tell apart, and each line has its own dash pattern as well. No figure has a title:
captions are the paper's.

>>> import paceline
>>> from paceline import plot
>>> scenario = paceline.Scenario.load("single-station").edit(run__duration="8 s")
>>> figure, axes = plot.figure(columns=2, width="page")
>>> results = paceline.run(scenario, seeds=[1, 2])
>>> ax = results.plot.rtt_cdf(ax=axes[0], label="CUBIC")
>>> ax = results.plot.time_series("cwnd_kb", ax=axes[1])
>>> plot.save(figure, "cubic.pdf")  # doctest: +SKIP

Needs the extra ``paceline[plot]``.
"""

from paceline.plot.maps import gain_map, slot_map
from paceline.plot.results import QUANTITIES, Plots
from paceline.plot.style import COLOURS, COLUMN_IN, PAGE_IN, figure, save
from paceline.plot.sweeps import SweepPlots

__all__ = [
    "COLOURS",
    "COLUMN_IN",
    "PAGE_IN",
    "QUANTITIES",
    "Plots",
    "SweepPlots",
    "figure",
    "gain_map",
    "save",
    "slot_map",
]
