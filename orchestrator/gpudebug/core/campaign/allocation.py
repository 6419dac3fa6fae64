"""What an allocation of a cluster measured counts within it: equal GPUs of two nodes differ by more than most
changes do, and one node by what else runs on it."""

from __future__ import annotations

from collections.abc import Iterable


def afresh(measured: Iterable[str | None], here: str | None) -> str | None:
    """Why a baseline that was `measured` in these allocations is recorded again here; None if it holds.

    None of an allocation: outside of any, or unknown, which is no difference. `here` is None on a login node,
    which measures nothing.
    """
    if here is None:
        return None
    others = dict.fromkeys(each for each in measured if each not in (None, here))
    if not others:
        return None
    return f"it was measured in allocation {', '.join(map(str, others))}, and this is {here}"
