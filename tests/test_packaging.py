"""What an index would take: the wheel of the sdist runs, has all that it needs, and knows its commit."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# `python -m gpudebug` of one folder, whatever else is installed.
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from gpudebug.__main__ import main; sys.exit(main())"


def said(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_the_wheel_of_the_sdist_is_the_product(tmp_path: Path) -> None:
    head = said("git", "-C", ROOT, "rev-parse", "HEAD")
    # Out of the checkout: a build leaves nothing in it.
    said(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(sdist) as archive:
        assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests", "docs"} <= {
            name.split("/")[1] for name in archive.getnames() if "/" in name
        }
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    assert {name.split("/")[0] for name in names} == {"gpudebug", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    for kind in ("catalogue", "frameworks"):
        there = {path.name for path in (ROOT / "hypotheses" / kind).rglob("*.yaml")}
        inside = [name for name in names if name.startswith(f"gpudebug/{kind}/")]
        assert there == {Path(name).name for name in inside if name.endswith(".yaml")}
    version = said(sys.executable, "-c", RUN, tmp_path / "installed", "--version")
    assert version.endswith(f"(commit {head[:12]})")
