"""The keys and values of every command's `--json`, held against what users know; figures and prose masked.

`python -m tests.cli.test_golden` writes `tests/data/golden.json` anew, for a change that is meant.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import make_recordings
from tests.support.campaigns import gpudebug, make_replay_campaign, make_repository
from tests.support.old_campaign import restore
from tests.support.places import DATA

GOLDEN = DATA / "golden.json"
# Words that mean something to a program: a status, a kind, an outcome, an identifier.
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")
_BYTES = 60


def masked(value: Any) -> Any:
    """A document with figures, prose, paths and digests replaced by what they are."""
    if isinstance(value, dict):
        return {key if _WORD.fullmatch(key) else "<name>": masked(v) for key, v in value.items()}
    if isinstance(value, list):
        shapes = [masked(v) for v in value]
        return [shape for i, shape in enumerate(shapes) if shape not in shapes[:i]]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return f"<{type(value).__name__}>"
    return value if len(value) < _BYTES and _WORD.fullmatch(value) else "<text>"


def answers(folder: Path) -> Iterator[tuple[str, Any]]:
    """What each command of a small campaign answers, from its baseline to its export, and an old one's."""
    recordings = make_recordings(folder / "recordings")
    campaign = make_replay_campaign(folder / "new", recordings, runs=1)
    titled = ("--description", "It waits.", "--method", "Try it.")
    asked: list[str] = []

    def answer(*words: str, where: Path = campaign.folder) -> tuple[str, Any]:
        asked.append(words[0])
        done = gpudebug(where, *words, "--json")
        name = f"{words[0]} {asked.count(words[0])}"
        return name, {"exit_status": done.status, "answer": masked(json.loads(done.out or done.err))}

    yield answer("status")
    yield answer("next")
    yield answer("next")
    yield answer("propose", "--title", "Larger steps", *titled, "--set", "--lr=0.2")
    yield answer("propose", "--title", "Smaller steps", *titled, "--set", "--lr=0.05")
    yield answer("propose", "--title", "Smaller steps", *titled, "--set", "--lr=0.05")
    yield answer("propose", "--title", "A change of the code", *titled, "--code")
    yield answer("diagnose")
    for _ in range(4):
        yield answer("next")
    yield answer("status")
    yield answer("show", "1")
    yield answer("show", "9")
    yield answer("verify")
    yield answer("accept", "1")
    yield answer("baseline")
    yield answer("reopen", "2")
    yield answer("export", "-o", str(folder / "exported"))
    yield answer("report", "-o", str(folder / "page.html"))
    yield answer("settings")
    yield answer("release", "3")
    yield answer("wait")
    yield answer("clean")
    yield answer("catalogue")
    yield answer("catalogue", "dl-few-workers")
    runs = [str(campaign.folder / "runs" / name) for name in campaign.runs()]
    yield answer("analyze", f"{runs[0]}/samples.csv")
    yield answer("analyze", f"{runs[0]}/train.log")
    yield answer("compare", runs[0], runs[1])
    started = make_repository(folder / "started", {"train.py": "print('step 1 loss 2.0')"})
    yield answer("init", "--command", "python train.py", where=started)
    old = restore(folder / "old")
    for words in (("status",), ("show", "1"), ("verify",)):
        yield answer(*words, where=old.folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return dict(answers(tmp_path_factory.mktemp("golden")))


RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}


@pytest.mark.parametrize("name", RECORDED)
def test_an_answer_keeps_its_keys_and_values(name: str, found: dict[str, Any]) -> None:
    assert found.get(name) == RECORDED[name]
    assert _order(found[name]) == _order(RECORDED[name])


def test_every_answer_is_recorded(found: dict[str, Any]) -> None:
    assert [*found] == [*RECORDED]


def _order(value: Any) -> Any:
    """The keys of a document in their order, which equality leaves out."""
    if isinstance(value, dict):
        return [(key, _order(v)) for key, v in value.items()]
    return [_order(v) for v in value] if isinstance(value, list) else None


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        documents = dict(answers(Path(temporary)))
    GOLDEN.write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")
