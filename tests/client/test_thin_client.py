"""``driftsack-client``: the same classes in a distribution of its own, with the standard library only."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import driftsack.client
from tests.support.paths import ROOT

LARGEST = 100_000  # bytes
IMPORT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import driftsack_client
from driftsack_client import Client, ServiceUnavailableError
try:
    Client("http://127.0.0.1:9", key="k", campaign="c", patience=0.0).ask()
except ServiceUnavailableError:
    refused = True
print(json.dumps({"refused": refused, "names": driftsack_client.__all__, "modules": sorted(sys.modules)}))
"""


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package that the wheel has; hatchling itself is not needed for it."""
    interface: Any = types.ModuleType("interface")
    interface.BuildHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    spec = importlib.util.spec_from_file_location("copy_client", ROOT / "client" / "copy_client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.copy_client(ROOT / "src" / "driftsack", tmp_path / "driftsack_client")
    return tmp_path


def test_the_thin_client_is_the_client_without_driftsack(copied: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT, str(copied)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["refused"]
    assert found["names"] == driftsack.client.__all__
    assert not {"driftsack", "numpy", "numba"} & set(found["modules"])
    outside = {name.partition(".")[0] for name in found["modules"]} - set(sys.stdlib_module_names)
    assert outside - {"__main__"} == {"driftsack_client"}
    assert sum(path.stat().st_size for path in copied.rglob("*.py")) < LARGEST


def test_its_source_differs_in_names_only(copied: Path) -> None:
    for path in (copied / "driftsack_client").glob("*.py"):
        text = path.read_text()
        assert "driftsack.client" not in text
        assert "driftsack.core" not in text
    ours = inspect.getsource(driftsack.client.Client)
    assert ours in (copied / "driftsack_client" / "client.py").read_text()
