"""The `gpudebug` command. Plain `status` and `analyze` do not load the library of the command line."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import NamedTuple

from gpudebug.terminal import output


class AskedCommand(NamedTuple):
    """A command in one of its usual spellings: `files` are those of `analyze`."""

    name: str
    directory: str = "."
    json: bool = False
    files: tuple[str, ...] = ()


def main() -> None:
    """Run the command of `sys.argv` and end the process with its exit status."""
    words = sys.argv[1:]
    asked = plain_command(words) if sys.platform == "linux" else None
    if asked is None:
        from gpudebug.cli import run

        sys.exit(run(words))
    sys.exit(output.run(lambda: _answer(asked), json=lambda: asked.json, debug=lambda: False))


def plain_command(words: list[str]) -> AskedCommand | None:
    """Return a `status` or an `analyze` in its usual spellings; None for the command line to parse.

    People and agents ask for the status all the time, and a page of a log is read in a moment: half of it
    would be spent on parsing the command line.
    """
    name, directory, json, files = "", ".", False, list[str]()
    rest = iter(words)
    for word in rest:
        if word == "--json":
            json = True
        elif word == "-C" and name != "analyze":
            directory = next(rest, "")
        elif not name and word in ("status", "analyze"):
            name = word
        elif name == "analyze" and word and not word.startswith("-"):
            files.append(word)
        else:
            return None
    if not name or not directory or not Path(directory).is_dir():
        return None
    if name == "analyze" and (not files or directory != "."):
        return None
    return AskedCommand(name, directory, json, tuple(files))


def _answer(asked: AskedCommand) -> int:
    if asked.name == "status":
        # A process that ends in a moment leaves nothing worth collecting; looking costs a tenth of its time.
        gc.disable()
    folder = output.working_folder(Path(asked.directory))
    if output.in_session():
        from gpudebug.engine.campaign.renewal import renew

        renew(folder)
    (_status if asked.name == "status" else _analyze)(folder, asked)
    return 0


def _status(folder: Path, asked: AskedCommand) -> None:
    from gpudebug.engine.status.status import status
    from gpudebug.terminal.status import status as render

    output.print_answer(status(folder, every=asked.json), render, None, as_json=asked.json)


def _analyze(folder: Path, asked: AskedCommand) -> None:
    from gpudebug.engine.tools.analyze import analyze
    from gpudebug.terminal.analyze import analyze as render

    answer = analyze([folder / name for name in asked.files])
    output.print_answer(answer, render, None, as_json=asked.json)


if __name__ == "__main__":
    main()
