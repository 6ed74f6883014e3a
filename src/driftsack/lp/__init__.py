"""The step LP, its certificate, and HiGHS as the fallback."""

from driftsack.lp.step import Certificate, StepSolution, certificate, step_lp

__all__ = ["Certificate", "StepSolution", "certificate", "step_lp"]
