"""Where the threads of a run spent their time, a line for each of the hottest places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpudebug.core.words import counted

if TYPE_CHECKING:
    from gpudebug.core.inside.stacks.shares import Taken

Answer = Mapping[str, Any]
_PLACES = {"training": 6, "workers": 3}
_WHO = {"training": "the training thread is", "workers": "loader workers are"}
_LEAST_SHARE = 0.01
_LONGEST_NAME, _LONGEST_CODE = 40, 60


def places(stacks: Answer | None) -> list[str]:
    """Render an evidence's `stacks`; nothing without them."""
    if not stacks:
        return []
    lines = [line for who in _PLACES for line in _of(who, stacks[who])]
    return [*lines, *(f"  note: {note}" for note in stacks["notes"])]


def _of(who: str, record: Answer | None) -> list[str]:
    if not record or not record["seconds"]:
        return []
    from gpudebug.core.inside.stacks.evaluation import evaluation, hottest
    from gpudebug.core.records import Stacks

    stacks = Stacks.model_validate(record)
    hot = [one for one in hottest(stacks) if one.share >= _LEAST_SHARE][: _PLACES[who]]
    ran = 100 * record["cpu_s"] / record["seconds"]
    heading = (
        f"Where {_WHO[who]} ({counted(record['samples'], 'sample')}, running in {ran:.0f}% of the time):"
    )
    names = [_cut(f"{one.site} {one.function}", _LONGEST_NAME) for one in hot]
    width = max(map(len, names), default=0)
    evaluates = evaluation(stacks)
    return [
        heading,
        *([_all_of(evaluates)] if evaluates.value >= _LEAST_SHARE else []),
        *(
            f"  {100 * one.share:3.0f}%  {one.state:<5}  {one.phase:<9}  {name:<{width}}  "
            f"{_cut(one.code, _LONGEST_CODE)}".rstrip()
            for one, name in zip(hot, names, strict=True)
        ),
    ]


def _all_of(evaluates: Taken) -> str:
    """Evaluation as a whole: its lines are those of the network, which training runs as well."""
    function = str(evaluates.place).partition(" (")[0] if evaluates.place else "the training's own loop"
    return f"  {100 * evaluates.value:3.0f}%  of it in evaluation, called by {function}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
