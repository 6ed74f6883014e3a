"""The demo: its simulated environment, and the command from start to Ctrl-C."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

import driftsack as ds
from driftsack.service.demo import week
from driftsack.service.demo.week import DAYS, MOST_DOLLARS, MOST_SECONDS, day_of, settings, simulate_answer
from driftsack.service.projections.drift import ArmDetector
from tests.support.dashboard_client import Visitor


@pytest.mark.parametrize(
    ("arm", "day", "good", "dollars"),
    [("small", 1, 0.62, 0.0008), ("large", 1, 0.90, 0.02), ("large", 3, 0.90, 0.008), ("large", 4.2, 0.05, 0.008)],
)
def test_the_week_has_a_price_change_and_an_outage(arm: str, day: float, good: float, dollars: float) -> None:
    rng = random.Random(0)
    found = [simulate_answer(arm, day, rng) for _ in range(5000)]
    assert sum(a.reward for a in found) / 5000 == pytest.approx(good, abs=0.03)
    costs = [float(a.costs["usd"]) for a in found]
    assert sum(costs) / 5000 == pytest.approx(dollars, rel=0.1)
    assert dollars < max(costs) <= MOST_DOLLARS[arm]
    assert max(costs) > 5 * dollars  # a heavy tail


def alarms_of_a_week(seed: int, requests: int = 12_000) -> list[tuple[str, int, float]]:
    """Return the drift alarms (arm, stream, day) of a week in which ``Adaptive`` decides."""
    given = settings(requests)
    maxima = {"usd": MOST_DOLLARS, "seconds": dict.fromkeys(MOST_DOLLARS, MOST_SECONDS)}
    budget = {name: float(amount) for name, amount in given["budget"].items()}
    problem = ds.Problem(horizon=requests, arms=given["arms"], budget=budget, cost_max=maxima)
    learner, rng = ds.Adaptive().start(problem, seed=seed, safe=True), random.Random(seed)
    detectors, found = {arm: ArmDetector(k, 1.0, 2) for k, arm in enumerate(given["arms"])}, []
    for request in range(requests):
        decision = learner.ask()
        if decision.skipped:
            continue
        day = day_of(request, requests)
        seen = week.simulate_answer(decision.name, day, rng)
        costs = {name: float(amount) for name, amount in seen.costs.items()}
        learner.tell(decision, seen.reward, costs)
        alarms = detectors[decision.name].observe(0, request, [seen.reward, *costs.values()])
        found += [(decision.name, alarm.stream, day) for alarm in alarms]
    return found


def test_the_price_change_and_the_outage_give_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outage in each of four weeks, the price change in at least three: it is found in 11 of 12 weeks."""
    weeks = [alarms_of_a_week(seed) for seed in range(1000, 1004)]
    assert all(any(4 <= day < 5 for arm, stream, day in found if (arm, stream) == ("large", 0)) for found in weeks)
    changed = [
        any(week.PRICE_CHANGE <= day < 4 for arm, stream, day in found if (arm, stream) == ("large", 1))
        for found in weeks
    ]
    assert sum(changed) >= 3
    monkeypatch.setattr(week, "PRICE_CHANGE", DAYS)
    monkeypatch.setattr(week, "OUTAGE", (DAYS, DAYS))
    assert alarms_of_a_week(1000) == []  # where nothing changes


def test_most_requests_come_by_day() -> None:
    days = [day_of(k, 700) for k in range(701)]
    assert days == sorted(days)
    assert days[-1] == DAYS
    noon = sum(0.25 <= day % 1 < 0.75 for day in days)
    assert noon > 0.7 * len(days)


def test_the_command_serves_decides_and_stops() -> None:
    command = [sys.executable, "-m", "driftsack", "demo", "--no-browser", "--port", "0", "--requests", "200"]
    process = subprocess.Popen([*command, "--seconds", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        link = process.stdout.readline().split()[-1]
        url, _, key = link.partition("/open#")
        assert "the week is over" in process.stdout.readline()
        request = urllib.request.Request(f"{url}/v1/campaigns/assistant", headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            campaign = json.loads(response.read())
        assert 150 < campaign["decisions"] <= 200  # some do not fit into the budgets
        assert campaign["told"] > 150
        assert f">{campaign['decisions']}</dd>" in Visitor(url, key).get("/campaigns/assistant").text
    finally:
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert time.monotonic() - start < 10
