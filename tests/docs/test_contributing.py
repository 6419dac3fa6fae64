"""The worked examples of CONTRIBUTING.md work."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tests.core.catalogue.test_adapter import KEYS
from tests.support.documents import ROOT, page
from tests.support.trials import run

from gpudebug.core.catalogue.frameworks import find
from gpudebug.core.catalogue.parser import read_cause, read_framework
from gpudebug.core.catalogue.program import look
from gpudebug.core.words import Result

EXAMPLES = {
    block.mark.removeprefix("checked: "): block.text for block in page(ROOT / "CONTRIBUTING.md").blocks
}


def test_the_cause_is_read() -> None:
    assert read_cause(EXAMPLES["cause"], "metrics-upload.yaml", group="stalls").waits


def test_the_framework_is_read_and_its_recorded_command_is_recognised() -> None:
    framework = read_framework(EXAMPLES["framework"], "tinytrain.yaml")
    assert framework.locked == ("batch_size",)
    recorded = yaml.safe_load(EXAMPLES["recorded"])
    assert set(recorded) <= KEYS
    for says in recorded["commands"]:
        found = find(shlex.split(says["command"]), [framework], look("train.py", [says.get("source", "")]))
        assert found is not None
        assert found.takes_flags is says.get("flags", True)


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [(100.0, 120.0, Result.PASS), (100.0, 160.0, Result.FAIL), (None, 160.0, Result.UNKNOWN)],
)
def test_the_gate_judges(before: float | None, after: float, result: Result) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES["gate"], names)
    case = SimpleNamespace(before=[run(peak_rss_mb=before)], after=[run(peak_rss_mb=after)])
    assert names["memory_gate"](case).result is result
