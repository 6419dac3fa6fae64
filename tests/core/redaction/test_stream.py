"""Text in pieces is redacted as the whole would be, and waits no longer than it must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudebug.core.redaction.redact import REDACTED, Redactor
from gpudebug.core.redaction.stream import RedactedStream

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
