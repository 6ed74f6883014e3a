"""docs/quickstart.md can be pasted: its blocks run in order and print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "quickstart.md").read_text()


def test_the_blocks_run_in_order(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    quoted = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert quoted is not None
    assert len(blocks) == 2
    assert ">>>" not in PAGE

    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    first, loop = done.stdout.splitlines()
    assert first == quoted[1].strip()
    found = re.fullmatch(r"(\d+) good answers; no budget was exceeded: True", loop)
    assert found is not None
    assert 7_000 < int(found[1]) < 7_600  # one seed; the best plan that knows every mean gets about 7,500
