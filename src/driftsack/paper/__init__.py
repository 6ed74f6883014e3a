"""Reproduce the experiments of the paper and judge its claims."""

from driftsack.core.extras import require

require("polars", "scipy", "highspy", "matplotlib", "pydantic")  # before the modules that need them

from driftsack.paper.calibration import calibrate
from driftsack.paper.oco_reproduction import OcoReproduction, reproduce_oco
from driftsack.paper.reproduction import Reproduction, reproduce

__all__ = ["OcoReproduction", "Reproduction", "calibrate", "reproduce", "reproduce_oco"]
