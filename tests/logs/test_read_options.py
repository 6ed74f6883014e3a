"""``ReadOptions``: one description of a log for every function that reads it."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import polars as pl
import pytest

import driftsack as ds
from driftsack.advice.settings import AdviseKeywords
from driftsack.core.errors import SettingError
from driftsack.logs.options import ReadKeywords

ROWS = pl.DataFrame({"ts": [1, 2, 3, 4], "arm": ["a", "b"] * 2, "reward": [1.0, 0.0] * 2, "usd": [0.5, 0.25] * 2})
OPTIONS = ds.logs.ReadOptions(resources=["usd"], columns={"time": "ts"}, reward_max=2.0, cost_max=1.0)


def test_an_object_and_keywords_read_the_same_log() -> None:
    given = {field.name: getattr(OPTIONS, field.name) for field in dataclasses.fields(OPTIONS)}
    assert ds.logs.check(ROWS, OPTIONS) == ds.logs.check(ROWS, **given) == ()
    for one, two in (
        (ds.logs.read(ROWS, OPTIONS), ds.logs.read(ROWS, **given)),
        (ds.logs.survey(ROWS, OPTIONS), ds.logs.survey(ROWS, **given)),
    ):
        assert (one.resources, one.reward_max, one.cost_max) == (("usd",), 2.0, (1.0,))
        assert (two.resources, two.reward_max, two.cost_max) == (("usd",), 2.0, (1.0,))
    quick = ds.AdviseSettings(plans=False, worlds=1, trials=1)
    advice = ds.advise(ROWS, 1.0, options=OPTIONS, settings=quick)
    assert advice.to_dict() == ds.advise(ROWS, 1.0, plans=False, worlds=1, trials=1, **given).to_dict()


def test_a_keyword_changes_one_option_of_the_object() -> None:
    changed = ds.logs.read(ROWS, OPTIONS, reward_max=4.0)
    assert (changed.reward_max, changed.cost_max) == (4.0, (1.0,))
    assert OPTIONS.reward_max == 2.0
    with pytest.raises(SettingError, match="shuffles=19"):  # the level of the object needs more of them
        ds.advise(ROWS, 1.0, options=OPTIONS, settings=ds.AdviseSettings(level=0.01, shuffles=999), shuffles=19)


def test_keywords_are_the_fields_of_the_objects() -> None:
    reading, settings = get_type_hints(ds.logs.ReadOptions), get_type_hints(ds.AdviseSettings)
    assert get_type_hints(ReadKeywords) == reading
    assert get_type_hints(AdviseKeywords) == reading | settings


def test_wrong_options_are_refused() -> None:
    with pytest.raises(SettingError, match=r"options must be a driftsack ReadOptions, got \['usd'\]"):
        ds.logs.read(ROWS, ["usd"])  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="settings must be a driftsack AdviseSettings"):
        ds.advise(ROWS, 1.0, options=OPTIONS, settings={"worlds": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'resource'"):
        ds.logs.read(ROWS, resource=["usd"])  # type: ignore[call-arg]
    with pytest.raises(SettingError, match="lost must be True or False"):
        ds.logs.ReadOptions(lost="yes")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"a Log was read with its resources.*got resources and"):
        ds.advise(ds.logs.read(ROWS, OPTIONS), 1.0, options=OPTIONS)
