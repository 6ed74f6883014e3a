"""Draw figures and build HTML pages."""

from driftsack.core.extras import require

require("matplotlib")  # before the modules that need them

from driftsack.plot.adaptive import Pacing, belief_figure, pacing_figure, revisits_figure
from driftsack.plot.advice import as_data_uri, floors_figure, standings_figure, windows_figure
from driftsack.plot.drift import drift_figure
from driftsack.plot.flights import flights_figure
from driftsack.plot.heat_map import heat_figure
from driftsack.plot.lines import lines_figure
from driftsack.plot.oco import oco_figure
from driftsack.plot.rewards import rewards_figure
from driftsack.plot.style import write_figure
from driftsack.plot.theory import theory_figure

__all__ = [
    "Pacing",
    "as_data_uri",
    "belief_figure",
    "drift_figure",
    "flights_figure",
    "floors_figure",
    "heat_figure",
    "lines_figure",
    "oco_figure",
    "pacing_figure",
    "revisits_figure",
    "rewards_figure",
    "standings_figure",
    "theory_figure",
    "windows_figure",
    "write_figure",
]
