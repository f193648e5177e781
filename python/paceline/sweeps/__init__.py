"""Sweeps: every combination of values of some scenario keys, with several seeds each.

``grid`` makes the points, ``work`` simulates them on this machine or on Dask workers, ``folder`` stores
finished points as Parquet, and ``run`` ties them together. The module needs pyarrow, and distributed beyond
one machine: ``pip install 'paceline[sweep]'``.
"""

from __future__ import annotations

from paceline.sweeps.grid import Axis, Point
from paceline.sweeps.run import Sweep, sweep

__all__ = ["Axis", "Point", "Sweep", "sweep"]
