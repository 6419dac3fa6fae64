"""`gpudebug doctor --profiling`: the library tried as a training uses it, and nothing left behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.support.campaigns import gpudebug, make_campaign
from tests.support.interpreters import VERSIONS, interpreter

from gpudebug.core.errors import GpudebugError
from gpudebug.edges.launcher import try_profiling


def checks(answer: dict[str, object]) -> dict[str, dict[str, str]]:
    return {c["name"]: c for c in answer["checks"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_library_works_on_every_python(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = try_profiling(interpreter(version))
    assert told["version"].startswith(version + ".")
    assert {s["name"] for s in told["report"]["sections"]} == {"outer", "inner", "memory", "failing"}
    assert told["at_exit"]["notes"]
    assert 0 < told["pair_ns"] < told["section_ns"] < 100_000
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    answer = gpudebug(tmp_path, "doctor", "--profiling", "--json").expect(0).json
    found = checks(answer)
    assert answer["ok"] is True
    assert list(found) == ["library", "sections", "memory", "report", "overhead"]
    assert {c["result"] for c in found.values()} == {"ok"}
    assert "20 calls inside another section" in found["sections"]["found"]
    assert "32 MB" in found["memory"]["found"]
    done = gpudebug(tmp_path, "doctor", "--profiling").expect(0)
    assert [line.split()[:2] for line in done.out.splitlines()] == [["ok", name] for name in found]
    assert list(tmp_path.iterdir()) == []


def test_the_workloads_python_is_tried_as_well(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "repo")
    config = campaign.config.read_text()
    campaign.config.write_text(config.replace("command: ", f"command: {interpreter('3.8')} train.py # ", 1))
    found = checks(campaign.json("doctor", "--profiling"))
    assert "3.8" in found["workload's library"]["found"]
    assert len(found) == 10


BROKEN = {
    "fails": (
        "#!/bin/sh\necho some traceback >&2\necho 'ImportError: no such thing' >&2\nexit 1\n",
        "no such thing",
    ),
    "silent": ("#!/bin/sh\nexit 7\n", "exit status 7"),
    "says_nothing": ("#!/bin/sh\nexit 0\n", "no readable report"),
    "no_program": ("", "Exec format error"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_python_in_which_it_fails_is_named_with_a_way_to_see_why(tmp_path: Path, how: str) -> None:
    script, said = BROKEN[how]
    python = tmp_path / "python3"
    python.write_text(script)
    python.chmod(0o755)
    with pytest.raises(GpudebugError, match=said) as caught:
        try_profiling(str(python))
    assert str(python) in caught.value.message
    assert (caught.value.next or "").startswith("see the whole error with: PYTHONPATH=")
    campaign = make_campaign(tmp_path / "repo")
    config = campaign.config.read_text()
    campaign.config.write_text(config.replace("command: ", f"command: {python} train.py # ", 1))
    done = campaign.run("doctor", "--profiling").expect(1)
    assert "FAILED  workload's library" in done.out
    assert done.err == ""
