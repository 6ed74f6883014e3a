"""A sweep as data: which worlds, which policies, how many trials, from which seeds. TOML or Python.

A world is a factory of ``driftsack.instances`` with its arguments, or a file that ``Instance.save`` wrote; a policy is
its name and its settings. A setting may be a number that only the world knows: ``"measured:variation"`` stands for
the world's (V1, V2), ``"measured:opt_fd"`` for its best fixed mix, ``"measured:lp_dynamic"`` for its best plan. Two
foretell: ``"measured:forecast"`` is the world with the means of ten equal periods, ``"measured:spending"`` the curve by
which the best plan of that forecast spends.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from driftsack import instances as worlds
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.policies import from_spec
from driftsack.policies import until as _until  # noqa: F401  (a spec may name its policy)

ROUNDS_A_CELL: Final = 5_000_000  # some seconds on one core
MEASURED: Final = "measured:"
STAND_INS: Final[Mapping[str, Any]] = {
    "variation": (1.0, 1.0),
    "opt_fd": 1.0,
    "lp_dynamic": 1.0,
    "forecast": Instance.stationary([0.5], [[0.5]], horizon=1, budget=1.0).to_dict(),
    "spending": (0.0, 1.0),
}
"""What ``measured:...`` may ask for, with numbers that let the rest of a policy's settings be checked."""


class WorldSpec(BaseModel):
    """One world: ``{"instance": "example_3", "alpha": 0.5}`` or ``{"file": "world.npz"}``; ``name`` is how it is shown.

    >>> WorldSpec(instance="example_3", alpha=0.5).label
    'example_3(alpha=0.5)'
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    instance: str | None = None
    file: Path | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        """One source, a factory that exists, arguments that it takes."""
        if (self.instance is None) == (self.file is None):
            raise SettingError('a world needs either instance = "..." or file = "..."; give exactly one.')
        if self.file is not None and self.settings:
            raise SettingError(f"a world from a file takes no arguments, got {', '.join(self.settings)}.")
        if self.instance is not None:
            if self.instance not in worlds.__all__:
                raise SettingError(f"instance must be one of {', '.join(worlds.__all__)}, got {self.instance!r}.")
            _bind(self._factory, self.instance, self.settings)
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the factory."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """How the world is called in tables."""
        return self.name or (str(self.file) if self.file else _spelled(str(self.instance), self.settings))

    @property
    def _factory(self) -> Callable[..., Instance]:
        factory: Callable[..., Instance] = getattr(worlds, str(self.instance))
        return factory

    def build(self) -> Instance:
        """The instance."""
        return Instance.load(self.file) if self.file is not None else self._factory(**self.settings)


class PolicySpec(BaseModel):
    """One policy: ``{"policy": "NaiveUCB", "scale": 0.1}``; ``name`` is how it is shown.

    >>> PolicySpec(policy="SlidingWindowUCB", variation="measured:variation").resolve({"variation": (0.5, 1.0)})
    {'policy': 'SlidingWindowUCB', 'variation': (0.5, 1.0)}
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    policy: str
    name: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        """A policy that exists, with settings that it takes."""
        from_spec(self.resolve(STAND_INS))
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as given."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """How the policy is called in tables."""
        return self.name or _spelled(self.policy, self.settings)

    def resolve(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        """The policy's spec with the world's numbers put in."""
        return {"policy": self.policy, **_resolved(self.settings, measured)}


def _one_or_many(value: Any) -> Any:
    """A single seed stands for a list of one."""
    return [value] if isinstance(value, int) else value


class Spec(BaseModel):
    """Instances × policies × seeds × trials, cut into cells of ``block`` trials (default: some seconds' worth).

    >>> spec = Spec(instances=[{"instance": "example_1"}], policies=[{"policy": "NaiveUCB"}], trials=1_200)
    >>> spec.blocks(horizon=10_000)
    [(0, 500), (500, 500), (1000, 200)]
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    instances: list[WorldSpec] = Field(min_length=1)
    policies: list[PolicySpec] = Field(min_length=1)
    trials: int = Field(default=100, ge=1)
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(_one_or_many)] = Field(
        default=[0], min_length=1
    )
    block: int | None = Field(default=None, ge=1)
    safe: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Names tell apart what is different."""
        for what, parts in (("instances", self.instances), ("policies", self.policies)):
            labels = [part.label for part in parts]
            twice = sorted({label for label in labels if labels.count(label) > 1})
            if twice:
                raise SettingError(f"{what} must differ in their names; {', '.join(twice)} comes twice.")
        if len(set(self.seeds)) < len(self.seeds):
            raise SettingError(f"seeds must differ, got {self.seeds}.")
        return self

    def blocks(self, horizon: int) -> list[tuple[int, int]]:
        """First trial and number of trials of each cell."""
        size = self.block or max(ROUNDS_A_CELL // horizon, 1)
        return [(first, min(size, self.trials - first)) for first in range(0, self.trials, size)]


def make_spec(content: Mapping[str, Any], source: str = "the spec") -> Spec:
    """A spec from plain data; errors name the place."""
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        faults = [f"{_place(fault['loc'])}{_said(fault)}" for fault in error.errors()]
        raise SettingError(f"{source} does not describe a sweep: {' '.join(faults)}") from error


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a TOML file; files that it names are looked for beside it."""
    place = Path(path)
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{place} must be a TOML file: {error}") from error
    for world in content.get("instances", []) if isinstance(content.get("instances"), list) else []:
        if isinstance(world, dict) and isinstance(world.get("file"), str):
            world.setdefault("name", world["file"])
            world["file"] = place.parent / world["file"]
    return make_spec(content, str(place))


def _said(fault: Mapping[str, Any]) -> str:
    """What is wrong, and for a name that a sweep does not have, those that it has."""
    if fault["type"] == "extra_forbidden":
        return f"a sweep has {', '.join(Spec.model_fields)}."
    return str(fault["msg"]).removeprefix("Value error, ")


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(str(part) for part in location)}: " if location else ""


def _resolved(value: Any, measured: Mapping[str, Any]) -> Any:
    """``value`` with every ``measured:...`` in it replaced."""
    if isinstance(value, Mapping):
        return {name: _resolved(part, measured) for name, part in value.items()}
    if isinstance(value, str) and value.startswith(MEASURED):
        wanted = value.removeprefix(MEASURED)
        if wanted not in measured:
            raise SettingError(f"what can be measured is {', '.join(STAND_INS)}, got {value!r}.")
        return measured[wanted]
    return value


def _bind(factory: Callable[..., Instance], name: str, settings: Mapping[str, Any]) -> None:
    signature = inspect.signature(factory)
    try:
        signature.bind(**settings)
    except TypeError as error:
        raise SettingError(f"{name} takes {', '.join(signature.parameters)}: {error}.") from error


def _spelled(name: str, settings: Mapping[str, Any]) -> str:
    shown = {key: "measured" if str(value).startswith(MEASURED) else value for key, value in settings.items()}
    inside = ", ".join(f"{key}={value}" for key, value in shown.items())
    return f"{name}({inside})" if inside else name
