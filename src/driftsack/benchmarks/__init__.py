"""Layer 2: the optimum in all its definitions, each with its proof.

OPT_FD <= OPT_DP <= LP-Dynamic and OPT_FD <= LP-Static <= LP-Dynamic (paper, appendix on benchmarks).
"""

from driftsack.benchmarks.dynamic_program import dynamic_program
from driftsack.benchmarks.fixed_distribution import FixedDistribution, fixed_distribution
from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.benchmarks.lp_static import lp_static
from driftsack.benchmarks.result import Benchmark
from driftsack.benchmarks.single_step import SingleStep, single_step

__all__ = [
    "Benchmark",
    "FixedDistribution",
    "SingleStep",
    "dynamic_program",
    "fixed_distribution",
    "lp_dynamic",
    "lp_static",
    "single_step",
]
