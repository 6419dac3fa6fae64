"""Each file of docs/changes has a place in the next release's section."""

from __future__ import annotations

import subprocess
import sys

from tests.support.documents import ROOT

CHANGES = sorted(path for path in (ROOT / "docs" / "changes").iterdir() if path.name != "README.md")


def test_each_change_is_in_the_section_that_a_release_would_write() -> None:
    words = ("--draft", "--version", "9.9.9", "--dir", str(ROOT))
    done = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", *words], check=True, capture_output=True, text=True
    )
    section = " ".join(done.stdout.split())
    for path in CHANGES:
        assert " ".join(path.read_text("utf-8").split()) in section, path.name
