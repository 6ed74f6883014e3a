"""Send many generated requests to a service and check every answer by its OpenAPI document.

The requests are those of tests/service/web/test_schema.py, which has the short form and the faults that it detects.
Each answer must pass all applicable checks of schemathesis.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from pathlib import Path

from driftsack.service.web.api.routes import TABLE
from tests.service.web.test_schema import attack, attack_in_sequences
from tests.support.live_service import serving

STEPS = 12  # of a sequence, at least, on average
UNLIMITED = {"failures": 1e9}  # requests with wrong keys must not be throttled


def send_many(cases: int) -> None:
    """Send half of the requests one by one and half in sequences that use the returned decisions."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as directory, serving(str(Path(directory) / "s.db"), UNLIMITED) as live:
        live.open("chat", budget={"usd": "1000"})
        single = attack(live, 1 + cases // (2 * len(TABLE)))
        print(f"{single:,} single requests, all answers as documented", flush=True)
        seen = attack_in_sequences(live, 1 + cases // (2 * STEPS))
    many, by_status = sum(seen.values()), Counter[int]()
    for (_, status), count in seen.items():
        by_status[status] += count
    print(f"{many:,} requests in sequences, by status: {dict(sorted(by_status.items()))}")
    print(f"{single + many:,} requests, highest status {max(by_status)}")
