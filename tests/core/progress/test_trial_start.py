"""The splice that begins a trial: status, claim and change at once, every other byte kept."""

from __future__ import annotations

import pytest

from gpudebug.core import progress
from gpudebug.core.words import Status

CASES = [
    (
        "replaced",
        "### Hypothesis 1: x\n- **Intervention**: --code\n- **Status**: UNTESTED\n- Own: y\n",
        "### Hypothesis 1: x\n- **Intervention**: --patch p\n- **Status**: TESTING - since 1\n- Own: y\n",
    ),
    (
        "added in front of the status",
        "### Hypothesis 1: x\n* **Description**: d\n* **Status**: UNTESTED\n",
        "### Hypothesis 1: x\n* **Description**: d\n* **Intervention**: --patch p\n"
        "* **Status**: TESTING - since 1\n",
    ),
    (
        "a value that went on is replaced whole",
        "### Hypothesis 1: x\r\n- Intervention:\r\n  --code\r\n- Status: UNTESTED\r\n",
        "### Hypothesis 1: x\r\n- Intervention: --patch p\r\n- Status: TESTING - since 1\r\n",
    ),
    (
        "neither is there",
        "### Hypothesis 1: x\n- **Test Method**: m\n\n## Notes\n",
        "### Hypothesis 1: x\n- **Test Method**: m\n- **Intervention**: --patch p\n"
        "- **Status**: TESTING - since 1\n\n## Notes\n",
    ),
]


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_status_and_change(text: str, expected: str) -> None:
    document = progress.parse(text.encode(), "p.md")
    found = progress.parse(progress.set_testing(document, 1, "since 1", "--patch p"), "p.md")
    entry = found.hypothesis(1)
    assert (entry.status, entry.intervention) == (Status.TESTING, "--patch p")
    assert sorted(found.data.decode().splitlines()) == sorted(expected.splitlines())


def test_without_a_change_only_the_status_is_touched() -> None:
    text = "### Hypothesis 1: x\n- **Intervention**: --set --a=1\n- **Status**: UNTESTED\n"
    document = progress.parse(text.encode(), "p.md")
    assert progress.set_testing(document, 1, "since 1").decode() == text.replace(
        "UNTESTED", "TESTING - since 1"
    )
