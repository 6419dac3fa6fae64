"""A job that ran already when it was looked at, as one line for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpudebug.core.answers.why import AttachedLook

_SMALL = 0.05
_FEW = 3
_NAMED = 2


def job(look: AttachedLook) -> str:
    """Its processes, what its main thread does, and what looking took."""
    parts = [_who(look), *_main(look), *_cost(look)]
    return f"Job {look.pid}: {'; '.join(parts)}"


def ranks(look: AttachedLook) -> list[str]:
    """Return which ranks spend their time elsewhere than most do; nothing if none does."""
    known = [one for one in look.processes if one.get("of") in ("training", "rank") and one.get("place")]
    places = Counter(str(one["place"]) for one in known)
    if len(known) < _FEW or len(places) < 2:
        return []
    (usual, times), *_ = places.most_common(1)
    odd = [one for one in known if one["place"] != usual]
    if times <= len(known) / 2:
        return []
    named = [f"rank {one.get('rank')} {_share(one)}{one['place']}" for one in odd[:_NAMED]]
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    return [f"Ranks: {times} of {len(known)} mostly in {usual}; {', '.join(named)}{more}"]


def _share(process: Mapping[str, object]) -> str:
    share = _number(process, "place_share")
    return f"{100 * share:.0f}% in " if share is not None else "in "


def unseen(look: AttachedLook) -> list[str]:
    """Return why there are no stacks, and what to do about that; nothing if there are."""
    main = next((one for one in look.processes if one.get("of") == "training"), {})
    known = {"Stacks unknown": main.get("why"), "To see them": main.get("allow")}
    return [f"{name}: {text}" for name, text in known.items() if text]


def _who(look: AttachedLook) -> str:
    kinds = [str(one.get("of")) for one in look.processes]
    ranks = kinds.count("rank") + 1 if "rank" in kinds else 0
    cores = [number for one in look.processes if (number := _number(one, "cores")) is not None]
    found = [f"{ranks} ranks"] if ranks else []
    count, kind = (look.members, "Python process") if look.members else (len(cores), "process")
    if count:
        found.append(f"{count} {kind}{'es' if count > 1 else ''}")
    if cores:
        part = "" if len(cores) == count else f"{len(cores)} of them "
        found.append(f"{part}{sum(cores):.2f} cores")
    return ", ".join(found) or "nothing was seen of it"


def _main(look: AttachedLook) -> list[str]:
    """Return the main thread's time, and what of the kernel's counters is worth a word."""
    main = next((one for one in look.processes if one.get("of") == "training"), None)
    if main is None:
        return []
    names = {"main_running": "runs", "main_ready": "waits for a core", "disk_wait": "waits for a disk"}
    known = {text: _number(main, name) for name, text in names.items()}
    shares = [
        f"{text} {100 * share:.0f}%"
        for text, share in known.items()
        if share is not None and (share >= _SMALL or text == "runs")
    ]
    rates = {"read_mb_s": "reads {:.0f} MB/s", "write_mb_s": "writes {:.0f} MB/s"}
    rates |= {"major_faults_s": "{:.0f} page faults/s", "swap_mb": "{:.0f} MB in swap"}
    more = [text.format(value) for name, text in rates.items() if (value := _number(main, name) or 0) >= 1]
    return [f"its thread {', '.join([*shares, *more])}"] if shares or more else []


def _cost(look: AttachedLook) -> list[str]:
    return [f"looking took {100 * look.cost:.1f}% of a core"] if look.cost is not None else []


def _number(process: Mapping[str, object], name: str) -> float | None:
    value = process.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
