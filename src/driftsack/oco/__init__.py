"""Online convex optimisation with non-stationary constraints (section 4 of the paper)."""

from driftsack.oco import instances
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.callables import Callables
from driftsack.oco.domains import Ball, Box, Domain
from driftsack.oco.drift_plus_penalty import DriftPlusPenalty
from driftsack.oco.exponential_penalty import ExponentialPenalty
from driftsack.oco.families import Family, Linear, Norm, Quadratic
from driftsack.oco.learner import OnlineLearner
from driftsack.oco.online_gradient import OnlineGradient
from driftsack.oco.optimum import Optimum, q_bar, restricted_optimum, static_optimum
from driftsack.oco.penalised_primal_dual import PenalisedPrimalDual
from driftsack.oco.play import Play, play
from driftsack.oco.polytope import Polytope
from driftsack.oco.problem import ConvexProblem
from driftsack.oco.quadratic_penalty import QuadraticPenalty
from driftsack.oco.simplex_domains import CappedSimplex, Orthant, ScaledSimplex
from driftsack.oco.variation import GlobalVariation, global_variation
from driftsack.oco.virtual_queue import VirtualQueue

__all__ = [
    "Algorithm",
    "Ball",
    "Box",
    "Callables",
    "CappedSimplex",
    "ConvexProblem",
    "Domain",
    "DriftPlusPenalty",
    "ExponentialPenalty",
    "Family",
    "GlobalVariation",
    "Linear",
    "Norm",
    "OnlineGradient",
    "OnlineLearner",
    "Optimum",
    "Orthant",
    "PenalisedPrimalDual",
    "Play",
    "Polytope",
    "Quadratic",
    "QuadraticPenalty",
    "ScaledSimplex",
    "VirtualQueue",
    "global_variation",
    "instances",
    "play",
    "q_bar",
    "restricted_optimum",
    "static_optimum",
]
