"""Whether a patch touches what a program prints or the loop of its steps: what its own word rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpudebug.core.change.patches.effect import uncommented
from gpudebug.core.change.patches.hunks import Hunk, Patch, PatchedFile

_LONGEST = 60
_TEXTS = (".md", ".rst")
# Read line by line, in any language: wide on purpose, as a person may confirm what is honest.
_PRINTED = r"""
    # what is printed
    \b(?:f?print(?:f|ln)?|echo|puts|log(?:ger|ging|s)?|tqdm|trange|pbar|wandb|stdout|stderr|cout|cerr)\b
    | \blog_\w+ | \w+_log(?:ger)?\b
    | \.(?:info|debug|warn(?:ing)?|error|write(?:lines)?|flush|add_scalars?|set_postfix\w*|set_description)\b
    # what may change any of that out of sight
    | \b(?:builtins|__builtins__|__import__|setattr|settrace|setprofile|globals|ctypes|sys\.modules|dup2)\b
    | (?<![.\w])(?:exec|eval|compile)\s*\( | \b(?:exec[lv]p?e?|fork|posix_spawn)\b
"""
_COUNTED = r"""
    # the loop, and what counts its steps
    | \b(?:range|while|yield|continue|enumerate|until)\b
    | \bfor\b .* \bin\b .* (?:load|batch|data|stream|iter|zip|cycle|repeat|chain|count)
    | (?:\b|_)(?:step|iter|iteration|epoch|update|batche)s?(?:\b|_)
    # what waits, or burns the time of a wait
    | (?:\b|_)(?:sleep|spin)\w*
    | \b(?:perf_counter|monotonic|process_time|thread_time)(?:_ns)?\b | \btime\.time
"""
_TOUCHES = re.compile(_PRINTED + _COUNTED, re.VERBOSE | re.IGNORECASE)
_PRINTS = re.compile(_PRINTED + r"| loss", re.VERBOSE | re.IGNORECASE)


def touches_count(patch: Patch) -> str | None:
    """The first change that touches the printing or the step loop, as `FILE: LINE`; None if none does."""
    return _first(patch, _TOUCHES)


def prints(patch: Patch) -> bool:
    """Tell whether a change touches the loss or the printing, so that printed losses are its own word."""
    return _first(patch, _PRINTS) is not None


def _first(patch: Patch, sought: re.Pattern[str]) -> str | None:
    for each in patch.files:
        if each.path.endswith(_TEXTS):
            continue
        if each.binary:
            return f"{each.path}: a binary file"
        found = next((line for line in changed_lines(each) if sought.search(line)), None)
        if found is not None:
            text = found.strip()
            return f"{each.path}: {text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'}"
    return None


def changed_lines(each: PatchedFile) -> Iterator[str]:
    """Yield the lines that are taken out or put in, without their comments."""
    plain = uncommented(each.path)
    for hunk in each.hunks:
        sides = [_side(hunk, sign, plain) for sign in (b"-", b"+")]
        if sides[0] != sides[1]:
            yield from (line for side in reversed(sides) for line in side)


def _side(hunk: Hunk, sign: bytes, plain: Callable[[bytes], bytes]) -> list[str]:
    lines = (plain(line[1:]).decode("utf-8", "replace").rstrip() for line in hunk.body if line[:1] == sign)
    return [line for line in lines if line]
