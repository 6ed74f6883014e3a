"""``LearnerKernels``: in which form a learner runs its kernels, interpreted or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from driftsack.game import parts, steps
from driftsack.numerics.compiled import classes_in, copy_for
from driftsack.numerics.machine_code import KernelCall
from driftsack.numerics.warm_up import Warming, WarmUp


class LearnerKernels:
    """The forms of a learner's kernels.

    Args:
        state: The policy's state.
        go_over: Called when machine code is ready; it pins the kernels again.
    """

    def __init__(self, state: Any, go_over: Callable[[], object]) -> None:
        self._classes = classes_in(state)
        self._go_over = go_over
        self._calls: list[KernelCall] = []  # of every learner; they go over to machine code together
        self.warm_up = WarmUp(lambda: self._calls, steps.begin, self._classes)
        self._many: dict[Callable[..., Any], WarmUp] = {}

    def pin(self, fixed: tuple[Any, ...], rng: Generator) -> tuple[Callable[..., Any], ...]:
        """Pin ``begin``, ``settle`` and ``pay`` to state, ledger, terms and desk."""
        self._calls = [
            KernelCall(steps.begin, (*fixed, rng), (bool, float, float)),
            KernelCall(steps.settle, fixed, (int, float, bool)),
            KernelCall(parts.pay, fixed[1:], (int,)),
        ]
        return self._pin(steps.begin, *fixed, rng), *self.pin_settlement(fixed)

    def pin_settlement(self, fixed: tuple[Any, ...]) -> tuple[Callable[..., Any], ...]:
        """Pin ``settle`` and ``pay`` to state, ledger, terms and desk."""
        return self._pin(steps.settle, *fixed), self._pin(parts.pay, *fixed[1:])

    def _pin(self, kernel: Callable[..., Any], *fixed: Any) -> Callable[..., Any]:
        if not self.warm_up.ready():
            return Warming(self.warm_up, kernel, fixed, self._go_over)
        from driftsack.numerics.pinned import pin

        return pin(kernel, *fixed)

    def compile(self) -> None:
        """Compile what every learner calls into the cache, or load it."""
        self.warm_up.compile()

    def pin_later(
        self, kernel: Callable[..., Any], fixed: tuple[Any, ...], others: tuple[type, ...]
    ) -> Callable[..., Any]:
        """Pin a kernel that few learners call, with a warm-up of its own; ``others`` are the remaining types."""
        warm_up = WarmUp(lambda: [KernelCall(kernel, fixed, others)], kernel, self._classes)
        return Warming(warm_up, kernel, fixed)

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Run a small kernel."""
        return self.warm_up.call(kernel, *arguments)

    def run_many(self, kernel: Callable[..., Any], count: int, state: Any, *others: Any) -> Any:
        """Run a kernel on ``count`` decisions."""
        warm_up = self._many.get(kernel)
        if warm_up is None:
            calls = [KernelCall(kernel, (state, *others))]
            warm_up = self._many[kernel] = WarmUp(lambda: calls, kernel, self._classes)
        if warm_up.ready(count):
            return copy_for(kernel, state)(state, *others)
        return warm_up.interpret(kernel, state, *others)
