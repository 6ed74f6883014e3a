"""Optima under each definition of the paper, with certificates, and the reward without foresight (``present``).

LP-Static <= OPT_FD (fluid) <= LP-Dynamic, and OPT_FD (hard) <= OPT_DP <= LP-Dynamic with budgets larger by the costs of
one round. The paper's appendix on benchmarks states this chain slightly differently (docs/errata.md).
"""

from driftsack.benchmarks.benchmark import Benchmark
from driftsack.benchmarks.dynamic_program import dynamic_program
from driftsack.benchmarks.fixed_distribution import FixedDistribution, fixed_distribution
from driftsack.benchmarks.hard_fixed_distribution import hard_fixed_distribution
from driftsack.benchmarks.lp_contextual import ContextValue, lp_contextual, value_of_context
from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.benchmarks.lp_static import lp_static
from driftsack.benchmarks.present import Present, present
from driftsack.benchmarks.single_step import SingleStep, single_step

__all__ = [
    "Benchmark",
    "ContextValue",
    "FixedDistribution",
    "Present",
    "SingleStep",
    "dynamic_program",
    "fixed_distribution",
    "hard_fixed_distribution",
    "lp_contextual",
    "lp_dynamic",
    "lp_static",
    "present",
    "single_step",
    "value_of_context",
]
