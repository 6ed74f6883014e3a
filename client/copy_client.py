"""Build ``driftsack-client``: the package ``driftsack.client`` under a name of its own, with its errors."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "driftsack_client"
RENAMED = {"driftsack.client": NAME, "driftsack.core.errors": f"{NAME}.errors"}


def copy_client(package: Path, target: Path) -> None:
    """Copy the client out of a package ``driftsack`` into a directory that becomes ``driftsack_client``."""
    target.mkdir(parents=True)
    for path in [*sorted((package / "client").glob("*.py")), package / "core" / "errors.py"]:
        text = path.read_text(encoding="utf-8")
        for old, new in RENAMED.items():
            text = text.replace(old, new)
        (target / path.name).write_text(text, encoding="utf-8")
    (target / "py.typed").touch()


class CopyClient(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the copy to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the client before the wheel is built."""
        self._directory = Path(tempfile.mkdtemp())
        copy_client(Path(self.root).parent / "src" / "driftsack", self._directory / NAME)
        build_data["force_include"][str(self._directory / NAME)] = NAME

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        shutil.rmtree(self._directory)
