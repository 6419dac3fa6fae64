"""Patches as text: which files they touch, what may not be touched, and what of them has an effect."""

from __future__ import annotations

from gpudebug.core.change.patches.effect import digest, effective
from gpudebug.core.change.patches.hunks import LARGEST, Hunk, Patch, PatchedFile, read
from gpudebug.core.change.patches.safety import LINK, refuse_unsafe, refused_kind, refused_path

__all__ = [
    "LARGEST",
    "LINK",
    "Hunk",
    "Patch",
    "PatchedFile",
    "digest",
    "effective",
    "read",
    "refuse_unsafe",
    "refused_kind",
    "refused_path",
]
