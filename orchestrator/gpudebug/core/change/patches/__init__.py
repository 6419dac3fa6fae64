"""Patches as text: which files they touch, what may not be touched, and what of them has an effect."""

from __future__ import annotations

from gpudebug.core.change.patches.effect import digest, effective
from gpudebug.core.change.patches.hunks import LARGEST, Hunk, Patch, PatchedFile, read
from gpudebug.core.change.patches.safety import LINK, refuse_unsafe, refused_kind, refused_path
