"""The keys and values of every command's `--json`, held against what users know; figures and prose masked.

`python -m tests.cli.test_golden` writes `tests/data/golden.json` anew, for a change that is meant.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.engine.conftest import make_recordings
from tests.support import scripted_agent
from tests.support.answer_commands import ANSWERS
from tests.support.answer_schema import schema_of
from tests.support.campaigns import Done, gpudebug, make_replay_campaign, make_repository, record
from tests.support.old_campaign import restore
from tests.support.places import DATA
from tests.support.section_reports import node, report, section

GOLDEN = DATA / "golden.json"
# Words that mean something to a program: a status, a kind, an outcome, an identifier.
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BYTES = 60
# Of a run under way: null until it is known.
_SO_FAR = ("step", "steps", "left_s", "elapsed_s", "gpu_util", "loss")
# Of a test under way: null until its first run has ended.
_SPENT = ("cost_s", "ended", "age_s", "runs", "sparks")


def masked(value: Any) -> Any:
    """A document with figures, prose, paths and digests replaced by what they are."""
    if isinstance(value, dict):
        return {
            key if _KEY.fullmatch(key) else "<name>": _of_the_machine(key, v, value)
            for key, v in value.items()
        }
    if isinstance(value, list):
        shapes = [masked(v) for v in value]
        return [shape for i, shape in enumerate(shapes) if shape not in shapes[:i]]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return f"<{type(value).__name__}>"
    return value if len(value) < _BYTES and _WORD.fullmatch(value) else "<text>"


def _of_the_machine(key: str, value: Any, record: dict[str, Any]) -> Any:
    """The masked value of a key; only its form if it depends on the machine or on the moment."""
    if key == "checks":
        return [*value[0]]
    if key == "same" or (key == "notes" and isinstance(value, list)):
        return f"<{type(value).__name__}>"
    so_far = _SO_FAR if "runs_done" in record else _SPENT if record.get("status") == "TESTING" else ()
    if key in so_far:
        return "<figure so far>"
    return masked(value)


def answers(folder: Path) -> Iterator[tuple[str, Any]]:
    """What each command of a small campaign answers, from its baseline to its export, and an old one's."""
    recordings = make_recordings(folder / "recordings")
    record(recordings, "0010-original", util=20, rate=10)
    campaign = make_replay_campaign(folder / "new", recordings)
    asked: list[str] = []

    def answer(*words: str, where: Path = campaign.folder) -> tuple[str, Any]:
        asked.append(words[0])
        return f"{words[0]} {asked.count(words[0])}", answered(gpudebug(where, "--json", *words), words[0])

    yield answer("status")
    yield answer("next")
    yield answer("next")
    titled = ("--description", "It waits.", "--method", "Try it.")
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
    yield answer("compare", runs[0], next(run for run in runs if run.endswith("-h1")))
    started = make_repository(folder / "started", {"train.py": "print('step 1 loss 2.0')"})
    yield answer("init", "--command", "python train.py", where=started)
    old = restore(folder / "old")
    for words in (("status",), ("show", "1"), ("verify",)):
        yield answer(*words, where=old.folder)
    yield from rarer_answers(folder / "rarer")


def answered(done: Done, command: str) -> dict[str, Any]:
    """An answer as it is recorded; its types are those that its schema names."""
    document = json.loads(done.out or done.err)
    if "error" not in document and command in ANSWERS:
        jsonschema.validate(document, schema_of(ANSWERS[command]))
    return {"exit_status": done.status, "answer": masked(document)}


def rarer_answers(folder: Path) -> Iterator[tuple[str, Any]]:
    """What the commands and options answer that a campaign does not need, and the loop."""
    recordings = folder / "recordings"
    record(recordings, "0001-baseline-workload", util=20, rate=10)
    finished = record(recordings, "0002-reference", util=90, rate=45)
    record(recordings, "0003-aa", util=20.5, rate=10.1)
    record(recordings, "0004-layer-quiet", util=26, rate=13)
    record(recordings, "0005-h1", util=60, rate=30, seconds=180)
    record(recordings, "0006-h2", util=20, rate=10)
    record(recordings, "0007-compare-a", util=20, rate=10)
    record(recordings, "0008-compare-b", util=40, rate=20)
    record(recordings, "0009-sample", util=20, rate=10)
    record(recordings, "0010-why", util=20, rate=10)
    campaign = make_replay_campaign(
        folder / "repository",
        recordings,
        command="python train.py --lr=0.1 --eval_every=10",
        config="reference: {command: python train.py --lr=0.1 --batch_size=64}\n",
    )
    change = ("--title", "Larger steps", "--method", "Try it.", "--set", "--lr=0.2")
    agent = scripted_agent.script(
        folder / "plan.json", [["propose", "--set --lr=0.3", "Larger still"], ["next"]]
    )
    sections = report(section("data"), section("step", mean=0.05), tree=[node("data", 100, 1.0)])
    (folder / "sections.json").write_text(json.dumps(sections))
    device = f"--device=replay:{recordings}@60x"
    imported = ("--import", str(finished / "samples.csv"), "--log", str(finished / "train.log"))

    def answer(name: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[str, Any]:
        return name, answered(gpudebug(campaign.folder, "--json", *words, env=env), words[0])

    yield answer("baseline --aa", "baseline", "--aa")
    yield answer("diagnose --layer", "diagnose", "--layer", "quiet")
    yield answer("baseline --import", "baseline", "reference", *imported)
    yield answer("propose --set", "propose", *change)
    yield answer("next --detach", "next", "--detach")
    yield answer("status during a run", "status")
    yield answer("wait for a run", "wait")
    yield answer("loop", "loop", "--agent", scripted_agent.command(), "--idle", "1", env=agent)
    yield answer("propose --sweep", "propose", "--sweep", "--lr=0.4,0.5")
    yield answer("propose --from-catalogue", "propose", "--from-catalogue", "eval-frequent")
    yield answer("sample", "sample", device, "-o", "run.csv", "--", "true")
    yield answer("why", "why", device, "--to-the-end", "--", "true")
    yield answer("compare commands", "compare", "true", "true again", device)
    yield answer("analyze sections", "analyze", str(folder / "sections.json"))
    yield answer("analyze trace", "analyze", str(DATA / "trace_cpu.json.gz"))
    yield answer("doctor", "doctor")
    yield answer("init --print-defaults", "init", "--print-defaults")
    yield answer("settings --accept", "settings", "--accept")
    yield answer("export of nothing", "export")
    yield answer("check of nothing", "check")


@pytest.fixture(scope="module")
def found(made_once: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return made_once("golden", lambda folder: dict(answers(folder)))


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
