"""The root causes that gpudebug knows: their schema, reading, and what they say of evidence."""

from __future__ import annotations

from gpudebug.core.catalogue.model import GROUPS, KINDS, Cause, Framework
from gpudebug.core.catalogue.parser import Catalogue, collect, read_cause, read_framework

__all__ = ["GROUPS", "KINDS", "Catalogue", "Cause", "Framework", "collect", "read_cause", "read_framework"]
