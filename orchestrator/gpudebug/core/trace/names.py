"""Names as small integers, with what each name means: learnt once a name, not once an event."""

from __future__ import annotations

import re

from gpudebug.core.trace.events import (
    Call,
    call_of,
    holds_sync,
    is_communication,
    is_loader,
    is_own,
    is_read,
    is_transfer,
)

# Beyond this a new name is counted under OTHER (numbers of names are kept in 16 bits); a kernel's name may
# have a thousand letters.
LIMIT = 20_000
_LONGEST = 2_000
# In "<built-in method item of Tensor object at 0x7f1b>": each tensor would be a name of its own.
_ADDRESS = re.compile(r"( object)? at 0x[0-9a-fA-F]+")
OTHER = 0

LOADER, READ, HOLDER, COMMUNICATION, TRANSFER, OWN = 1, 2, 4, 8, 16, 32


class Names:
    """`ids[name]` is a name's number, `texts` the way back; `flags` and `calls` say what it means."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.ids: dict[str, int] = {}
        self.texts = ["(other names)"]
        self.flags = [0]
        self.calls = [Call.OTHER]
        self._limit = limit

    def add(self, name: str) -> int:
        """The number of a name that `ids` does not hold yet; the address of an object is no part of it."""
        if " at 0x" in name:
            name = _ADDRESS.sub("", name)
            known = self.ids.get(name)
            if known is not None:
                return known
        if len(self.texts) >= self._limit:
            return OTHER
        number = len(self.texts)
        self.ids[name] = number
        self.texts.append(name[:_LONGEST])
        self.calls.append(call_of(name))
        self.flags.append(
            LOADER * is_loader(name)
            | READ * is_read(name)
            | HOLDER * holds_sync(name)
            | COMMUNICATION * is_communication(name)
            | TRANSFER * is_transfer(name)
            | OWN * is_own(name)
        )
        return number

    @property
    def full(self) -> bool:
        return len(self.texts) >= self._limit
