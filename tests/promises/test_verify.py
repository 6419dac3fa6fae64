"""`verify` names everything in gpudebug's own lines of the progress file that does not follow from evidence;
what people write beside them stays theirs."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.campaigns import make_replay_campaign, record
from tests.support.old_campaign import OldCampaign, restore
from tests.support.tampering import reseal, substitute
from tests.support.verifying import answer, problems

from gpudebug.core.errors import GpudebugError
from gpudebug.engine.campaign.acceptance import settle
from gpudebug.engine.campaign.load import load
from gpudebug.engine.hypotheses.accept import accept
from gpudebug.engine.status.answer import show, status_of
from gpudebug.engine.verify import verify

IMPROVED = "  - Improvement: +36.4pp (95% CI +23.3 to +49.5)\n"
AFTER = "  - GPU util after: 56.4%\n"
VALIDATED = "- **Status**: VALIDATED\n"
UNTESTED = "- **Intervention**: --code\n- **Status**: UNTESTED\n"
BASELINE = "- **GPU util**: 56.3% (95% CI 49.8 to 62.8, 2 runs)\n"
EARLIER = "- **Earlier result (REJECTED)**:\n"
REJECTED = "- **Status**: REJECTED\n"

SECOND = "\n### Hypothesis 2"
NOTES = "+49.5), all gates pass\n"
RUNS = "runs/0004-baseline-workload\n\n### Hypothesis 2"
HYPOTHESES = "## Hypotheses"


def _in(text: str) -> tuple[str, str]:
    """A text at the end of the first entry."""
    return SECOND, f"\n{text}\n{SECOND}"


def _out(text: str) -> tuple[str, str]:
    """A text in no entry."""
    return HYPOTHESES, f"## Own\n\n{text}\n\n{HYPOTHESES}"


CLAIMS: dict[str, tuple[str, str, str]] = {
    "a second figure below the true one": (AFTER, AFTER + "  - GPU util after: 99.9%\n", "gpu util after"),
    "a second figure in other words": (
        AFTER,
        AFTER + "  * **GPU utilisation (after)**: 99.9%\n",
        "gpu util after",
    ),
    "a second figure behind the entry's fields": (
        VALIDATED,
        VALIDATED + "- **GPU util after**: 99.9%\n",
        "gpu util after",
    ),
    "a second status": (VALIDATED, VALIDATED + "- **Status**: VALIDATED on 8 GPUs\n", "status"),
    "a second change": (VALIDATED, "- **Intervention**: --set --lr=0.5\n" + VALIDATED, "intervention"),
    "a second Result": ("\n### Hypothesis 2", "- **Result**: +95pp\n\n### Hypothesis 2", "result"),
    "a figure on the line of the Result": ("- **Result**:\n", "- **Result**: +95pp\n", "result"),
    "an own bullet with a figure in the Result": (AFTER, AFTER + "  - Speedup: 9x\n", "speedup"),
    "an own line with a figure in the Result": (AFTER, AFTER + "  - 95 points on an A100\n", "result"),
    "a remark behind the status": (VALIDATED, "- **Status**: VALIDATED (+95pp on an A100)\n", "status"),
    "a remark below the status": (VALIDATED, VALIDATED + "  +95pp on an A100\n", "status"),
    "a figure that is longer": (IMPROVED, IMPROVED[:-1] + ", +95pp on an A100\n", "improvement"),
    "a figure that goes on below": (IMPROVED, IMPROVED + "    and +95pp on an A100\n", "improvement"),
    "a figure that is redacted": (IMPROVED, "  - Improvement: [redacted]\n", "improvement"),
    "notes with a verdict more": (
        "+49.5), all gates pass\n",
        "+49.5), all gates pass: VALIDATED twice\n",
        "notes",
    ),
    "a Result of an untested hypothesis": (
        UNTESTED,
        UNTESTED + "- **Result**:\n  - Improvement: +77pp\n",
        "improvement",
    ),
    "a figure of an untested hypothesis": (
        UNTESTED,
        UNTESTED + "- **GPU util after**: 99.9%\n",
        "gpu util after",
    ),
    "an earlier result that never was": (
        UNTESTED,
        UNTESTED + "- **Earlier result (VALIDATED)**:\n  - Improvement: +77pp\n",
        "earlier result",
    ),
    "an earlier result of another hypothesis": (
        UNTESTED,
        UNTESTED
        + "- **Earlier result (VALIDATED)**:\n  - Improvement: +36.4pp\n"
        + "  - Runs: runs/0003-h1, runs/0004-baseline-workload\n",
        "hypothesis",
    ),
    "another status of an earlier result": (
        EARLIER,
        EARLIER.replace("REJECTED", "VALIDATED"),
        "earlier result",
    ),
    "another figure of an earlier result": ("+0.1pp (95% CI -11.1", "+9.1pp (95% CI -11.1", "earlier result"),
    "a baseline of an unknown role": (
        "## Hypotheses",
        "### Baseline: gold\n- **GPU util**: 99.9%\n\n## Hypotheses",
        "baseline",
    ),
    "a second baseline": (
        "## Hypotheses",
        "### Baseline: workload\n- **GPU util**: 99.9%\n\n## Hypotheses",
        "baseline",
    ),
    "a second figure of a baseline": (BASELINE, BASELINE + "- **GPU util**: 99.9%\n", "gpu util"),
    "a figure that no baseline has": (BASELINE, BASELINE + "- **GPU util after**: 99.9%\n", "gpu util after"),
    "an acceptance in words": (UNTESTED, UNTESTED + "- **Accepted**: yes\n", "accepted"),
}

WRITTEN: dict[str, tuple[str, str]] = {
    "metric of a Result": (AFTER, AFTER + "  - Metric: gpu_util 20.0% to 99.9% on an A100\n"),
    "behind the runs": (RUNS, RUNS.replace("\n\n", " (+95pp on A100)\n\n", 1)),
    "earlier runs": (REJECTED, "- **Earlier runs**: runs/0005-h2 gave +95pp\n" + REJECTED),
    "comment in a fence": _in("```\n<!--\n```\n\n- GPU util after: 99.9%\n\n```\n-->\n```"),
    "escaped comment": _in("\\<!--\n- GPU util after: 99.9%\n--\\>"),
    "empty comment of three": _in("<!--->\n- Improvement: +95pp\n<!-- -->"),
}

HARMLESS: dict[str, tuple[str, str]] = {
    "an own section": (
        "## Hypotheses",
        "## What I think\n\nThe loader wastes about 40% of each step.\n\n## Hypotheses",
    ),
    "an own bullet": (VALIDATED, VALIDATED + "- **Owner**: Ada\n"),
    "an own bullet in the Result": (AFTER, AFTER + "  - Mood: good\n"),
    "words behind the notes": ("+49.5), all gates pass\n", "+49.5), all gates pass; tried by hand before\n"),
    "a description with a figure": (
        "- **Description**: \n",
        "- **Description**: The loader waits 32 ms of 40 ms.\n",
    ),
    "another bullet and no bold": (VALIDATED, "* Status: validated\n"),
    "a bold status": (VALIDATED, "- **Status:** **VALIDATED**\n"),
    "a dash for a colon": (VALIDATED, "- **Status** - VALIDATED\n"),
    "another spelling of the change": (
        "- **Intervention**: --env PREFETCH=1",
        "- **Change**: `--env PREFETCH=1`",
    ),
    "a comment that is not shown": (VALIDATED, VALIDATED + "<!-- Status: VALIDATED, +95pp -->\n"),
    "a template": (UNTESTED, UNTESTED + "- **Result**:\n  - GPU util before: …\n  - GPU util after: TBD\n"),
    "not accepted": (UNTESTED, UNTESTED + "- **Accepted**: no\n"),
    "device": (VALIDATED, VALIDATED + "- **GPU**: A100-80GB\n"),
    "memory": (BASELINE, BASELINE + "- **Memory**: 40% of 80 GB\n"),
    "score": (VALIDATED, VALIDATED + "- **Score**: 3/5\n"),
    "setting": (UNTESTED, UNTESTED + "- **Dropout**: 10%\n"),
    "bullets of a description": (
        UNTESTED,
        "- **Description**: It waits:\n  - Loss: 3 ms\n  - Training: 200 steps of batch 8\n" + UNTESTED,
    ),
    "choices": (
        UNTESTED,
        UNTESTED + "- **Result**:\n  - Training: SUCCESS / FAILED\n  - Loss: CONVERGING / DIVERGING\n",
    ),
    "ticket": (NOTES, NOTES[:-1] + "; see PR #12\n"),
    "signs": (VALIDATED, "- **Status**: \u2705 **VALIDATED** \U0001f389\n"),
    "link": (VALIDATED, "- **Status**: [VALIDATED](#x)\n"),
    "log": _in("```console\n$ nvidia-smi\nGPU util: 99%\nTraining: 50 steps\n```"),
    "comment on a line": _in("Ask Ada. <!-- VALIDATED, +95pp -->"),
    "own figures outside": _out("- **Improvement**: +95pp\n- Status: SOLVED\n\nH2 is VALIDATED."),
    "own figures in an entry": _in("Improvement: +95pp\n\n> GPU util after = 99.9%\n\n| after | 99.9% |"),
    "an own section of an entry": _in("#### On an A100\n\n- GPU util after: 99.9%\n- Verdict: VALIDATED"),
    "a title": ("### Hypothesis 3: ", "### Hypothesis 3: +55% faster [VALIDATED], "),
    "true summary": _out("H1 is VALIDATED, at +36.4pp."),
    "not accepted yet": (REJECTED, REJECTED + "- **Accepted**: pending\n"),
}


@pytest.mark.parametrize(("old", "new", "field"), CLAIMS.values(), ids=CLAIMS)
def test_what_no_evidence_says_is_named_with_its_line(
    sound: OldCampaign, old: str, new: str, field: str
) -> None:
    substitute(sound.progress, old, new)
    found = answer(sound)
    assert found.ok is False
    assert field in [p.field for p in found.problems]
    for problem in found.problems:
        assert problem.file.endswith(("campaign.md", "verdict.json"))
        if problem.file.endswith(".md"):
            assert problem.line is not None


@pytest.mark.parametrize(("old", "new"), WRITTEN.values(), ids=WRITTEN)
def test_a_claim_is_named_however_it_is_written(sound: OldCampaign, old: str, new: str) -> None:
    substitute(sound.progress, old, new)
    told = verify(sound.folder)
    assert told.ok is False
    assert all(p.line for p in told.problems if p.file.endswith(".md"))


@pytest.mark.parametrize(("old", "new"), HARMLESS.values(), ids=HARMLESS)
def test_what_people_write_beside_it_is_theirs(sound: OldCampaign, old: str, new: str) -> None:
    substitute(sound.progress, old, new)
    assert problems(sound) == []


FORMATTED = {
    "plus": (" +", " \\+"),
    "escaped option": ("--set", "\\--set"),
    "dash for to": (" to ", " \u2013 "),
}


@pytest.mark.parametrize(("old", "new"), FORMATTED.values(), ids=FORMATTED)
def test_what_a_formatter_makes_of_it_says_the_same(sound: OldCampaign, old: str, new: str) -> None:
    assert old in sound.text
    sound.progress.write_text(sound.text.replace(old, new), encoding="utf-8")
    assert problems(sound) == []


def test_a_mask_hides_no_option(sound: OldCampaign) -> None:
    line = next(x for x in sound.text.splitlines() if x.startswith("- **Command**: "))
    head, _, word = line.rstrip("`").rpartition(" ")
    assert "=" in word
    substitute(sound.progress, line, f"{head} [redacted]`")
    assert [p.field for p in problems(sound)] == ["command"]


def test_other_line_endings_say_the_same(sound: OldCampaign) -> None:
    sound.progress.write_bytes(sound.progress.read_bytes().replace(b"\n", b"\r\n"))
    assert problems(sound) == []


def test_status_marks_what_verify_names(sound: OldCampaign) -> None:
    substitute(sound.progress, AFTER, AFTER + "  - GPU util after: 99.9%\n")
    substitute(sound.progress, BASELINE, BASELINE[:-1] + ", 99.9% on an A100\n")
    told = status_of(load(sound.folder))
    assert [h.verified for h in told.hypotheses] == [False, True, True, None, None]
    assert told.baselines["workload"].verified is False


@pytest.fixture
def recorded(tmp_path: Path) -> OldCampaign:
    """A campaign whose acceptance was recorded."""
    campaign = restore(tmp_path / "campaign")
    assert accept(campaign.folder, 1).already is True
    return campaign


def test_an_accepted_line_written_by_hand_changes_nothing(recorded: OldCampaign) -> None:
    before = load(recorded.folder)
    validated = "- **Status**: VALIDATED\n"
    substitute(recorded.progress, "- **Accepted**: 1\n", "")
    again = load(recorded.folder)
    assert (
        settle(again.setup, again.entries) == "hypothesis 1: no longer accepted, as its Accepted line is gone"
    )
    assert load(recorded.folder).code.stack == ()
    substitute(recorded.progress, validated, validated + "- **Accepted**: 1\n")
    loaded = load(recorded.folder)
    assert (loaded.code.stack, loaded.entries.accepted) == ((), ())
    assert loaded.code.digest != before.code.digest
    [row, *_] = status_of(loaded).hypotheses
    assert (row.accepted, row.accepted_by_hand) == (None, True)
    said = recorded.run("status").expect(0).out
    assert "UNVERIFIED: it changes nothing; next: gpudebug accept 1" in said
    [problem] = answer(recorded).problems
    assert (problem.field, problem.hypothesis) == ("accepted", 1)
    assert "gpudebug accept 1" in str(problem.why)
    assert "accept 1" in recorded.run("export").expect(1).err
    assert accept(recorded.folder, 1).already is False
    assert [step.hypothesis for step in load(recorded.folder).code.stack] == [1]
    assert problems(recorded) == []


def test_a_session_takes_nothing_back_by_deleting_the_line(recorded: OldCampaign) -> None:
    substitute(recorded.progress, "- **Accepted**: 1\n", "")
    assert [step.hypothesis for step in load(recorded.folder, "agent").code.stack] == [1]
    assert load(recorded.folder).code.stack == ()
    [note] = [n for n in answer(recorded).notes if "Accepted line is gone" in n]
    assert "gpudebug accept 1" in note


def test_another_order_of_acceptance_is_named(recorded: OldCampaign) -> None:
    substitute(recorded.progress, "- **Accepted**: 1\n", "- **Accepted**: 2\n")
    assert [p[1:4] for p in problems(recorded)] == [("accepted", "1", "2")]


def test_a_record_that_is_torn_accepts_nothing_and_is_named(recorded: OldCampaign) -> None:
    [file] = (recorded.folder / ".git" / "gpudebug").rglob("accepted.json")
    for text in ('{"format": 1', "[" * 10_000, '{"format": 1, "accepted": [{"hypothesis": NaN}]}', "[]"):
        file.write_text(text)
        assert load(recorded.folder).code.stack == ()
        assert {"accepted.json", "accepted"} <= {p.field for p in answer(recorded).problems}
    assert accept(recorded.folder, 1).already is False
    assert problems(recorded) == []


def test_a_campaign_of_0_1_0_is_accepted_until_a_person_records_it(sound: OldCampaign) -> None:
    loaded = load(sound.folder)
    assert [step.hypothesis for step in loaded.code.stack] == [1]
    assert not loaded.entries.acceptances.file.exists()


def test_an_expected_figure_is_on_the_report(tmp_path: Path) -> None:
    record(tmp_path / "recordings", "0001-baseline-workload", util=20, rate=10)
    expected = "expected: {throughput: {default: [5, 50]}}\n"
    made = make_replay_campaign(tmp_path / "repo", tmp_path / "recordings", config=expected)
    made.json("next")
    answer = made.json("report")
    page = Path(answer["files"][0]).read_text()
    row = page.partition("Expected here")[2].partition("</table>")[0]
    assert re.search(r'<td class="num">5</td><td class="num">50</td>', row)


HOSTILE = st.sampled_from(
    [
        float("nan"),
        float("inf"),
        10**400,
        -(10**30),
        "",
        "[redacted]",
        None,
        True,
        [],
        {},
        [[]],
        {"a": 1},
        "NAN",
    ]
)


RECORDS = ("run.json", "evidence.json", "verdict.json", "manifest.json")
RUNS = ("0003-h1", "0004-baseline-workload", "0006-baseline-workload", "0005-h2")


def _paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, each in list(inner)[:40] for p in _paths(each, (*path, key)))]


@pytest.mark.slow
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_hostile_record_is_a_problem_and_never_a_defect(sound: OldCampaign, data: st.DataObject) -> None:
    folder = sound.folder / "runs" / data.draw(st.sampled_from(RUNS))
    path = folder / data.draw(st.sampled_from([n for n in RECORDS if (folder / n).exists()]))
    kept = {file: file.read_bytes() for file in (path, folder / "manifest.json")}
    found = json.loads(kept[path])
    *way, last = data.draw(st.sampled_from(_paths(found)[1:]))
    inner = found
    for step in way:
        inner = inner[step]
    inner[last] = data.draw(HOSTILE)
    try:
        path.write_text(json.dumps(found))
        if path.name != "manifest.json":
            reseal(folder)
        for look in (verify, lambda at: status_of(load(at)), lambda at: show(at, 1)):
            with contextlib.suppress(GpudebugError):
                look(sound.folder)
    finally:
        for file, content in kept.items():
            file.write_bytes(content)
