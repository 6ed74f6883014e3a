"""Layer 5: sweeps and the paper's experiments, as data and pure functions. Nothing imports them but the command line.

>>> from driftsack.experiments import Spec, load, run
"""

from driftsack.experiments.spec import Spec, make_spec, read_spec
from driftsack.experiments.store import load
from driftsack.experiments.summary import summary
from driftsack.experiments.sweep import run

__all__ = ["Spec", "load", "make_spec", "read_spec", "run", "summary"]
