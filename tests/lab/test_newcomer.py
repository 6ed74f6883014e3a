"""``python -m lab newcomer`` detects a service that does not decide, or decides too late."""

from __future__ import annotations

import pytest

from lab import newcomer


@pytest.mark.parametrize(
    ("answer", "limit", "faults"),
    [
        ({"decision": 1, "arm": "small"}, 600.0, 0),
        ({"decision": 1, "arm": "small"}, 0.0, 1),
        ({"status": 404}, 600.0, 1),
    ],
)
def test_the_newcomer_notices_a_service_that_does_not_decide_in_time(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, object], limit: float, faults: int
) -> None:
    monkeypatch.setattr(newcomer, "decided", lambda _: answer)
    monkeypatch.setattr(newcomer, "LIMIT", limit)
    assert newcomer.follow_readme() == faults
