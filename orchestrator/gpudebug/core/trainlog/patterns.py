"""The user's own patterns, which beat everything that is read without them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpudebug.core.errors import ConfigError

GROUP = "value"


def compile_patterns(patterns: Mapping[str, str] | None) -> dict[str, re.Pattern[str]]:
    """`log:` of the configuration compiled; ConfigError for one that is no expression or lacks the group."""
    compiled: dict[str, re.Pattern[str]] = {}
    for name, pattern in (patterns or {}).items():
        try:
            compiled[name] = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(
                f"log.{name}: not a regular expression: {error}", next=f"mend the pattern {pattern!r}"
            ) from error
        if GROUP not in compiled[name].groupindex:
            raise ConfigError(
                f"log.{name}: the pattern {pattern!r} has no group named `{GROUP}`",
                next=f"put (?P<{GROUP}>...) around the number",
            )
    return compiled
