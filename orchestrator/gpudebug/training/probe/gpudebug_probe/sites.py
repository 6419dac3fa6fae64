"""Where in the training's code a call came from."""

from __future__ import annotations

import os
from types import CodeType, FrameType
from typing import Any

from .recorder import MOST_SITES, OTHER_SITES, Recorder

# Frames looked at on the way from a library back to the user's own code.
REACH = 12
# Code objects and places remembered; generated code would let them grow without end.
MOST = 4096

USER, LIBRARY, TORCH, PASSED = range(4)
# Of PyTorch, but only hands a call of its caller's on: `f"{loss:.3f}"`, a mode, a tensor's subclass.
HANDS_ON = ("_tensor.py", "tensor.py", "overrides.py", os.path.join("utils", "_device.py"))
# What an interactive Python or `python -c` runs is the user's; other names in brackets are generated code.
TYPED_IN = ("<stdin>", "<string>", "<ipython")


class Sites:
    """Counts calls by the place that made them; a thread that trains costs it well under a microsecond."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._recorder = recorder
        self._torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self._ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
        self._library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        # A script's name may be relative to where the training began.
        self._start = _working_folder()
        self.clear()

    def clear(self) -> None:
        """Forget all places, as a forked child must."""
        # By id: a code object's own hash is slow. Kept alive, so that no other one gets the id.
        self._kinds: dict[int, int] = {}
        self._kept: list[CodeType] = []
        self._entries: dict[tuple[int, int, str, str], list[float]] = {}

    def add(self, frame: FrameType, kind: str, device: str, seconds: float, own: bool = True) -> bool:
        """Count a call that `frame` made; under the user's code if that is within reach.

        Unless `own`, one that PyTorch made for its own ends, as Adam reads its step, is not counted: False.
        """
        key = (id(frame.f_code), frame.f_lasti, kind, device)
        entry = self._entries.get(key)
        if entry is None:
            made_by = self._kind(frame.f_code)
            if not own and self._for_torch(frame):
                return False
            if made_by != USER:
                frame = self._users(frame)
                key = (id(frame.f_code), frame.f_lasti, kind, device)
                entry = self._entries.get(key)
            if entry is None:
                entry = self._enter(frame, key)
        entry[0] += 1
        entry[1] += seconds
        return True

    def _for_torch(self, frame: FrameType) -> bool:
        above: FrameType | None = frame
        while above is not None and self._kind(above.f_code) == PASSED:
            above = above.f_back
        return above is not None and self._kind(above.f_code) == TORCH

    def _enter(self, frame: FrameType, key: tuple[int, int, str, str]) -> list[float]:
        if len(self._entries) >= MOST:
            self.clear()
        code = frame.f_code
        self._kept.append(code)
        file = code.co_filename
        if not file.startswith("<"):
            file = os.path.normpath(os.path.join(self._start, file))
        sites = self._recorder.sites
        place = (file, frame.f_lineno or code.co_firstlineno, key[2], key[3])
        if place not in sites and len(sites) >= MOST_SITES:
            place = OTHER_SITES
        entry = self._entries[key] = sites.setdefault(place, [0, 0.0])
        return entry

    def _users(self, frame: FrameType) -> FrameType:
        """Return the nearest frame of the user's, else the nearest one outside PyTorch, else this one."""
        outside: FrameType | None = None
        above: FrameType | None = frame
        for _ in range(REACH):
            if above is None:
                break
            kind = self._kind(above.f_code)
            if kind == USER:
                return above
            if kind == LIBRARY and outside is None:
                outside = above
            above = above.f_back
        return outside or frame

    def _kind(self, code: CodeType) -> int:
        kind = self._kinds.get(id(code))
        if kind is None:
            if len(self._kinds) >= MOST:
                self.clear()
            kind = self._kinds[id(code)] = self._classified(code.co_filename)
            self._kept.append(code)
        return kind

    def _classified(self, file: str) -> int:
        if file.startswith("<"):
            return USER if file.startswith(TYPED_IN) else PASSED
        file = os.path.normpath(os.path.join(self._start, file))
        if file.startswith(self._torch):
            return PASSED if file[len(self._torch) :] in HANDS_ON else TORCH
        if file.startswith(self._ours):
            return PASSED
        parts = file.split(os.sep)
        if file.startswith(self._library) or "site-packages" in parts or "dist-packages" in parts:
            return LIBRARY
        return USER


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep
