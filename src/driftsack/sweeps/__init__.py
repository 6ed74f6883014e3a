"""Sweeps: instances × policies × seeds × trials, described as data, run by an engine and kept in a store.

>>> from driftsack.sweeps import Spec, load, run
"""

from driftsack.core.extras import require

require("polars", "pydantic")  # before the modules that need them

from driftsack.sweeps.held_out import held_out_worlds
from driftsack.sweeps.spec import Spec, make_spec, read_spec
from driftsack.sweeps.store import load
from driftsack.sweeps.summary import summary
from driftsack.sweeps.sweep import run

__all__ = ["Spec", "held_out_worlds", "load", "make_spec", "read_spec", "run", "summary"]
