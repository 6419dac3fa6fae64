"""Commands of a shell as calls of tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpudebug
from gpudebug.mcp.tools import TOOLS
from gpudebug.mcp.wording import tool_text, tool_words

PACKAGE = Path(gpudebug.__file__).parent
OFFERED = {tool.name for tool in TOOLS}
SHELL = re.compile(r"gpudebug (?:-C \S+ )?(?P<verb>[a-z]+)\b(?![-=])")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpudebug next", "next"),
        ("gpudebug -C '/a b/c' next", "next"),
        ("gpudebug next, which mends it", "`next`, which mends it"),
        ("run `gpudebug next` again", "run `next` again"),
        ("(`gpudebug show H` shows it)", "(`show(hypothesis=H)` shows it)"),
        ("gpudebug show 3, then propose another", "`show(hypothesis=3)`, then propose another"),
        ("gpudebug verify 3 says", "`verify(hypothesis=3)` says"),
        ("gpudebug baseline workload.", "`gpudebug baseline workload` (the user runs it)."),
        ("gpudebug compare baseline 1", 'compare(a="baseline", b="1")'),
        ("gpudebug compare takes recorded runs", "`compare` takes recorded runs"),
        ("gpudebug why --pid 12", "why(pid=12)"),
        ("gpudebug next --detach", "next"),
        ("`gpudebug wait --for 9m` until it ends", "`wait` until it ends"),
        ("gpudebug catalogue dl-no-workers", 'catalogue(about="dl-no-workers")'),
        ("    gpudebug propose --from-catalogue a-b", '    propose(from_catalogue="a-b")'),
        (
            "gpudebug propose --title 'A B' --set --x=1 --set y=2 --code",
            'propose(title="A B", set=["--x=1", "y=2"], code=true)',
        ),
        ("next: gpudebug accept 2", "next: `gpudebug accept 2` (the user runs it)"),
        (
            "a person runs: gpudebug accept 3 --terms-differ",
            "a person runs: `gpudebug accept 3 --terms-differ`",
        ),
        ("`gpudebug settings --accept`, once", "`gpudebug settings --accept` (the user runs it), once"),
        (
            "gpudebug reopen 3 --because 'x y', then gpudebug next",
            "`gpudebug reopen 3 --because 'x y'` (the user runs it), then `next`",
        ),
        (
            "gpudebug diagnose --layer quiet needs no probe",
            "`gpudebug diagnose --layer quiet` (the user runs it) needs no probe",
        ),
        ("Next: `propose --from-catalogue a-b`.", 'Next: `propose(from_catalogue="a-b")`.'),
        ("`propose --none 'WHY'` ends it", '`propose(none="WHY")` ends it'),
        ("`next` and `--set FLAG=VALUE` and `loop`", "`next` and `--set FLAG=VALUE` and `loop`"),
        ("One in full: gpudebug catalogue ID", "One in full: `catalogue(about=ID)`"),
        ("gpudebug.yaml, and what gpudebug measures", "gpudebug.yaml, and what gpudebug measures"),
        ("Stop at exit status 7 or 4.", "Stop when an answer's `action` is `stop`."),
        ("the training ended with exit status 4", "the training ended with exit status 4"),
        ("```text\ngpudebug next\n```\ngpudebug next", "```text\ngpudebug next\n```\nnext"),
    ],
)
def test_a_command_becomes_a_call(text: str, said: str) -> None:
    assert tool_text(text, OFFERED) == said


def test_what_a_tool_offers_is_called_and_not_handed_to_the_user() -> None:
    assert tool_text("gpudebug accept 2", OFFERED | {"accept"}) == "accept(hypothesis=2)"


def test_words_of_others_and_paths_stay() -> None:
    document = {
        "title": "gpudebug next",
        "why": "gpudebug next",
        "notes": ["gpudebug wait"],
        "files": ["gpudebug next"],
    }
    assert tool_words(document, OFFERED) == {**document, "why": "next", "notes": ["wait"]}


def test_the_command_of_a_cause_is_a_call_and_that_of_a_training_stays() -> None:
    for command, said in (
        ("gpudebug propose --from-catalogue a-b", 'propose(from_catalogue="a-b")'),
        ("python train.py --lr=1", "python train.py --lr=1"),
    ):
        assert tool_words({"command": command}, OFFERED) == {"command": said}


@given(st.text())
def test_no_text_of_others_raises(text: str) -> None:
    tool_text(f"gpudebug propose {text}", OFFERED)
    if "gpudebug" not in text and "exit status" not in text:
        assert tool_text(text, OFFERED) == text


def texts() -> Iterator[tuple[str, str]]:
    """Every text that the package may print, with its place; docstrings are for its readers."""
    for path in PACKAGE.glob("templates/*.md.j2"):
        if path.stem.startswith("brief"):
            text = path.read_text().replace("{{ gpudebug }}", "gpudebug")
            yield str(path), re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "3", text)
    for floor in ("core", "engine", "edges"):
        for path in (PACKAGE / floor).rglob("*.py"):
            tree = ast.parse(path.read_text())
            prose = {
                id(node.value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    parts = [p.value if isinstance(p, ast.Constant) else "3" for p in node.values]
                    yield f"{path}:{node.lineno}", "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                    yield f"{path}:{node.lineno}", node.value


def test_no_text_of_the_package_leaves_a_command_that_a_tool_offers() -> None:
    seen = 0
    for place, text in texts():
        seen += bool(SHELL.search(text))
        said = tool_text(text, OFFERED)
        assert not re.search(r"at exit status", said), place
        for found in SHELL.finditer(said):
            if found["verb"] not in OFFERED:
                continue
            # What only a person may run is theirs: marked, or the text names who.
            marked = "(the user runs it)" in said[found.end() :]
            assert marked or re.search("person|user", said[: found.start()]), (place, said)
    assert seen > 50
