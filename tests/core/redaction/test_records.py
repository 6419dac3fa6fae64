"""What is taken out of records: values of secrets in what came from outside, never in words of ours."""

from __future__ import annotations

import pytest

from gpudebug.core.redaction.records import scrubbed, scrubbed_record
from gpudebug.core.redaction.redact import REDACTED, Redactor

WORD = "dataloading"
TOKEN = "hf_" + "aB3" * 11
REDACT = Redactor({"DB_PASSWORD": WORD}).redact


@pytest.mark.parametrize(
    "record",
    [
        {"action": WORD, "role": WORD, "runs": [WORD], "name": WORD, "cwd": f"/home/{WORD}/x", "host": WORD},
        {"devices": [{"name": WORD, "uuid": WORD}], "identity": {"interpreter": f"/{WORD}/python"}},
        {"gates": [{"name": WORD, "value": WORD, "threshold": WORD}], "files": {"progress": f"/{WORD}/p"}},
        {"written": {WORD: {"sha256": WORD}}, "packages": {"secret": "2024.10.1", "x": WORD}},
    ],
)
def test_words_of_ours_stay(record: dict[str, object]) -> None:
    assert scrubbed_record(record, REDACT) == record


@pytest.mark.parametrize(
    "record",
    [
        {"reason": f"no {WORD}."},
        {"command": f"t --x={WORD}", "argv": ["t", WORD]},
        {"failure": {"kind": "CUDA", "lines": [f"E: {WORD}"]}},
        {"printed": {"name": WORD, "run": WORD, "files": {"x": WORD}}},
        {"sections": [{"name": WORD}], "env": {"host": WORD}, "knobs": {"OMP_X": WORD}},
        {"notes": [WORD], "title": WORD, "description": WORD, "gates": [{"note": WORD}]},
    ],
)
def test_what_came_from_outside_goes(record: dict[str, object]) -> None:
    assert WORD not in str(scrubbed_record(record, REDACT))


def test_known_shapes_go_everywhere() -> None:
    record = {"role": TOKEN, "files": [TOKEN], "identity": {"command": TOKEN}, "reason": TOKEN}
    assert TOKEN not in str(scrubbed_record(record, REDACT))
    assert TOKEN not in str(scrubbed({"name": TOKEN}, REDACT))


def test_a_document_of_somebody_elses_has_no_words_of_ours() -> None:
    assert scrubbed({"name": WORD, "files": [WORD]}, REDACT) == {"name": REDACTED, "files": [REDACTED]}


@pytest.mark.parametrize(
    ("value", "text", "redacted"),
    [
        ("python", "a pythonic python3 in python", f"a pythonic python3 in {REDACTED}"),
        ("python", "x\\npython\\n", f"x\\n{REDACTED}\\n"),
        ("vagrant", "/home/vagrant/x my_vagrant", f"/home/{REDACTED}/x my_vagrant"),
        (
            "observationimages",
            "observationimages.top observationimages2",
            f"{REDACTED}.top observationimages2",
        ),
        ("hunter2!", "xhunter2! (hunter2!) hunter2!y", f"xhunter2! ({REDACTED}) {REDACTED}y"),
        ("s3cr3tValue99", "as3cr3tValue99z", f"a{REDACTED}z"),
        ("COMPLETED", "the run COMPLETED", "the run COMPLETED"),
    ],
)
def test_values_that_are_words_go_as_words(value: str, text: str, redacted: str) -> None:
    assert Redactor({"DB_PASSWORD": value}).redact(text) == redacted
