"""The `gpudebug` command. `status` on its own is answered without loading the command line's library."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from gpudebug.terminal import output


def main() -> None:
    """Run the command of `sys.argv` and end the process with its exit status."""
    words = sys.argv[1:]
    asked = plain_status(words) if sys.platform == "linux" else None
    if asked is None:
        from gpudebug.cli import run

        sys.exit(run(words))
    directory, json = asked
    sys.exit(output.run(lambda: _status(directory, json), json=lambda: json, debug=lambda: False))


def plain_status(words: list[str]) -> tuple[str, bool] | None:
    """Folder and `--json` of a `status` in its usual spellings; None for the command line to parse.

    People and agents ask for the status all the time, and half of its time would be spent on parsing it.
    """
    directory, json, named = ".", False, 0
    rest = iter(words)
    for word in rest:
        if word == "status":
            named += 1
        elif word == "--json":
            json = True
        elif word == "-C":
            directory = next(rest, "")
        else:
            return None
    return (directory, json) if named == 1 and directory and Path(directory).is_dir() else None


def _status(directory: str, json: bool) -> int:
    # A process that ends in a moment leaves nothing worth collecting; looking costs a tenth of its time.
    gc.disable()
    from gpudebug.engine.status.status import status
    from gpudebug.terminal.status import status as render

    folder = output.working_folder(Path(directory))
    if output.in_session():
        from gpudebug.engine.campaign.renewal import renew

        renew(folder)
    output.print_answer(status(folder, every=json), render, None, as_json=json)
    return 0


if __name__ == "__main__":
    main()
