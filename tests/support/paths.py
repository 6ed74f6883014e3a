"""Directories that tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The root of the checkout."""
DATA: Final = ROOT / "tests" / "data"
"""Recorded results and files of earlier versions."""
