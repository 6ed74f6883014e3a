"""The checklist of a release: ``make release-check``.

It compares all version numbers, builds the wheel and the sdist, checks their contents, installs them into fresh
environments of every Python from 3.11 to 3.14 that the machine has, and runs tools/smoke.py there. The first item that
fails ends it. ``make test`` comes before; the tag and the upload come after, by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
IN_SDIST = (
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "Makefile",
    "tests/docs/test_readme.py",
    "lab/__main__.py",
    "docs/index.md",
)


class ReleaseError(Exception):
    """A failed item of the checklist."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """Read the version from each file that has one."""
    places = {
        "src/driftsack/core/release.py": r'__version__ = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)$",
        "CHANGELOG.md": r"^## (\d\S*) \(\d{4}-\d{2}-\d{2}\)$",  # the first section
    }
    found = {}
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def one_version(root: Path = ROOT) -> str:
    """Return the version if all files agree."""
    found = versions(root)
    if len(set(found.values())) != 1:
        raise ReleaseError(f"all places must name the same version, got {found}; correct the one that is behind")
    return next(iter(found.values()))


def find_python(version: str) -> str | None:
    """Find an interpreter of a version on the path or in pyenv."""
    directories = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))) / "versions"
    for path in [shutil.which(f"python{version}"), *map(str, sorted(directories.glob(f"{version}.*/bin/python")))]:
        if path and run([path, "-c", "import venv, ensurepip"], check=False) == 0:
            return path
    return None


def run(command: list[str], check: bool = True, directory: Path = ROOT) -> int:
    """Run a command in a directory without the caller's environment of Python; its output is shown only if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=clean)
    if check and done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.returncode


def build(directory: Path, version: str) -> tuple[Path, Path]:
    """Build the wheel and the sdist, and check their contents."""
    run([sys.executable, "-m", "build", "--outdir", str(directory)])
    wheel, sdist = directory / f"driftsack-{version}-py3-none-any.whl", directory / f"driftsack-{version}.tar.gz"
    names = zipfile.ZipFile(wheel).namelist()
    foreign = [name for name in names if not name.startswith(("driftsack/", f"driftsack-{version}.dist-info/"))]
    if foreign or "driftsack/py.typed" not in names:
        raise ReleaseError(f"the wheel must hold the package with py.typed and nothing else, got also {foreign[:5]}")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    if missing := [name for name in IN_SDIST if name not in inside]:
        raise ReleaseError(f"the sdist must hold {missing}; add them to tool.hatch.build.targets.sdist")
    return wheel, sdist


def smoke(python: str, package: Path, version: str) -> None:
    """Install a package into a fresh environment and run the smoke test there."""
    with tempfile.TemporaryDirectory() as directory:
        own = str(Path(directory) / "venv" / "bin" / "python")
        run([python, "-m", "venv", str(Path(directory) / "venv")])
        run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{package}[plan,cli]"])
        run([own, str(ROOT / "tools" / "smoke.py"), version], directory=Path(directory))


def main() -> None:
    """Run every item of the checklist."""
    version = one_version()
    print(f"[x] version {version} in every place")
    with tempfile.TemporaryDirectory() as directory:
        wheel, sdist = build(Path(directory), version)
        print(f"[x] {wheel.name} and {sdist.name} are built and complete")
        tried = 0
        for name in PYTHONS:
            if (python := find_python(name)) is None:
                print(f"[ ] Python {name}: not on this machine")
                continue
            for package in (wheel, sdist) if tried == 0 else (wheel,):
                smoke(python, package, version)
                print(f"[x] Python {name}: {package.suffix.lstrip('.')} installs and passes the smoke test", flush=True)
            tried += 1
    if not tried:
        raise ReleaseError(f"the smoke test needs one of Python {', '.join(PYTHONS)}, none was found")
    print(f"Left to do by hand: make test, tag v{version}, upload both files.")


if __name__ == "__main__":
    try:
        main()
    except ReleaseError as error:
        sys.exit(f"[!] {error}")
