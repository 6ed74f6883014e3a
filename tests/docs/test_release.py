"""The checklist of a release finds what it looks for; ``make release-check`` runs it with real builds."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import driftsack as ds
from tools import release

PLACES = ("src/driftsack/core/release.py", "CITATION.cff", "CHANGELOG.md")


def copy_of(tmp_path: Path) -> Path:
    """The files that name the version, in a directory of their own."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((release.ROOT / name).read_text())
    return tmp_path


def test_all_places_name_the_same_version() -> None:
    assert release.one_version() == ds.__version__


@pytest.mark.parametrize("name", PLACES)
def test_another_version_in_one_place_is_found(tmp_path: Path, name: str) -> None:
    root = copy_of(tmp_path)
    assert release.one_version(root) == ds.__version__
    (root / name).write_text((root / name).read_text().replace(ds.__version__, "9.9.9"))
    with pytest.raises(release.ReleaseError, match=r"9\.9\.9"):
        release.one_version(root)


def packages(directory: Path, extra: str, left_out: str) -> None:
    """Write a wheel with a further file, and an sdist without one that it should have."""
    with zipfile.ZipFile(directory / "driftsack-1-py3-none-any.whl", "w") as wheel:
        for name in ("driftsack/py.typed", "driftsack-1.dist-info/METADATA", *([extra] if extra else [])):
            wheel.writestr(name, "")
    with tarfile.open(directory / "driftsack-1.tar.gz", "w") as sdist:
        for name in release.IN_SDIST:
            if name != left_out:
                sdist.addfile(tarfile.TarInfo(f"driftsack-1/{name}"))


@pytest.mark.parametrize(
    ("extra", "left_out", "message"),
    [("tests/secret.py", "", "nothing else"), ("", "SECURITY.md", "sdist must hold"), ("", "", "")],
)
def test_the_contents_of_packages_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str, left_out: str, message: str
) -> None:
    packages(tmp_path, extra, left_out)
    monkeypatch.setattr(release, "run", lambda _: 0)  # the build itself
    if message:
        with pytest.raises(release.ReleaseError, match=message):
            release.build(tmp_path, "1")
    else:
        assert [path.name for path in release.build(tmp_path, "1")] == [
            "driftsack-1-py3-none-any.whl",
            "driftsack-1.tar.gz",
        ]


def test_a_command_that_fails_is_shown() -> None:
    with pytest.raises(release.ReleaseError, match="out of paper"):
        release.run([sys.executable, "-c", "import sys; sys.exit('out of paper')"])


def test_the_smoke_test_passes_here_and_rejects_another_version() -> None:
    smoke = [sys.executable, str(release.ROOT / "tools" / "smoke.py")]
    assert subprocess.run([*smoke, ds.__version__], check=False).returncode == 0
    wrong = subprocess.run([*smoke, "9.9.9"], check=False, capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "expected version 9.9.9" in wrong.stderr
