"""The catalogue's expressions, compiled once: there are more than `re` itself remembers."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=8192)
def pattern(expression: str) -> re.Pattern[str]:
    """Letter case does not count."""
    return re.compile(expression, re.IGNORECASE)
