"""TCP over LTE and 5G: a simulator of radio, core network and TCP.

>>> import paceline
>>> scenario = paceline.Scenario.load("single-station").edit({"run.duration": "3 s", "run.warmup": "1 s"})
>>> results = paceline.run(scenario, seeds=range(1, 3))
>>> results.summary.mean.goodput_mbps > 1.0
True
>>> results.flows.to_pandas().columns[:4].to_list()
['seed', 'station', 'flow', 'bytes']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline._errors import ScenarioError
from paceline._paceline import commit as __commit__
from paceline._paceline import version as __version__
from paceline.comparison import Comparison, compare
from paceline.control import Ack, Control, MakesControl
from paceline.explanation import Explanation, explain
from paceline.reproduction import EXPERIMENTS, Reproduction, reproduce
from paceline.results import TABLES, Results
from paceline.runs import run
from paceline.scenario import Scenario, Value, built_in_scenarios
from paceline.summary import Group, GroupFigures, Limits, RadioDelays, Summary, Totals
from paceline.tables import Table

if TYPE_CHECKING:
    from paceline.sweeps import Sweep, sweep

__all__ = [
    "EXPERIMENTS",
    "TABLES",
    "Ack",
    "Comparison",
    "Control",
    "Explanation",
    "Group",
    "GroupFigures",
    "Limits",
    "MakesControl",
    "RadioDelays",
    "Reproduction",
    "Results",
    "Scenario",
    "ScenarioError",
    "Summary",
    "Sweep",
    "Table",
    "Totals",
    "Value",
    "__commit__",
    "__version__",
    "built_in_scenarios",
    "compare",
    "explain",
    "reproduce",
    "run",
    "sweep",
]

_COMMAND_LINE_ONLY = {
    "emulate": "real programs over the modelled radio",
    "gateway": "acceleration of live traffic",
    "pace": "pacing of this host's senders",
    "police": "dropping of ACKs in the kernel",
}


def __getattr__(name: str) -> object:
    """Imports sweeps when they are used, since pyarrow takes time; says which functions only the command line
    has."""
    if name in ("Sweep", "sweep"):
        try:
            from paceline import sweeps
        except ImportError as error:
            raise ImportError(f"paceline.{name} needs pyarrow: pip install 'paceline[sweep]'") from error
        return getattr(sweeps, name)
    if name in _COMMAND_LINE_ONLY:
        work = _COMMAND_LINE_ONLY[name]
        raise AttributeError(f"paceline.{name}: Python has no {work}; use the command `paceline {name}`")
    raise AttributeError(f"module 'paceline' has no attribute {name!r}")
