"""What is taken out of records: values of secrets in what came from outside, never in words of ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.redaction.records import RedactedStream, scrubbed, scrubbed_record
from gpudebug.core.redaction.redact import REDACTED, Redactor

VALUE = "correct horse battery"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc+/=\nsecondline\n-----END RSA PRIVATE KEY-----\n"
REDACTOR = Redactor({"MY_API_KEY": VALUE})
PARTS = (
    "a line\n",
    "no end of line",
    "\n",
    KEY,
    f"it is {VALUE}.\n",
    "machine h\nlogin me\npassword hunter22\n",
    "token=abcdef0123456789\n",
    "hf_abcdefghijklmnopqrstuvwxyz\n",
    "-----BEGIN",
    "login",
    "Größe\r\n",
)


def streamed(pieces: list[str], **more: int) -> str:
    stream = RedactedStream(REDACTOR.redact, **more)
    return "".join([*(stream.feed(piece) for piece in pieces), stream.finish()])


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.lists(st.integers(0, 400), max_size=12))
def test_pieces_say_what_the_whole_says(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    ends = sorted({min(c, len(text)) for c in cuts} | {len(text)})
    pieces = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    assert streamed(pieces) == REDACTOR.redact(text)


@pytest.mark.parametrize("secret", [KEY, VALUE, "login me\npassword hunter22\n"])
def test_one_character_after_the_other_gives_no_secret_away(secret: str) -> None:
    said = streamed(list(f"before\n{secret}\nafter\n"))
    assert said.startswith("before\n")
    assert said.endswith("after\n")
    assert REDACTED in said
    assert not any(part in said for part in ("MIIE", "secondline", "horse", "hunter22"))


def test_a_line_is_handed_on_once_it_has_ended() -> None:
    stream = RedactedStream(REDACTOR.redact)
    assert stream.feed("one\ntwo") == "one\n"
    assert stream.feed(" and a half\n") == "two and a half\n"
    assert stream.feed("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n") == ""
    assert stream.feed("-----END RSA PRIVATE KEY-----\nlast\n") == f"{REDACTED}\nlast\n"
    assert stream.finish() == ""


def test_what_never_ends_is_not_held_for_ever() -> None:
    stream = RedactedStream(REDACTOR.redact, longest=100)
    handed = sum(len(stream.feed("word " * 10)) for _ in range(100))
    assert handed >= 5000 - 150
    assert len(RedactedStream(REDACTOR.redact, longest=100).feed("x" * 1000)) >= 900


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
