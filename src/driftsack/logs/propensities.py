r"""Checks shared by the off-policy estimators: are the propensities known, and consistent with the arms played?

Every arm in question must have had a positive probability in every round, and the propensities must be these
probabilities. Then

.. math:: M_t = \sum_{s \le t} \Bigl(\frac{1\{a_s = i\}}{p_s} - 1\Bigr)

is a martingale, whatever policy gathered the log and however it learned, and
:math:`\hat V = \sum_{a_s = i} (1 - p_s) / p_s^2` is an unbiased estimate of its variance. The log is refused if

.. math:: \max_t |M_t| > z \sqrt{\hat V} + \frac{z^2}{2} c + \frac{n}{100}, \qquad z = 5,

with :math:`c` the largest :math:`\sqrt{1 - p_s} / p_s` of the arm, or of the whole log as long as
:math:`z^2 c / 2 \le n / 5`. The second term is needed for rarely played arms: :math:`\hat V` is small exactly when
:math:`M` is, and an arm is not played for :math:`c z^2 / 2` rounds with probability :math:`e^{-z^2 / 2}`, 4 in a
million. The maximum over time detects arms that were added late or removed early, and propensities that are correct
only on average. Skipped rounds are among the :math:`n`: an arm that could have been chosen in them makes up for them in
other rounds, and one that could not is unknown there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError
from driftsack.logs.log import Log

Z: Final = 5.0  # standard errors: a log with correct propensities is practically never refused
MAX_UNSEEN_SHARE: Final = (
    0.2  # of the rounds: how long a rare arm may be missing, if arms as rare were played elsewhere
)
SLACK: Final = 0.01  # of the rounds may lack an arm, such as the first ones, in which each arm is played once


def known_propensities(log: Log) -> Floats:
    """Return the propensities (n,), 1 in skipped rounds, or raise if the log has none."""
    if log.propensity is None:
        raise CannotAnswerError(
            "the log has no column propensity, the probability with which each arm was chosen, without which another "
            "policy cannot be evaluated; record it when you gather the next log."
        )
    if not (log.arm != SKIP).any():
        raise CannotAnswerError("every round of the log was skipped, so it has no outcomes of any arm.")
    return np.where(log.arm != SKIP, log.propensity, 1.0)


def check_played(log: Log, arms: Bools, what: str) -> None:
    """Raise if ``what``, a mix or a rule, plays an arm that the log never played."""
    never = [log.arms[i] for i in np.flatnonzero(arms) if not (log.arm == i).any()]
    if never:
        raise CannotAnswerError(
            f"the {what} contains {', '.join(never)}, which the log never played, so it has no outcomes to estimate "
            f"from; leave it out of the {what}, or gather a log that plays it."
        )


def check_propensities(log: Log, propensities: Floats, arms: Bools) -> None:
    """Raise unless the propensities of each of the ``arms`` are consistent with how often and when it was played."""
    rounds = np.arange(1, len(log) + 1)
    spread = np.sqrt(1.0 - propensities) / propensities  # 0 in skipped rounds
    for i in np.flatnonzero(arms):
        pulls = log.arm == i
        weighted_pulls = np.cumsum(pulls / propensities)  # estimates the number of rounds so far
        unseen = Z**2 / 2.0 * np.array([spread[pulls].max(initial=0.0), spread.max()])
        rare = max(unseen[0], min(unseen[1], MAX_UNSEEN_SHARE * len(log)))
        bound = Z * np.sqrt((spread[pulls] ** 2).sum()) + rare + SLACK * len(log)
        worst = int(np.abs(weighted_pulls - rounds).argmax())
        if abs(weighted_pulls[worst] - rounds[worst]) > bound:
            raise CannotAnswerError(
                f"weighted by 1/propensity, the pulls of arm {log.arms[i]} stand for {weighted_pulls[worst]:,.0f} of "
                f"the first {rounds[worst]:,} rounds, but correct propensities would give {rounds[worst]:,} ± "
                f"{bound:,.0f}: the arm could not be chosen in some rounds, or not with these propensities; correct "
                "them, leave out the rounds in which the arm could not be chosen, or gather a log in which every arm "
                "has a positive probability in every round."
            )


def check_propensities_by_feature(log: Log, propensities: Floats, arms: Bools) -> None:
    """Raise unless the propensities of each of the ``arms`` are consistent with the contexts at which it was played.

    With a feature f scaled to [0, 1], the sum of f (1{a = i} / p - 1) is a martingale as well.
    """
    contexts = np.zeros((len(log), 0)) if log.contexts is None else log.contexts
    low, high = contexts.min(axis=0), contexts.max(axis=0)
    scaled = (contexts - low) / np.where(high > low, high - low, 1.0)
    total = scaled.sum(axis=0)
    for i in np.flatnonzero(arms):
        own, p = scaled[log.arm == i], propensities[log.arm == i]
        weighted = (own / p[:, None]).sum(axis=0)
        spread = np.sqrt(1.0 - p) / p
        deviation = Z * np.sqrt((own**2 * spread[:, None] ** 2).sum(axis=0))
        bound = deviation + Z**2 / 2.0 * spread.max(initial=0.0) + SLACK * total
        excess = np.abs(weighted - total) - bound
        if excess.max(initial=0.0) > 0.0 and log.features is not None:
            worst = int(excess.argmax())
            raise CannotAnswerError(
                f"weighted by 1/propensity, the pulls of arm {log.arms[i]} have {weighted[worst] / total[worst]:.2f} "
                f"of the feature {log.features.names[worst]} that all rounds have, but correct propensities would give "
                f"1 ± {bound[worst] / total[worst]:.2f}: the arm was chosen by the context, with other propensities "
                "than these; record the probability of the arm at the context of its round."
            )
