"""Specs: a sweep described as data. Which instances, which policies, how many trials and from which seeds.

An instance is a factory of ``driftsack.instances`` with its arguments, or a file that ``Instance.save`` wrote; a policy
is its name and its settings. A setting may be a quantity of the instance: ``"measured:variation"`` stands for its
(V1, V2), ``"measured:opt_fd"`` for the value of its best fixed mix, ``"measured:lp_dynamic"`` for the value of its
optimal plan, ``"measured:forecast"`` for the instance with the mean of each of ten equal periods, and
``"measured:spending"`` for the spending curve of that forecast's optimal plan.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from driftsack import instances as factories
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.policies import from_spec
from driftsack.sweeps.measured import QUANTITIES, STAND_INS

ROUNDS_PER_CELL: Final = 5_000_000  # a few seconds on one core
MEASURED: Final = "measured:"


class InstanceSpec(BaseModel):
    """One instance: a factory with its arguments, such as ``{"instance": "example_3", "alpha": 0.5}``, or a file.

    >>> InstanceSpec(instance="example_3", alpha=0.5).label
    'example_3(alpha=0.5)'
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    instance: str | None = None  # name of a function of ``driftsack.instances``; all other keys are its arguments
    file: Path | None = None  # a file that ``Instance.save`` wrote
    name: str | None = None  # name of the instance in tables; made from the other fields if None

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that there is one source, that the factory exists and that it takes the arguments."""
        if (self.instance is None) == (self.file is None):
            raise SettingError('an instance needs either instance = "..." or file = "..."; give exactly one.')
        if self.file is not None and self.settings:
            raise SettingError(f"an instance from a file takes no arguments, got {', '.join(self.settings)}.")
        if self.instance is not None:
            if self.instance not in factories.__all__:
                raise SettingError(f"instance must be one of {', '.join(factories.__all__)}, got {self.instance!r}.")
            _check_arguments(self._factory, self.instance, self.settings)
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the factory."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """The name of the instance in tables."""
        return self.name or (str(self.file) if self.file else _default_label(str(self.instance), self.settings))

    @property
    def _factory(self) -> Callable[..., Instance]:
        """The function that makes the instance."""
        factory: Callable[..., Instance] = getattr(factories, str(self.instance))
        return factory

    def build(self) -> Instance:
        """Make or load the instance."""
        return Instance.load(self.file) if self.file is not None else self._factory(**self.settings)


class PolicySpec(BaseModel):
    """One policy with its settings, such as ``{"policy": "NaiveUCB", "scale": 0.1}``.

    >>> PolicySpec(policy="SlidingWindowUCB", variation="measured:variation").resolve({"variation": (0.5, 1.0)})
    {'policy': 'SlidingWindowUCB', 'variation': (0.5, 1.0)}
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    policy: str  # name of a policy of ``driftsack.policies``; all other keys are its settings
    name: str | None = None  # name of the policy in tables; made from the other fields if None

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that the policy exists and takes the settings."""
        from_spec(self.resolve(STAND_INS))
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as given."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """The name of the policy in tables."""
        return self.name or _default_label(self.policy, self.settings)

    @property
    def measures(self) -> bool:
        """Whether a setting is a quantity of the instance."""
        return bool(self.settings != _resolve(self.settings, dict.fromkeys(QUANTITIES)))

    def resolve(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Fill in the measured quantities of an instance, and return the spec that ``policies.from_spec`` reads."""
        return {"policy": self.policy, **_resolve(self.settings, measured)}


def _as_list(value: Any) -> Any:
    """A single seed stands for a list of one."""
    return [value] if isinstance(value, int) else value


class Spec(BaseModel):
    """A sweep: instances × policies × seeds × trials, divided into cells.

    Attributes:
        instances: The instances; their names must differ.
        policies: The policies; their names must differ. Default: ``Adaptive``.
        trials: Trials of each policy on each instance with each seed.
        seeds: The seeds, or a single one. Trial k depends on its seed and on k alone.
        block: Trials per cell; if None, as many as take a few seconds.
        safe: Whether an arm is offered only if its maximum cost fits into the budget. If False, a trial ends in the
            round whose cost exceeds a budget, as in the paper.
        delay: The number of rounds by which policies are told of their outcomes late.
        loose: Factor, at least 1, by which the maxima that policies are told exceed the true ones. The outcomes stay
            the same.

    >>> spec = Spec(instances=[{"instance": "example_1"}], policies=[{"policy": "NaiveUCB"}], trials=1_200)
    >>> spec.blocks(horizon=10_000)
    [(0, 500), (500, 500), (1000, 200)]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    instances: list[InstanceSpec] = Field(min_length=1)
    policies: list[PolicySpec] = Field(default_factory=lambda: [PolicySpec(policy="Adaptive")], min_length=1)
    trials: int = Field(default=100, ge=1)
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(_as_list)] = Field(default=[0], min_length=1)
    block: int | None = Field(default=None, ge=1)
    safe: bool = False
    delay: int = Field(default=0, ge=0)
    loose: float = Field(default=1.0, ge=1.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that names and seeds are unique."""
        for what, parts in (("instances", self.instances), ("policies", self.policies)):
            labels = [part.label for part in parts]
            repeated = sorted({label for label in labels if labels.count(label) > 1})
            if repeated:
                raise SettingError(f"{what} must differ in their names; {', '.join(repeated)} occurs more than once.")
        if len(set(self.seeds)) < len(self.seeds):
            raise SettingError(f"seeds must differ, got {self.seeds}.")
        return self

    def blocks(self, horizon: int) -> list[tuple[int, int]]:
        """Divide the trials into cells.

        Args:
            horizon: Rounds of a trial.

        Returns:
            The first trial and the number of trials of each cell.
        """
        size = self.block or max(ROUNDS_PER_CELL // horizon, 1)
        return [(first, min(size, self.trials - first)) for first in range(0, self.trials, size)]


def make_spec(content: Mapping[str, Any], source: str = "the spec") -> Spec:
    """Make a spec from plain data.

    Args:
        content: The fields of :class:`Spec`, as dictionaries, lists, strings and numbers.
        source: Name of the data in error messages.

    Raises:
        SettingError: A field is missing, unknown or invalid; the message names its position.
    """
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        faults = [f"{_position(fault['loc'])}{_message(fault)}" for fault in error.errors()]
        raise SettingError(f"{source} does not describe a sweep: {' '.join(faults)}") from error


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a spec from a TOML file.

    Args:
        path: The file. Relative paths of instance files in it are relative to its directory.

    Raises:
        SettingError: The file is not TOML or does not describe a sweep.
    """
    spec_file = Path(path)
    try:
        content = tomllib.loads(spec_file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{spec_file} must be a TOML file: {error}") from error
    for instance in content.get("instances", []) if isinstance(content.get("instances"), list) else []:
        if isinstance(instance, dict) and isinstance(instance.get("file"), str):
            instance.setdefault("name", instance["file"])
            instance["file"] = spec_file.parent / instance["file"]
    return make_spec(content, str(spec_file))


def _message(fault: Mapping[str, Any]) -> str:
    """Describe a fault; for an unknown field, list the fields that exist."""
    if fault["type"] == "extra_forbidden":
        return f"a sweep has {', '.join(Spec.model_fields)}."
    return str(fault["msg"]).removeprefix("Value error, ")


def _position(location: tuple[int | str, ...]) -> str:
    """Format the position of a fault in the spec as a prefix of its message."""
    return f"{'.'.join(str(part) for part in location)}: " if location else ""


def _resolve(value: Any, measured: Mapping[str, Any]) -> Any:
    """Replace every ``measured:...`` in a value, at any depth."""
    if isinstance(value, Mapping):
        return {name: _resolve(part, measured) for name, part in value.items()}
    if isinstance(value, str) and value.startswith(MEASURED):
        name = value.removeprefix(MEASURED)
        if name not in measured:
            raise SettingError(f"what can be measured is {', '.join(QUANTITIES)}, got {value!r}.")
        return measured[name]
    return value


def _check_arguments(factory: Callable[..., Instance], name: str, settings: Mapping[str, Any]) -> None:
    """Check that a factory takes these arguments."""
    signature = inspect.signature(factory)
    try:
        signature.bind(**settings)
    except TypeError as error:
        raise SettingError(f"{name} takes {', '.join(signature.parameters)}: {error}.") from error


def _default_label(name: str, settings: Mapping[str, Any]) -> str:
    """A name with its settings; a measured one is shown as ``measured``."""
    shown = {key: "measured" if str(value).startswith(MEASURED) else value for key, value in settings.items()}
    inside = ", ".join(f"{key}={value}" for key, value in shown.items())
    return f"{name}({inside})" if inside else name
