"""Send many generated requests to a service: ``python tools/long_requests.py [CASES]``, at least 10,000 by default.

The requests of tests/test_service_schema.py, which has the short form and the faults that it finds: single ones to
every route, and sequences that use the decisions that come back. Each answer is compared with the OpenAPI document by
all checks of schemathesis that can hold; the first one that differs is printed.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driftsack.service.http.keyring import Bucket
from driftsack.service.http.routes import TABLE
from tests.live_service import serving
from tests.test_service_schema import attack, attack_in_sequences

CASES = 10_000
STEPS = 12  # of a sequence, at least, on average


def main(cases: int) -> None:
    """Half of the requests one by one, half in sequences."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, serving(str(Path(folder) / "s.db")) as live:
        live.open("chat", budget={"usd": "1000"})
        live.app.service.keyring._failures = Bucket(1e9)
        single = attack(live, 1 + cases // (2 * len(TABLE)))
        sys.stdout.write(f"{single:,} single requests, all answers as documented\n")
        sys.stdout.flush()
        seen = attack_in_sequences(live, 1 + cases // (2 * STEPS))
        many, by_status = sum(seen.values()), Counter[int]()
        for (_, status), count in seen.items():
            by_status[status] += count
        sys.stdout.write(f"{many:,} requests in sequences, by status: {dict(sorted(by_status.items()))}\n")
        sys.stdout.write(f"{single + many:,} requests, highest status {max(by_status)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)
