"""Layer 2: the optimum in all its definitions, each with its proof.

LP-Static <= OPT_FD (fluid) <= LP-Dynamic, and OPT_FD (hard) <= OPT_DP <= LP-Dynamic for budgets larger by one round's
costs; the paper's appendix on benchmarks has it a little differently (docs/errata.md).
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
