"""Every `gpudebug …` line in a document is one that gpudebug's own command line parses; none is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from tests.support.documents import Page, pages

from gpudebug.cli import app

GROUP: Any = typer.main.get_command(app)
_SHELLS = ("bash", "sh", "console", "text")
_STARTS = re.compile(r"(\$ )?(\.venv/bin/)?gpudebug( |$)")
_ENDS = ("|", "&&", ";", "#")
# A document's placeholders that the command line would refuse.
_PLACES = {"H": "1", "N": "1", "…": None}


def lines(page: Page) -> Iterator[tuple[str, list[str]]]:
    """The arguments of each command line of a page, with their place: lines of blocks, and inline code."""
    for block in page.blocks:
        if block.language in _SHELLS:
            for line in block.text.replace("\\\n", " ").splitlines():
                # What a block of output prints behind `gpudebug:` is not a command line.
                if _STARTS.match(line) and (line.startswith("$ ") or block.language in ("bash", "sh")):
                    yield block.place, words(line)
    for place, code in page.code():
        if _STARTS.match(code):
            # Brackets are around what is optional.
            yield place, words(re.sub(r"[][]", "", code.replace("\\|", "|").replace("|reference", "")))


def words(line: str) -> list[str]:
    """The arguments of a command line, without prompt and program."""
    split = shlex.split(line.removeprefix("$ "), comments=True)[1:]
    cut = next((n for n, word in enumerate(split) if word in _ENDS), len(split))
    return [place for word in split[:cut] if (place := _PLACES.get(word, word)) is not None]


def parse(arguments: list[str]) -> None:
    """What typer does before it calls a command."""
    if arguments in ([], ["--version"], ["--help"]):
        return
    context = GROUP.make_context("gpudebug", list(arguments))
    # Their name differs between the versions of the command line's library.
    first = getattr(context, "_protected_args", None) or getattr(context, "protected_args", [])
    rest = [*first, *context.args]
    name, command, left = GROUP.resolve_command(context, rest)
    # A name alone speaks of the command, whatever it takes.
    if left:
        command.make_context(name, left, parent=context)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path.name)
def test_each_command_line_parses(page: Page) -> None:
    wrong = []
    for place, arguments in lines(page):
        try:
            parse(arguments)
        except Exception as error:  # noqa: BLE001  # whichever class this typer raises
            wrong.append(f"{place}: {shlex.join(arguments)}: {error}")
    assert wrong == []


@pytest.mark.parametrize("line", ["nxt", "next --detatch", "show x", "diagnose --layer"])
def test_a_line_that_is_wrong_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"."):
        parse(words(f"gpudebug {line}"))
