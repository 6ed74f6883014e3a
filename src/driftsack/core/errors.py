"""Errors and warnings. Messages say what was expected, what was received and what to do."""

from typing import Any


class DriftsackError(Exception):
    """Base class of the errors that driftsack raises."""


class ShapeError(DriftsackError, ValueError):
    """An array has the wrong number of axes or the wrong length."""


class NotFiniteError(DriftsackError, ValueError):
    """A number is NaN or infinite."""


class OutOfRangeError(DriftsackError, ValueError):
    """A number is finite but outside its allowed range."""


class NegativeBudgetError(OutOfRangeError):
    """A budget is below zero."""


class SettingError(DriftsackError, ValueError):
    """A setting of a policy or an argument of a function is unknown or invalid."""


class CannotPinError(DriftsackError, ValueError):
    """A kernel or an argument cannot be pinned: a call needs more than addresses, shapes and numbers."""


class NamesError(SettingError):
    """Names of arms or resources are unknown, missing, repeated, or differ where they must be the same."""


class OutcomeError(DriftsackError, ValueError):
    """``tell`` was given an outcome that is impossible for the decision."""


class AbsurdCostError(OutcomeError):
    """An outcome costs more than the problem's ``cost_limit``; nothing was changed, and a corrected one may be told."""


class AlreadyToldError(DriftsackError):
    """``tell`` or ``cancel`` was called again for a decision, with different content."""


class UnknownDecisionError(DriftsackError):
    """``tell`` was called with a decision that this learner never made."""


class HorizonReachedError(DriftsackError):
    """``ask`` was called after the last round."""


class BudgetExhaustedError(DriftsackError):
    """``ask`` was called after a budget was exceeded."""


class TooLargeError(DriftsackError):
    """A computation would exceed the allowed memory or time."""


class FileFormatError(DriftsackError):
    """A file is truncated, was written by another program, or has a version that this release cannot read."""


class FileInUseError(DriftsackError):
    """A file is open for writing in another process."""


class ReentrantCallError(DriftsackError):
    """A signal handler called a method of the learner that it interrupted."""


class EmptyDomainError(DriftsackError, ValueError):
    """A domain has no points."""


class UnboundedDomainError(DriftsackError, ValueError):
    """A domain is unbounded, so regret cannot be bounded."""


class InfeasibleError(DriftsackError):
    """No point of the domain meets the constraints."""


class MissingExtraError(DriftsackError, ImportError):
    """A package of an optional extra is not installed."""


class OverrunWarning(UserWarning):
    """An outcome cost more than was reserved for it, its reward was out of range, or a policy cannot learn its cost."""


class LooseCostMaxWarning(UserWarning):
    """``cost_max`` is so large that the confidence radii of the policy carry no information."""


class LogError(DriftsackError, ValueError):
    """A log cannot be read.

    Args:
        message: The error message.
        bad: The invalid rows, each with its line and the reason.
    """

    def __init__(self, message: str, bad: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.bad = bad


class CannotAnswerError(DriftsackError):
    """A log lacks the data needed to answer the question."""
