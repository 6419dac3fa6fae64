"""The training frameworks that gpudebug knows, and what the command's own program says of them."""

from __future__ import annotations

from functools import lru_cache

from gpudebug.core.catalogue import Framework, read_framework
from gpudebug.edges import catalogue as files


@lru_cache(maxsize=1)
def known() -> tuple[Framework, ...]:
    """Every framework, in the order of their names."""
    return tuple(read_framework(file.text, file.shown) for file in files.shipped("frameworks"))
