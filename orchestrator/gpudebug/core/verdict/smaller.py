"""Tell whether a change's flags, by their own names, make smaller what the model sees or the model itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudebug.core.change.intervention import Intervention
from gpudebug.core.command import command_line
from gpudebug.core.command.synonyms import Synonyms, names_of
from gpudebug.core.lazy import regex

_LENGTH = regex(
    r"(?:\w+_)?(?:seq|sequence|context|clip)_?(?:len(?:gth)?|size)|(?:model_)?max_(?:\w+_)?len(?:gth)?"
    r"|block_size|context_window|n_?ctx"
)
_SIZE = "size|side|res|resolution|height|width|dim"
_OF_INPUT = regex(
    rf"(?:(?:train|input|model|random|center)_)?(?:image|img|picture|frame|crop|resize|input)_?(?:{_SIZE})"
    r"|imgsz|img_?sz|crop|resize|resolution"
    r"|(?:n_|num_)?(?:(?:image_|img_|clip_|video_)?frames|obs_steps|frame_stack|views|crops)(?:_per_\w+)?"
)
_SPAN = r"(?:s|secs?|seconds|ms|duration|dur|span)"
# As many frames of a shorter clip: equal tensors, equal work, and less of the world in them.
_OF_CONTENT = regex(
    rf"(?:(?:train|input|max|min|target)_)*(?:clip|video|audio|wav|segment|window|excerpt|crop|utterance)s?_?{_SPAN}"
    rf"|(?:(?:train|max|min|target)_)*duration(?:_{_SPAN})?"
)
_OF_MODEL = regex(
    r"(?:\w+_)?(?:hidden|embed|embedding|intermediate|feedforward|ffn?|mlp|latent)_?(?:size|dim|width|channels)"
    r"|d_model|dim_model|dim_feedforward|n_embd|hidden"
    r"|(?:n_?|num_)(?:\w+_)?(?:layers?|blocks)|layers"
)


def smaller(
    change: Intervention,
    argv: Sequence[str],
    printed: Mapping[str, str],
    *,
    synonyms: Synonyms = (),
    by_tokens: bool = False,
    unread: bool = False,
) -> str | None:
    """Which flag makes the model, or its input, smaller than the command has it, and from what to what.

    The old value is that of the command, else the one that the program printed; None if it is not known.
    With `by_tokens` what a shorter sequence gets done is counted, and it is no question; nor is, with
    `unread`, a smaller picture or fewer of them: the losses will say whether the model reads what is dropped.
    """
    for part in change.changes:
        if part.kind != "set" or part.of_server or not part.value:
            continue
        names = [_folded(name) for name in names_of(part.name, synonyms)]
        if not any(_sizes(name, by_tokens, unread) for name in names):
            continue
        old = _old(names, argv, printed)
        new = _number(part.value)
        if old is not None and new is not None and new < old:
            return f"{part.name} goes from {old:g} to {new:g}"
    return None


def _sizes(name: str, by_tokens: bool, unread: bool) -> bool:
    if _LENGTH.fullmatch(name):
        return not by_tokens
    if _OF_CONTENT.fullmatch(name):
        return True
    return bool(_OF_MODEL.fullmatch(name) or (_OF_INPUT.fullmatch(name) and not unread))


def _old(names: Sequence[str], argv: Sequence[str], printed: Mapping[str, str]) -> float | None:
    given = {_folded(o.name): o.value or "" for o in command_line.program_options(argv)}
    shown = {_folded(name): value for name, value in printed.items()}
    known = (_number(found[name]) for found in (given, shown) for name in names if name in found)
    return next((value for value in known if value is not None), None)


def _folded(name: str) -> str:
    return command_line.bare_name(name).replace("-", "_").lower().rsplit(".", 1)[-1]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
