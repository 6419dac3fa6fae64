"""Campaigns that have gone on for long, made of one that was really measured; and briefs taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from gpudebug.core import progress
from gpudebug.engine.campaign.campaign import Loaded
from gpudebug.engine.campaign.verdicts import Judged

_ENTRY = """\
### Hypothesis {n}: {title}
- **Description**: {title}
- **Test Method**: See whether it moves.
- **Intervention**: --set --lr=0.{n}
- **Status**: {status}
- **Result**:
  - Improvement: +1.0pp
  - Notes: {title}

"""


def grown(
    loaded: Loaded,
    count: int,
    title: Callable[[int], str] = lambda n: f"Cause {n} leaves the device waiting for its data",
    by_hand: Callable[[int], bool] = lambda n: False,
    like: int = 1,
    **config: object,
) -> Loaded:
    """The campaign with `count` more hypotheses, each judged as `like` was, every seventh one VALIDATED.

    Only their entries and verdicts are made up, not their runs. `config` replaces settings.
    """
    verdict = loaded.entries.trials[like].verdict
    assert verdict is not None
    first = max(h.number for h in loaded.entries.document.hypotheses) + 1
    statuses = {n: "REJECTED" if n % 7 else "VALIDATED" for n in range(first, first + count)}
    entries = (_ENTRY.format(n=n, title=title(n), status=s) for n, s in statuses.items())
    data = loaded.entries.document.data + b"\n\n" + "".join(entries).encode()
    trials = {
        n: Judged(None, False) if by_hand(n) else Judged(verdict | {"hypothesis": n, "status": s}, True)
        for n, s in statuses.items()
    }
    document = progress.parse(data, loaded.entries.document.file)
    setup = replace(loaded.setup, config=loaded.setup.config.model_copy(update=config))
    more = replace(loaded.entries, document=document, trials={**loaded.entries.trials, **trials})
    return replace(loaded, setup=setup, entries=more)


def sections(page: str) -> dict[str, str]:
    """The page's sections by title, in their order; what stands above the first one is ``."""
    found, title, fence = {"": ""}, "", ""
    for line in page.splitlines():
        opened = re.match(r"(`{3,})(?:text)?$", line)
        if opened and (not fence or line == fence):
            fence = "" if fence else opened[1]
        if line.startswith("## ") and not fence:
            title = line.removeprefix("## ")
            assert title not in found, f"two sections {title!r}"
            found[title] = ""
            continue
        found[title] += line + "\n"
    assert not fence, "a fence that nobody closes"
    return found
