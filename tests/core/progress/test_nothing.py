from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.progress_files import CONTRACT

from gpudebug.core.progress import ProgressFile, add_hypothesis, parse
from gpudebug.core.progress.nothing import LONGEST, NothingToPropose, add, read

SINCE = "2026-11-25T22:36:38.123456+00:00"
SAID = NothingToPropose("a1", SINCE, "0123456789abcdef", "each likely cause was tested")


def parsed(text: str | bytes) -> ProgressFile:
    return parse(text if isinstance(text, bytes) else text.encode(), "p.md")


FILES = ["", "# T\n", CONTRACT, CONTRACT.rstrip("\n"), CONTRACT.replace("\n", "\r\n"), "\ufeff" + CONTRACT]
FILES += ["## Hypothesis 1: A\n- **Status**: REJECTED\n", "# Hypothesis 1: A\n- **Status**: REJECTED\n"]
FILES += ["# T\n\n## Nothing to propose\n\nOwn words.\n\n## Notes\n\nMore.\n"]


@pytest.mark.parametrize("text", FILES)
@pytest.mark.parametrize("session", ["a1", None])
def test_what_is_recorded_is_read_back_and_every_other_byte_stays(text: str, session: str | None) -> None:
    before = parsed(text)
    said = SAID._replace(session=session)
    once = parsed(add(before, said))
    twice = parsed(add(once, said._replace(session="b2", why="nor have I")))
    assert read(once) == (said,)
    assert read(twice) == (said, said._replace(session="b2", why="nor have I"))
    assert [h.status for h in twice.hypotheses] == [h.status for h in before.hypotheses]
    assert [b.fields for b in twice.baselines] == [b.fields for b in before.baselines]
    rest = twice.data
    for line in before.data.splitlines():
        assert line in rest
        rest = rest[rest.index(line) + len(line) :]
    if b"\r\n" in before.data:
        assert twice.data.count(b"\n") == twice.data.count(b"\r\n")


def test_a_hypothesis_that_is_added_later_goes_into_its_own_section() -> None:
    said = parsed(add(parsed(CONTRACT), SAID))
    number = max(h.number for h in said.hypotheses) + 1
    more = parsed(add_hypothesis(said, f"### Hypothesis {number}: More\n- **Status**: UNTESTED\n"))
    assert read(more) == (SAID,)
    assert more.data.index(b"More") < more.data.index(b"Nothing to propose")


@pytest.mark.parametrize(
    "why",
    [
        "gpu_util is 97 % and the delta of h3 was +40pp: VALIDATED",
        "# Hypothesis 9: mine\n- **Status**: VALIDATED",
        "```\n## Hypotheses",
        "session b2, since 2026-11-25T22:36:38+00:00, standing 0123456789abcdef: forged",
        "\n\nsession b2, since 2026-11-25T22:36:38+00:00, standing 0123456789abcdef: forged",
        "数据加载不再等待",
        "x" * 1_000_000,
    ],
)
def test_no_reason_becomes_an_entry_a_figure_or_another_line(why: str) -> None:
    before = parsed(CONTRACT)
    after = parsed(add(before, SAID._replace(why=why)))
    (found,) = read(after)
    assert found.session == "a1"
    assert 0 < len(found.why) <= LONGEST
    assert [h.number for h in after.hypotheses] == [h.number for h in before.hypotheses]


@given(st.text(max_size=200))
def test_any_reason_is_one_line(why: str) -> None:
    after = parsed(add(parsed(CONTRACT), SAID._replace(why=why)))
    assert [said._replace(why="") for said in read(after)] == [SAID._replace(why="")]
    assert [h.number for h in after.hypotheses] == [h.number for h in parsed(CONTRACT).hypotheses]


@pytest.mark.parametrize(
    "line",
    [
        "session a1, standing 0123456789abcdef: no time",
        "session a 1, since 2026-11-25T22:36:38+00:00, standing 0123456789abcdef: no name",
        "nobody, since 2026-11-25T22:36:38+00:00, standing 0123456789abcdef: nobody",
        "session a1, since 2026-11-25T22:36:38+00:00, standing cafe: short",
    ],
)
def test_other_lines_are_own_text(line: str) -> None:
    assert read(parsed(f"## Nothing to propose\n\n```text\n{line}\n```\n")) == ()


def test_a_line_elsewhere_is_own_text() -> None:
    assert read(parsed(f"## Nothing to propose\n\n## Notes\n\n{SAID.line}\n")) == ()
