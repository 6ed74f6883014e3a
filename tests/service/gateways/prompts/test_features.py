"""Built-in features: what they say of a prompt, and that they are the same everywhere."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import numpy as np
import pytest

from driftsack.core.encoder import Encoder
from driftsack.service.gateways.prompts import hashed_text as hashed
from driftsack.service.gateways.prompts.features import PROMPT_FEATURES, prompt_features
from driftsack.service.gateways.prompts.hashed_text import LENGTH, SLOTS, hashed_text, signs
from driftsack.service.gateways.prompts.texts import read_prompt

TEXTS = (
    "Where is the cat?",
    "def f(x): return x[0]",
    "Напишите 3 стихотворения",
    "\ud83d half an emoji",
    "a" * 40_000,
    "",
)


def said(text: Any, **more: Any) -> dict[str, Any]:
    """The features of a chat with one message."""
    return prompt_features({"messages": [{"role": "user", "content": text}], **more})


def slow_hashed_text(text: str) -> list[float]:
    """The same numbers, slot by slot in plain Python."""
    half = hashed.LONGEST // 2
    words = hashed.WORD.findall((text if len(text) <= hashed.LONGEST else f"{text[:half]} {text[-half:]}").lower())
    counts = [0] * SLOTS
    for word in words:
        counts[zlib.crc32(word.encode("utf-8", "surrogatepass")) % SLOTS] += 1
    spaced = f" {' '.join(words)} " if words else ""
    for k in range(len(spaced) - 2):
        mixed = 0
        for one, constant in zip(spaced[k : k + 3], hashed.MIX, strict=False):
            mixed ^= ord(one) * constant % 2**32
        counts[((mixed ^ mixed >> 15) * hashed.MIX[3] % 2**32) >> 20] += 1
    found = [0.0] * LENGTH
    for slot, count in enumerate(counts):
        for k in range(LENGTH) if count else ():
            found[k] += float(np.sqrt(count)) * float(signs()[slot, k])
    length = float(np.sqrt(sum(value * value for value in found)))
    return [value / length if length else 0.0 for value in found]


@pytest.mark.parametrize("text", TEXTS)
def test_the_numbers_are_those_of_the_slow_twin(text: str) -> None:
    assert hashed_text(text) == pytest.approx(slow_hashed_text(text), abs=1e-6)


def test_the_numbers_never_change() -> None:
    """A campaign that was opened with an earlier release would see other prompts."""
    every = [said(text, system="Be short.") for text in TEXTS]
    digest = hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest()
    assert digest == "058729a2bd20c7f67b34c62dda005a57c7bdbf7703d1ab476f1f9eb08c13168c"


def test_similar_texts_have_similar_numbers() -> None:
    french = hashed_text("Please translate this sentence into French: the weather is nice today.")
    german = hashed_text("Please translate this sentence into German: the weather was bad yesterday.")
    code = hashed_text("Write a Python function that sorts a list of numbers.")
    assert np.linalg.norm(french) == pytest.approx(1, abs=1e-5)
    assert np.dot(french, german) > 0.7
    assert np.dot(french, code) < 0.3


def test_the_declaration_fits_the_features() -> None:
    encoder = Encoder(**PROMPT_FEATURES)
    for text in TEXTS:
        assert np.isfinite(encoder.encode(said(text))).all()
    assert set(said("x")) == set(encoder.inputs)


@pytest.mark.parametrize(
    ("text", "name", "share"),
    [
        ("12ab", "digits", 0.5),
        ("ABcd", "capitals", 0.5),
        ("f(x)", "code", 0.5),
        ("привет", "foreign", 1.0),
        ("a, b", "commas", 0.25),
        ("why?", "question", 1.0),
        ("a\nb\nc\nd", "lines", 2.0),
    ],
)
def test_features_say_what_a_prompt_looks_like(text: str, name: str, share: float) -> None:
    assert said(text)[name] == pytest.approx(share)
    assert said("xyz")[name] == 0


def test_every_format_is_read() -> None:
    image = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://example.com"}}]
    tool = {"role": "tool", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "b"}]}]}
    chat = read_prompt({"messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": image}, tool]})
    assert chat == ("s", ["a", "b"], 2, 1, 0)
    assert read_prompt({"system": [{"type": "text", "text": "s"}], "messages": [], "tools": [{}, {}]}).tools == 2
    given = [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]}]
    assert read_prompt({"instructions": "s", "input": given}) == ("s", ["a"], 1, 1, 0)
    assert read_prompt({"prompt": ["a", "b"]}) == ("", ["a", "b"], 2, 0, 0)
    assert read_prompt({"input": "a"}) == ("", ["a"], 1, 0, 0)


@pytest.mark.parametrize("strange", [7, None, {"text": {"text": 3}}, [[[[]]]], {"type": 4}, {"content": True}])
def test_values_of_any_type_are_left_out(strange: Any) -> None:
    prompt_features({"messages": strange, "tools": strange, "system": strange, "input": strange})


def test_deep_nesting_needs_no_recursion() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert read_prompt({"messages": [{"role": "user", "content": deep}]}).texts == ["x"]


def test_instructions_are_told_apart() -> None:
    groups = {said("x", system=f"You are assistant {k}.")["system"] for k in range(40)}
    assert groups == set(PROMPT_FEATURES["categories"]["system"]) - {"none"}
