"""Accepting: the progress file gets a line, and what the baseline must measure is another thing."""

from __future__ import annotations

import re

import pytest
from tests.support.campaigns import PROGRESS, Campaign, contents, git

from gpudebug.core.errors import GpudebugError
from gpudebug.engine.campaign.load import load
from gpudebug.engine.hypotheses.accept import _notes, accept

ENTRY = "\n### Hypothesis {}: By hand\n- **Intervention**: --set --work=0.9\n- **Status**: {}\n"


def test_what_was_validated_becomes_part_of_the_baseline(judged: Campaign) -> None:
    before, text = contents(judged.folder), judged.text
    answer = judged.json("accept", "1")
    assert (answer["action"], answer["order"], answer["already"]) == ("accepted", 1, False)
    assert answer["next_command"] == "gpudebug next"
    at = text.index("- **Status**: VALIDATED\n") + len("- **Status**: VALIDATED\n")
    heading = "## Hypotheses"
    assert (
        judged.text.partition(heading)[2]
        == (f"{text[:at]}- **Accepted**: 1\n{text[at:]}".partition(heading)[2])
    )
    changed = {name for name, found in contents(judged.folder).items() if found != before.get(name)}
    kept = {name for name in changed if not name.endswith(".lock") and not name.startswith("runs/")}
    assert kept == {PROGRESS}
    status = judged.json("status")
    assert [h["accepted"] for h in status["hypotheses"]] == [1, None, None, None]
    text = judged.text
    assert "is accepted already" in judged.run("accept", "1").expect(0).out
    assert judged.text == text


def test_the_next_baseline_measures_what_was_accepted(adopted: Campaign) -> None:
    text = adopted.text
    assert "train.py --lr=0.2 --work=0.2`\n- **GPU util**: 75." in text
    assert [int(n) for n in re.findall(r"\*\*Accepted\*\*: (\d)", text)] == [2, 1]
    assert "--lr=0.1" in adopted.config.read_text()
    assert git(adopted.folder, "status", "--porcelain", "loader.py", "train.py", "gpudebug.yaml") == ""


def test_a_combination_that_was_not_measured_is_accepted_and_said(judged: Campaign) -> None:
    taken, own, note = accept(judged.folder, 2).notes
    assert taken == "the 2 runs of its trial are the baseline now: nothing is measured again"
    assert own == "its throughput is by the program's own word: no probe counted its steps"
    assert "your checkout is as it was" in note
    second = accept(judged.folder, 1)
    assert second.order == 2
    note, own = second.notes
    assert own.startswith("its throughput is by the program's own word")
    assert "the code changed since it was measured: the combination is not measured yet" in note
    status = judged.json("status")
    assert status["next"]["action"] == "record_baseline"
    assert "command changed" in status["next"]["why"]


REFUSED = [
    (3, "", 1, "hypothesis 3 is REJECTED (delta: ", "gpudebug show 3"),
    (8, "", 2, "there is no hypothesis 8: there are 1, 2, 3, 4", "gpudebug status"),
    (7, "UNTESTED", 1, "hypothesis 7 is not tested yet", "gpudebug next"),
    (
        7,
        "TESTING - session a, since 2026-11-21T10:00:00+00:00",
        6,
        "(session a, since 2026",
        "gpudebug status",
    ),
    (7, "VALIDATED", 1, "VALIDATED in the progress file alone: UNVERIFIED", "gpudebug verify 7"),
    (7, "VALIDATED\n- **Accepted**: no", 1, "UNVERIFIED", "gpudebug verify 7"),
    (7, "INCONCLUSIVE", 1, "hypothesis 7 is INCONCLUSIVE (UNVERIFIED)", "gpudebug show 7"),
]


def test_nothing_else_is_accepted(judged: Campaign) -> None:
    measured = judged.text
    for number, status, code, said, advice in REFUSED:
        text = measured + (ENTRY.format(7, status) if status else "")
        judged.progress.write_text(text)
        with pytest.raises(GpudebugError, match=re.escape(said)) as caught:
            accept(judged.folder, number)
        assert (caught.value.exit_code, caught.value.next) == (code, advice)
        assert judged.text == text
    judged.progress.write_text(measured)
    (line,) = judged.run("accept", "3").expect(1).err.splitlines()
    assert f"{judged.progress}:" in line


def test_a_result_that_was_touched_is_not_accepted(judged: Campaign) -> None:
    judged.progress.write_text(re.sub(r"(GPU util after): \d+\.\d%", r"\1: 99.9%", judged.text, count=1))
    with pytest.raises(GpudebugError, match="UNVERIFIED"):
        accept(judged.folder, 1)


def test_a_patch_that_the_code_no_longer_takes_is_not_accepted(judged: Campaign) -> None:
    (judged.folder / "loader.py").write_text("workers = 2\n\n\ndef load():\n    return workers\n")
    text, refs = judged.text, git(judged.folder, "for-each-ref")
    done = judged.run("accept", "2").expect(1)
    assert "hypotheses/patches/workers.patch:5: does not apply to loader.py at line 1" in done.err
    assert (judged.text, git(judged.folder, "for-each-ref")) == (text, refs)


def test_a_patch_that_the_checkout_has_by_now_is_accepted(judged: Campaign) -> None:
    git(judged.folder, "apply", "hypotheses/patches/workers.patch")
    assert accept(judged.folder, 2).order == 1


def test_what_is_accepted_twice_at_once_has_one_number(judged: Campaign) -> None:
    processes = [judged.start("accept", number) for number in ("1", "2", "1")]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert sorted(re.findall(r"\*\*Accepted\*\*: (\d)", judged.text)) == ["1", "2"]


def test_a_flag_that_was_accepted_before_is_named_and_by_hand_none_was(judged: Campaign) -> None:
    accept(judged.folder, 1)
    loaded = load(judged.folder)
    again = _notes(loaded.entries, loaded.code, loaded.entries.document.hypothesis(1))
    assert again[-1] == "it changes --lr, as hypothesis 1 did before it"
    judged.progress.write_text(judged.text.replace("- **Accepted**: 1\n", ""))
    judged.add(ENTRY.format(7, "VALIDATED\n- **Accepted**: 4").replace("--work=0.9", "lr=0.7"))
    answer = accept(judged.folder, 1)
    assert answer.order == 5
    assert not any("hypothesis 7" in note for note in answer.notes)
