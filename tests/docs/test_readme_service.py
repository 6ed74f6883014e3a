"""Who follows only the commands of the README has a service that decides.

The installation itself is not repeated here; ``python -m lab newcomer`` does that, in a clean environment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.readme_commands import README, Service, commands_of_readme

DECIDED = {"decision": 1, "arm": "small"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service(Path(sys.executable).parent / "driftsack", tmp_path) as found:
        yield found


def test_the_service_of_the_readme_decides(service: Service) -> None:
    commands = commands_of_readme()
    assert service.last_answer(commands.ask, service.key)["status"] == 404  # who opens no campaign gets no decision
    for typed in (commands.open, commands.ask):
        assert service.last_answer(typed, service.key + "0")["status"] == 401  # nor does who mistypes the key
    assert service.last_answer(commands.open, service.key)["state"] == "active"
    found = service.last_answer(commands.ask, service.key)
    assert found["decision"] == 1
    assert found["arm"] in ("small", "large")
    assert float(found["reserved"]["usd"]) == 0.08


def test_a_readme_without_the_commands_is_noticed() -> None:
    with pytest.raises(AssertionError, match="pip install"):
        commands_of_readme(README.read_text().replace("pip install '.[service]'", "pip install driftsack"))
